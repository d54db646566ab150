"""Metrics of a generated answer against gold answers. Every one is in 0..1; reports multiply by 100.

All of them normalise both texts the SQuAD way first (`normalize_answer`). Where that leaves nothing of the gold answer
(the grade "A", the sign "+") both are compared as they are written, punctuation at the ends of words aside. Last come
those that one data set alone has: options to choose from (QuALITY), long answers (ASQA).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from string import punctuation
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.text import normalize_answer
from sire_core.errors import ModelError

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import Question
    from sire_core.protocols import LanguageModel

__all__ = [
    "CLOSED_ANSWERS",
    "acc",
    "acc_at",
    "best_over_golds",
    "exact_match",
    "f1",
    "f1_hotpot",
    "perspective_coverage",
    "rouge_l",
    "string_match",
    "task_of",
    "task_scores",
    "with_dr",
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
    """Share of reference perspectives whose words the prediction covers (a lexical reading)."""
    if not perspectives:
        raise ValueError("perspective_coverage needs at least one reference perspective; leave the question out")
    return sum(acc_at(prediction, perspective, threshold) for perspective in perspectives) / len(perspectives)


def best_over_golds(metric: Callable[[str, str], float], prediction: str, golds: Sequence[str]) -> float:
    """The best value of a metric over all accepted answers of a question; blank ones accept nothing."""
    if not golds:
        raise ValueError("best_over_golds needs at least one gold answer; leave the question out")
    return max((metric(prediction, gold) for gold in golds if gold.strip()), default=0.0)


def task_of(question: Question) -> Mapping[str, Any]:
    """The form of a question's answer, as fields of `ReaderConfig`: options, or a long answer."""
    options = question.metadata.get("options")
    if isinstance(options, list) and options:
        return {"options": tuple(str(option) for option in options)}
    return {"prompt": "long"} if question.metadata.get("pairs") else {}


def string_match(prediction: str, golds: Sequence[Sequence[str]]) -> float:
    """STR-EM (ASQA): share of the readings of which the answer holds a short answer, letter by letter."""
    found = [any(acc(prediction, answer) for answer in answers if answer.strip()) for answers in golds]
    return sum(found) / len(found) if found else 0.0


def rouge_l(prediction: str, gold: str) -> float:
    """ROUGE-L: F1 of the longest common subsequence of words."""
    one, other = normalize_answer(prediction).split(), normalize_answer(gold).split()
    if not one or not other:
        return float(one == other)
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for place, wanted in enumerate(other, 1):
            kept = row[place]
            row[place] = before + 1 if word == wanted else max(row[place], row[place - 1])
            before = kept
    return 2.0 * row[-1] / (len(one) + len(other))


async def task_scores(text: str, question: Question, model: LanguageModel | None) -> tuple[dict[str, float], int]:
    """Scores of an answer that its data set alone has, 0 to 1; empty for others.

    ASQA: `STR-EM`, `ROUGE-L` (the best over the annotators), and `D-F1`: a model answers every reading of the question
    from the long answer alone, where the paper takes a RoBERTa trained on SQuAD 2.
    """
    if question.metadata.get("options"):
        return {"accuracy": float(text in question.answers)}, 0
    pairs = question.metadata.get("pairs")
    if not isinstance(pairs, list):
        return {}, 0
    scores = {"STR-EM": string_match(text, [pair["answers"] for pair in pairs])}
    long = question.metadata.get("long")
    if isinstance(long, list) and long:
        scores["ROUGE-L"] = best_over_golds(rouge_l, text, long)
    if model is None:
        return scores, 0
    read = [await _read(text, pair, model) for pair in pairs] if text else []
    scores["D-F1"] = sum(score or 0.0 for score in read) / max(len(read), 1)
    return scores, read.count(None)


async def _read(text: str, pair: Mapping[str, Any], model: LanguageModel) -> float | None:
    """F1 of what a model reads from a long answer for one reading of the question; None when it failed."""
    from sire_core.reason.prompts import READ_FOLLOW_UP, prompt

    asked = prompt(READ_FOLLOW_UP, pair["question"], passage=text)
    try:
        said = (await model.complete(asked, max_tokens=60)).text.strip()
    except ModelError:
        return None
    return 0.0 if said.casefold() == "unknown" else best_over_golds(f1, said, pair["answers"])


def with_dr(means: Mapping[str, float]) -> dict[str, float]:
    """The means with ASQA's DR: the geometric mean of ROUGE-L and Disambig-F1."""
    if "ROUGE-L" not in means or "D-F1" not in means:
        return dict(means)
    return {**means, "DR": sqrt(means["ROUGE-L"] * means["D-F1"])}
