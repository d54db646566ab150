"""`compare`: `sire` beside what a user would build otherwise, on the user's documents and questions."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.errors import CorpusError
from sire_core.evaluate.bootstrap import Interval, mean_interval, paired_bootstrap
from sire_core.evaluate.datasets import DataSet
from sire_core.evaluate.experiment import Experiment
from sire_core.evaluate.made_questions import LinkedPassages, as_questions, made_questions
from sire_core.evaluate.rows import OF_PIECES
from sire_core.evaluate.runner import EvalConfig
from sire_core.index import Index
from sire_core.models.local_models import local_models
from sire_core.recipes import sire
from sire_core.text.pluralize import count

if TYPE_CHECKING:
    from sire_core.evaluate.rows import EvalRow
    from sire_core.progress import ProgressLike
    from sire_core.protocols import Embedder
    from sire_core.questions import Question
    from sire_core.types import Document

FEW = 20
"""Questions below which nothing is compared."""
_NAMES = {
    "bm25": "BM25",
    "dense": "vectors",
    "hybrid": "hybrid (both)",
    f"bm25{OF_PIECES}": "BM25, pieces",
    f"hybrid{OF_PIECES}": "hybrid, pieces",
}
_BUDGETS = (1000, 2000)
_MADE = 100
_RERANKED = "sire, reranked"


@dataclass(frozen=True, slots=True)
class Metric:
    """A column of the comparison."""

    name: str
    of: Callable[[EvalRow], Sequence[float]]  # A rate (0 to 1) for each question


def _delivered(row: EvalRow, budget: int) -> list[float]:
    """Recall of required evidence within a budget of tokens: of whole passages, and of the contexts of `sire`."""
    within = (result.within if row.setup.recipe in _NAMES else result.context_within for result in row.results)
    return [rate for rates in within if (rate := rates.get(budget)) is not None]


METRICS = (
    Metric("R@5", lambda row: [result.recall_passages(5) for result in row.with_gold]),
    *(Metric(f"{budget:,} tokens", partial(_delivered, budget=budget)) for budget in _BUDGETS),
)
"""Columns; those within tokens need quotes as gold."""


@dataclass(frozen=True, slots=True)
class ComparedSearches:
    """Result of `compare`.

    Attributes:
        rows: BM25, vectors, both fused; where gold is quoted, BM25 and both fused over small pieces; `sire`, and `sire`
            with a reranker where there is one.
        reranker: The reranker of the last row; empty if there is none.
        is_made: Whether the questions were made from the text.
        interval: R@5 of `sire` minus that of the best baseline, in points.
        best_baseline: Name of that baseline.
    """

    rows: tuple[EvalRow, ...]
    reranker: str
    is_made: bool
    interval: Interval
    best_baseline: str

    @property
    def questions(self) -> int:
        """Number of questions with gold."""
        return len(self.rows[0].with_gold)

    def table(self) -> list[tuple[str, list[Interval], float]]:
        """Return the name, the means by metric (percent) and the median milliseconds of a search of each row."""
        return [
            (self._name(row), [mean_interval(metric.of(row)) for metric in self.metrics], row.query_p50_ms())
            for row in self.rows
        ]

    @property
    def metrics(self) -> list[Metric]:
        """Columns for which the questions have gold."""
        return [metric for metric in METRICS if metric.of(self.rows[0])]

    def _name(self, row: EvalRow) -> str:
        is_reranked = bool(self.reranker) and row is self.rows[-1]
        return _RERANKED if is_reranked else _NAMES.get(row.setup.recipe, row.setup.recipe)

    def verdict(self) -> str:
        """The conclusion, in a sentence."""
        points = f"{self.interval.difference:+.1f} points [{self.interval.low:.1f}, {self.interval.high:.1f}]"
        number = count(self.questions, "question")
        if not self.interval.significant:
            return f"sire and {self.best_baseline} are level on {number}: {points} of R@5, which may be chance."
        better = "more" if self.interval.difference > 0 else "less"
        return f"sire finds {better} than {self.best_baseline}, the best of the others, on {number}: {points} of R@5."

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        rows = [
            {
                "name": name,
                **{metric.name: _plain(mean) for metric, mean in zip(self.metrics, means, strict=True)},
                "query_p50_ms": round(milliseconds, 1),
            }
            for name, means, milliseconds in self.table()
        ]
        return {
            "questions": self.questions,
            "made": self.is_made,
            "reranker": self.reranker,
            "rows": rows,
            "difference": self.interval.as_json(),
            "baseline": self.best_baseline,
            "verdict": self.verdict(),
        }


def _plain(mean: Interval) -> dict[str, float]:
    return {"mean": round(mean.difference, 1), "low": round(mean.low, 1), "high": round(mean.high, 1)}


def compare(
    documents: Sequence[Document],
    questions: Sequence[Question] = (),
    *,
    name: str = "documents",
    embedder: Embedder | str | None = None,
    reranker: str | None = None,
    progress: ProgressLike = None,
) -> ComparedSearches:
    """Measure BM25, vectors, both fused, and `sire` on documents.

    Args:
        documents: The corpus; documents without passages are split as an index splits them.
        questions: Questions with gold. Without any they are made from the text, of its own words, which favours BM25.
        name: Of the corpus.
        embedder: As in `Index`.
        reranker: As `rerank=` of `sire`; None takes a model of this machine where there is one, "" none.
        progress: As in `Index`.

    Raises:
        CorpusError: Fewer than `FEW` questions can be made from the text.
    """
    chosen = _local_reranker() if reranker is None else reranker
    with tempfile.TemporaryDirectory(prefix="sire-compare-") as temporary:
        folder = Path(temporary, "index")
        chosen_questions = tuple(questions) or _questions_of(documents, folder, embedder, progress)
        recipes = [sire(), *([sire(rerank=chosen)] if chosen else [])]
        budgets = _BUDGETS if any(question.needs for question in chosen_questions) else ()
        rows = Experiment(
            DataSet(name, tuple(documents), chosen_questions, whole=True),
            recipes=recipes,
            config=EvalConfig(ks=(5,), budget=None, budgets=budgets, returns="passages"),
            folder=folder,
            embedder=embedder,
            progress=progress,
        ).run()
    by_name = {row.setup.recipe: row for row in rows}
    baselines = [by_name[name] for name in _NAMES if name in by_name]
    ours = [row for row in rows if row.setup.recipe not in _NAMES]
    best = max(baselines, key=lambda row: row.recall_passages(5) or 0.0)
    best_name = _NAMES[best.setup.recipe]
    return ComparedSearches((*baselines, *ours), chosen, not questions, paired_bootstrap(ours[0], best), best_name)


def _local_reranker() -> str:
    """The reranker of this machine: late interaction before cross-encoders; empty if there is none."""
    by_purpose = {model.purpose: model.spec for model in reversed(local_models())}
    return by_purpose.get("late interaction") or by_purpose.get("cross-encoder", "")


def _questions_of(
    documents: Sequence[Document], folder: Path, embedder: Embedder | str | None, progress: ProgressLike
) -> tuple[Question, ...]:
    with Index(folder, recipe="sire", embedder=embedder, progress=progress) as index:
        index.build(documents)
        made = made_questions(LinkedPassages.of(index.snapshot()), _MADE)
    if len(made) < FEW:
        raise CorpusError(
            f"Only {count(len(made), 'question')} can be made from this text, too few to compare ({FEW} are needed). "
            'Write some and pass them with --questions FILE, one a line: {"id": "q1", "question": "...", "supporting": '
            '["ID of a document"]}.'
        )
    return as_questions(made)
