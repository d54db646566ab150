"""Groups of a step to outputs: reduced in parts, compared with what is stored, and put into its table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from sire_core.derive.packed_outputs import NewOutputs
from sire_core.derive.packed_rows import PackedGroups
from sire_core.derive.rows import OutputChange, StoredOutput, encode
from sire_core.derive.tables import group

if TYPE_CHECKING:
    from sire_core.derive.packed_rows import Ints
    from sire_core.derive.rows import Output
    from sire_core.derive.step import Context, Step
    from sire_core.derive.tables import Table
    from sire_core.types import Failure, Unit

__all__ = ["MadeUnits", "reduce_all", "reduce_dirty"]


@dataclass(slots=True)
class MadeUnits:
    """Units that are put and dropped so far, and failures."""

    put: dict[str, Unit] = field(default_factory=dict)
    dropped: dict[str, None] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)


async def reduce_all(step: Step, table: Table, context: Context, units: MadeUnits) -> Sequence[OutputChange]:
    """Reduce all keys of a table that was empty; nothing is compared, and outputs are objects only while made."""
    import asyncio

    groups = await asyncio.to_thread(_all_groups, step, table, context)
    places = groups.first_places()
    async with aclosing(step.reduce_parts(groups, context)) as parts:
        async for part in parts:
            await asyncio.to_thread(_put_all, table, places, part, units)
    return NewOutputs(table.made)


async def reduce_dirty(
    step: Step, table: Table, dirty: set[str], context: Context, units: MadeUnits
) -> Sequence[OutputChange]:
    """Reduce the keys that need it and compare with what is stored."""
    import asyncio

    groups = await asyncio.to_thread(_dirty_groups, step, table, dirty, context)
    outputs = [output async for part in step.reduce_parts(groups, context) for output in part]
    return await asyncio.to_thread(_compare, table, dirty, groups, outputs, units)


def _all_groups(step: Step, table: Table, context: Context) -> PackedGroups:
    rows = table.packed(())
    if not step.merged_by:
        return PackedGroups(rows, list(rows.keys), np.arange(len(rows.keys)), np.zeros(len(rows.keys), dtype=np.int64))
    merged = context.tables[step.merged_by].merged
    names, groups = list(rows.keys), np.arange(len(rows.keys))
    more: dict[str, int] = {}
    for number, key in enumerate(names):
        if (name := step.group_of(key, merged)) != key:
            known = rows.keys.get(name)
            groups[number] = len(groups) + more.setdefault(name, len(more)) if known is None else known
    names += more
    return PackedGroups(rows, names, groups, _places_in_groups(step, rows.keys, names, groups, merged))


def _places_in_groups(
    step: Step, keys: Mapping[str, int], names: Sequence[str], groups: Ints, merged: Mapping[str, str]
) -> Ints:
    """Place of every key among those of its group, in the order of `Step.keys_of`."""
    members = _members(merged)
    found = np.zeros(len(keys), dtype=np.int64)
    for shared in np.flatnonzero(np.bincount(groups, minlength=len(names)) > 1).tolist():
        for place, key in enumerate(step.keys_of(names[shared], members)):
            number = keys.get(key)
            if number is not None and groups[number] == shared:
                found[number] = place
    return found


def _members(merged: Mapping[str, str]) -> dict[str, list[str]]:
    """Names by the name they were resolved to, for all that have more than their own."""
    found: dict[str, list[str]] = {}
    for name, entity in merged.items():
        found.setdefault(entity, [entity]).append(name)
    return found


def _dirty_groups(step: Step, table: Table, dirty: set[str], context: Context) -> PackedGroups:
    dirty.update(table.failed())
    more = dirty
    while more:
        more = set(step.dependents(more, table, context)) - dirty
        dirty |= more
    raw: dict[str, Sequence[str]] = {}
    if step.merged_by:
        merged = context.tables[step.merged_by].merged
        members = _members(merged)
        raw = {key: [k for k in step.keys_of(key, members) if step.group_of(k, merged) == key] for key in dirty}
    return group(table, dirty, raw)


def _put_all(
    table: Table, places: Iterator[tuple[str, int, int]], outputs: Sequence[Output | None], units: MadeUnits
) -> None:
    for (key, place, number), output in zip(islice(places, len(outputs)), outputs, strict=True):
        if output is not None:
            if output.failure is not None:
                units.failures.append(output.failure)
            units.put.update((unit.id, unit) for unit in output.units)
            table.put_output(key, StoredOutput.of(place, number, output))


def _compare(
    table: Table, dirty: Collection[str], groups: PackedGroups, outputs: Sequence[Output | None], units: MadeUnits
) -> list[OutputChange]:
    stored = table.stored_outputs(dirty)
    changes = []
    for (key, place, number), output in zip(groups.first_places(), outputs, strict=True):
        before = stored.pop(key, None)
        after = None if output is None else StoredOutput.of(place, number, output)
        if output is not None and output.failure is not None:
            units.failures.append(output.failure)
        if not _same(before, after):
            changes.append(OutputChange(key, before, after))
            _apply(table, changes[-1], output.units if output else (), units)
    for key, before in stored.items():  # no rows are left
        changes.append(OutputChange(key, before, None))
        _apply(table, changes[-1], (), units)
    return changes


def _same(before: StoredOutput | None, after: StoredOutput | None) -> bool:
    if before is None or after is None:
        return before is after
    return encode([before.place, before.number, before.failed, before.units, before.data]) == encode(
        [after.place, after.number, after.failed, after.units, after.data]
    )


def _apply(table: Table, change: OutputChange, made: Sequence[Unit], units: MadeUnits) -> None:
    known = change.before.units if change.before else {}
    now = change.after.units if change.after else {}
    units.put.update((unit.id, unit) for unit in made if known.get(unit.id) != now[unit.id])
    units.dropped.update(dict.fromkeys(found for found in known if found not in now))
    if change.after is None:
        table.drop_output(change.key)
    else:
        table.put_output(change.key, change.after)
