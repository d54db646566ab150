"""Sending the user's own vector stores what changed: after the commit, in batches, replayed until done."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sire_core.errors import IndexLockedError
from sire_core.protocols import BufferedMirror, MirroredUnit, VerifiableMirror
from sire_core.storage.shared_metadata import differing_metadata, shared_metadata
from sire_core.storage.store import CORPUS
from sire_core.types import Failure

if TYPE_CHECKING:
    from sire_core.protocols import Mirror
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.manifest import BuiltRecipe
    from sire_core.storage.outbox import Outbox

__all__ = ["catch_up", "push", "push_all", "sync_mirrors"]

_BATCH = 500

_logger = logging.getLogger(__name__)


async def push(library: IndexFiles, built: BuiltRecipe, mirror: Mirror, *, full: bool = False) -> int:
    """Bring a vector store up to date with a recipe's pool; call it while `writing`.

    What the store holds is written down batch by batch (of a `BufferedMirror`: once at the end): after a crash the
    rest is sent, and at most one batch again.

    Args:
        library: The open index.
        built: The recipe whose pool the store holds.
        mirror: The store.
        full: Send everything, whatever the store holds.

    Returns:
        How many units were put or dropped.

    Raises:
        Exception: Whatever the store raises; what was not sent yet waits.
    """
    import asyncio

    owners = _owners(built)
    outbox = library.store.outbox(mirror.name)
    follows = await asyncio.to_thread(outbox.follows, owners)
    if full or not follows or await _is_lost(library, owners, mirror):
        await asyncio.to_thread(outbox.restart, owners)
    waiting = await asyncio.to_thread(outbox.pending)
    if not waiting:
        return 0
    reader = await asyncio.to_thread(_Reader, library, owners)
    flushes = isinstance(mirror, BufferedMirror)
    sent, put, dropped = 0, list[str](), list[str]()
    for at in range(0, len(waiting), _BATCH):
        present, gone, count = await _send(outbox, mirror, reader, waiting[at : at + _BATCH])
        sent += count
        if not flushes:
            await asyncio.to_thread(outbox.done, present, gone)
        put += present
        dropped += gone
    if isinstance(mirror, BufferedMirror):
        await mirror.flush()
        await asyncio.to_thread(outbox.done, put, dropped)
    return sent


async def push_all(
    library: IndexFiles, built: BuiltRecipe, mirrors: Sequence[Mirror], *, full: bool = False
) -> dict[str, int]:
    """Push to several stores; units sent, by the store's name. Without need nothing is written and no lock taken.

    Raises:
        IndexLockedError: Another process is writing to the folder.
        Exception: Whatever a store raises.
    """
    if not full and not any([await _is_behind(library, built, mirror) for mirror in mirrors]):
        return dict.fromkeys([mirror.name for mirror in mirrors], 0)
    with library.writing():
        return {mirror.name: await push(library, built, mirror, full=full) for mirror in mirrors}


async def sync_mirrors(library: IndexFiles, built: BuiltRecipe, mirrors: Sequence[Mirror]) -> list[Failure]:
    """Push to several stores after a commit, which stands whatever they do; what failed waits for the next push."""
    failures = []
    for mirror in mirrors:
        try:
            await push(library, built, mirror)
        except Exception as error:  # noqa: BLE001, PERF203 - a user's store may raise anything; the next one still gets its turn
            reason = f"{type(error).__name__}: {error}"[:500]
            _logger.warning("The vector store %r missed a change, which waits for it: %s", mirror.name, reason)
            failures.append(Failure(f"vector store {mirror.name!r}", reason))
    return failures


def catch_up(push: Callable[[], object]) -> None:
    """Call `Index.push` when an index is opened. What fails is logged only: searches may not need the store."""
    try:
        push()
    except IndexLockedError:
        _logger.info("Another process is writing to the index; it updates the vector stores.")
    except Exception as error:  # noqa: BLE001 - a user's store may raise anything
        _logger.warning("A vector store is behind the index: %s: %s", type(error).__name__, error)


def _owners(built: BuiltRecipe) -> list[str]:
    return [CORPUS, *built.owners]


async def _is_behind(library: IndexFiles, built: BuiltRecipe, mirror: Mirror) -> bool:
    """Whether a vector store is behind the pool."""
    import asyncio

    owners = _owners(built)
    outbox = library.store.outbox(mirror.name)
    if not await asyncio.to_thread(outbox.follows, owners):
        return True
    return bool(await asyncio.to_thread(outbox.pending)) or await _is_lost(library, owners, mirror)


async def _is_lost(library: IndexFiles, owners: Sequence[str], mirror: Mirror) -> bool:
    """Whether a store that can be asked lost what was sent; one unit is asked for."""
    import asyncio

    if not isinstance(mirror, VerifiableMirror):
        return False
    sent = await asyncio.to_thread(library.store.outbox(mirror.name).sent)
    found = await asyncio.to_thread(lambda: list(library.store.units_of(sent, owners)))
    return bool(found) and not await mirror.holds(found[0][0].id, found[0][1])


async def _send(
    outbox: Outbox, mirror: Mirror, reader: _Reader, batch: Sequence[str]
) -> tuple[list[str], list[str], int]:
    """Send one batch; gives what was put, what is gone, and how many units were sent."""
    import asyncio

    held = await asyncio.to_thread(outbox.held, batch)
    units = await asyncio.to_thread(reader.read, batch, held)
    present = [found.unit.id for found in units]
    there = set(present)
    dropped = [unit for unit in held if unit not in there]
    if dropped:
        await mirror.drop(dropped)
    if units:
        await asyncio.to_thread(outbox.begin, present)
        await mirror.put(units)
    return present, [unit for unit in batch if unit not in there], len(units) + len(dropped)


class _Reader:
    """Reads units as stores get them.

    Args:
        library: The open index.
        owners: Owners of the recipe's pool.
    """

    def __init__(self, library: IndexFiles, owners: Sequence[str]) -> None:
        self._store = library.store
        self._owners = owners
        self._chunks = {chunk.id: chunk for chunk in self._store.chunks()}

    def read(self, ids: Sequence[str], held: Sequence[str]) -> list[MirroredUnit]:
        """Those of the units that are in the pool, in the given order."""
        found = {unit.id: (unit, vector) for unit, vector in self._store.units_of(ids, self._owners)}
        replaced = set(held)
        units = []
        for name in ids:
            if name in found:
                unit, vector = found[name]
                chunks = [self._chunks[chunk] for chunk in unit.chunk_ids]
                documents = tuple(dict.fromkeys(chunk.doc_id for chunk in chunks))
                sources = [chunk.metadata for chunk in chunks]
                shared, differs = shared_metadata(sources), tuple(differing_metadata(sources))
                units.append(MirroredUnit(unit, documents, shared, vector, name in replaced, differs))
        return units
