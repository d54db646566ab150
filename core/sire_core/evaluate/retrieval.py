"""Metrics of a ranking against gold, and of a context of so many tokens. Every one is in 0..1.

A ranking is a list of ids of documents or passages. Hits become one in three ways: `passage_ranking` has a slot for
every passage, `provenance_ranking` credits a synthetic unit with what it was made from, `literal_ranking` credits one
made from several documents with nothing. Gold is a list of needs: an id, or a set of ids of which one is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log2
from typing import TYPE_CHECKING, Union

from sire_core.text.words import count_tokens, normalize_answer, truncate_tokens
from sire_core.types import Hit, UnitKind

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet
    from sire_core.index import Index

CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})  # Answers that are chosen, not copied from a passage; normalised

Gold = Collection[Union[str, frozenset[str]]]  # The needs of a question: ids, or sets of ids of which one is enough

IdsOf = Callable[[Hit], Sequence[str]]


def _documents(hit: Hit) -> Sequence[str]:
    return hit.doc_ids


def provenance_ranking(hits: Iterable[Hit]) -> list[str]:
    """Expand every hit to its document ids in order, each id once."""
    return list(dict.fromkeys(name for hit in hits for name in hit.doc_ids))


def passage_ranking(hits: Iterable[Hit], ids: IdsOf = _documents) -> list[str | None]:
    """Document ids (or what `ids` returns) of passages, one slot each; None for one that brings no new id."""
    slots: dict[str | int, str | None] = {}
    for slot, hit in enumerate(hits):
        fresh: dict[str | int, str | None] = {name: name for name in ids(hit) if name not in slots}
        slots.update(fresh or {slot: None})
    return list(slots.values())


def literal_ranking(hits: Iterable[Hit], ids: IdsOf = _documents) -> list[str | None]:
    """Ids, as above, of the hits that say what one document says; a synthetic hit keeps its slot as None."""
    slots: dict[str | int, str | None] = {}
    for slot, hit in enumerate(hits):
        if hit.unit.kind in (UnitKind.CHUNK, UnitKind.AKU):
            slots.update((name, name) for name in ids(hit) if name not in slots)
        else:
            slots[slot] = None
    return list(slots.values())


def recall_at_k(ranking: Sequence[str | None], gold: Gold, k: int) -> float:
    """R@k: share of the needs that the first `k` distinct passages meet."""
    return sum(first_met(_first(ranking, k), gold)) / len(_needs(gold))


def all_at_k(ranking: Sequence[str | None], gold: Gold, k: int) -> float:
    """1 when the first `k` distinct passages meet every need."""
    return float(recall_at_k(ranking, gold, k) == 1)


def reciprocal_rank(ranking: Sequence[str | None], gold: Gold) -> float:
    """1 / rank of the first passage that meets a need, 0 when there is none; its mean over questions is MRR."""
    counts = first_met(_first(ranking, len(ranking)), gold)
    return next((1.0 / rank for rank, count in enumerate(counts, start=1) if count), 0.0)


def ndcg_at_k(ranking: Sequence[str | None], gold: Gold, k: int) -> float:
    """nDCG@k with equal gains: discounted gain of the needs that the first `k` meet, over that of a perfect list."""
    gains = sum(count / log2(rank + 1) for rank, count in enumerate(first_met(_first(ranking, k), gold), start=1))
    return min(1.0, gains / sum(1.0 / log2(rank + 1) for rank in range(1, min(len(_needs(gold)), k) + 1)))


def graded_ndcg_at_k(ranking: Sequence[str | None], grades: Mapping[str, int], k: int) -> float:
    """nDCG@k with the grades as gains, as trec_eval has it; 0 if no document is relevant."""
    ranked = [max(0, grades.get(item, 0)) if item is not None else 0 for item in _first(ranking, k)]
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:k]
    discounted = (sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1)) for gains in (ranked, ideal))
    gain, best = discounted
    return gain / best if best else 0.0


def first_met(ranking: Iterable[str | None], gold: Gold) -> list[int]:
    """For each slot of a ranking the number of needs that it meets and no slot above it met."""
    left = _needs(gold)
    counts = []
    for item in ranking:
        still = [need for need in left if item not in need] if item is not None else left
        counts.append(len(left) - len(still))
        left = still
    return counts


def _needs(gold: Gold) -> list[frozenset[str]]:
    """The needs as sets; an id that is given twice is one need."""
    if not gold:
        raise ValueError("a question without gold passages has no recall; leave it out of the mean")
    ids = dict.fromkeys(need for need in gold if isinstance(need, str))
    return [*(frozenset((name,)) for name in ids), *(need for need in gold if not isinstance(need, str))]


def _first(ranking: Sequence[str | None], k: int) -> list[str | None]:
    """The first `k` slots; a repeated passage takes one slot only, an empty slot (None) counts every time."""
    slots: dict[str | int, str | None] = {}
    for slot, item in enumerate(ranking):
        slots.setdefault(slot if item is None else item, item)
    return list(slots.values())[:k]


async def evidence_match(index: Index, dataset: DataSet) -> float | None:
    """Share of the gold passages that are on a chain of their question, a mean over questions; None without chains."""
    snapshot = await index.asnapshot()
    measure = getattr(snapshot.recipe.ranker, "gold_on_chains", None)
    questions = [question for question in dataset.questions if question.supporting]
    if measure is None or not questions:
        return None
    shares: Sequence[float] = await measure(questions, snapshot.view)
    return 100.0 * sum(shares) / len(shares)


@dataclass(frozen=True, slots=True)
class BudgetedContext:
    """A text, or a context that was cut to a budget, in the two normal forms that the metrics look into."""

    text: str  # White space normalised
    answer_text: str  # `normalize_answer` of it
    tokens: int  # Its length; below the budget when the hits ran out
    parts: tuple[str, ...] = ()  # The texts that it was joined from, as they were cut, in rank order


class BudgetScorer:
    """Measures of the first N tokens of context; comparable between units of any size.

    The context is the hits' texts (`Unit.text`) in rank order, cut after `budget` tokens (`count_tokens`). The text
    that crosses the border is truncated there, not dropped: otherwise a recipe with long units would lose a whole unit
    where one with short units loses a sentence.

    A gold passage counts when its whole text, white space normalised, is a substring of the context. That is the
    literal reading for every kind of unit: a chunk that fits holds its passage, one that was truncated does not, a
    summary counts only where it quotes the passage from end to end. Texts are normalised once and remembered.
    """

    def __init__(self, budget: int, passages: Mapping[str, str]) -> None:
        """Remember what is to be found."""
        self.budget = budget
        self._passages = passages
        self._prepare = cache(_prepare)

    def context(self, texts: Iterable[str]) -> BudgetedContext:
        """Join texts in order and cut them at the budget; the last one is truncated."""
        parts: list[BudgetedContext] = []
        cut: list[str] = []
        left = self.budget
        for text in texts:
            if not left:
                break
            part = self._prepare(text)
            cut_text = text
            if part.tokens > left:
                cut_text = truncate_tokens(text, left)
                part = _prepare(cut_text)
            parts.append(part)
            cut.append(cut_text)
            left -= part.tokens
        return BudgetedContext(
            " ".join(part.text for part in parts if part.text),
            " ".join(part.answer_text for part in parts if part.answer_text),
            self.budget - left,
            tuple(cut),
        )

    def recall(self, context: BudgetedContext, gold: Collection[str], whole: Collection[str] = ()) -> float:
        """Share of the gold passages (document ids) whose text is inside the context, 0..1."""
        texts = {name: self._prepare(self._passages.get(name, "")).text for name in gold}
        return sum(name in whole or bool(text and text in context.text) for name, text in texts.items()) / len(texts)

    def answer(self, context: BudgetedContext, answers: Sequence[str]) -> float | None:
        """1 when any accepted answer stands in the context at token boundaries; None when the question is left out."""
        spans = span_answers(answers)
        if not spans:
            return None
        padded = f" {context.answer_text} "
        return float(any(f" {span} " in padded for span in spans))


def span_answers(answers: Sequence[str]) -> list[str]:
    """Normalised answers that can stand in a passage."""
    normalized = [answer for answer in map(normalize_answer, answers) if answer]
    if normalized and normalized[0] in CLOSED_ANSWERS:
        return []
    return [answer for answer in normalized if answer not in CLOSED_ANSWERS]


def _prepare(text: str) -> BudgetedContext:
    # Normal forms are made per text and joined: none of their rules reaches across the white space between two texts.
    return BudgetedContext(" ".join(text.split()), normalize_answer(text), count_tokens(text))
