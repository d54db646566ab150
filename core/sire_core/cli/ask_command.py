"""`sire ask`: an answer with citations, and how it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.answers import answer_json, say_answer, say_piece, say_step
from sire_core.cli.groups import grouped
from sire_core.cli.models import DEFAULT_KEY, AnswerOptions, LimitOptions
from sire_core.cli.options import SearchOptions, check_folder, open_index
from sire_core.cli.output import on_terminal, say_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sire_core.index import Index
    from sire_core.reason.steps import Answer, ReasoningStep, Trace

__all__ = ["ask"]


@grouped
def ask(
    folder: arguments.Folder,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know.")],
    searching: SearchOptions,
    answering: AnswerOptions,
    limits: LimitOptions,
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
    from sire_core.reason import PassageSource, reason, settings_of

    check_folder(folder, question)
    strategy = settings_of(via, flavor)
    model = answering.model()
    limits.need_model(model)
    if model is None:
        via, strategy = "single", {"answer": False}
    strategy["limits"] = limits.of_reasoning()
    with open_index(searching.options(folder, model)) as index:
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
