"""Metrics of a ranking against gold passages, and of a context of so many tokens. Every one is in 0..1.

A ranking is a list of distinct passage ids. Hits become one in two ways: `provenance_ranking` credits a synthetic
unit with the passages it was made from, `literal_ranking` credits one made from several documents with nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from sire_core.algorithms.text import count_tokens, normalize_answer, truncate_tokens
from sire_core.errors import ConfigurationError
from sire_core.evaluate.answer import CLOSED_ANSWERS
from sire_core.types import Hit, UnitKind

if TYPE_CHECKING:
    from sire_core.corpus.benchmarks import Question
    from sire_core.evaluate.datasets import DataSet
    from sire_core.index import Index

__all__ = [
    "BudgetScorer",
    "BudgetedContext",
    "ChainRanker",
    "all_at_k",
    "evidence_match",
    "literal_ranking",
    "ndcg_at_k",
    "provenance_ranking",
    "recall_at_k",
    "reciprocal_rank",
    "span_answers",
]


def distinct(items: Iterable[str]) -> list[str]:
    """Each item once, at its first place."""
    return list(dict.fromkeys(items))


def provenance_ranking(hits: Iterable[Hit]) -> list[str]:
    """Expand every hit to its document ids in order, each id once."""
    return distinct(doc_id for hit in hits for doc_id in hit.doc_ids)


def literal_ranking(hits: Iterable[Hit]) -> list[str | None]:
    """Document ids of the hits that say what one document says; a synthetic hit keeps its slot as None.

    IndexRAG's recall (section 5.3.2): passages and the knowledge units of documents count for their documents; bridging
    facts, summaries and whatever else was written about several documents take slots and count for nothing. A second
    chunk of a document that is already listed takes no slot, as in `provenance_ranking`: on a pool of chunks
    the two rankings are the same.
    """
    slots: list[str | None] = []
    seen: set[str] = set()
    for hit in hits:
        if hit.unit.kind not in (UnitKind.CHUNK, UnitKind.AKU):
            slots.append(None)
            continue
        fresh = [doc_id for doc_id in distinct(hit.doc_ids) if doc_id not in seen]
        slots.extend(fresh)
        seen.update(fresh)
    return slots


def recall_at_k(ranking: Sequence[str | None], gold: Collection[str], k: int) -> float:
    """R@k: share of the gold passages among the first `k` distinct passages.

    Raises:
        ValueError: There are no gold passages; such questions must be left out of the mean.
    """
    wanted = _wanted(gold)
    return len(wanted.intersection(_first(ranking, k))) / len(wanted)


def all_at_k(ranking: Sequence[str | None], gold: Collection[str], k: int) -> float:
    """1 when every gold passage is among the first `k` distinct passages."""
    return float(_wanted(gold).issubset(_first(ranking, k)))


def reciprocal_rank(ranking: Sequence[str | None], gold: Collection[str]) -> float:
    """1 / rank of the first gold passage, 0 when there is none; its mean over questions is MRR."""
    wanted = _wanted(gold)
    for rank, item in enumerate(_first(ranking, len(ranking)), start=1):
        if item in wanted:
            return 1.0 / rank
    return 0.0


def ndcg_at_k(ranking: Sequence[str | None], gold: Collection[str], k: int) -> float:
    """nDCG@k with equal gains: discounted gain of the gold passages among the first `k`, over that of a perfect list.

    The discount of rank r is 1 / log2(r + 1), as in trec_eval.
    """
    wanted = _wanted(gold)
    gains = (1.0 / log2(rank + 1) for rank, item in enumerate(_first(ranking, k), start=1) if item in wanted)
    return sum(gains) / sum(1.0 / log2(rank + 1) for rank in range(1, min(len(wanted), k) + 1))


def _wanted(gold: Collection[str]) -> set[str]:
    if not gold:
        raise ValueError("a question without gold passages has no recall; leave it out of the mean")
    return set(gold)


def _first(ranking: Sequence[str | None], k: int) -> list[str | None]:
    """The first `k` slots; a repeated passage takes one slot only, an empty slot (None) counts every time."""
    slots: list[str | None] = []
    seen: set[str] = set()
    for item in ranking:
        if len(slots) == k:
            break
        if item is None:
            slots.append(None)
        elif item not in seen:
            seen.add(item)
            slots.append(item)
    return slots


@runtime_checkable
class ChainRanker(Protocol):
    """A ranker that finds evidence along chains of passages."""

    async def gold_on_chains(self, questions: Sequence[Question], view: Any, /) -> Sequence[float]:
        """Return the share of each question's gold passages that are on one of its chains, 0..1."""


