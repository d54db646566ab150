"""Questions of question-answering data sets."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sire_core.documents.validation import clean_metadata
from sire_core.errors import CorpusError
from sire_core.files.json_records import is_official, json_string, official_passages
from sire_core.files.source_files import DEFAULT_MAX_BYTES, json_lines, parse_json, read_text
from sire_core.questions import Question, Quote
from sire_core.text.pluralize import count
from sire_core.text.words import clean_text

_MAX_LISTED_PROBLEMS = 10
_OWN_KEYS = frozenset({"id", "_id", "question", "answers", "answer", "supporting", "needs", "type", "hops"})
_GOLD, _MISSPELT = frozenset({"answer", "answers", "supporting", "needs"}), 0.8
"""Keys of which a measured question has one, and how like one of them a misspelt key is."""
_MUSIQUE_TYPE = re.compile(r"(\d+hop\d*)__")


def read_questions(path: str | Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> tuple[Question, ...]:
    """Read the questions of a file."""
    path = Path(path)
    path_text = clean_text(str(path))
    questions: dict[str, Question] = {}
    problems: list[str] = []
    try:
        for number, record, error in _records(path, max_bytes):
            problem = error or _take(record, f"{path.name}:{number}", questions)
            if problem:
                problems.append(f"{path_text}:{number}: {problem}")
    except CorpusError as error:
        raise CorpusError(f"{path_text}: {error}") from error
    if problems:
        more = f"; and {len(problems) - _MAX_LISTED_PROBLEMS} more" if len(problems) > _MAX_LISTED_PROBLEMS else ""
        raise CorpusError(
            f"{count(len(problems), 'question')} cannot be used: {'; '.join(problems[:_MAX_LISTED_PROBLEMS])}{more}."
        )
    if not questions:
        raise CorpusError(f"{path_text} holds no questions.")
    return tuple(questions.values())


def question_from_record(record: Any, default_id: str = "") -> Question:
    """Make a `Question` of one JSON value in any of the formats of `read_questions`."""
    if not isinstance(record, Mapping):
        raise CorpusError(f"a JSON object is needed, not {type(record).__name__}")
    value = record.get("id", record.get("_id"))
    identifier = default_id if value is None else json_string(value, "id")
    question = json_string(record.get("question"), "question")
    if not identifier.strip() or not question.strip():
        raise CorpusError("'id' or 'question' is missing or blank")
    if is_official(record):
        return _official(record, identifier, question)
    metadata = {key: value for key, value in record.items() if key not in _OWN_KEYS}
    for key in () if _GOLD & record.keys() else metadata:
        for similar_key in difflib.get_close_matches(key, _GOLD, n=1, cutoff=_MISSPELT):
            raise CorpusError(f"there is no key {key!r}; do you mean {similar_key!r}?")
    return Question(
        id=identifier,
        question=question,
        answers=_answers(record),
        supporting=_strings(record.get("supporting"), "supporting"),
        type=json_string(record.get("type"), "type"),
        hops=_hops(record.get("hops")),
        needs=_needs(record.get("needs")),
        metadata=clean_metadata(metadata, "the question"),
    )


def _records(path: Path, max_bytes: int) -> Iterator[tuple[int, Any, str]]:
    if path.suffix.lower() == ".jsonl":
        for line in json_lines(path, max_bytes):
            yield line.number, line.value, line.error
        return
    value = parse_json(read_text(path, max_bytes))
    if not isinstance(value, list):
        raise CorpusError("a list of questions is needed")
    for number, record in enumerate(value, start=1):
        yield number, record, ""


def _take(record: Any, default_id: str, questions: dict[str, Question]) -> str:
    """Add the question of a record to `questions`; return the problem, if there is one."""
    if is_official(record) and record.get("answerable") is False:
        return ""
    try:
        question = question_from_record(record, default_id)
    except CorpusError as error:
        return str(error)
    same = questions.setdefault(question.id, question) == question
    return "" if same else f"id {question.id!r} belongs to another question already"


def _official(record: Mapping[str, Any], identifier: str, question: str) -> Question:
    supporting = dict.fromkeys(p.document.id for p in official_passages(record) if p.supporting)
    match = _MUSIQUE_TYPE.match(identifier)
    return Question(
        id=identifier,
        question=question,
        answers=_answers(record),
        supporting=tuple(supporting),
        type=json_string(record.get("type"), "type") or (match.group(1) if match else ""),
        hops=len(supporting),
        closed="paragraphs" not in record,
    )


def _answers(record: Mapping[str, Any]) -> tuple[str, ...]:
    """`answers`, or `answer` (often absent in test files) followed by its aliases; each once, none blank."""
    if record.get("answers") is not None:
        answers = _strings(record["answers"], "answers")
    else:
        answers = (
            json_string(record.get("answer"), "answer"),
            *_strings(record.get("answer_aliases"), "answer_aliases"),
        )
    return tuple(dict.fromkeys(answer for answer in answers if answer.strip()))


def _strings(value: Any, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise CorpusError(f"'{name}' must be a list of strings")
    return tuple(json_string(item, name) for item in value)


def _needs(value: Any) -> tuple[tuple[Quote, ...], ...]:
    shape = "'needs' must be [[{'doc', 'quote'}, ...alternatives], ...], no list empty and no quote blank"
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(need, list) and need for need in value):
        raise CorpusError(shape)
    if not all(isinstance(quote, Mapping) for need in value for quote in need):
        raise CorpusError(shape)
    needs = tuple(
        tuple(Quote(json_string(quote.get("doc"), "doc"), json_string(quote.get("quote"), "quote")) for quote in need)
        for need in value
    )
    if not all(quote.doc and quote.text.strip() for need in needs for quote in need):
        raise CorpusError(shape)
    return needs


def _hops(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CorpusError(f"'hops' must be a number of documents, not {value!r}")
    return value
