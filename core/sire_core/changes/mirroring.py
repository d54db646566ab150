"""Sending the user's own vector stores what changed: after the commit, in batches, replayed until done."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError, IndexLockedError, RefusedUnitsError
from sire_core.protocols import Mirror, MirroredUnit
from sire_core.storage.outbox import Followed, Outbox
from sire_core.storage.pool import differing_metadata, shared_metadata
from sire_core.storage.store import CORPUS
from sire_core.types import BuildReport, Failure

if TYPE_CHECKING:
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.manifest import BuiltRecipe

_UNITS_PER_BATCH = 500
_ALONE = 3  # So many units are sent alone to a store that has taken none, before it counts as out of order

_logger = logging.getLogger(__name__)


async def push(files: IndexFiles, built: BuiltRecipe | None, mirror: Mirror, *, full: bool = False) -> int:
    """Bring a vector store up to date with a recipe's pool; call it while `writing`."""
    plan, table = await _look(files, built, mirror, full=full), _owned(mirror)
    outbox, token = files.store.outbox(mirror.name), f"{plan.index} {secrets.token_hex(8)}"
    # Whichever of the two stands in the table after a crash: what was not sent is written down here.
    following = Followed(plan.owners, (plan.mark, token))
    if plan.again:
        await asyncio.to_thread(lambda: outbox.follow(replace(following, marks=(token,)), again=True))
        if table is not None:
            await table.clear()
            await table.leave_mark(token)
    waiting = await asyncio.to_thread(outbox.pending)
    if not (plan.again or plan.follows or waiting):
        return 0
    await asyncio.to_thread(outbox.follow, following)
    reader = await asyncio.to_thread(_Reader, files, plan.owners)
    if plan.first and hasattr(mirror, "nearest"):
        sent = await _send_first(outbox, mirror, reader)
    else:
        sent = await _send_all(outbox, mirror, reader)
    if table is not None:
        await table.leave_mark(token)
    await asyncio.to_thread(outbox.follow, replace(following, marks=(token,)))
    return sent


async def push_all(
    files: IndexFiles, built: BuiltRecipe, mirrors: Sequence[Mirror], *, full: bool = False
) -> dict[str, int]:
    """Push to several stores; units sent, by the store's name. Without need nothing is written and no lock taken."""
    if not full and not any([await _is_behind(files, built, mirror) for mirror in mirrors]):
        return dict.fromkeys([mirror.name for mirror in mirrors], 0)
    with files.writing():
        return {mirror.name: await push(files, built, mirror, full=full) for mirror in mirrors}


async def sync_mirrors(files: IndexFiles, built: BuiltRecipe | None, mirrors: Sequence[Mirror]) -> list[Failure]:
    """Push to several stores after a commit, which stands whatever they do; what failed waits for the next push."""
    failures = []
    for mirror in mirrors:
        try:
            await push(files, built, mirror)
        except Exception as error:  # noqa: BLE001, PERF203 - a user's store may raise anything; the next one still gets its turn
            reason = f"{type(error).__name__}: {error}"[:500]
            _logger.warning("The vector store %r missed a change, which waits for it: %s", mirror.name, reason)
            failures.append(Failure(f"vector store {mirror.name!r}", reason))
    return failures


async def purge(mirrors: Sequence[Mirror]) -> None:
    """Let the databases that can do so give back what deleted entries left in their files."""
    for mirror in mirrors:
        if (table := _owned(mirror)) is not None:
            await table.purge()


def _owned(mirror: Any) -> Any:
    """The store if its table can say which index it belongs to, else None; see `Mirror`."""
    return mirror if all(hasattr(mirror, name) for name in ("mark", "leave_mark", "clear", "purge")) else None


def catch_up(push: Callable[[], object]) -> None:
    """Call `Index.push` when an index is opened. What fails is logged only: searches may not need the store."""
    try:
        push()
    except IndexLockedError:
        _logger.info("Another process is writing to the index; it updates the vector stores.")
    except Exception as error:  # noqa: BLE001 - a user's store may raise anything
        _logger.warning("A vector store is behind the index: %s: %s", type(error).__name__, error)


async def push_missed(push: Callable[[], Awaitable[object]], report: BuildReport) -> None:
    """Write a mirror again that missed a change; raises what its store raises, but for single units it refuses."""
    if report.failures:
        with suppress(RefusedUnitsError):  # logged, and counted in `stats`: the other units are there
            await push()


