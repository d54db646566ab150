"""Runs the steps of a derivation after a change: what differs, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from sire_core.derive.local_runner import LocalRunner, mapped
from sire_core.derive.packed_rows import PackedRows
from sire_core.derive.passages import ItemChange, changed_passages
from sire_core.derive.rows import Entry, Item, Output, StoredOutput, encode
from sire_core.derive.step import PASSAGES, Context
from sire_core.derive.tables import Table, group
from sire_core.protocols import Delta

if TYPE_CHECKING:
    from sire_core.derive.packed_rows import PackedGroups
    from sire_core.derive.step import Step
    from sire_core.protocols import BuildView, Change, Runner, TableStore
    from sire_core.types import Failure, Unit

__all__ = ["OutputChange", "Result", "derive", "run_steps"]

_ROWS = 1 << 12
"""Places that the rows of an output have behind each row of a passage."""


@dataclass(frozen=True, slots=True)
class OutputChange:
    """An output before and after a change; None where there is none."""

    key: str
    before: StoredOutput | None
    after: StoredOutput | None


@dataclass(frozen=True, slots=True)
class Result:
    """What a change does to a derivation.

    Attributes:
        delta: Units, tables and failures.
        outputs: Outputs that differ, by step.
        tables: All tables after the change, by step.
        is_new: Whether there was nothing before.
    """

    delta: Delta
    outputs: Mapping[str, Sequence[OutputChange]]
    tables: Mapping[str, Table]
    is_new: bool


@dataclass(slots=True)
class _Units:
    """Units that are put and dropped so far."""

    put: dict[str, Unit] = field(default_factory=dict)
    dropped: dict[str, None] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)


async def run_steps(steps: Sequence[Step], change: Change, view: BuildView) -> Result:
    """Bring the steps of an organizer up to date with a change of the corpus.

    Args:
        steps: In an order in which sources come first.
        change: What happened to the corpus.
        view: The corpus after it, and what is stored.
    """
    import asyncio

    stored = view.tables()
    is_new = not any(step.name in stored for step in steps)
    again = is_new or view.state().get("extractor") != view.fingerprints[1]
    passages = await asyncio.to_thread(changed_passages, change, view, everything=again)
    found = await derive(steps, passages, stored, view, view.state().get("limits", {}))
    limits = {step.name: step.size_limit() for step in steps if step.size_limit() is not None}
    left_over = [unit.id for unit in view.units()] if is_new else []
    delta = Delta(
        put_units=found.delta.put_units,
        drop_units=(*found.delta.drop_units, *left_over),
        state={"extractor": view.fingerprints[1], **({"limits": limits} if limits else {})},
        tables=found.delta.tables,
        failures=found.delta.failures,
    )
    return replace(found, delta=delta)


async def derive(
    steps: Sequence[Step],
    passages: ItemChange,
    stored: TableStore,
    view: BuildView,
    limits: Mapping[str, int] | None = None,
) -> Result:
    """Run steps one after the other over passages that changed.

    Args:
        steps: In an order in which sources come first.
        passages: What changed.
        stored: Tables before the change.
        view: What steps may look at beside their rows.
        limits: `Step.size_limit` of every step before the change, where there was one.
    """
    import asyncio

    tables: dict[str, Table] = {}
    changed: dict[str, list[OutputChange]] = {}
    units = _Units()
    context = Context(view, tables)
    of_passages = await _passage_rows([step for step in steps if step.source == PASSAGES], passages.items, view)
    for step in steps:
        table = tables[step.name] = Table(step.name, stored, step.name not in stored)
        items = passages if step.source == PASSAGES else _of_outputs(changed[step.source])
        if step.source == PASSAGES:
            rows = of_passages.pop(step.name)
        else:
            say = partial(view.progress, f"rows of {step.name}")
            rows = PackedRows.joined(await mapped(_runner(step, view), _rows_of_step, step, items.items, say))
        dirty = await asyncio.to_thread(table.replace_items, items.touched, rows)
        if step.merged_by == step.name:
            table.names = Table(f"{step.name}/names", stored, table.is_new)
            table.names.resolve(await step.resolve(table, context))
        other = await asyncio.to_thread(_moved, step, table, context) if step.merged_by else set[str]()
        other |= await asyncio.to_thread(_near_limit, step, table, (limits or {}).get(step.name), context)
        dirty = other | await asyncio.to_thread(_unsettled, step, table, dirty, other, context)
        changed[step.name] = await _reduce(step, table, dirty, context, units) if step.reduces else []
    delta = Delta(
        put_units=tuple(units.put.values()),
        drop_units=tuple(found for found in units.dropped if found not in units.put),
        tables={part.name: part.change() for table in tables.values() for part in table.parts()},
        failures=tuple(units.failures),
    )
    return Result(delta, changed, tables, all(table.is_new for table in tables.values()))


async def _passage_rows(steps: Sequence[Step], passages: Sequence[Item], view: BuildView) -> dict[str, PackedRows]:
    """Rows of the steps that read passages, which are gone through once for all of them."""
    found: dict[str, PackedRows] = {}
    for portable in (True, False):
        own = [step for step in steps if step.portable is portable]
        if own:
            say = partial(view.progress, "reading records")
            parts = await mapped(_runner(own[0], view), _rows_of_steps, own, passages, say)
            for number, step in enumerate(own):
                found[step.name] = PackedRows.joined([part[number] for part in parts])
    return found


def _runner(step: Step, view: BuildView) -> Runner:
    return view.runner if step.portable else LocalRunner()


def _of_outputs(changes: Iterable[OutputChange]) -> ItemChange:
    """Outputs of a step that differ, as items of the next."""
    changes = list(changes)
    items = [
        Item(c.key, c.after.place, c.after.number, c.after.data)
        for c in changes
        if c.after is not None and c.after.data is not None
    ]
    items.sort(key=lambda item: (item.place, item.number, item.id))
    return ItemChange(items, {change.key for change in changes})


def _rows_of_steps(steps: Sequence[Step], items: Sequence[Item]) -> list[list[PackedRows]]:
    """Rows of one part of the passages, by step; in a list, as parts are joined."""
    return [[PackedRows.of(_rows(step, items)) for step in steps]]


def _rows_of_step(step: Step, items: Sequence[Item]) -> list[PackedRows]:
    """Rows of one part of the outputs of an earlier step, likewise."""
    return [PackedRows.of(_rows(step, items))]


def _rows(step: Step, items: Sequence[Item]) -> Iterator[Entry]:
    """Rows of some items, in their order; pure, wherever it runs."""
    scale = _ROWS if step.source == PASSAGES else 1
    for item in items:
        for number, row in enumerate(step.map(item)):
            place, inside = row.at or (item.place, item.number + number * scale)
            yield Entry(place, inside, item.id, row.key, row.body)


def _moved(step: Step, table: Table, context: Context) -> set[str]:
    """Groups, before and now, of the keys that are resolved in another way than before."""
    names = context.tables[step.merged_by]
    before, after = names.merged_before, names.merged
    moved = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    raw = step.renamed(moved, table, context) if moved and not table.is_new else ()
    return {step.group_of(key, merged) for key in raw for merged in (before, after)}


def _unsettled(step: Step, table: Table, keys: Collection[str], moved: Collection[str], context: Context) -> set[str]:
    """Groups of the keys whose rows differ, but for those whose outputs are the same for certain.

    Args:
        step: The step.
        table: Its table.
        keys: Keys whose rows differ.
        moved: Groups that other reasons make dirty.
        context: Earlier steps' tables.
    """
    names = context.tables[step.merged_by] if step.merged_by else None
    merges = (names.merged_before, names.merged) if names else ()
    found = {step.group_of(key, merged) for key in keys for merged in merges} if merges else set(keys)
    if table.is_new or not step.settles:
        return found
    sides: list[dict[str, list[Entry]]] = [{}, {}]
    for rows, side in zip((table.came, table.went), sides, strict=True):
        for key, entries in rows.items():
            group = step.group_of(key, merges[1]) if merges else key
            if group not in moved:
                side.setdefault(group, []).extend(entries)
    stored = table.stored_outputs({*sides[0], *sides[1]})
    return found.difference(step.settled(sides[0], sides[1], stored))


def _near_limit(step: Step, table: Table, before: int | None, context: Context) -> set[str]:
    """Keys that may be on the other side of the limit now."""
    now = step.size_limit()
    if table.is_new or now == before or now is None or before is None:
        return set()
    merged = set(context.tables[step.merged_by].merged.values()) if step.merged_by else set()
    return merged.union(table.keys_above(min(now, before)))


async def _reduce(step: Step, table: Table, dirty: set[str], context: Context, units: _Units) -> list[OutputChange]:
    """Reduce the keys that need it and compare with what is stored."""
    import asyncio

    groups = await asyncio.to_thread(_groups, step, table, dirty, context)
    # Where the runner cuts them into parts, the groups of one part are in memory at a time.
    outputs = await step.reduce_many(groups if step.independent else groups[:], context)
    return await asyncio.to_thread(_compare, table, dirty, groups, outputs, units)


def _groups(step: Step, table: Table, dirty: set[str], context: Context) -> PackedGroups:
    dirty.update(table.failed())
    more: set[str] = set() if table.is_new else dirty
    while more:
        more = set(step.dependents(more, table, context)) - dirty
        dirty |= more
    raw: dict[str, Sequence[str]] = {}
    if step.merged_by:
        merged = context.tables[step.merged_by].merged
        members: dict[str, list[str]] = {}
        for name, found in merged.items():
            members.setdefault(found, [found]).append(name)
        raw = {key: [k for k in step.keys_of(key, members) if step.group_of(k, merged) == key] for key in dirty}
    return group(table, dirty, raw)


def _compare(
    table: Table, dirty: Collection[str], groups: PackedGroups, outputs: Sequence[Output | None], units: _Units
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


def _apply(table: Table, change: OutputChange, made: Sequence[Unit], units: _Units) -> None:
    known = change.before.units if change.before else {}
    now = change.after.units if change.after else {}
    units.put.update((unit.id, unit) for unit in made if known.get(unit.id) != now[unit.id])
    units.dropped.update(dict.fromkeys(found for found in known if found not in now))
    if change.after is None:
        table.drop_output(change.key)
    else:
        table.put_output(change.key, change.after)