async def evidence_match(index: Index, dataset: DataSet) -> float | None:
    """Share of the gold passages that are on a chain of their question, a mean over questions.

    Args:
        index: With a recipe whose ranker is a `ChainRanker`.
        dataset: Questions; those without gold passages are ignored.

    Returns:
        0..100; None if the recipe has no chains, or no question has gold passages.
    """
    snapshot = await index.asnapshot()
    ranker = snapshot.recipe.ranker
    questions = [question for question in dataset.questions if question.supporting]
    if not isinstance(ranker, ChainRanker) or not questions:
        return None
    shares = await ranker.gold_on_chains(questions, snapshot.view)
    return 100.0 * sum(shares) / len(shares)


@dataclass(frozen=True, slots=True)
class BudgetedContext:
    """A text, or a context that was cut to a budget, in the two normal forms that the metrics look into.

    Attributes:
        text: White space normalised.
        answer_text: `normalize_answer` of it.
        tokens: Its length; below the budget when the hits ran out.
    """

    text: str
    answer_text: str
    tokens: int


class BudgetScorer:
    """What a reader sees of the first N tokens of context; comparable between units of any size.

    The context is the hits' texts (`Unit.text`) in rank order, cut after `budget` tokens (`count_tokens`). The text
    that crosses the border is truncated there, not dropped: otherwise a recipe with long units would lose a whole unit
    where one with short units loses a sentence.

    A gold passage counts when its whole text, white space normalised, is a substring of the context. That is the
    literal reading for every kind of unit: a chunk that fits holds its passage, one that was truncated does not, a
    summary counts only where it quotes the passage from end to end. Texts are normalised once and remembered.
    """

    def __init__(self, budget: int, passages: Mapping[str, str]) -> None:
        """Remember what is to be found.

        Args:
            budget: Tokens of the context.
            passages: Text of every passage by document id.

        Raises:
            ConfigurationError: The budget is below one.
        """
        if budget < 1:
            raise ConfigurationError(f"A token budget must be at least 1, not {budget}.")
        self.budget = budget
        self._passages = passages
        self._gold: dict[str, str] = {}
        self._prepared: dict[str, BudgetedContext] = {}

    def context(self, texts: Iterable[str]) -> BudgetedContext:
        """Join texts in order and cut them at the budget; the last one is truncated."""
        parts: list[BudgetedContext] = []
        left = self.budget
        for text in texts:
            if not left:
                break
            part = self._prepare(text)
            if part.tokens > left:
                part = _prepare(truncate_tokens(text, left))
            parts.append(part)
            left -= part.tokens
        return BudgetedContext(
            " ".join(part.text for part in parts if part.text),
            " ".join(part.answer_text for part in parts if part.answer_text),
            self.budget - left,
        )

    def recall(self, context: BudgetedContext, gold: Collection[str]) -> float:
        """Share of the gold passages (document ids) whose text is inside the context, 0..1."""
        wanted = set(gold)
        return sum(self._is_inside(context, doc_id) for doc_id in wanted) / len(wanted)

    def _is_inside(self, context: BudgetedContext, doc_id: str) -> bool:
        text = self._gold.get(doc_id)
        if text is None:
            text = self._gold[doc_id] = " ".join(self._passages.get(doc_id, "").split())
        return bool(text) and text in context.text

    def answer(self, context: BudgetedContext, answers: Sequence[str]) -> float | None:
        """1 when any accepted answer stands in the context at token boundaries; None when the question is left out."""
        spans = span_answers(answers)
        if not spans:
            return None
        padded = f" {context.answer_text} "
        return float(any(f" {span} " in padded for span in spans))

    def _prepare(self, text: str) -> BudgetedContext:
        prepared = self._prepared.get(text)
        if prepared is None:
            prepared = self._prepared[text] = _prepare(text)
        return prepared


def span_answers(answers: Sequence[str]) -> list[str]:
    """Normalised answers that can stand in a passage.

    Empty for questions without an answer and for those whose preferred (first) answer is yes, no or noanswer: a passage
    that holds the word "no" has not answered them. For the same reason "NO", an alias of Norway, is not looked for.
    """
    normalized = [answer for answer in map(normalize_answer, answers) if answer]
    if normalized and normalized[0] in CLOSED_ANSWERS:
        return []
    return [answer for answer in normalized if answer not in CLOSED_ANSWERS]


def _prepare(text: str) -> BudgetedContext:
    # Normal forms are made per text and joined: none of their rules reaches across the white space between two texts.
    return BudgetedContext(" ".join(text.split()), normalize_answer(text), count_tokens(text))
