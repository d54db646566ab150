"""Runs the steps of a derivation after a change: what differs, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from sire_core.changes.processes import ProcessRunner
from sire_core.changes.runners import LocalRunner, in_parts
from sire_core.changes.step import PASSAGES, Context, Step
from sire_core.changes.step_rows import Item, Output, OutputChange, PassageInput, StoredOutput, encode, place_of
from sire_core.changes.step_table import JoinedRows, OutputChanges, PackedGroups, PackedRows, Table
from sire_core.extraction.record import read_records
from sire_core.protocols import BuildView, Change, Delta, RecordDecoder

if TYPE_CHECKING:
    from sire_core.storage.step_tables import StepTables, StoredRow
    from sire_core.types import Chunk, Failure, Unit

_ROWS = 1 << 12  # Places that the rows of an output have behind each row of a passage


@dataclass(frozen=True, slots=True)
class ItemChange:
    """The change of a step."""

    items: Sequence[Item]  # Items that are new or may have changed, in corpus order, with their values now
    touched: Collection[str]  # Ids of these and of those that are gone


def changed_passages(change: Change, view: BuildView, *, everything: bool) -> ItemChange:
    """Passages that are new, changed or gone, and those whose records changed; or all of them."""
    touched = view.touched(change)
    units = [unit for unit in view.chunk_units if everything or unit.id in touched]
    return ItemChange(_PassageItems(view, units), touched)


class _PassageItems(Sequence[Any]):
    """Passages as items, in parts that are made when they are asked for: not all records are held at once."""

    def __init__(self, view: BuildView, units: Sequence[Unit]) -> None:
        self._view, self._units = view, units

    def decoder(self) -> RecordDecoder:
        return self._view.record_decoder([unit.id for unit in self._units])

    def __len__(self) -> int:
        return len(self._units)

    def __getitem__(self, index: Any) -> Any:
        units = self._units[index]
        return _PassagePart(
            units,
            [place_of(*self._view.place(unit.chunk_ids[0])) for unit in units],
            [tuple(map(self._view.chunk, unit.chunk_ids)) for unit in units],
            self._view.stored_records([unit.id for unit in units]),
        )


@dataclass(frozen=True, slots=True)
class _PassagePart:
    """A part of the passages; records are decoded where it is worked on."""

    units: Sequence[Unit]
    places: Sequence[int]
    chunks: Sequence[tuple[Chunk, ...]]
    records: Mapping[str, bytes]  # As they are stored, by id of the unit

    def items(self, decode: RecordDecoder) -> list[Item]:
        records = decode(self.records)
        return [
            Item(unit.id, position, 0, PassageInput(unit, chunks, records.get(unit.id)))
            for unit, position, chunks in zip(self.units, self.places, self.chunks, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Result:
    """The effect of a change on a derivation."""

    delta: Delta  # Units, tables and failures
    outputs: Mapping[str, Iterable[OutputChange]]  # Outputs that differ, by step
    tables: Mapping[str, Table]  # All tables after the change, by step
    is_new: bool  # Whether there was nothing before


async def run_steps(steps: Sequence[Step], change: Change, view: BuildView) -> Result:
    """Bring the steps of an organizer up to date with a change of the corpus."""
    stored = view.tables()
    is_new = not any(step.name in stored for step in steps)
    again = is_new or view.state().get("extractor") != view.fingerprints[1]
    passages = await asyncio.to_thread(changed_passages, change, view, everything=again)
    forgotten = view.forgotten()
    forced = {unit.id for unit in view.chunk_units if not forgotten.isdisjoint(unit.chunk_ids)} if forgotten else ()
    result = await derive(steps, passages, stored, view, view.state().get("limits", {}), forced)
    limits = {step.name: step.size_limit() for step in steps if step.size_limit() is not None}
    left_over = [unit.id for unit in view.units()] if is_new else []
    state = {"extractor": view.fingerprints[1], **({"limits": limits} if limits else {})}
    drop_units = (*result.delta.drop_units, *left_over)
    return replace(result, delta=replace(result.delta, drop_units=drop_units, state=state))


async def derive(
    steps: Sequence[Step],
    passages: ItemChange,
    stored: StepTables,
    view: BuildView,
    limits: Mapping[str, int] | None = None,
    forced: Collection[str] = (),
) -> Result:
    """Run steps one after the other over passages that changed."""
    tables: dict[str, Table] = {}
    changed: dict[str, OutputChanges] = {}
    forced_items: dict[str, Collection[str]] = {PASSAGES: forced}
    units = UnitWriter()
    context = Context(view, tables)
    of_passages = await _passage_rows([step for step in steps if step.source == PASSAGES], passages.items, view)
    for step in steps:
        table = tables[step.name] = Table(step.name, stored, step.name not in stored)
        items = passages if step.source == PASSAGES else ItemChange(*changed[step.source].items())
        if step.source == PASSAGES:
            rows = of_passages.pop(step.name)
        else:
            say = partial(view.progress, f"rows of {step.name}")
            rows = (await _mapped([step], items.items, view, say))[0]
        differing = await asyncio.to_thread(table.replace_items, items.touched, rows, several=step.source != PASSAGES)
        if step.merged_by == step.name:
            table.names = Table(f"{step.name}/names", stored, table.is_new)
            table.names.resolve(await step.resolve(table, context))
        again = forced_items[step.name] = _forced(step, table, forced_items[step.source], context)
        dirty = await asyncio.to_thread(_dirty, step, table, differing, (limits or {}).get(step.name), context)
        changed[step.name] = await _reduce(step, table, dirty | again, context, units)
    delta = Delta(
        put_units=tuple(units.put.values()),
        drop_units=tuple(name for name in units.dropped if name not in units.put),
        tables={part.name: part.change() for table in tables.values() for part in table.parts()},
        failures=tuple(units.failures),
    )
    return Result(delta, changed, tables, all(table.is_new for table in tables.values()))


async def _passage_rows(steps: Sequence[Step], passages: Sequence[Item], view: BuildView) -> dict[str, PackedRows]:
    """Rows of the steps that read passages, which are gone through once for all of them."""
    rows_by_step: dict[str, PackedRows] = {}
    for portable in (True, False):
        if mapped_steps := [step for step in steps if step.portable is portable]:
            rows = await _mapped(mapped_steps, passages, view, partial(view.progress, "reading records"))
            rows_by_step |= dict(zip([step.name for step in mapped_steps], rows, strict=True))
    return rows_by_step


async def _mapped(
    steps: Sequence[Step], items: Sequence[Item], view: BuildView, progress: Callable[[int, int], None]
) -> list[PackedRows]:
    """Rows of some steps, joined as they come."""
    joined = [JoinedRows() for _ in steps]
    # To map the outputs of a step takes no longer than to send them to a process.
    is_near = isinstance(view.runner, ProcessRunner) and steps[0].source != PASSAGES
    runner = view.runner if steps[0].portable and not is_near else LocalRunner()
    decode = await asyncio.to_thread(items.decoder) if isinstance(items, _PassageItems) else read_records
    async for parts in in_parts(runner, _rows_of_steps, (steps, decode), items, progress):
        for rows, part in zip(joined, parts, strict=True):
            rows.add(part)
    return [rows.finish() for rows in joined]


def _rows_of_steps(
    shared: tuple[Sequence[Step], RecordDecoder], part: _PassagePart | Sequence[Item]
) -> list[PackedRows]:
    steps, decode = shared
    items = part.items(decode) if isinstance(part, _PassagePart) else part
    return [PackedRows.of(_rows(step, items)) for step in steps]


def _rows(step: Step, items: Sequence[Item]) -> Iterator[StoredRow]:
    """Rows of some items, in their order; pure, wherever it runs."""
    scale = _ROWS if step.source == PASSAGES else 1
    for item in items:
        for number, row in enumerate(step.map(item)):
            place, inside = row.at or (item.place, item.number + number * scale)
            yield row.key, place, inside, item.id, encode(row.body)


def _dirty(step: Step, table: Table, differing: Collection[str], limit: int | None, context: Context) -> set[str]:
    """Groups that have to be reduced again."""
    names = context.tables[step.merged_by] if step.merged_by else None
    groups = {step.group_of(key, names.merged) for key in differing} if names else set(differing)
    if table.is_new:
        return groups
    if names:
        groups.update(step.group_of(key, names.merged_before) for key in differing)
        groups |= _moved(step, table, names, context)
    return groups | _near_limit(step, table, limit, context)


def _forced(step: Step, table: Table, items: Collection[str], context: Context) -> set[str]:
    """Groups with rows of some items."""
    if not items:
        return set()
    merged = context.tables[step.merged_by].merged if step.merged_by else {}
    return {step.group_of(entry.key, merged) for entry in table.entries_of(items)}


def _moved(step: Step, table: Table, names: Table, context: Context) -> set[str]:
    """Groups, before and now, of the keys that are resolved in another way than before."""
    before, after = names.merged_before, names.merged
    moved = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    raw = step.renamed(moved, table, context) if moved else ()
    return {step.group_of(key, merged) for key in raw for merged in (before, after)}


def _near_limit(step: Step, table: Table, before: int | None, context: Context) -> set[str]:
    """Groups that may be on the other side of the limit now."""
    now = step.size_limit()
    if now == before or now is None or before is None:
        return set()
    limit = min(now, before)
    members = _members(context.tables[step.merged_by].merged) if step.merged_by else {}
    sizes = table.sizes_before({key for keys in members.values() for key in keys})
    several = {group for group, keys in members.items() if sum(sizes.get(key, 0) for key in keys) > limit}
    return several.union(table.keys_above(limit))


@dataclass(slots=True)
class UnitWriter:
    """Units that are put and dropped so far, and failures."""

    put: dict[str, Unit] = field(default_factory=dict)
    dropped: dict[str, None] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def apply(self, before: StoredOutput | None, after: StoredOutput | None, made: Sequence[Unit]) -> None:
        """Put and drop the units of an output that differs."""
        stored, units = (side.units if side else {} for side in (before, after))
        self.put.update((unit.id, unit) for unit in made if stored.get(unit.id) != units[unit.id])
        self.dropped.update(dict.fromkeys(name for name in stored if name not in units))


async def _reduce(step: Step, table: Table, dirty: set[str], context: Context, units: UnitWriter) -> OutputChanges:
    """Reduce the keys that need it and compare with what is stored; outputs are objects only while they are made."""
    groups = await asyncio.to_thread(_dirty_groups, step, table, dirty, context)
    stored = await asyncio.to_thread(table.stored_outputs, dirty)
    changes, places = OutputChanges(table.made), groups.first_places()
    async with aclosing(step.reduce_parts(groups, context)) as parts:
        async for part in parts:
            await asyncio.to_thread(_compare, table, islice(places, len(part)), part, stored, changes, units)
    for key, before in stored.items():  # no rows are left
        changes.before[key] = before
        units.apply(before, None, ())
        table.drop_output(key)
    return changes


def _members(merged: Mapping[str, str]) -> dict[str, list[str]]:
    """Names by the name they were resolved to, for all that have more than their own."""
    members: dict[str, list[str]] = {}
    for name, entity in merged.items():
        members.setdefault(entity, [entity]).append(name)
    return members


def _dirty_groups(step: Step, table: Table, dirty: set[str], context: Context) -> PackedGroups:
    """Groups of these names, which it completes, each with the rows of its keys in the order of `Step.keys_of`."""
    dirty.update(table.failed())
    dirty.difference_update(step.without_output)
    more = set() if table.is_new else dirty
    while more:
        more = set(step.dependents(more, table, context)) - dirty
        dirty |= more
    merged = context.tables[step.merged_by].merged if step.merged_by else {}
    members = _members(merged)
    wanted = {
        name: [key for key in step.keys_of(name, members) if step.group_of(key, merged) == name]
        if step.merged_by
        else (name,)
        for name in dirty
    }
    return PackedGroups.of(table.packed({key for keys in wanted.values() for key in keys}), wanted)


def _compare(
    table: Table,
    places: Iterable[tuple[str, int, int]],
    outputs: Sequence[Output | None],
    stored: dict[str, StoredOutput],
    changes: OutputChanges,
    units: UnitWriter,
) -> None:
    """Set the outputs of some keys that differ from what is stored, which is taken out of `stored`."""
    for (key, place, number), output in zip(places, outputs, strict=True):
        before = stored.pop(key, None)
        after = None if output is None else StoredOutput.of(place, number, output)
        if output is not None and output.failure is not None:
            units.failures.append(output.failure)
        if _same(before, after):
            continue
        if before is not None:
            changes.before[key] = before
        units.apply(before, after, output.units if output else ())
        if after is None:
            table.drop_output(key)
        else:
            table.put_output(key, after)


def _same(before: StoredOutput | None, after: StoredOutput | None) -> bool:
    if before is None or after is None:
        return before is after
    return encode([before.place, before.number, before.failed, before.units, before.data]) == encode(
        [after.place, after.number, after.failed, after.units, after.data]
    )
