"""`sire ask`: an answer with citations, and how it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.answers import answer_json, say_answer, say_piece, say_step
from sire_core.cli.models import DEFAULT_KEY, language_model
from sire_core.cli.options import IndexOptions, check_folder, open_index
from sire_core.cli.output import on_terminal, say_json
from sire_core.cli.recipe_options import parse_settings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sire_core.index import Index
    from sire_core.reason.steps import Answer, ReasoningStep, Trace

__all__ = ["ask"]


def ask(  # noqa: PLR0917 - typer passes every option by name
    folder: arguments.Folder,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know.")],
    via: Annotated[
        str,
        typer.Option(
            "--via",
            metavar="single|ircot|self-ask",
            help="`single` searches once and answers, one call; `ircot` thinks and searches in turn; `self-ask` asks "
            "itself follow-up questions.",
        ),
    ] = "single",
    flavor: Annotated[
        str | None,
        typer.Option(
            "--flavor",
            metavar="NAME",
            help="Of ircot: `indexrag` (default), `hipporag` or `original`. Of self-ask: `search` (default) or "
            "`two_call`.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k", min=1, help="How many hits the answer is read from. Default: 10; all that `original` collects."
        ),
    ] = None,
    where: arguments.Filter = None,
    recipe: arguments.RecipeName = None,
    settings: arguments.SearchSettings = None,
    ranker: arguments.Ranker = None,
    embedder: arguments.Embedder = None,
    llm: Annotated[
        str | None,
        typer.Option("--llm", metavar="MODEL", help="The model that thinks and answers. Without one: the evidence."),
    ] = None,
    base_url: arguments.BaseUrl = None,
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY,
    model_timeout: arguments.ModelTimeout = None,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", min=0, help="Most rounds of thinking and searching.")
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", min=0, help="Most requests to the model; one is kept for the answer.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", min=0, help="Most tokens, in and out.")] = None,
    timeout: Annotated[float | None, typer.Option("--timeout", help="Most seconds for everything.")] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Answer a question, with citations.

    Every step is shown as it happens, and on a terminal the answer while it is written.

    Example: sire ask my-index "When did Lothair II's mother die?" --via ircot --llm gpt-4o-mini

    Without --llm nothing is answered: the evidence is shown as `sire query` finds it. When the evidence does not hold
    the answer, it says: insufficient evidence. Exit code 1 when a model was given and did not get to an answer.

    JSON: {"question", "answer", "sufficient", "citations", "stop", "note", "steps", "hits", "usage"}; hits are those of
    `sire query --json`, citations their numbers from 1.
    """
    from sire_core.reason import PassageSource, ReasoningLimits, reason, settings_of

    check_folder(folder, question)
    strategy = settings_of(via, flavor)
    # The limits are the reasoning's, not the client's: so one call is kept for the answer.
    calls, tokens = (max_calls, max_tokens) if llm is None else (None, None)
    model = language_model(llm, base_url, api_key_env, max_calls=calls, max_tokens=tokens, model_timeout=model_timeout)
    if model is None:
        via, strategy = "single", {"answer": False}
    strategy["limits"] = ReasoningLimits(max_steps, max_calls, max_tokens, timeout)
    options = IndexOptions(
        folder=folder,
        recipe=recipe,
        settings=parse_settings(settings),
        ranker=ranker,
        embedder=embedder,
        language_model=model,
    )
    with open_index(options) as index:
        shows = not as_json and model is not None
        streams = shows and on_terminal()
        steps = reason(via, PassageSource(index), question, k=k, filter=where, stream=streams, **strategy)
        trace, shown = _run(steps, shows=shows)
        hint = "" if model else _no_model(index)
    if as_json:
        say_json(answer_json(question, trace, hint))
    else:
        say_answer(trace.answer, hint, shown=shown)
    if model is not None and _failed(trace.answer):
        raise typer.Exit(1)


def _run(steps: AsyncGenerator[ReasoningStep, None], *, shows: bool) -> tuple[Trace, bool]:
    """Run a strategy to its end, showing every step as it happens; also whether the answer was shown in pieces."""
    from sire_core.reason import iterate_sync
    from sire_core.reason.steps import Answer, AnswerPiece, Trace

    made: list[ReasoningStep] = []
    pieces = 0
    for step in iterate_sync(steps):
        if isinstance(step, AnswerPiece):
            say_piece(step, begins=not pieces)
            pieces += 1
            continue
        made.append(step)
        if shows:
            say_step(step)
    answer = made[-1]
    assert isinstance(answer, Answer)  # what every strategy ends with
    return Trace(tuple(made), answer), pieces > 0


def _failed(answer: Answer) -> bool:
    """Whether there is no answer, or a part of one that broke off."""
    return answer.stop in ("model_failed", "timeout") or (not answer.text and answer.stop != "empty_index")


def _no_model(index: Index) -> str:
    """What to do for an answer."""
    built_by = str(index.stats()["language_model"]).removeprefix("openai:")
    return (
        f"No language model was given, so this is the evidence and not an answer. For an answer add --llm "
        f"{built_by or 'MODEL'}, with the key in {DEFAULT_KEY} or, for a server of your own, --base-url URL."
    )
