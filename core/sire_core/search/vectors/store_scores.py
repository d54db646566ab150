"""Similarities of a whole pool where the user's own vector store finds what is nearest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.search.ranking import best_first

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from numpy.typing import NDArray

    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray, FloatArray, IntArray, VectorIndex, View

_LISTED = 200
"""So many units are asked of the store at least: seeds of graph recipes are among the first ten."""
_EXACT = 1000
_BLOCK = 65_536
_TIE = 1e-4
"""What stores that compute with other numbers make of equal cosines."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """Vectors with one byte per number: a quarter of their size, cosines within about 0.002.

    Attributes:
        codes: int8 `[n, d]`.
        scales: What a code of 1 is worth in each row, `[n]`.
    """

    codes: NDArray[np.int8]
    scales: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray) -> Bytes:
        """Compress unit-length rows `[n, d]`."""
        codes = np.empty(matrix.shape, dtype=np.int8)
        scales = np.empty(len(matrix), dtype=np.float32)
        for start in range(0, len(matrix), _BLOCK):
            rows = np.asarray(matrix[start : start + _BLOCK])
            scale = np.maximum(np.abs(rows).max(axis=1, initial=0.0), 1e-12) / 127
            codes[start : start + _BLOCK] = np.rint(rows / scale[:, None])
            scales[start : start + _BLOCK] = scale
        return cls(codes, scales)

    def products(self, question: FloatArray) -> FloatArray:
        """Inner products `[n]` with a vector `[d]`."""
        found = np.empty(len(self.codes), dtype=np.float32)
        for start in range(0, len(found), _BLOCK):
            found[start : start + _BLOCK] = self.codes[start : start + _BLOCK].astype(np.float32) @ question
        return found * self.scales

    def save(self, directory: Path) -> None:
        """Write the arrays as files."""
        np.save(directory / "codes.npy", self.codes)
        np.save(directory / "scales.npy", self.scales)

    @classmethod
    def load(cls, directory: Path) -> Bytes:
        """Map what `save` has written."""
        return cls(np.load(directory / "codes.npy", mmap_mode="r"), np.load(directory / "scales.npy"))


@dataclass(frozen=True, slots=True)
class FollowedIndex:
    """A vector store, and what it has still to hear of.

    Attributes:
        index: The store.
        behind: Gives the ids of the units that it has not got yet, or not as they are.
    """

    index: VectorIndex
    behind: Callable[[], Collection[str]]

    def waiting(self, view: View) -> BoolArray:
        """Which units of a pool it cannot list rightly, `[size]`."""
        waits, place = np.zeros(view.size, dtype=bool), view.places()
        waits[[place[name] for name in self.behind() if name in place]] = True
        return waits


async def store_scores(
    followed: FollowedIndex, query: str, question: FloatArray, view: View, where: Filter | None
) -> FloatArray:
    """Similarity of every unit with a question, `[size]`: the store says which units are nearest, and in which order.

    Stores cannot be asked for the scores of given units, which graphs need: those that the store does not list get
    theirs from vectors of one byte per number on our side (the best thousand exactly), below all that it lists. What it
    lists gets exact cosines, dealt out in its order. Units that the store has not got yet get their own exact cosines.

    Args:
        followed: The user's store.
        query: The question.
        question: Its vector, `[dimension]`.
        view: The pool.
        where: The store is told, and asked for more until enough of what it lists passes.
    """
    import asyncio

    allowed = view.allowed(where)
    waits = await asyncio.to_thread(followed.waiting, view)  # before the store is asked: it may get them meanwhile
    if waits.all():
        return np.asarray(await asyncio.to_thread(np.dot, view.matrix, question), dtype=np.float32)
    asked = ~waits if allowed is None else allowed & ~waits
    listed = await _listed(followed.index, query, question, view, where, asked)
    copies = await asyncio.to_thread(
        view.cached_on_disk, "bytes", lambda: Bytes.of(view.matrix), Bytes.save, Bytes.load
    )
    scores = await asyncio.to_thread(copies.products, question)
    best = np.sort(best_first(scores, _EXACT))
    scores[best] = view.matrix[best] @ question
    if waits.any():
        scores[waits] = view.matrix[waits] @ question
    if not len(listed):  # nothing passes the filter, or nothing that the store has yet
        return scores
    exact = np.asarray(view.matrix[listed] @ question, dtype=np.float32)
    if np.any(np.diff(exact) > _TIE):  # another measure, or nearly nearest ones only: the order is the store's
        exact = np.sort(exact)[::-1]
    behind = asked.copy()
    behind[listed] = False
    scores[behind] = np.minimum(scores[behind], np.nextafter(exact.min(), np.float32(-np.inf)))
    scores[listed] = exact
    return scores


def no_candidates_message(units: int) -> str:
    """What to tell of a store that knows none of the units."""
    return (
        f"The user's vector store lists none of the {units:,} units of the index. Index(mirrors=[...]) fills it, "
        "Index.push(full=True) fills it again; a store that gives its entries ids of its own cannot be used."
    )


async def _listed(
    index: VectorIndex,
    query: str,
    question: FloatArray,
    view: View,
    where: Filter | None,
    allowed: BoolArray,
) -> IntArray:
    """Positions that the store lists, nearest first, of those that are looked for."""
    wanted = max(1, min(_LISTED, int(np.count_nonzero(allowed))))
    asked, place = wanted, view.places()
    while True:
        names = await index.top(query, question, asked, where)
        known = [place[name] for name in dict.fromkeys(names) if name in place]
        found = [position for position in known if allowed[position]]
        if len(found) >= wanted or len(names) < asked:
            break
        asked *= 4
    if not known and where is None and view.size:
        raise ConfigurationError(no_candidates_message(view.size))
    return np.asarray(found, dtype=np.int64)
