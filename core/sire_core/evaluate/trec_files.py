"""Runs and relevance judgements (qrels) in the formats of TREC and BEIR."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError, CorpusError
from sire_core.evaluate.rows import EvalRow, QuestionResult, Setup
from sire_core.files.source_files import DEFAULT_MAX_BYTES, read_text

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet

Judgements = Mapping[str, Mapping[str, int]]
"""By question the grade of every judged document; 0 and below is not relevant."""

Run = Mapping[str, Sequence[tuple[str, float]]]
"""By question documents with their scores, best first."""

_HEADER = ("query-id", "corpus-id", "score")
_GRADE = re.compile(r"-?\d{1,9}")
_TAG = re.compile(r"[^\w.+-]+")


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Read relevance judgements.

    Args:
        path: A file of TREC (`question 0 document grade`) or BEIR (`query-id corpus-id score`, with or without this
            line as a header), separated by tabs or spaces.

    Raises:
        CorpusError: The file cannot be read, a line has another form, or a document is judged twice.
    """
    judged: dict[str, dict[str, int]] = {}
    for number, fields in _lines(path):
        if number == 1 and tuple(fields) == _HEADER:
            continue
        if len(fields) not in (3, 4) or not _GRADE.fullmatch(fields[-1]):
            raise CorpusError(f"{path}:{number}: expected `question 0 document grade`, got {_shown(fields)}.")
        question, document, grade = fields[0], fields[-2], int(fields[-1])
        if judged.setdefault(question, {}).setdefault(document, grade) != grade:
            raise CorpusError(f"{path}:{number}: {document!r} has two grades for {question!r}.")
    return judged


def write_qrels(path: str | Path, judged: Judgements) -> None:
    """Write relevance judgements as TREC has them, a line each: `question 0 document grade`."""
    lines = (f"{_word(q)} 0 {_word(d)} {grade}\n" for q, grades in judged.items() for d, grade in grades.items())
    Path(path).write_text("".join(lines), encoding="utf-8")


def read_run(path: str | Path) -> dict[str, list[tuple[str, float]]]:
    """Read a run of any system (`question Q0 document rank score tag`); documents by score, of equal ones by rank.

    Raises:
        CorpusError: The file cannot be read, a line has another form, or a question lists a document twice.
    """
    ranked: dict[str, dict[str, tuple[float, int]]] = {}
    for number, fields in _lines(path):
        try:
            question, _, document, rank, score, _ = fields
            entry = (-float(score), int(rank))
        except ValueError:
            raise CorpusError(
                f"{path}:{number}: expected `question Q0 document rank score tag`, got {_shown(fields)}."
            ) from None
        if not math.isfinite(entry[0]) or document in ranked.setdefault(question, {}):
            raise CorpusError(f"{path}:{number}: {document!r} has no finite score or stands twice for {question!r}.")
        ranked[question][document] = entry
    return {
        question: [(document, -entries[document][0]) for document in sorted(entries, key=entries.__getitem__)]
        for question, entries in ranked.items()
    }


def write_run(path: str | Path, run: Run, tag: str) -> None:
    """Write a run, a line per document: `question Q0 document rank score tag`.

    Programs of TREC sort by score alone, in single precision: a score that is not below the one before is lowered by as
    little as that has.
    """
    lines = []
    for question, ranked in run.items():
        before = math.inf
        for rank, (document, score) in enumerate(ranked, start=1):
            single = float(np.float32(score))
            before = single if single < before else float(np.nextafter(np.float32(before), np.float32(-np.inf)))
            lines.append(f"{_word(question)} Q0 {_word(document)} {rank} {before!r} {_TAG.sub('-', tag) or 'run'}\n")
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
    """What counted as relevant for a row: the grades of its questions, or 1 for everything that meets a need."""
    return {
        result.id: dict(result.grades)
        or {name: 1 for need in result.wanted for name in ([need] if isinstance(need, str) else sorted(need))}
        for result in row.with_gold
    }


def row_of_run(dataset: DataSet, run: Run, name: str, ks: Iterable[int] = (2, 5, 10, 20)) -> EvalRow:
    """Measure a run of another system on the questions of a data set; a question that it leaves out finds nothing.

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
    results = []
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
                sources=names,
                grades=question.grades,
                scores=tuple(score for _, score in ranked),
            )
        )
    return EvalRow(
        Setup(name, note="a run of another system"), dataset.name, dataset.passages, tuple(ks), None, tuple(results)
    )


def _lines(path: str | Path) -> Iterable[tuple[int, list[str]]]:
    try:
        text = read_text(Path(path), DEFAULT_MAX_BYTES)
    except CorpusError as error:
        raise CorpusError(f"{path}: {error}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line.split("\t") if "\t" in line else line.split()


def _word(name: str) -> str:
    """An id, which no white space may separate."""
    if not name or name != "".join(name.split()):
        raise ConfigurationError(f"The id {name!r} has white space; files of TREC cannot hold it.")
    return name


def _shown(fields: Sequence[str]) -> str:
    return repr(" ".join(fields)[:80])
