"""The demo corpus: encyclopedia entries about an invented archipelago, and questions that need several of them.

In the questions that need two or more passages, the passages after the first share no content word with the question,
so that plain search has a hard time with them.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from sire_core.questions import Question
from sire_core.types import Document

__all__ = ["demo_documents", "demo_questions"]


def demo_documents() -> tuple[Document, ...]:
    """The 41 passages of the demo corpus, each a document."""
    return tuple(Document(**record) for record in _records("demo_corpus.jsonl"))


def demo_questions() -> tuple[Question, ...]:
    """The 8 questions on the demo corpus; those of `sire demo` have their place in `metadata["demo"]`."""
    return tuple(map(_question, _records("demo_questions.jsonl")))


def _question(record: dict[str, Any]) -> Question:
    fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in record.items()}
    metadata = {"demo": fields.pop("demo")} if "demo" in fields else {}
    return Question(**fields, metadata=metadata)


def _records(name: str) -> list[Any]:
    # Through importlib.resources, so that it works from a wheel or zip file too.
    text = files(__name__).joinpath(name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
