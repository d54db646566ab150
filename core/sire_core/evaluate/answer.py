"""Metrics of a generated answer against gold answers. Every one is in 0..1; reports multiply by 100.

All of them normalise both texts the SQuAD way first (`normalize_answer`). Where that leaves nothing of the gold answer
(the grade "A", the sign "+") both are compared as they are written, punctuation at the ends of words aside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from string import punctuation

from sire_core.algorithms.text import normalize_answer

__all__ = [
    "CLOSED_ANSWERS",
    "acc",
    "acc_at",
    "best_over_golds",
    "exact_match",
    "f1",
    "f1_hotpot",
    "perspective_coverage",
    "word_coverage",
]

CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})
"""Answers that are chosen, not copied from a passage; normalised."""


def _written(text: str) -> str:
    return " ".join(text.split())


def _words_as_written(text: str) -> str:
    return " ".join(filter(None, (word.strip(punctuation) for word in text.split())))


def _pair(prediction: str, gold: str) -> tuple[str, str]:
    """Both texts in the first form that leaves something of the gold answer."""
    for form in (normalize_answer, _words_as_written, _written):
        if wanted := form(gold):
            return form(prediction), wanted
    return _written(prediction), ""


def exact_match(prediction: str, gold: str) -> float:
    """EM: 1 when both are equal after normalisation."""
    predicted, wanted = _pair(prediction, gold)
    return float(predicted == wanted)


def f1(prediction: str, gold: str) -> float:
    """Harmonic mean of token precision and recall over multisets. Both empty gives 1, one empty 0."""
    predicted, wanted = (text.split() for text in _pair(prediction, gold))
    if not predicted or not wanted:
        return float(predicted == wanted)
    shared = sum((Counter(predicted) & Counter(wanted)).values())
    return 2.0 * shared / (len(predicted) + len(wanted))


def f1_hotpot(prediction: str, gold: str) -> float:
    """`f1`, but 0 whenever either side is yes, no or noanswer and they differ (HotpotQA and 2WikiMultihopQA)."""
    predicted, wanted = _pair(prediction, gold)
    if predicted != wanted and (predicted in CLOSED_ANSWERS or wanted in CLOSED_ANSWERS):
        return 0.0
    return f1(prediction, gold)


def acc(prediction: str, gold: str) -> float:
    """Acc (IndexRAG eq. 4): 1 when the gold answer is a substring of the prediction, character by character.

    So "no" is inside "norway". A gold answer of which normalisation leaves nothing has to stand there as a word.
    """
    predicted, wanted = _pair(prediction, gold)
    return float(wanted in predicted if normalize_answer(gold) else f" {wanted} " in f" {predicted} ")


def word_coverage(prediction: str, gold: str) -> float:
    """Share of the gold answer's different words that the prediction has (SMART). 1 for an empty gold answer."""
    predicted, wanted = (set(text.split()) for text in _pair(prediction, gold))
    return len(wanted & predicted) / len(wanted) if wanted else 1.0


def acc_at(prediction: str, gold: str, threshold: float) -> float:
    """Acc@t (SMART): 1 when `word_coverage` reaches the threshold; the paper reports .25 and .5."""
    return float(word_coverage(prediction, gold) >= threshold)


def perspective_coverage(prediction: str, perspectives: Sequence[str], threshold: float = 0.5) -> float:
    """Share of reference perspectives whose words the prediction covers (a lexical reading).

    Raises:
        ValueError: There are no perspectives; such questions must be left out of the mean.
    """
    if not perspectives:
        raise ValueError("perspective_coverage needs at least one reference perspective; leave the question out")
    return sum(acc_at(prediction, perspective, threshold) for perspective in perspectives) / len(perspectives)


def best_over_golds(metric: Callable[[str, str], float], prediction: str, golds: Sequence[str]) -> float:
    """The best value of a metric over all accepted answers of a question; blank ones accept nothing.

    Raises:
        ValueError: There are no accepted answers; such questions must be left out of the mean.
    """
    if not golds:
        raise ValueError("best_over_golds needs at least one gold answer; leave the question out")
    return max((metric(prediction, gold) for gold in golds if gold.strip()), default=0.0)
