"""The passages of an index that meet the needs of questions, by quote, passage id or source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet, Question
    from sire_core.index import Index
    from sire_core.search.view import PoolView
    from sire_core.types import Unit

__all__ = ["Needs", "fold", "passage_names", "passages_by_need"]

Needs = tuple[frozenset[str], ...]
"""For every need of a question the ids of the passages that meet it; an empty set where no passage does."""

_ROLE = re.compile(r":[\w.+-]{1,40}:(?=`)")
_TARGET = re.compile(r"<[^<>\s]{1,500}>|(?<=\])\([^()\s]{0,500}\)")
_MARKS = str.maketrans("", "", "*_`#>|~\\[]")


def fold(text: str) -> str:
    """Return a text without the marks of Markdown and RST, link targets included, and with single spaces."""
    return " ".join(_TARGET.sub("", _ROLE.sub("", text)).translate(_MARKS).split())


def passage_names(passage: Unit, documents: Sequence[str]) -> set[str]:
    """Return what gold may call a passage: its ids, those of its documents, and the `source` of its metadata."""
    source = passage.metadata.get("source")
    named = {source} if isinstance(source, str) else set()
    return {passage.id, *passage.source_ids, *documents, *named} - {""}


async def passages_by_need(index: Index, dataset: DataSet) -> dict[str, Needs]:
    """Find the passages that meet the needs of the questions whose gold is finer than documents.

    Reads the passages once, and none at all where the gold of every question is ids of documents.
    """
    known = {document.id for document in dataset.documents}
    alternatives = {q.id: _alternatives(q) for q in dataset.questions if q.needs or not known.issuperset(q.supporting)}
    if not alternatives:
        return {}
    quotes: dict[str, set[str]] = {}
    for name, quote in (pair for needs in alternatives.values() for need in needs for pair in need):
        quotes.setdefault(name, set()).add(quote)
    met: dict[tuple[str, str], set[str]] = {}
    for passage, documents in _passages((await index.asnapshot()).view):
        names = passage_names(passage, documents) & quotes.keys()
        text = fold(passage.text) if names else ""
        for name in names:
            for quote in quotes[name]:
                if quote in text:
                    met.setdefault((name, quote), set()).add(passage.id)
    if not met:
        first = next(quote for needs in alternatives.values() for quote in needs[0])
        raise ConfigurationError(
            f"No passage of the index meets a need of a question, such as {first[1][:60]!r} in {first[0]!r}. The 'doc' "
            f"of a need and ids in 'supporting' must be ids of documents or passages, such as {sorted(known)[:2]}."
        )
    return {
        question: tuple(frozenset().union(*(met.get(pair, ()) for pair in need)) for need in needs)
        for question, needs in alternatives.items()
    }


def _alternatives(question: Question) -> list[list[tuple[str, str]]]:
    """For every need the pairs of a name and a folded quote that meet it; an id in `supporting` has an empty quote."""
    if question.needs:
        return [[(quote.doc, fold(quote.text)) for quote in need] for need in question.needs]
    return [[(name, "")] for name in dict.fromkeys(question.supporting)]


def _passages(view: PoolView) -> Iterator[tuple[Unit, Sequence[str]]]:
    """The passages of an index, each with the ids of its documents."""
    if UnitKind.CHUNK.value not in view.kind_names:
        return
    for position in np.flatnonzero(view.kinds == view.kind_names.index(UnitKind.CHUNK.value)).tolist():
        yield view.pool.unit(position)
