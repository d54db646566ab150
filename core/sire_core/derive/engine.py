"""Runs the steps of a derivation after a change: what differs, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sire_core.derive.local_runner import LocalRunner, in_parts
from sire_core.derive.packed_outputs import NewOutputs
from sire_core.derive.packed_rows import JoinedRows, PackedRows
from sire_core.derive.passages import ItemChange, changed_passages
from sire_core.derive.reducing import MadeUnits, reduce_all, reduce_dirty
from sire_core.derive.rows import Entry, Item
from sire_core.derive.step import PASSAGES, Context
from sire_core.derive.tables import Table
from sire_core.protocols import Delta

if TYPE_CHECKING:
    from sire_core.derive.rows import OutputChange
    from sire_core.derive.step import Step
    from sire_core.protocols import BuildView, Change, Runner, TableStore

__all__ = ["Result", "derive", "run_steps"]

_ROWS = 1 << 12
"""Places that the rows of an output have behind each row of a passage."""


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


async def run_steps(steps: Sequence[Step], change: Change, view: BuildView) -> Result:
    """Bring the steps of an organizer up to date with a change of the corpus."""
    import asyncio

    stored = view.tables()
    is_new = not any(step.name in stored for step in steps)
    again = is_new or view.state().get("extractor") != view.fingerprints[1]
    passages = await asyncio.to_thread(changed_passages, change, view, everything=again)
    forgotten = view.forgotten()
    forced = {unit.id for unit in view.chunk_units if not forgotten.isdisjoint(unit.chunk_ids)} if forgotten else ()
    found = await derive(steps, passages, stored, view, view.state().get("limits", {}), forced)
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
    forced: Collection[str] = (),
) -> Result:
    """Run steps one after the other over passages that changed."""
    import asyncio

    tables: dict[str, Table] = {}
    changed: dict[str, Sequence[OutputChange]] = {}
    forced_items: dict[str, Collection[str]] = {PASSAGES: forced}
    units = MadeUnits()
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
            rows = await _mapped(own, passages, view, partial(view.progress, "reading records"))
            found |= dict(zip([step.name for step in own], rows, strict=True))
    return found


async def _mapped(
    steps: Sequence[Step], items: Sequence[Item], view: BuildView, progress: Callable[[int, int], None]
) -> list[PackedRows]:
    """Rows of some steps, joined as they come."""
    joined = [JoinedRows() for _ in steps]
    async for parts in in_parts(_runner(steps[0], view), _rows_of_steps, steps, items, progress):
        for rows, part in zip(joined, parts, strict=True):
            rows.add(part)
    return [rows.finish() for rows in joined]


def _runner(step: Step, view: BuildView) -> Runner:
    return view.runner if step.portable else LocalRunner()


def _of_outputs(changes: Sequence[OutputChange]) -> ItemChange:
    """Outputs of a step that differ, as items of the next."""
    if isinstance(changes, NewOutputs):
        return ItemChange(changes.as_items(), changes.keys())
    items = [
        Item(c.key, c.after.place, c.after.number, c.after.data)
        for c in changes
        if c.after is not None and c.after.data is not None
    ]
    items.sort(key=lambda item: (item.place, item.number, item.id))
    return ItemChange(items, {change.key for change in changes})


def _rows_of_steps(steps: Sequence[Step], items: Sequence[Item]) -> list[PackedRows]:
    """Rows of one part of the items, by step."""
    return [PackedRows.of(_rows(step, items)) for step in steps]


def _rows(step: Step, items: Sequence[Item]) -> Iterator[Entry]:
    """Rows of some items, in their order; pure, wherever it runs."""
    scale = _ROWS if step.source == PASSAGES else 1
    for item in items:
        for number, row in enumerate(step.map(item)):
            place, inside = row.at or (item.place, item.number + number * scale)
            yield Entry(place, inside, item.id, row.key, row.body)


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
    found = {step.group_of(key, merged) for key in keys for merged in merges} if merges else set(keys)
    if not step.settles:
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
    if now == before or now is None or before is None:
        return set()
    fewest = min(now, before)
    several = _merged_above(table, context.tables[step.merged_by].merged, fewest) if step.merged_by else set[str]()
    return several.union(table.keys_above(fewest)).difference(step.without_output)


def _merged_above(table: Table, merged: Mapping[str, str], items: int) -> set[str]:
    """Groups of several keys that may have rows of more items than a number, before a change or after it."""
    keys = {*merged, *merged.values()}
    found = set[str]()
    for sizes in (table.sizes_before(keys), table.sizes(keys)):
        totals = {group: sizes.get(group, 0) for group in merged.values()}
        for key, group in merged.items():
            totals[group] += sizes.get(key, 0)
        found.update(group for group, total in totals.items() if total > items)
    return found