@dataclass(frozen=True, slots=True)
class _Plan:
    """Return what a store follows from now on, and if everything is sent again."""

    owners: tuple[str, ...]  # Of the recipes that were opened with it and are still there
    index: str  # What the marks of this index begin with
    mark: str  # What stands in its table
    follows: bool  # Whether owners came to it
    again: bool  # Whether it has lost what was sent
    first: bool  # Whether it has nothing yet that is known to be there


async def _look(files: IndexFiles, built: BuiltRecipe | None, mirror: Mirror, *, full: bool = False) -> _Plan:
    """Compare a store with what was written down of it."""
    outbox = files.store.outbox(mirror.name)
    followed = await asyncio.to_thread(outbox.followed)
    wanted = () if built is None else (CORPUS, *built.owners)
    owners = tuple(
        dict.fromkeys([*wanted, *(owner for owner in followed.owners if owner in {CORPUS, *files.manifest().owners})])
    )
    table = _owned(mirror)
    mark = "" if table is None else await table.mark()
    index = followed.marks[-1].split()[0] if followed.marks else secrets.token_hex(8)
    if mark and mark.split()[0] != index and not full:
        raise ConfigurationError(
            f"The table of {mirror.name!r} belongs to another index, which would lose what it holds. Name another "
            "table; or, if that index is gone, call Index.push(full=True), which empties it for this one."
        )
    sent = await asyncio.to_thread(outbox.sent)
    other = mark not in followed.marks and bool(mark or (sent and table is not None))
    again = full or other or await _is_lost(files, owners, mirror, sent)
    return _Plan(owners, index, mark, set(owners) != set(followed.owners), again, again or not sent)


async def _is_behind(files: IndexFiles, built: BuiltRecipe, mirror: Mirror) -> bool:
    """True if a vector store is behind the pool."""
    plan = await _look(files, built, mirror)
    return plan.again or plan.follows or bool(await asyncio.to_thread(files.store.outbox(mirror.name).pending))


async def _is_lost(files: IndexFiles, owners: Sequence[str], mirror: Mirror, sent: Sequence[str]) -> bool:
    """True if a store that can be asked lost what was sent; one unit is asked for."""
    holds = getattr(mirror, "holds", None)
    if holds is None:
        return False
    sent_units = await asyncio.to_thread(lambda: list(files.store.units_of(sent, owners)))
    return bool(sent_units) and not await holds(sent_units[0][0].id, sent_units[0][1])


async def _send_first(outbox: Outbox, mirror: Any, reader: _Reader) -> int:
    """Send what waits to a store that may be filled already, and say so; gives how many units were sent."""
    waiting = await asyncio.to_thread(outbox.pending)
    units = await asyncio.to_thread(reader.read, waiting[:1], ())
    failed = False
    if units:
        try:
            nearest = await mirror.nearest(units[0])
        except Exception as error:  # noqa: BLE001 - most often there is no collection yet; if there is, it fails again
            _logger.debug("The vector store %r was not looked at: %s", mirror.name, error)
            failed = True
        else:
            await asyncio.to_thread(_warn_of_others, outbox, mirror, nearest, waiting)
    sent = await _send_all(outbox, mirror, reader)
    if failed:
        try:
            await mirror.nearest(units[0])
        except Exception as error:  # noqa: BLE001 - a user's store may raise anything
            _logger.warning(
                "The vector store %r took the units of this index, but cannot be searched (%s: %s). If it holds "
                "vectors of another model, give an empty collection or table.",
                mirror.name,
                type(error).__name__,
                str(error)[:500],
            )
    return sent


def _warn_of_others(outbox: Outbox, mirror: Mirror, nearest: Sequence[str], waiting: Sequence[str]) -> None:
    """Warn of a store that answers with what this index neither sent nor is about to send."""
    if not set(nearest) <= {*waiting, *outbox.held(nearest)}:
        _logger.warning(
            "The vector store %r holds entries that are not of this index. They stay, a copy of every text comes "
            "beside them, and other chains over the store will find both. Give an empty collection or table.",
            mirror.name,
        )


