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
from sire_core.changes.step import PASSAGES, Context
from sire_core.changes.step_rows import Entry, Item, OutputChange, PassageInput, StoredOutput, encode, place_of
from sire_core.changes.step_table import JoinedRows, NewItems, NewOutputs, PackedGroups, PackedRows, Table, group
from sire_core.extraction.record import read_records
from sire_core.protocols import Delta

if TYPE_CHECKING:
    from sire_core.changes.step import Step
    from sire_core.changes.step_rows import Output
    from sire_core.protocols import BuildView, Change, RecordDecoder
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
        """Decoder of the records of all parts."""
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
        """Return the passages as items."""
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
    delta = Delta(
        put_units=result.delta.put_units,
        drop_units=(*result.delta.drop_units, *left_over),
        state={"extractor": view.fingerprints[1], **({"limits": limits} if limits else {})},
        tables=result.delta.tables,
        failures=result.delta.failures,
    )
    return replace(result, delta=delta)


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
    changed: dict[str, Iterable[OutputChange]] = {}
    forced_items: dict[str, Collection[str]] = {PASSAGES: forced}
    units = UnitWriter()
    context = Context(view, tables)
    of_passages = await _passage_rows([step for step in steps if step.source == PASSAGES], passages.items, view)
    for step in steps:
        table = tables[step.name] = Table(step.name, stored, step.name not in stored)
        items = passages if step.source == PASSAGES else _of_outputs(changed[step.source])
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
        if not step.reduces:
            changed[step.name] = []
        elif table.is_new:
            changed[step.name] = await reduce_all(step, table, context, units)
        else:
            dirty = await asyncio.to_thread(_dirty, step, table, differing, (limits or {}).get(step.name), context)
            dirty |= again
            changed[step.name] = await reduce_dirty(step, table, dirty, context, units)
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


def _of_outputs(changes: Iterable[OutputChange]) -> ItemChange:
    """Outputs of a step that differ, as items of the next."""
    if isinstance(changes, NewOutputs):
        return ItemChange(NewItems(changes.outputs), changes.outputs.keys())
    items = [
        Item(c.key, c.after.place, c.after.number, c.after.data)
        for c in changes
        if c.after is not None and c.after.data is not None
    ]
    items.sort(key=lambda item: (item.place, item.number, item.id))
    return ItemChange(items, {change.key for change in changes})


def _rows_of_steps(
    shared: tuple[Sequence[Step], RecordDecoder], part: _PassagePart | Sequence[Item]
) -> list[PackedRows]:
    """Rows of one part of the items, by step."""
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
    other = _moved(step, table, context) if step.merged_by else set[str]()
    other |= _near_limit(step, table, limit, context)
    return other | _unsettled(step, table, differing, other, context)


def _forced(step: Step, table: Table, items: Collection[str], context: Context) -> set[str]:
    """Groups with rows of some items."""
    if not items:
        return set()
    merged = context.tables[step.merged_by].merged if step.merged_by else {}
    return {step.group_of(entry.key, merged) for entry in table.entries_of(items)}


def _moved(step: Step, table: Table, context: Context) -> set[str]:
    """Groups, before and now, of the keys that are resolved in another way than before."""
    names = context.tables[step.merged_by]
    before, after = names.merged_before, names.merged
    moved = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    raw = step.renamed(moved, table, context) if moved else ()
    return {step.group_of(key, merged) for key in raw for merged in (before, after)}


def _unsettled(step: Step, table: Table, keys: Collection[str], moved: Collection[str], context: Context) -> set[str]:
    """Groups of the keys whose rows differ, but for those whose outputs are the same for certain."""
    names = context.tables[step.merged_by] if step.merged_by else None
    merges = (names.merged_before, names.merged) if names else ()
    groups = {step.group_of(key, merged) for key in keys for merged in merges} if merges else set(keys)
    if not step.settles:
        return groups
    sides: list[dict[str, list[Entry]]] = [{}, {}]
    for rows, side in zip((table.came, table.went), sides, strict=True):
        for key, entries in rows.items():
            group = step.group_of(key, merges[1]) if merges else key
            if group not in moved:
                side.setdefault(group, []).extend(entries)
    stored = table.stored_outputs({*sides[0], *sides[1]})
    return groups.difference(step.settled(sides[0], sides[1], stored))


