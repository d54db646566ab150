"""The last call: an answer from the final context, with citations, or the admission that it does not suffice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.text import normalize_answer
from sire_core.reason.prompts import READ, prompt

if TYPE_CHECKING:
    from sire_core.reason.calls import ModelCalls
    from sire_core.types import Hit

__all__ = ["INSUFFICIENT", "ReadAnswer", "cite", "read"]

INSUFFICIENT = "insufficient evidence"
"""What an answer says when the evidence does not contain it."""

_CITATION = re.compile(r"\s*\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """An answer, the numbers of the hits that it cites (from 1), and whether the hits contain it."""

    text: str = ""
    citations: tuple[int, ...] = ()
    sufficient: bool = False


async def read(
    calls: ModelCalls, question: str, hits: Sequence[Hit], notes: Sequence[Any] = (), background: Sequence[str] = ()
) -> ReadAnswer:
    """Ask for the answer; one call.

    Args:
        calls: The way to the model.
        question: The question.
        hits: The context, in order.
        notes: What the reasoning has come to; shown to the model as unverified.
        background: Summaries of what stands behind the hits; shown likewise.

    Raises:
        StoppedError: A limit is reached, time is up, or the model failed.
    """
    from sire_core.reason.schemas import Reading

    asked = prompt(READ, question, [hit.unit for hit in hits], notes=list(notes), background=list(background))
    reply = await calls.ask(asked, schema=Reading, last=True)
    if reply.parsed is None:  # an answer in prose is an answer
        return cite(reply.text.strip(), (), len(hits), sufficient=True)
    return cite(reply.parsed.answer.strip(), reply.parsed.citations, len(hits), sufficient=reply.parsed.sufficient)


def cite(text: str, named: Sequence[int], hits: int, *, sufficient: bool) -> ReadAnswer:
    """Make text and citations agree: the text cites every passage that was named, and none that does not exist.

    Args:
        text: The answer, perhaps with citations such as [2] or [1, 3].
        named: Citations named beside it.
        hits: How many passages there are.
        sufficient: What the model says of them.
    """
    inside: list[int] = []

    def tidy(match: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", match.group(1))]
        known = [number for number in numbers if 1 <= number <= hits]
        inside.extend(known)
        if not known and min(numbers) > max(hits, 99):  # a year in brackets, say
            return match.group(0)
        space = match.group(0)[: len(match.group(0)) - len(match.group(0).lstrip())]
        return space + "".join(f"[{number}]" for number in known) if known else ""

    text = _CITATION.sub(tidy, text).strip()
    bare = normalize_answer(_CITATION.sub("", text))
    if not sufficient or not bare or bare == INSUFFICIENT:
        return ReadAnswer(text if bare else INSUFFICIENT, tuple(dict.fromkeys(inside)), sufficient=False)
    missing = [number for number in dict.fromkeys(named) if 1 <= number <= hits and number not in inside]
    if missing:
        text += " " * (not inside) + "".join(f"[{number}]" for number in missing)
    return ReadAnswer(text, tuple(dict.fromkeys([*inside, *missing])), sufficient=True)
