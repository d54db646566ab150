"""Which passages of a pool pass a filter, by their metadata, ids and titles."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from sire_core.filter_ids import PASSAGE_KEYS, TITLE, asks_for_fields, passes

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray
    from sire_core.search.view import PoolView

__all__ = ["passage_ids", "passage_titles", "passing_chunks"]


def passing_chunks(view: PoolView, where: Filter | None) -> BoolArray:
    """Chunk numbers that pass a filter, `[chunks]`."""
    number, metadata = view.chunk_metadata
    if where is not None and asks_for_fields(where):
        numbers = number.tolist()
        ids = passage_ids(view) if asks_for_fields(where, PASSAGE_KEYS) else list(zip(_owners(view), repeat("")))
        titles = passage_titles(view) if asks_for_fields(where, (TITLE,)) else [""] * len(numbers)
        asked = ((metadata[number], *found, title) for number, found, title in zip(numbers, ids, titles, strict=True))
        return np.fromiter(passes(where, asked), dtype=bool, count=len(numbers))
    matches = (where is None or where.matches(found) for found in metadata)
    passing = np.fromiter(matches, dtype=bool, count=len(metadata))
    return np.asarray(passing[number], dtype=bool)


def passage_ids(view: PoolView) -> list[tuple[str, str]]:
    """Of every chunk number the id of its document, and its own: the user's, or ours where there is none."""
    given: list[str] = view.derived("ids of passages", view.pool.source_ids)
    own = [found.decode() for found in view.pool.chunk_ids.tolist()]
    return [(document, name or chunk) for document, name, chunk in zip(_owners(view), given, own, strict=True)]


def passage_titles(view: PoolView) -> list[str]:
    """The title of every chunk number; empty where there is none."""
    found: list[str] = view.derived("titles of passages", view.pool.titles)
    return found


def _owners(view: PoolView) -> list[str]:
    """Ids of the documents of all chunk numbers."""
    ids = view.pool.document_ids()
    return [ids[number] for number in view.pool.chunk_documents.tolist()]
