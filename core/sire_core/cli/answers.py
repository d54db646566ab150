"""Reasoning on the screen and for scripts: steps, answer, evidence."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.wording import shorten
from sire_core.cli.output import count, note, say, say_part
from sire_core.cli.query_command import hit_json, say_hit

if TYPE_CHECKING:
    from sire_core.reason.steps import Answer, AnswerPiece, ReasoningStep, Trace

__all__ = ["answer_json", "say_answer", "say_piece", "say_step"]

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
    """Print a piece of an answer on a terminal, as it is written.

    Args:
        piece: The piece.
        begins: Whether it is the first one.
    """
    if begins or piece.restart:
        say_part("\nAnswer: " if begins else "\n\nAnswer, asked for again: ", "bold")
    say_part(piece.text, "bold")


def say_answer(answer: Answer, hint: str = "", *, shown: bool = False) -> None:
    """Print an answer and the hits that it cites; all hits when it cites none.

    Args:
        answer: The last step.
        hint: Why there is only evidence; empty when an answer was asked for.
        shown: Whether the text has been printed piece by piece.
    """
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
    tokens = f"{used.input_tokens:,} + {used.output_tokens:,} tokens"
    note(f"Stopped: {answer.stop}. {count(used.calls, 'call')}, {tokens}, searches: {used.retrievals}.")


def answer_json(question: str, trace: Trace, hint: str = "") -> dict[str, Any]:
    """A reasoning for scripts."""
    answer = trace.answer
    return {
        "question": question,
        "answer": answer.text,
        "sufficient": answer.sufficient,
        "citations": list(answer.citations),
        "stop": answer.stop,
        "note": answer.note or hint,
        "steps": [_step_json(step) for step in trace.steps[:-1]],
        "hits": [hit_json(hit) for hit in answer.hits],
        "usage": asdict(answer.usage),
    }


def _step_json(step: ReasoningStep) -> dict[str, Any]:
    """A step by name, its hits by their ids."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(step).__name__).lower()
    values = {field: getattr(step, field) for field in step.__dataclass_fields__}
    if "hits" in values:
        values["hits"] = [hit.unit.id for hit in values["hits"]]
    return {"step": name, **values}
