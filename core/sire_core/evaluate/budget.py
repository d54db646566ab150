"""Budget metrics: what a reader sees of the first N tokens of context. Comparable between units of any size.

The context is the hits' texts (`Unit.text`) in rank order, cut after `budget` tokens (`count_tokens`). The text that
crosses the border is truncated there, not dropped: otherwise a recipe with long units would lose a whole unit where one
with short units loses a sentence.

A gold passage counts when its whole text, white space normalised, is a substring of the context. That is the literal
reading for every kind of unit: a chunk that fits holds its passage, one that was truncated does not, a summary counts
only where it quotes the passage from end to end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sire_core.algorithms.text import count_tokens, normalize_answer, truncate_tokens
from sire_core.errors import ConfigurationError
from sire_core.evaluate.answer import CLOSED_ANSWERS

__all__ = ["BudgetScorer", "BudgetedContext", "span_answers"]


@dataclass(frozen=True, slots=True)
class BudgetedContext:
    """A context that was cut to a budget, in the two normal forms that the metrics look into.

    Attributes:
        text: White space normalised.
        answer_text: `normalize_answer` of it.
        tokens: Its length; below the budget when the hits ran out.
    """

    text: str
    answer_text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class _Prepared:
    text: str
    answer_text: str
    tokens: int


class BudgetScorer:
    """Cuts contexts and looks for passages and answers in them. Texts are normalised once and remembered."""

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
        self._prepared: dict[str, _Prepared] = {}

    def context(self, texts: Iterable[str]) -> BudgetedContext:
        """Join texts in order and cut them at the budget; the last one is truncated."""
        parts: list[_Prepared] = []
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

    def _prepare(self, text: str) -> _Prepared:
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


def _prepare(text: str) -> _Prepared:
    # Normal forms are made per text and joined: none of their rules reaches across the white space between two texts.
    return _Prepared(" ".join(text.split()), normalize_answer(text), count_tokens(text))