async def _send_all(outbox: Outbox, mirror: Mirror, reader: _Reader) -> int:
    """Send what waits, batch by batch; returns how many units were sent."""
    waiting = await asyncio.to_thread(outbox.pending)
    flush = getattr(mirror, "flush", None)
    sent, put, dropped = 0, list[str](), list[str]()
    refused: dict[str, Exception] = {}
    for at in range(0, len(waiting), _UNITS_PER_BATCH):
        present, gone, count = await _send(outbox, mirror, reader, waiting[at : at + _UNITS_PER_BATCH], refused)
        sent += count
        if flush is None:
            await asyncio.to_thread(outbox.done, present, gone)
        put += present
        dropped += gone
    if flush is not None and waiting:
        await flush()
        await asyncio.to_thread(outbox.done, put, dropped)
    if refused:
        name, error = next(iter(refused.items()))
        raise RefusedUnitsError(
            f"The vector store {mirror.name!r} refuses {len(refused)} of the units that it was sent; they wait, and "
            f"every change tries again. The first is {name}: {type(error).__name__}: {str(error)[:300]}"
        ) from error
    return sent


async def _send(
    outbox: Outbox, mirror: Mirror, reader: _Reader, batch: Sequence[str], refused: dict[str, Exception]
) -> tuple[list[str], list[str], int]:
    """Send one batch; returns what was put, what is gone, and how many units were sent; adds to `refused`."""
    held = await asyncio.to_thread(outbox.held, batch)
    units = await asyncio.to_thread(reader.read, batch, held)
    there = {pending.unit.id for pending in units}
    dropped = [unit for unit in held if unit not in there]
    if dropped:
        await mirror.drop(dropped)
    if units:
        took_before = bool(await asyncio.to_thread(outbox.sent))
        await asyncio.to_thread(outbox.begin, [pending.unit.id for pending in units])
        refused.update(await _put(mirror, units, took_before=took_before))
    present = [pending.unit.id for pending in units if pending.unit.id not in refused]
    return present, [unit for unit in batch if unit not in there], len(present) + len(dropped)


async def _answers(mirror: Mirror, unit: MirroredUnit) -> bool:
    """True if a store can be searched, so that what it does not take is the fault of the units."""
    nearest = getattr(mirror, "nearest", None)
    if nearest is None:
        return False
    try:
        await nearest(unit)
    except Exception:  # noqa: BLE001 - a user's store may raise anything
        return False
    return True


async def _put(mirror: Mirror, units: Sequence[MirroredUnit], *, took_before: bool) -> dict[str, Exception]:
    """Put units; those that the store refuses are found by halving, so that they do not hold up the others."""
    refused: dict[str, Exception] = {}
    parts, is_taking = [list(units)], False
    while parts:
        part = parts.pop()
        try:
            await mirror.put(part)
            is_taking = True
        except OSError:  # no connection, no space: not the fault of a unit
            raise
        except Exception as error:
            if len(part) > 1:
                # A store may have taken some of them before it raised.
                again = [replace(pending, replaces=True) for pending in part]
                parts += [again[len(part) // 2 :], again[: len(part) // 2]]
                continue
            refused[part[0].unit.id] = error
            if not is_taking and (len(refused) >= _ALONE or not parts):
                is_taking = took_before and await _answers(mirror, part[0])
                if not is_taking:
                    raise
    return refused


class _Reader:
    """Reads units as stores get them."""

    def __init__(self, files: IndexFiles, owners: Sequence[str]) -> None:
        self._store = files.store
        self._owners = owners
        self._chunks = {chunk.id: chunk for chunk in self._store.chunks()}

    def read(self, ids: Sequence[str], held: Sequence[str]) -> list[MirroredUnit]:
        stored = {unit.id: (unit, vector) for unit, vector in self._store.units_of(ids, self._owners)}
        replaced = set(held)
        units = []
        for name in ids:
            if name in stored:
                unit, vector = stored[name]
                chunks = [self._chunks[chunk] for chunk in unit.chunk_ids]
                documents = tuple(dict.fromkeys(chunk.doc_id for chunk in chunks))
                sources = [chunk.metadata for chunk in chunks]
                shared, differs = shared_metadata(sources), tuple(differing_metadata(sources))
                units.append(MirroredUnit(unit, documents, shared, vector, name in replaced, differs))
        return units
