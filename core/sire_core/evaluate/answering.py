"""`answer_questions`: a language model answers the questions of a data set from what an index finds."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from sire_core.algorithms.worker_pool import bounded_map
from sire_core.evaluate.answer import (
    acc,
    acc_at,
    best_over_golds,
    exact_match,
    f1,
    f1_hotpot,
    perspective_coverage,
    word_coverage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sire_core.evaluate.datasets import DataSet, Question
    from sire_core.index import Index
    from sire_core.protocols import Progress

__all__ = ["AnswerConfig", "AnsweredQuestion", "answer_questions", "answer_scores"]

_CITATION = re.compile(r"\s*\[\d+\]")


@dataclass(frozen=True, slots=True)
class AnswerConfig:
    """How answers are made.

    Attributes:
        via: A strategy of `sire_core.reason`: `single`, `ircot` or `self-ask`.
        k: Hits that an answer is read from.
        workers: Questions under way at once.
    """

    via: str = "single"
    k: int = 10
    workers: int = 8


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """How good an answer is; every rate 0 to 1, the best over the accepted answers.

    Attributes:
        id: The question's id.
        text: The answer without its citations; empty when there is none.
        stop: Why the reasoning ended.
        em: Exact match.
        f1: Token F1; on HotpotQA and 2WikiMultihopQA with the official rule for yes and no.
        acc: Whether the accepted answer is inside the answer (IndexRAG).
        coverage: Share of the accepted answer's words (SMART).
        acc_25: Whether that share is at least .25.
        acc_50: The same for .5.
        perspectives: Share of the question's reference perspectives (`perspectives`, a list of texts in the question's
            record) whose words the answer covers by half; None without any.
        calls: Requests to the model.
        retrievals: Searches.
    """

    id: str
    text: str
    stop: str
    em: float
    f1: float
    acc: float
    coverage: float
    acc_25: float
    acc_50: float
    calls: int
    retrievals: int
    perspectives: float | None = None


async def answer_questions(
    index: Index, dataset: DataSet, config: AnswerConfig, progress: Progress | None = None
) -> tuple[AnsweredQuestion, ...]:
    """Answer every question that has accepted answers.

    A question whose reasoning fails counts as answered with nothing; `stop` says why.

    Args:
        index: What is searched; it has the language model that answers.
        dataset: Questions without answers are not asked.
        config: How.
        progress: Called as `progress("answers", done, total)`.

    Raises:
        ConfigurationError: The index has no language model.
        LimitExceededError: A usage limit was reached.
    """
    questions = [question for question in dataset.measurable if question.answers]
    # The official scripts of these two give no credit to a wrong yes or no.
    overlap = f1_hotpot if dataset.name.lower().startswith(("hotpot", "2wiki")) else f1
    answered: dict[int, AnsweredQuestion] = {}

    async def one(number: int) -> AnsweredQuestion:
        return await _answer(index, questions[number], config, overlap)

    async with contextlib.aclosing(bounded_map(one, range(len(questions)), config.workers)) as results:
        async for batch in results:
            answered.update(batch)
            if progress:
                progress("answers", len(answered), len(questions))
    return tuple(answered[number] for number in range(len(questions)))


def answer_scores(answered: Sequence[AnsweredQuestion]) -> dict[str, float]:
    """Means in the terms of the papers: rates 0 to 100, calls and searches per question; empty without answers."""
    if not answered:
        return {}
    rates = {
        "EM": "em",
        "F1": "f1",
        "Acc": "acc",
        "coverage": "coverage",
        "Acc@.25": "acc_25",
        "Acc@.5": "acc_50",
    }
    scores = {name: round(100 * fmean(getattr(a, field) for a in answered), 1) for name, field in rates.items()}
    for name in ("calls", "retrievals"):
        scores[name] = round(fmean(getattr(a, name) for a in answered), 2)
    covered = [a.perspectives for a in answered if a.perspectives is not None]
    if covered:
        scores["perspectives"] = round(100 * fmean(covered), 1)
    return scores


async def _answer(
    index: Index, question: Question, config: AnswerConfig, overlap: Callable[[str, str], float]
) -> AnsweredQuestion:
    from sire_core.reason import collect, reason

    trace = await collect(reason(config.via, index, question.question, k=config.k))
    answer = trace.answer
    text = _CITATION.sub("", answer.text).strip() if answer.sufficient else ""

    def best(metric: Callable[[str, str], float]) -> float:
        return best_over_golds(metric, text, question.answers)

    return AnsweredQuestion(
        id=question.id,
        text=text,
        stop=answer.stop,
        em=best(exact_match),
        f1=best(overlap),
        acc=best(acc),
        coverage=best(word_coverage),
        acc_25=best(lambda predicted, gold: acc_at(predicted, gold, 0.25)),
        acc_50=best(lambda predicted, gold: acc_at(predicted, gold, 0.5)),
        calls=answer.usage.calls,
        retrievals=answer.usage.retrievals,
        perspectives=_covered(text, question),
    )


def _covered(text: str, question: Question) -> float | None:
    """Lexical perspective coverage (SMART, table 3)."""
    perspectives = question.metadata.get("perspectives")
    if not isinstance(perspectives, list) or not perspectives:
        return None
    return perspective_coverage(text, [str(perspective) for perspective in perspectives])
