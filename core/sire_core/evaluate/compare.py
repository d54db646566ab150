"""`compare`: `sire` beside what a user would build otherwise, on the user's documents and questions."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sire_core.errors import CorpusError
from sire_core.evaluate.bootstrap import Interval, mean_interval, paired_bootstrap
from sire_core.evaluate.datasets import DataSet, check_measurable
from sire_core.evaluate.experiment import Experiment
from sire_core.evaluate.made_questions import LinkedPassages, as_questions, made_questions
from sire_core.evaluate.row_list import EvalRows
from sire_core.evaluate.rows import OF_PIECES, QuestionResult
from sire_core.evaluate.runner import EvalConfig
from sire_core.index import Index
from sire_core.models.local_models import local_models
from sire_core.progress import ProgressLike
from sire_core.protocols import Embedder
from sire_core.questions import Question
from sire_core.recipes import recipe_of
from sire_core.storage.index_files import read_manifest
from sire_core.text.pluralize import count, shorten
from sire_core.types import Document

FEW = 20  # Questions below which nothing is compared
_NAMES = {
    "bm25": "BM25",
    "dense": "vectors",
    "hybrid": "hybrid (both)",
    f"bm25{OF_PIECES}": "BM25, pieces",
    f"hybrid{OF_PIECES}": "hybrid, pieces",
}
_BUDGETS = (1000, 2000)
_RECALL = "R@5"
_MADE = 100
_EVERY = "every search"
_MAX_LISTED = 10


@dataclass(frozen=True, slots=True)
class ComparedSearches:
    """Result of `compare`."""

    # BM25, vectors, both fused; where gold is quoted, BM25 and both fused over small pieces; `sire`, and `sire` with a
    # reranker where there is one
    rows: EvalRows
    reranker: str  # The reranker of the last row; empty if there is none
    is_made: bool  # Whether the questions were made from the text
    texts: Mapping[str, str]  # Text of every question, by its id

    @property
    def has_all_pieces(self) -> bool:
        """False if both fused over small pieces were left out."""
        names = {row.setup.recipe for row in self.rows}
        return _NAMES[f"bm25{OF_PIECES}"] not in names or _NAMES[f"hybrid{OF_PIECES}"] in names

    @property
    def missed(self) -> dict[str, list[QuestionResult]]:
        """Return by row the questions of which it alone lacks evidence in the first five, and those of every row."""
        recalls = {row.setup.recipe: row.per_question(_RECALL) for row in self.rows}
        missed: dict[str, list[QuestionResult]] = {}
        for result in self.rows[0].with_gold:
            lacking = [name for name, recall in recalls.items() if recall[result.id] < 1]
            if len(lacking) in (1, len(recalls)):
                missed.setdefault(lacking[0] if len(lacking) == 1 else _EVERY, []).append(result)
        return missed

    def missed_lines(self) -> list[str]:
        """`missed` for people: at most ten questions each, with the documents that they need."""
        missed, lines = self.missed, list[str]()
        for name in [*(row.setup.recipe for row in self.rows), _EVERY]:
            if not (results := missed.get(name)):
                continue
            missing = f"{count(len(results), 'question')} without all evidence in the first five"
            lines.append(f"\n{name}: {missing}" if name == _EVERY else f"\n{name} alone: {missing}")
            lines += [
                f"  {result.id}: {shorten(self.texts[result.id], 90)} -> {', '.join(dict.fromkeys(result.gold))}"
                for result in results[:_MAX_LISTED]
            ]
            if len(results) > _MAX_LISTED:
                lines.append(f"  and {len(results) - _MAX_LISTED} more")
        return lines

    @property
    def questions(self) -> int:
        """Number of questions with gold."""
        return len(self.rows[0].with_gold)

    @property
    def measures(self) -> dict[str, tuple[str, str]]:
        """Names of columns, and their measures of baselines and of `sire`; those within tokens need quotes as gold."""
        within = {
            f"{n:,} tokens": (f"tokens@{n}", f"context@{n}")
            for n in _BUDGETS
            if self.rows[0].mean(f"tokens@{n}") is not None
        }
        return {_RECALL: (_RECALL, _RECALL), **within}

    def table(self) -> list[tuple[str, list[Interval], float]]:
        """Return the name, the means by measure (percent) and the median milliseconds of a search of each row."""
        return [
            (
                row.setup.recipe,
                [
                    mean_interval(list(row.per_question(pair[row.setup.recipe not in _NAMES.values()]).values()))
                    for pair in self.measures.values()
                ],
                row.query_p50_ms(),
            )
            for row in self.rows
        ]

    def against_best(self) -> dict[str, tuple[str, Interval]]:
        """Return by measure the best of the others and the points of `sire` (not reranked) minus its points."""
        baselines = [row for row in self.rows if row.setup.recipe in _NAMES.values()]
        ours = self.rows[len(baselines)]
        compared: dict[str, tuple[str, Interval]] = {}
        for name, (theirs, of_sire) in self.measures.items():
            best = max(baselines, key=lambda row: row.mean(theirs) or 0.0)
            compared[name] = best.setup.recipe, paired_bootstrap(ours, best, of_sire, theirs)
        return compared

    def verdict(self) -> str:
        """The conclusion, in a sentence: by measure, how far `sire` is above or below the best of the others."""
        parts = []
        for name, (best, points) in self.against_best().items():
            side = "below" if points.difference < 0 else "above"
            chance = "" if points.significant else ", which may be chance"
            interval = f"[{points.low:.1f}, {points.high:.1f}]"
            parts.append(f"{name}: {abs(points.difference):.1f} points {side} {best} {interval}{chance}")
        return f"sire against the best of the others on {count(self.questions, 'question')}: {'; '.join(parts)}."

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        rows = [
            {
                "name": name,
                **{
                    measure: {"mean": round(mean.difference, 1), "low": round(mean.low, 1), "high": round(mean.high, 1)}
                    for measure, mean in zip(self.measures, means, strict=True)
                },
                "query_p50_ms": round(milliseconds, 1),
            }
            for name, means, milliseconds in self.table()
        ]
        return {
            "questions": self.questions,
            "made": self.is_made,
            "reranker": self.reranker,
            "rows": rows,
            "against_best": {
                name: {"baseline": best, **points.as_json()} for name, (best, points) in self.against_best().items()
            },
            "verdict": self.verdict(),
            "missed": {
                name: [
                    {"id": result.id, "question": self.texts[result.id], "expected": list(dict.fromkeys(result.gold))}
                    for result in results
                ]
                for name, results in self.missed.items()
            },
            "unmet": self.rows[0].unmet,
        }


def compare(
    documents: Sequence[Document],
    questions: Sequence[Question] = (),
    *,
    name: str = "documents",
    index: str | Path | None = None,
    embedder: Embedder | str | None = None,
    reranker: str | None = None,
    pieces: bool = False,
    progress: ProgressLike = None,
) -> ComparedSearches:
    """Measure BM25, vectors, both fused, and `sire` on documents.

    Args:
        documents: The corpus; documents without passages are split as an index splits them.
        questions: Questions with gold. Without any they are made from the text, of its own words, which favours BM25.
        name: Of the corpus.
        index: An index folder of these documents: a copy gives passages, vectors and `sire`, and only what it lacks is
            built. None builds all.
        embedder: As in `Index`; with `index`, that of the folder.
        reranker: As `rerank=` of `sire`; None takes a model of this machine where there is one, "" none.
        pieces: Embed small pieces, too, with any embedder, for both fused over these where gold is quoted; by default
            with the lexical one only, as a model takes minutes.
        progress: As in `Index`.

    Raises:
        CorpusError: Fewer than `FEW` questions can be made from the text.
        ConfigurationError: None of the questions has gold.
    """
    if questions:
        check_measurable(questions, name, by_answers=False)
    chosen = _local_reranker() if reranker is None else reranker
    with tempfile.TemporaryDirectory(prefix="sire-compare-") as temporary:
        folder = Path(temporary, "index")
        if index is not None:
            with Index(index, embedder=embedder) as stored:
                stored.save(folder)
        with Index(folder, recipe="sire", embedder=embedder, progress=progress) as built:
            built.build(documents) if index is None else built.update([])  # which adds the recipe where it is missing
            chosen_questions = tuple(questions) or _questions_of(built)
        recipes = [recipe_of(folder, "sire", rerank=spec) for spec in dict.fromkeys(["none", chosen or "none"])]
        embeds_pieces = pieces or read_manifest(folder).embedder.startswith("lexical")
        budgets = _BUDGETS if any(question.needs for question in chosen_questions) else ()
        rows = Experiment(
            DataSet(name, tuple(documents), chosen_questions, whole=True),
            recipes=recipes,
            config=EvalConfig(ks=(5,), budget=None, budgets=budgets, returns="passages"),
            piece_rankers=("bm25", "hybrid") if embeds_pieces else ("bm25",),
            index=folder,
            embedder=embedder,
            progress=progress,
        ).run()
    baselines = [
        replace(row, setup=replace(row.setup, recipe=label))
        for name, label in _NAMES.items()
        for row in rows
        if row.setup.recipe == name
    ]
    ours, *reranked = (row for row in rows if row.setup.recipe not in _NAMES)
    reranked = [replace(row, setup=replace(row.setup, recipe="sire, reranked")) for row in reranked]
    texts = {question.id: question.question for question in chosen_questions}
    return ComparedSearches(EvalRows([*baselines, ours, *reranked]), chosen, not questions, texts)


def _local_reranker() -> str:
    """The reranker of this machine: late interaction before cross-encoders; empty if there is none."""
    by_purpose = {model.purpose: model.spec for model in reversed(local_models())}
    return by_purpose.get("late interaction") or by_purpose.get("cross-encoder", "")


def _questions_of(index: Index) -> tuple[Question, ...]:
    made = made_questions(LinkedPassages.of(index.snapshot()), _MADE)
    if len(made) < FEW:
        raise CorpusError(
            f"Only {count(len(made), 'question')} can be made from this text, too few to compare ({FEW} are needed). "
            'Write some and pass them with --questions FILE, one a line: {"id": "q1", "question": "...", "supporting": '
            '["ID of a document"]}.'
        )
    return as_questions(made)