def _near_limit(step: Step, table: Table, before: int | None, context: Context) -> set[str]:
    """Keys that may be on the other side of the limit now."""
    now = step.size_limit()
    if now == before or now is None or before is None:
        return set()
    fewest = min(now, before)
    several = _merged_above(table, context.tables[step.merged_by].merged, fewest) if step.merged_by else set[str]()
    return several.union(table.keys_above(fewest)).difference(step.without_output)


def _merged_above(table: Table, merged: Mapping[str, str], items: int) -> set[str]:
    """Groups of several keys that may have rows of more items than a number, before a change or after it."""
    keys = {*merged, *merged.values()}
    above = set[str]()
    for sizes in (table.sizes_before(keys), table.sizes(keys)):
        totals = {whole: sizes.get(whole, 0) for whole in merged.values()}
        for key, whole in merged.items():
            totals[whole] += sizes.get(key, 0)
        above.update(whole for whole, total in totals.items() if total > items)
    return above


@dataclass(slots=True)
class UnitWriter:
    """Units that are put and dropped so far, and failures."""

    put: dict[str, Unit] = field(default_factory=dict)
    dropped: dict[str, None] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)


async def reduce_all(step: Step, table: Table, context: Context, units: UnitWriter) -> Iterable[OutputChange]:
    """Reduce all keys of a table that was empty; nothing is compared, and outputs are objects only while made."""
    groups = await asyncio.to_thread(_all_groups, step, table, context)
    places = groups.first_places()
    async with aclosing(step.reduce_parts(groups, context)) as parts:
        async for part in parts:
            await asyncio.to_thread(_put_all, table, places, part, units)
    return NewOutputs(table.made)


async def reduce_dirty(
    step: Step, table: Table, dirty: set[str], context: Context, units: UnitWriter
) -> Iterable[OutputChange]:
    """Reduce the keys that need it and compare with what is stored."""
    groups = await asyncio.to_thread(_dirty_groups, step, table, dirty, context)
    outputs = [output async for part in step.reduce_parts(groups, context) for output in part]
    return await asyncio.to_thread(_compare, table, dirty, groups, outputs, units)


def _all_groups(step: Step, table: Table, context: Context) -> PackedGroups:
    merged = context.tables[step.merged_by].merged if step.merged_by else {}
    return _groups(step, table, {step.group_of(key, merged) for key in table.packed(()).keys}, merged)


def _members(merged: Mapping[str, str]) -> dict[str, list[str]]:
    """Names by the name they were resolved to, for all that have more than their own."""
    members: dict[str, list[str]] = {}
    for name, entity in merged.items():
        members.setdefault(entity, [entity]).append(name)
    return members


def _dirty_groups(step: Step, table: Table, dirty: set[str], context: Context) -> PackedGroups:
    dirty.update(table.failed())
    more = dirty
    while more:
        more = set(step.dependents(more, table, context)) - dirty
        dirty |= more
    return _groups(step, table, dirty, context.tables[step.merged_by].merged if step.merged_by else {})


def _groups(step: Step, table: Table, names: Collection[str], merged: Mapping[str, str]) -> PackedGroups:
    """Groups of these names, each with the rows of its keys in the order of `Step.keys_of`."""
    members = _members(merged) if step.merged_by else {}
    raw = {
        name: [key for key in step.keys_of(name, members) if step.group_of(key, merged) == name]
        for name in (names if step.merged_by else ())
    }
    return group(table, names, raw)


def _put_all(
    table: Table, places: Iterator[tuple[str, int, int]], outputs: Sequence[Output | None], units: UnitWriter
) -> None:
    for (key, place, number), output in zip(islice(places, len(outputs)), outputs, strict=True):
        if output is not None:
            if output.failure is not None:
                units.failures.append(output.failure)
            units.put.update((unit.id, unit) for unit in output.units)
            table.put_output(key, StoredOutput.of(place, number, output))


def _compare(
    table: Table, dirty: Collection[str], groups: PackedGroups, outputs: Sequence[Output | None], units: UnitWriter
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


def _apply(table: Table, change: OutputChange, made: Sequence[Unit], units: UnitWriter) -> None:
    before = change.before.units if change.before else {}
    after = change.after.units if change.after else {}
    units.put.update((unit.id, unit) for unit in made if before.get(unit.id) != after[unit.id])
    units.dropped.update(dict.fromkeys(unit_id for unit_id in before if unit_id not in after))
    if change.after is None:
        table.drop_output(change.key)
    else:
        table.put_output(change.key, change.after)
