"""`sire ask`: an answer with citations, and how it was found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sire_core.algorithms.wording import shorten
from sire_core.cli import arguments
from sire_core.cli.arguments import grouped
from sire_core.cli.models import DEFAULT_KEY, AnswerOptions, LimitOptions
from sire_core.cli.options import SearchOptions, check_folder, open_index
from sire_core.cli.output import count, note, on_terminal, say, say_json, say_part
from sire_core.cli.query_commands import hit_json, say_hit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sire_core.index import Index
    from sire_core.protocols import LanguageModel
    from sire_core.reason.steps import Answer, AnswerPiece, ReasoningStep, Trace

__all__ = ["ask"]


@dataclass(frozen=True, slots=True)
class StrategyOptions:
    """Options of how is reasoned."""

    via: Annotated[
        str,
        typer.Option(
            "--via",
            metavar="single|ircot|self-ask",
            help="`single` searches once and answers in one call; `ircot` alternates reasoning and searching; "
            "`self-ask` asks itself follow-up questions.",
        ),
    ] = "single"
    flavor: Annotated[
        str | None,
        typer.Option(
            "--flavor",
            metavar="NAME",
            help="For ircot: `indexrag` (default), `hipporag` or `original`. For self-ask: `search` (default) or "
            "`two_call`.",
        ),
    ] = None

    def arguments(self, model: LanguageModel | None, limits: LimitOptions) -> dict[str, Any]:
        """Arguments of `reason`: the strategy and its settings; without a model one search, and no answer."""
        from sire_core.reason import settings_of

        settings = settings_of(self.via, self.flavor)
        limits.need_model(model)
        found = {"strategy": self.via, **settings} if model else {"strategy": "single", "answer": False}
        return {**found, "limits": limits.of_reasoning()}


@grouped
def ask(
    folder: arguments.Folder,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    searching: SearchOptions,
    answering: AnswerOptions,
    limits: LimitOptions,
    strategy: StrategyOptions,
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            min=1,
            help="Number of hits that the model reads. Default: 10, or with `original` all that it collects.",
        ),
    ] = None,
    where: arguments.Filter = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Answer a question, with citations.

    Shows every step as it happens; on a terminal, the answer streams.

    Example: sire ask my-index "When did Lothair II's mother die?" --via ircot --llm gpt-4o-mini

    Without --llm there is no answer, and the evidence is shown as by `sire query`. If the evidence does not contain the
    answer, the output says: insufficient evidence. The exit code is 1 if a model was given but produced no answer.

    JSON: {"question", "answer", "sufficient", "citations", "findings", "stop", "note", "steps", "hits", "usage"}; hits
    are those of `sire query --json`, citations their numbers from 1.
    """
    from sire_core.reason import PassageSource, reason

    check_folder(folder, question)
    model = answering.model()
    how = strategy.arguments(model, limits)
    with open_index(searching.options(folder, model)) as index:
        shows = not as_json and model is not None
        streams = shows and on_terminal()
        steps = reason(index=PassageSource(index), question=question, k=k, filter=where, stream=streams, **how)
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
    """A hint how to get an answer."""
    built_by = str(index.stats()["language_model"]).removeprefix("openai:")
    return (
        f"No language model was given, so this is the evidence and not an answer. For an answer add --llm "
        f"{built_by or 'MODEL'}, with the key in {DEFAULT_KEY} or, for a server of your own, --base-url URL."
    )


_TITLES = 5


def say_step(step: ReasoningStep) -> None:
    """Print a step; the answer is left to `say_answer`."""
    from sire_core.reason.steps import IntermediateAnswer, Retrieved, SubQuestion, Thought

    if isinstance(step, Thought):
        say(f"thought {step.number}: {step.text}")
    elif isinstance(step, SubQuestion):
        say(f"question {step.number}: {step.text}")
    elif isinstance(step, IntermediateAnswer):
        say(f"answer {step.number}: {step.text or 'unknown'}")
    elif isinstance(step, Retrieved):
        titles = dict.fromkeys(hit.unit.title or shorten(hit.unit.text, 40) for hit in step.hits)
        shown = "; ".join(list(titles)[:_TITLES])
        say(f"found {count(len(step.hits), 'hit')}, {step.new} new{shown and ': '}{shown}", "cyan", indent=4)


def say_piece(piece: AnswerPiece, *, begins: bool) -> None:
    """Print a piece of an answer on a terminal, as it is written."""
    if begins or piece.restart:
        say_part("\nAnswer: " if begins else "\n\nAnswer, asked for again: ", "bold")
    say_part(piece.text, "bold")


def say_answer(answer: Answer, hint: str = "", *, shown: bool = False) -> None:
    """Print an answer and the hits that it cites; all hits when it cites none."""
    from sire_core.reason.reader import INSUFFICIENT

    if shown:
        say("\n")
    if answer.note:
        note(f"error: {answer.note}", "red")
    if not answer.text and not hint and answer.hits:
        note("There is no answer. The evidence that was found:")
    if not shown and (answer.text or (answer.stop == "empty_index" and not hint)):
        say(f"\nAnswer: {answer.text or INSUFFICIENT}\n", "bold green" if answer.sufficient else "bold yellow")
    cited = answer.citations if answer.sufficient else ()
    for number, hit in enumerate(answer.hits, 1):
        if not cited or number in cited:
            say_hit(number, hit)
    if not answer.hits:
        note("No hits: nothing is indexed, or nothing passes the filter.")
    if hint:
        note(hint, "yellow")
        return
    if cited and len(cited) < len(answer.hits):
        note(f"{count(len(answer.hits) - len(cited), 'more hit')} read and not cited; --json lists all.")
    used = answer.usage
    findings = "".join(f" Finding {finding}." for finding in answer.findings)
    tokens = f"{used.input_tokens:,} + {used.output_tokens:,} tokens"
    note(f"Stopped: {answer.stop}. {count(used.calls, 'call')}, {tokens}, searches: {used.retrievals}.{findings}")


def answer_json(question: str, trace: Trace, hint: str = "") -> dict[str, Any]:
    """A reasoning for scripts."""
    from sire_core.reason.steps import plain_step

    answer = trace.answer
    return {
        "question": question,
        "answer": answer.text,
        "sufficient": answer.sufficient,
        "citations": list(answer.citations),
        "findings": list(answer.findings),
        "stop": answer.stop,
        "note": answer.note or hint,
        "steps": [plain_step(step, "hits", lambda hit: hit.unit.id, "step") for step in trace.steps[:-1]],
        "hits": [hit_json(hit) for hit in answer.hits],
        "usage": asdict(answer.usage),
    }
