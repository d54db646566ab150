"""Runs in the format of TREC, out of rows and as rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError, CorpusError
from sire_core.evaluate.qrels import checked_id, fields_of_lines, shown
from sire_core.evaluate.rows import EvalRow, QuestionResult, Setup, needs_of_copies

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet

Run = Mapping[str, Sequence[tuple[str, float]]]
"""By question documents with their scores, best first."""

_FIELD = re.compile(r"[^\w.+-]+")


def read_run(path: str | Path) -> dict[str, list[tuple[str, float]]]:
    """Read a run of any system (`question Q0 document rank score tag`); documents by score, of equal ones by rank.

    Raises:
        CorpusError: The file cannot be read, a line has another form, or a question lists a document twice.
    """
    ranked: dict[str, dict[str, tuple[float, int]]] = {}
    for number, fields in fields_of_lines(path):
        try:
            question, _, document, rank, score, _ = fields
            entry = (-float(score), int(rank))
        except ValueError:
            raise CorpusError(
                f"{path}:{number}: expected `question Q0 document rank score tag`, got {shown(fields)}."
            ) from None
        if not math.isfinite(entry[0]) or document in ranked.setdefault(question, {}):
            raise CorpusError(f"{path}:{number}: {document!r} has no finite score or stands twice for {question!r}.")
        ranked[question][document] = entry
    return {
        question: [(document, -entries[document][0]) for document in sorted(entries, key=entries.__getitem__)]
        for question, entries in ranked.items()
    }


def write_run(path: str | Path, run: Run | EvalRow, tag: str = "") -> None:
    """Write a run, or what the searches of a row returned, a line per document: `question Q0 document rank score tag`.

    Programs of TREC sort by score alone, in single precision: a score that is not below the one before is lowered by as
    little as that has.
    """
    lines = []
    if isinstance(run, EvalRow):
        tag = tag or run.label
    for question, ranked in (run_of(run) if isinstance(run, EvalRow) else run).items():
        before = math.inf
        for rank, (document, score) in enumerate(ranked, start=1):
            single = float(np.float32(score))
            before = single if single < before else float(np.nextafter(np.float32(before), np.float32(-np.inf)))
            lines.append(
                f"{checked_id(question)} Q0 {checked_id(document)} {rank} {before!r} {_FIELD.sub('-', tag) or 'run'}\n"
            )
    Path(path).write_text("".join(lines), encoding="utf-8")


def run_of(row: EvalRow) -> dict[str, list[tuple[str, float]]]:
    """The passages that the searches of a row returned, as ids of what its gold names, with their scores."""
    return {
        result.id: [
            (name, score)
            for name, score in zip(result.passages, result.scores, strict=True)
            if name is not None and score is not None
        ]
        for result in row.results
    }


def judgements_of(row: EvalRow) -> dict[str, dict[str, int]]:
    """Judgements of a row: the grades of its questions, or 1 for everything that meets a need."""
    return {
        result.id: dict(result.grades)
        or {name: 1 for need in result.wanted for name in ([need] if isinstance(need, str) else sorted(need))}
        for result in row.with_gold
    }


def row_of_run(dataset: DataSet, run: Run, name: str, ks: Iterable[int] = (2, 5, 10, 20)) -> EvalRow:
    """Measure a run of another system on the questions of a data set; a question that it leaves out finds nothing.

    Measures are of documents. Those of our rows are so, too, where documents are graded or are a single passage each;
    otherwise ours count passages.

    Args:
        dataset: With gold that names documents.
        run: See `read_run`.
        name: What the row is called.
        ks: Cut-offs.

    Raises:
        ConfigurationError: No question of the data set is in the run.
    """
    questions = [question for question in dataset.measurable if question.supporting]
    if not any(question.id in run for question in questions):
        raise ConfigurationError(f"The run {name!r} has no question of {dataset.name}; compare the ids of both.")
    results, copies = [], dataset.copies
    for question in questions:
        ranked = run.get(question.id, ())
        names = tuple(document for document, _ in ranked)
        results.append(
            QuestionResult(
                id=question.id,
                type=question.type,
                gold=tuple(dict.fromkeys(question.supporting)),
                documents=names,
                brought_by=("chunk",) * len(names),
                literal=names,
                kinds=("chunk",) * len(names),
                seconds=0.0,
                passages=names,
                hops=question.hops,
                needs=needs_of_copies(question, copies),
                sources=names,
                grades=question.grades,
                scores=tuple(score for _, score in ranked),
            )
        )
    return EvalRow(
        Setup(name, note="a run of another system"), dataset.name, dataset.passages, tuple(ks), None, tuple(results)
    )
