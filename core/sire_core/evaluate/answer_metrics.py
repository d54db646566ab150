"""Metrics of answers: those of every data set, and those that the form of a question brings; all are 0 to 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from string import punctuation
from typing import TYPE_CHECKING

from sire_core.evaluate.retrieval import CLOSED_ANSWERS
from sire_core.text.words import normalize_answer

if TYPE_CHECKING:
    from sire_core.questions import Question


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """An answer, and how good it is."""

    question: Question
    text: str  # The answer without its citations; empty when there is none
    stop: str  # Why the reasoning ended
    rates: Mapping[str, float]  # Its metrics, 0 to 1; see `answer_rates`, and `D-F1` and `findings`
    calls: int  # Requests to the model
    retrievals: int
    tokens: int = 0  # Of the prompts and the answers, those of answers from a file too
    # Documents of the final context in order, each once: of several searches after they were merged
    documents: tuple[str, ...] = ()
    seconds: float = 0.0  # Wall seconds of searches and calls
    unread: int = 0  # Readings of the question for which the model that scores the answer failed; they count as 0
    # Whether a model was asked now, so that `seconds` are its own; not where a file held all that it said
    asked: bool = True
    closed: bool = False  # Whether F1 has the official rule for yes and no


def _single_spaced(text: str) -> str:
    return " ".join(text.split())


def _words_as_written(text: str) -> str:
    return " ".join(filter(None, (word.strip(punctuation) for word in text.split())))


def _normalized_pair(prediction: str, gold: str) -> tuple[str, str]:
    """Both texts in the first form that leaves something of the gold answer."""
    for form in (normalize_answer, _words_as_written, _single_spaced):
        if wanted := form(gold):
            return form(prediction), wanted
    return _single_spaced(prediction), ""


def exact_match(prediction: str, gold: str) -> float:
    """EM: 1 when both are equal after normalisation."""
    predicted, wanted = _normalized_pair(prediction, gold)
    return float(predicted == wanted)


def f1(prediction: str, gold: str) -> float:
    """Harmonic mean of token precision and recall over multisets. Both empty gives 1, one empty 0."""
    predicted, wanted = (text.split() for text in _normalized_pair(prediction, gold))
    if not predicted or not wanted:
        return float(predicted == wanted)
    shared = sum((Counter(predicted) & Counter(wanted)).values())
    return 2.0 * shared / (len(predicted) + len(wanted))


def f1_hotpot(prediction: str, gold: str) -> float:
    """`f1`, but 0 whenever either side is yes, no or noanswer and they differ (HotpotQA and 2WikiMultihopQA)."""
    predicted, wanted = _normalized_pair(prediction, gold)
    if predicted != wanted and (predicted in CLOSED_ANSWERS or wanted in CLOSED_ANSWERS):
        return 0.0
    return f1(prediction, gold)


def acc(prediction: str, gold: str) -> float:
    """Acc (IndexRAG eq. 4): 1 when the gold answer is a substring of the prediction, character by character."""
    predicted, wanted = _normalized_pair(prediction, gold)
    return float(wanted in predicted if normalize_answer(gold) else f" {wanted} " in f" {predicted} ")


def word_coverage(prediction: str, gold: str) -> float:
    """Share of the gold answer's different words that the prediction has (SMART). 1 for an empty gold answer."""
    predicted, wanted = (set(text.split()) for text in _normalized_pair(prediction, gold))
    return len(wanted & predicted) / len(wanted) if wanted else 1.0


def word_precision(prediction: str, gold: str) -> float:
    """Share of the prediction's different words that the gold answer has. 0 for an empty prediction."""
    return word_coverage(gold, prediction) if normalize_answer(prediction) else 0.0


def acc_at(prediction: str, gold: str, threshold: float) -> float:
    """Acc@t (SMART): 1 when `word_coverage` reaches the threshold; the paper reports .25 and .5."""
    return float(word_coverage(prediction, gold) >= threshold)


def perspective_coverage(prediction: str, perspectives: object) -> float | None:
    """Share of reference perspectives of whose words the prediction has half (SMART, table 3); None without any."""
    if not isinstance(perspectives, list) or not perspectives:
        return None
    return fmean(acc_at(prediction, str(perspective), 0.5) for perspective in perspectives)


def best_over_golds(metric: Callable[[str, str], float], prediction: str, golds: Sequence[str]) -> float:
    """The best value of a metric over all accepted answers of a question; blank ones accept nothing."""
    if not golds:
        raise ValueError("best_over_golds needs at least one gold answer; leave the question out")
    return max((metric(prediction, gold) for gold in golds if gold.strip()), default=0.0)


def string_match(prediction: str, golds: Sequence[Sequence[str]]) -> float:
    """STR-EM (ASQA): share of the readings of which the answer holds a short answer, letter by letter."""
    matches = [any(acc(prediction, answer) for answer in answers if answer.strip()) for answers in golds]
    return sum(matches) / len(matches) if matches else 0.0


def rouge_l(prediction: str, gold: str) -> float:
    """ROUGE-L: F1 of the longest common subsequence of words."""
    one, other = normalize_answer(prediction).split(), normalize_answer(gold).split()
    if not one or not other:
        return float(one == other)
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for column, wanted in enumerate(other, 1):
            above = row[column]
            row[column] = before + 1 if word == wanted else max(row[column], row[column - 1])
            before = above
    return 2.0 * row[-1] / (len(one) + len(other))


def with_dr(means: Mapping[str, float]) -> dict[str, float]:
    """The means with ASQA's DR: the geometric mean of ROUGE-L and Disambig-F1."""
    if "ROUGE-L" not in means or "D-F1" not in means:
        return dict(means)
    return {**means, "DR": sqrt(means["ROUGE-L"] * means["D-F1"])}


METRICS: Mapping[str, Callable[[str, str], float]] = {
    "EM": exact_match,
    "F1": f1,
    "Acc": acc,
    "coverage": word_coverage,
    "precision": word_precision,
}
"""Metrics of every answer, the best over the accepted answers."""


def _accuracy(text: str, question: Question) -> float | None:
    return float(text in question.answers) if question.metadata.get("options") else None


def _short_answers(text: str, question: Question) -> float | None:
    pairs = question.metadata.get("pairs")
    return string_match(text, [pair["answers"] for pair in pairs]) if isinstance(pairs, list) else None


def _long_answer(text: str, question: Question) -> float | None:
    answers = question.metadata.get("long")
    return best_over_golds(rouge_l, text, answers) if isinstance(answers, list) and answers else None


def _perspectives(text: str, question: Question) -> float | None:
    return perspective_coverage(text, question.metadata.get("perspectives"))


TASK_METRICS: Mapping[str, Callable[[str, Question], float | None]] = {
    "accuracy": _accuracy,  # QuALITY: options
    "STR-EM": _short_answers,  # ASQA: readings of a question
    "ROUGE-L": _long_answer,  # ASQA
    "perspectives": _perspectives,  # SMART, table 3: reference perspectives in the question's record
}
"""Metrics that a question brings by what its record holds; None where it does not. D-F1 (ASQA) needs a model."""


def answer_rates(text: str, question: Question, *, closed: bool) -> dict[str, float]:
    """Every metric of an answer; with `closed`, F1 has the official rule for yes and no."""
    rates = {name: best_over_golds(metric, text, question.answers) for name, metric in METRICS.items()}
    if closed:
        rates["F1"] = best_over_golds(f1_hotpot, text, question.answers)
    of_task = {name: metric(text, question) for name, metric in TASK_METRICS.items()}
    return rates | {name: value for name, value in of_task.items() if value is not None}
