"""The embedding stage of a build: vectors are asked for once, stored as they come, reused for ever."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sire_core.algorithms.vectors import unit_rows
from sire_core.errors import EmbedderMismatchError, ModelError
from sire_core.protocols import Fittable
from sire_core.types import digest

if TYPE_CHECKING:
    from sire_core.protocols import Embedder, FloatArray, Progress
    from sire_core.types import Unit

__all__ = ["UnitEmbedder", "VectorStore"]

_BATCH = 1024


class VectorStore(Protocol):
    """Where vectors wait for the commit; see `sire_core.storage.calls.CallStore`."""

    def vectors(self, fingerprint: str, hashes: Sequence[str]) -> dict[str, FloatArray]:
        """Stored vectors by text hash."""

    def put_vectors(self, fingerprint: str, hashes: Sequence[str], vectors: FloatArray) -> None:
        """Store vectors."""


class UnitEmbedder:
    """Vectors of units during one build.

    Args:
        embedder: The user's embedder.
        store: Keeps vectors as they come, so that a killed build does not embed twice; not those of an embedder that
            is fitted to the corpus, which costs no call and little time.
        load: Vectors that the index holds, by unit id.
        read: Reads stored units by id, whose vectors are out of date.
        progress: Called after every batch.
        workers: Batches in flight at once.
        width: Length of the vectors that the index holds; 0 when it holds none that stay.
    """

    def __init__(
        self,
        embedder: Embedder,
        store: VectorStore,
        load: Callable[[Sequence[str]], Mapping[str, FloatArray]],
        read: Callable[[Sequence[str]], Mapping[str, Unit]],
        progress: Progress,
        workers: int,
        width: int,
    ) -> None:
        self._embedder = embedder
        # What was fitted to this corpus is quicker to ask again than to write down.
        self._store = None if isinstance(embedder, Fittable) else store
        self._load = load
        self._read = read
        self._made: dict[str, FloatArray] = {}
        self._progress = progress
        self._workers = workers
        self._width = width

    async def embed(self, units: Sequence[Unit | str]) -> FloatArray:
        """Unit-length vectors of the units' index texts, `[len(units), dimension]`.

        Args:
            units: Units, or ids of stored ones.
        """
        if not units:
            return np.empty((0, self._embedder.dimension), dtype=np.float32)
        found = await self.by_id(units)
        ids = [_id(unit) for unit in units]
        vectors = np.empty((len(ids), len(found[ids[0]])), dtype=np.float32)
        for place, unit in enumerate(ids):
            vectors[place] = found[unit]
        return vectors

    async def by_id(self, units: Sequence[Unit | str]) -> dict[str, FloatArray]:
        """The same by unit id, without a copy."""
        new = [unit for unit in units if _id(unit) not in self._made]
        held = self._load([_id(unit) for unit in new])
        await self._make([unit for unit in new if _id(unit) not in held])
        return {unit: held[unit] if unit in held else self._made[unit] for unit in map(_id, units)}

    async def _make(self, units: Sequence[Unit | str]) -> None:
        """Embed what has no vector yet, or take what an earlier run that did not finish has stored."""
        given = [unit for unit in units if not isinstance(unit, str)]
        given += self._read([unit for unit in units if isinstance(unit, str)]).values()
        texts = {unit.id: digest("vector", unit.index_text) for unit in given}
        if not texts:
            return
        stored = self._store.vectors(self._embedder.fingerprint, list(texts.values())) if self._store else {}
        asked = {texts[unit.id]: unit.index_text for unit in given if texts[unit.id] not in stored}
        stored.update(await self._ask(asked))
        self._made.update((unit, stored[text]) for unit, text in texts.items())

    async def _ask(self, texts: dict[str, str]) -> dict[str, FloatArray]:
        """Embed texts (by hash) in batches, a few at a time."""
        import asyncio

        hashes = list(texts)
        found: dict[str, FloatArray] = {}
        free = asyncio.Semaphore(self._workers)

        async def one(start: int) -> None:
            part = hashes[start : start + _BATCH]
            async with free:
                raw = np.asarray(await self._embedder.embed([texts[h] for h in part], "document"), dtype=np.float32)
            if raw.ndim != 2 or len(raw) != len(part) or not np.isfinite(raw).all():
                raise ModelError(
                    f"The embedder {self._embedder.fingerprint} returned an array of shape {raw.shape} "
                    f"{'' if np.isfinite(raw).all() else 'with infinite or undefined numbers '}"
                    f"for {len(part)} texts. Everything embedded before is kept; check the embedder and run again."
                )
            self._width = self._width or raw.shape[1]
            if raw.shape[1] != self._width:
                raise EmbedderMismatchError(
                    f"The embedder {self._embedder.fingerprint} answers vectors of another length than those in the "
                    "index. Give the one that it was built with, or build into another folder."
                )
            vectors = unit_rows(raw)
            if self._store is not None:
                self._store.put_vectors(self._embedder.fingerprint, part, vectors)
            found.update(zip(part, vectors, strict=True))
            self._progress("embedding", len(found), len(hashes))

        await asyncio.gather(*(one(start) for start in range(0, len(hashes), _BATCH)))
        return found


def _id(unit: Unit | str) -> str:
    return unit if isinstance(unit, str) else unit.id
