"""Rows of a derivation stay small in memory, and their groups come in corpus order."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, cast

from sire_core.derive.engine import ItemChange, Result, derive
from sire_core.derive.rows import Group, Item, Output, Row
from sire_core.derive.runners import LocalRunner
from sire_core.derive.step import Context, Step

_ROWS = 10


class _Words(Step):
    """Ten rows per item: one under a key of its own, the others under keys that few items share."""

    name = "words"
    independent = True

    def __init__(self, *, reduces: bool) -> None:
        self.reduces = reduces

    def map(self, item: Item) -> Iterable[Row]:
        yield Row(f"own of {item.id}", [["a name of it"], "Name", False, [item.id]])
        for number in range(1, _ROWS):
            yield Row(f"word {item.place * number % 997}", [[f"{number} as it is written"], "Name", True, [item.id]])

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        return [Output([[entry.item, entry.number, entry.body[0][0]] for entry in group.entries]) for group in groups]


def _derived(count: int, *, reduces: bool) -> Result:
    view = cast("Any", SimpleNamespace(runner=LocalRunner(), progress=lambda *_: None))
    items = [Item(f"{place:08x}", place, 0, None) for place in range(count)]
    touched = {item.id for item in items}
    return asyncio.run(derive([_Words(reduces=reduces)], ItemChange(items, touched), cast("Any", {}), view))


def test_a_row_takes_few_bytes_until_it_is_written() -> None:
    tracemalloc.start()
    try:
        found = _derived(2_000, reduces=False)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    written = list(found.delta.tables["words"].put_rows)
    assert len(written) == 2_000 * _ROWS
    body = sum(len(row[4]) for row in written) / len(written)
    assert held / len(written) < 2 * body + 60  # as objects 6 times the body


def test_groups_come_in_corpus_order_with_all_of_their_rows() -> None:
    found = _derived(1_500, reduces=True)
    outputs = found.outputs["words"]
    first = [(change.after.place, change.after.number) for change in outputs if change.after]
    assert first == sorted(first)
    rows = {change.key: change.after.data for change in outputs if change.after}
    assert sum(map(len, rows.values())) == 1_500 * _ROWS
    shared = rows["word 6"]
    assert shared == [
        [f"{place:08x}", number * 4096, f"{number} as it is written"]
        for place in range(1_500)
        for number in range(1, _ROWS)
        if place * number % 997 == 6
    ]
    assert rows[f"own of {7:08x}"] == [[f"{7:08x}", 0, "a name of it"]]
    keys = [row[0] for row in found.delta.tables["words"].put_rows]
    assert keys == sorted(keys)
