"""What agents read: hits, steps and answers as text that names its documents in brackets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sire_core.algorithms.wording import count
from sire_core.reason.citations import named_citations
from sire_core.reason.steps import AnswerPiece, IntermediateAnswer, Retrieved, SubQuestion, Thought

if TYPE_CHECKING:
    from sire_core.reason.steps import Answer, ReasoningStep
    from sire_core.types import Hit

__all__ = ["answer_text", "cited_hits", "documents_of", "hits_text", "source_title", "step_text"]

_NAMES = ("source", "file_name", "file_path", "url")
_SHOWN = 5
"""Most documents that one citation names."""


def hits_text(hits: Sequence[Hit]) -> str:
    """Hits as `[doc_id] text` blocks."""
    return "\n\n".join(f"[{documents_of(hit)}] {hit.unit.index_text}" for hit in hits) or "Nothing was found."


def documents_of(hit: Hit) -> str:
    """Ids of the documents that a hit stands on, the first few of them."""
    ids = hit.doc_ids or (hit.unit.id,)
    more = f", and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(ids[:_SHOWN]) + more


def cited_hits(answer: Answer) -> list[Hit]:
    """The hits that an answer cites, in the order in which it does."""
    return [answer.hits[number - 1] for number in answer.citations]


def answer_text(answer: Answer, steps: Sequence[ReasoningStep] = ()) -> str:
    """A short answer with its sources.

    The answer cites documents by their ids, then come the sources with their titles, whether the evidence suffices,
    and the steps, if there are any.

    Args:
        answer: The last step of a reasoning.
        steps: The others, if they are wanted.
    """
    parts = [named_citations(answer.text, [documents_of(hit) for hit in answer.hits]) or "There is no answer."]
    cited = cited_hits(answer)
    if cited:
        parts.append("Sources:\n" + "\n".join(dict.fromkeys(map(_source, cited))))
    elif answer.hits:
        parts.append("Read, but not cited:\n" + "\n".join(dict.fromkeys(map(_source, answer.hits[:_SHOWN]))))
    why = f"{answer.stop}: {answer.note}" if answer.note else answer.stop
    sufficient = "yes" if answer.sufficient else f"no (stopped by {why})"
    parts.append(f"The evidence is sufficient: {sufficient}.")
    if lines := [step_text(step) for step in steps if not isinstance(step, AnswerPiece) and step is not answer]:
        parts.append("Steps:\n" + "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1)))
    return "\n\n".join(parts)


def step_text(step: ReasoningStep) -> str:
    """A step of reasoning in a sentence."""
    if isinstance(step, SubQuestion):
        return f"Searching: {step.text}"
    if isinstance(step, Retrieved):
        return f"Found {count(len(step.hits), 'passage or fact', 'passages and facts')}, {step.new:,} of them new."
    if isinstance(step, IntermediateAnswer):
        return f"{step.question} {step.text or 'unknown'}"
    assert isinstance(step, Thought)
    return step.text


def source_title(hit: Hit) -> str:
    """What people know a hit's source by: its title, else the file or address that its metadata name."""
    named = (hit.metadata.get(key) for key in _NAMES if hit.metadata.get(key) not in hit.doc_ids)
    return hit.unit.title or next((name for name in named if isinstance(name, str)), "")


def _source(hit: Hit) -> str:
    return f"[{documents_of(hit)}] {source_title(hit)}".rstrip()
