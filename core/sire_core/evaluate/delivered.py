"""Recall of required evidence within budgets of tokens, of whole hits and of the context chosen from them.

What is delivered counts: labels, headings and quotes. A need is met when one delivered text of its document holds the
whole quote. Questions without quotes count by their answer, where one can stand in a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sire_core.documents.block_reading import read_blocks
from sire_core.evaluate.retrieval import span_answers
from sire_core.evaluate.rows import fold, passage_names
from sire_core.search.context import (
    POOL,
    Evidence,
    context_text,
    number_label,
    select_context,
)
from sire_core.search.pieces import spans_of
from sire_core.text.words import count_tokens, normalize_answer, truncate_tokens
from sire_core.types import Document, Hit, Passage

if TYPE_CHECKING:
    from sire_core.filters import FilterLike
    from sire_core.index import Index
    from sire_core.questions import Question

PIECE_CHARS = 450  # Length of the small pieces that baselines rank
_FIRST_HITS = 100


def whole_evidence(hits: Sequence[Hit], max_tokens: int) -> list[Evidence]:
    """The first hits that fit a budget behind their labels and titles, the last one cut there."""
    evidence: list[Evidence] = []
    room = max_tokens
    for number, hit in enumerate(hits, 1):
        label = f"{number_label(number, hit)} {hit.unit.title}"
        text = truncate_tokens(hit.unit.text, max(0, room - count_tokens(label)))
        room -= count_tokens(f"{label}\n{text}")
        if text:
            evidence.append(Evidence(hit, text, ((0, len(text)),)))
        if room <= 0:
            break
    return evidence


def delivered_recall(question: Question, evidence: Sequence[Evidence]) -> float | None:
    """Share of the needs that evidence meets, 0 to 1; of a question without quotes, whether it has the answer."""
    if question.needs:
        texts = [(passage_names(one.hit.unit, one.doc_ids), fold(one.text)) for one in evidence]
        met = [
            any(quote.doc in names and fold(quote.text) in text for quote in need for names, text in texts)
            for need in question.needs
        ]
        return sum(met) / len(met)
    answers = span_answers(question.answers)
    if not answers:
        return None
    whole = f" {normalize_answer(context_text(evidence))} "
    return float(any(f" {answer} " in whole for answer in answers))


async def recalls_within(
    index: Index, question: Question, budgets: Sequence[int], filter: FilterLike = None
) -> tuple[dict[int, float | None], dict[int, float | None]]:
    """Recall within each budget: of whole passages in rank order, and of the context chosen from the first ones."""
    snapshot = await index.asnapshot(filter=filter)
    k = _FIRST_HITS
    hits = await snapshot.asearch(question.question, k)
    while len(hits) == k and sum(count_tokens(hit.unit.text) for hit in hits) < max(budgets):
        k *= 2
        hits = await snapshot.asearch(question.question, k)
    passages = snapshot.with_neighbors(hits[:POOL])
    whole = {budget: delivered_recall(question, whole_evidence(hits, budget)) for budget in budgets}
    contexts = {budget: select_context(question.question, passages, budget).evidence for budget in budgets}
    return whole, {budget: delivered_recall(question, evidence) for budget, evidence in contexts.items()}


def as_pieces(documents: Sequence[Document]) -> list[Document]:
    """Documents whose passages are cut into small pieces at paragraphs and sentences, each with the title."""
    return [
        replace(
            document,
            text="",
            chunks=tuple(
                Passage(passage.text[start:end], title=passage.title, metadata=passage.metadata)
                for passage in document.passages
                for start, end in _piece_spans(passage.text)
            ),
        )
        for document in documents
    ]


def _piece_spans(text: str) -> Iterator[tuple[int, int]]:
    """Spans of about `PIECE_CHARS` characters: whole blocks together, long ones cut at sentences and lines."""
    first = last = -1
    for block in read_blocks(text):
        for start, end in spans_of(text, block.start, block.end, PIECE_CHARS, PIECE_CHARS):
            if first >= 0 and end - first > PIECE_CHARS:
                yield first, last
                first = -1
            first, last = (start if first < 0 else first), end
    if first >= 0:
        yield first, last
