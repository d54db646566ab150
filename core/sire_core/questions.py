"""Questions whose answers and evidence are known: what measuring and training read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from sire_core.types import Metadata


class Quote(NamedTuple):
    """A sentence that answers a part of a question.

    Attributes:
        doc: Id of the document that it stands in.
        text: The sentence, word for word; capitals, white space and the marks of Markdown and RST do not count.
    """

    doc: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question whose answer is known.

    Attributes:
        id: Unique in its file.
        question: The question.
        answers: Accepted answers, the preferred one first; empty when none is known.
        supporting: Ids of the documents or passages that the answer needs.
        needs: The parts of the answer, each as quotes of which one is enough.
        type: The set's own word for the kind of question, such as `bridge` or `comparison`.
        hops: Number of documents to combine; 0 if unknown.
        metadata: Other keys of our own format.
        closed: Whether a wrong yes or no is worth nothing, as the official scripts of HotpotQA and 2WikiMultiHopQA have
            it; known by the form of their records.
        grades: Relevance of every judged document where a set has grades (BEIR, TREC); 0 and below is not relevant.
    """

    id: str
    question: str
    answers: tuple[str, ...] = ()
    supporting: tuple[str, ...] = ()
    type: str = ""
    hops: int = 0
    metadata: Metadata = field(default_factory=dict)
    closed: bool = False
    needs: tuple[tuple[Quote, ...], ...] = ()
    grades: tuple[tuple[str, int], ...] = ()

    @property
    def has_gold(self) -> bool:
        """True if the evidence of the answer is known."""
        return bool(self.supporting or self.needs)
