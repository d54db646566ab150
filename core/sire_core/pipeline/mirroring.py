"""Telling the user's own vector stores what changed (DESIGN 5): after the commit, in batches, replayed until done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sire_core.protocols import MirroredUnit
from sire_core.storage.store import CORPUS
from sire_core.types import Failure

if TYPE_CHECKING:
    from sire_core.manifest import BuiltRecipe
    from sire_core.protocols import Mirror
    from sire_core.storage.index_files import IndexFiles

__all__ = ["push", "tell"]

_BATCH = 500


async def push(library: IndexFiles, built: BuiltRecipe, mirror: Mirror) -> int:
    """Bring a vector store up to date with a recipe's pool; call it while `writing`.

    What the store was told is written down batch by batch: after a crash the rest is told, and at most one batch again.

    Args:
        library: The open index.
        built: The recipe whose pool the store holds.
        mirror: The store.

    Returns:
        How many units were put or dropped.

    Raises:
        Exception: Whatever the store raises; what it was not told yet waits.
    """
    import asyncio

    owners = [CORPUS, *built.owners]
    outbox = library.store.outbox(mirror.name)
    await asyncio.to_thread(outbox.enroll, owners)
    metadata = await asyncio.to_thread(lambda: {d.id: d.metadata for d in library.store.documents().values()})
    document_of = await asyncio.to_thread(library.store.documents_of_chunks)
    told = 0
    while pending := await asyncio.to_thread(outbox.pending, _BATCH):
        units = await asyncio.to_thread(_read, library, owners, pending, document_of, metadata)
        present = {found.unit.id for found in units}
        gone = [unit for unit in pending if unit not in present]
        dropped = await asyncio.to_thread(outbox.held, gone)
        if dropped:
            await mirror.drop(dropped)
        if units:
            await asyncio.to_thread(outbox.begin, present)
            await mirror.put(units)
        await asyncio.to_thread(outbox.done, present, gone)
        told += len(units) + len(dropped)
    return told


async def tell(library: IndexFiles, built: BuiltRecipe, mirrors: Sequence[Mirror]) -> list[Failure]:
    """Push to several stores after a commit, which stands whatever they do; what failed waits for the next push."""
    failures = []
    for mirror in mirrors:
        try:
            await push(library, built, mirror)
        except Exception as error:  # noqa: BLE001, PERF203 - a user's store may raise anything; the next one is told
            failures.append(Failure(f"vector store {mirror.name!r}", f"{type(error).__name__}: {error}"[:500]))
    return failures


def _read(
    library: IndexFiles,
    owners: Sequence[str],
    ids: Sequence[str],
    document_of: Mapping[str, str],
    metadata: Mapping[str, Mapping[str, Any]],
) -> list[MirroredUnit]:
    """Those of the units that are in the pool, in the given order."""
    found = {unit.id: (unit, vector) for unit, vector in library.store.units_of(ids, owners)}
    units = []
    for name in ids:
        if name in found:
            unit, vector = found[name]
            documents = tuple(dict.fromkeys(document_of[chunk] for chunk in unit.chunk_ids))
            units.append(MirroredUnit(unit, documents, _shared([metadata[doc] for doc in documents]), vector))
    return units


def _shared(sources: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Keys and values that all of these have in common."""
    first, *others = sources
    return {key: value for key, value in first.items() if all(key in o and o[key] == value for o in others)}
