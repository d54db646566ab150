"""The embedding stage of a build: vectors are asked for once, stored as they come, reused for ever."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sire_core.algorithms.vectors import unit_rows
from sire_core.algorithms.worker_pool import bounded_map
from sire_core.errors import EmbedderMismatchError, ModelError
from sire_core.models.vector_file import VectorFile
from sire_core.protocols import Fittable
from sire_core.types import digest

if TYPE_CHECKING:
    from pathlib import Path

    from sire_core.protocols import Embedder, FloatArray, Progress, Runner
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
        runner: Does the work of portable embedders.
        directory: Where vectors wait for the commit; None for where the system keeps temporary files.
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
        runner: Runner,
        directory: Path | None = None,
    ) -> None:
        self._embedder = embedder
        # What was fitted to this corpus is quicker to ask again than to write down.
        self._store = None if isinstance(embedder, Fittable) else store
        self._load = load
        self._read = read
        self._made = VectorFile(directory)
        self._progress = progress
        self._workers = workers
        self._width = width
        self._runner = runner

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

    async def by_id(self, units: Sequence[Unit | str]) -> Mapping[str, FloatArray]:
        """The same by unit id; a vector is read when it is asked for."""
        new = [unit for unit in units if _id(unit) not in self._made]
        held = self._load([_id(unit) for unit in new])
        await self._make([unit for unit in new if _id(unit) not in held])
        return _Vectors(dict.fromkeys(map(_id, units)), held, self._made)

    async def _make(self, units: Sequence[Unit | str]) -> None:
        """Embed what has no vector yet, or take what an earlier run that did not finish has stored."""
        given = [unit for unit in units if not isinstance(unit, str)]
        given += self._read([unit for unit in units if isinstance(unit, str)]).values()
        same: dict[str, tuple[Unit, ...]] = {}
        for unit in given:
            text = digest("vector", unit.index_text)
            same[text] = (*same.get(text, ()), unit)
        if self._store is not None:
            for part in _parts(list(same)):
                stored = self._store.vectors(self._embedder.fingerprint, part)
                for text, vector in stored.items():
                    self._made.put([unit.id for unit in same.pop(text)], vector)
        await self._ask(same)

    async def _ask(self, same: Mapping[str, tuple[Unit, ...]]) -> None:
        """Embed texts, given by hash the units that have it, in batches, a few at a time."""
        parts = _parts(list(same))
        done = 0
        if parts:
            self._progress("embedding", 0, len(same))
        async for number, raw in self._batches(_Texts([[same[text][0] for text in part] for part in parts])):
            vectors = self._checked(np.asarray(raw, dtype=np.float32), len(parts[number]))
            if self._store is not None:
                self._store.put_vectors(self._embedder.fingerprint, parts[number], vectors)
            for text, vector in zip(parts[number], vectors, strict=True):
                self._made.put([unit.id for unit in same[text]], vector)
            done += len(vectors)
            self._progress("embedding", done, len(same))

    async def _batches(self, parts: Sequence[list[str]]) -> AsyncGenerator[tuple[int, FloatArray], None]:
        """Vectors by number of the part, as they come."""
        if self._runner.part_size is not None and getattr(self._embedder, "portable", False):
            async with aclosing(self._runner.map(_embedded, self._embedder, parts)) as batches:
                async for batch in batches:
                    yield batch
            return

        async def embed(number: int) -> FloatArray:
            return await self._embedder.embed(parts[number], "document")

        async with aclosing(bounded_map(embed, range(len(parts)), self._workers)) as finished:
            async for some in finished:
                for result in some:
                    yield result

    def _checked(self, raw: FloatArray, count: int) -> FloatArray:
        """Unit-length vectors of a batch of so many texts.

        Raises:
            ModelError: There are others than were asked for.
            EmbedderMismatchError: They do not go with those of the index.
        """
        if raw.ndim != 2 or len(raw) != count or not np.isfinite(raw).all():
            raise ModelError(
                f"The embedder {self._embedder.fingerprint} returned an array of shape {raw.shape} "
                f"{'' if np.isfinite(raw).all() else 'with infinite or undefined numbers '}"
                f"for {count} texts. Everything embedded before is kept; check the embedder and run again."
            )
        self._width = self._width or raw.shape[1]
        if raw.shape[1] != self._width:
            raise EmbedderMismatchError(
                f"The embedder {self._embedder.fingerprint} answers vectors of another length than those in the "
                "index. Give the one that it was built with, or build into another folder."
            )
        return unit_rows(raw)


def _embedded(embedder: Embedder, texts: list[str]) -> FloatArray:
    """Vectors of a part, wherever this runs."""
    import asyncio

    async def all_of_them() -> FloatArray:
        return await embedder.embed(texts, "document")

    return asyncio.run(all_of_them())


class _Vectors(Mapping[str, "FloatArray"]):
    """Vectors of some units, of which the index holds some and a build has made the others.

    Args:
        ids: Of the units.
        held: By the index.
        made: By the build, and others.
    """

    def __init__(self, ids: Mapping[str, None], held: Mapping[str, FloatArray], made: VectorFile) -> None:
        self._ids, self._held, self._made = ids, held, made

    def __getitem__(self, unit: str) -> FloatArray:
        held = self._held.get(unit)
        return self._made[unit] if held is None else held

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


class _Texts(Sequence[list[str]]):
    """What the units of every batch are embedded by, made when it is asked for.

    Args:
        batches: Units of each.
    """

    def __init__(self, batches: Sequence[Sequence[Unit]]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, number: Any) -> Any:
        return [unit.index_text for unit in self._batches[number]]


def _parts(texts: Sequence[str]) -> list[Sequence[str]]:
    return [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]


def _id(unit: Unit | str) -> str:
    return unit if isinstance(unit, str) else unit.id
