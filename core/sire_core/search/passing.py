"""Which passages of a pool pass a filter, by their metadata and by their ids."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from sire_core.filter_ids import PASSAGE_KEYS, asks_for_ids, passes

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray
    from sire_core.search.view import PoolView

__all__ = ["passage_ids", "passing_chunks"]


def passing_chunks(view: PoolView, where: Filter | None) -> BoolArray:
    """Chunk numbers that pass a filter, `[chunks]`."""
    number, metadata = view.chunk_metadata
    if where is not None and asks_for_ids(where):
        numbers = number.tolist()
        ids = passage_ids(view) if asks_for_ids(where, PASSAGE_KEYS) else list(zip(_owners(view), repeat("")))
        asked = ((metadata[number], *found) for number, found in zip(numbers, ids, strict=True))
        return np.fromiter(passes(where, asked), dtype=bool, count=len(numbers))
    matches = (where is None or where.matches(found) for found in metadata)
    passing = np.fromiter(matches, dtype=bool, count=len(metadata))
    return np.asarray(passing[number], dtype=bool)


def passage_ids(view: PoolView) -> list[tuple[str, str]]:
    """Of every chunk number the id of its document, and its own: the user's, or ours where there is none."""
    given: list[str] = view.derived("ids of passages", view.pool.source_ids)
    own = [found.decode() for found in view.pool.chunk_ids.tolist()]
    return [(document, name or chunk) for document, name, chunk in zip(_owners(view), given, own, strict=True)]


def _owners(view: PoolView) -> list[str]:
    """Ids of the documents of all chunk numbers."""
    ids = view.pool.document_ids()
    return [ids[number] for number in view.pool.chunk_documents.tolist()]
