"""Relevance judgements (qrels) in the formats of TREC and BEIR."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sire_core.errors import ConfigurationError, CorpusError
from sire_core.files.source_files import DEFAULT_MAX_BYTES, read_text

Judgements = Mapping[str, Mapping[str, int]]
"""By question the grade of every judged document; 0 and below is not relevant."""

_HEADER = ("query-id", "corpus-id", "score")
_GRADE = re.compile(r"-?\d{1,9}")


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Read relevance judgements.

    Args:
        path: A file of TREC (`question 0 document grade`) or BEIR (`query-id corpus-id score`, with or without this
            line as a header), separated by tabs or spaces.

    Raises:
        CorpusError: The file cannot be read, a line has another form, or a document is judged twice.
    """
    judged: dict[str, dict[str, int]] = {}
    for number, fields in fields_of_lines(path):
        if number == 1 and tuple(fields) == _HEADER:
            continue
        if len(fields) not in (3, 4) or not _GRADE.fullmatch(fields[-1]):
            raise CorpusError(f"{path}:{number}: expected `question 0 document grade`, got {shown(fields)}.")
        question, document, grade = fields[0], fields[-2], int(fields[-1])
        if judged.setdefault(question, {}).setdefault(document, grade) != grade:
            raise CorpusError(f"{path}:{number}: {document!r} has two grades for {question!r}.")
    return judged


def write_qrels(path: str | Path, judged: Judgements) -> None:
    """Write relevance judgements as TREC has them, a line each: `question 0 document grade`."""
    lines = (
        f"{checked_id(q)} 0 {checked_id(d)} {grade}\n" for q, grades in judged.items() for d, grade in grades.items()
    )
    Path(path).write_text("".join(lines), encoding="utf-8")


def fields_of_lines(path: str | Path) -> Iterable[tuple[int, list[str]]]:
    """Yield number and fields of every line that is not blank."""
    try:
        text = read_text(Path(path), DEFAULT_MAX_BYTES)
    except CorpusError as error:
        raise CorpusError(f"{path}: {error}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line.split("\t") if "\t" in line else line.split()


def checked_id(name: str) -> str:
    """Return an id; refuse one with white space."""
    if not name or name != "".join(name.split()):
        raise ConfigurationError(f"The id {name!r} has white space; files of TREC cannot hold it.")
    return name


def shown(fields: Sequence[str]) -> str:
    """Return the start of a line for a message."""
    return repr(" ".join(fields)[:80])
