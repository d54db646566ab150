"""Metrics that one data set has and others have not: options to choose from (QuALITY), long answers (ASQA)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.text import normalize_answer
from sire_core.errors import ModelError
from sire_core.evaluate.answer import acc, best_over_golds, f1

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import Question
    from sire_core.protocols import LanguageModel

__all__ = ["rouge_l", "string_match", "task_of", "task_scores", "with_dr"]


def task_of(question: Question) -> Mapping[str, Any]:
    """How a question has to be answered, as fields of `ReaderConfig`: options, or a long answer."""
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

    Returns:
        The scores, and for how many readings the model failed, which count as 0.

    Raises:
        LimitExceededError: A usage limit was reached.
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
