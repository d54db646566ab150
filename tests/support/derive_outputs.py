"""What steps derive from passages, without an index."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from sire_core.changes.engine import ItemChange, derive
from sire_core.changes.runners import LocalRunner
from sire_core.changes.step_rows import StoredOutput
from sire_core.extend import Item, PassageInput, Step
from sire_core.types import ExtractionRecord, Unit


class _NothingStored:
    """The tables of an organizer that never ran."""

    def __contains__(self, name: str) -> bool:
        return False


class _View:
    """What steps may ask that need no corpus."""

    runner = LocalRunner()

    def progress(self, stage: str, done: int, total: int) -> None:
        """Nobody watches."""


def derive_outputs(
    steps: Sequence[Step], passages: Sequence[tuple[Unit, ExtractionRecord | None]]
) -> tuple[dict[str, dict[str, StoredOutput]], dict[str, Unit]]:
    """Outputs of every step, in corpus order, and all units by id."""
    items = [Item(unit.id, place, 0, PassageInput(unit, (), record)) for place, (unit, record) in enumerate(passages)]
    stored: Any = _NothingStored()
    found = asyncio.run(derive(steps, ItemChange(items, [item.id for item in items]), stored, cast("Any", _View())))
    outputs = {step.name: found.tables[step.name].all_outputs() for step in steps}
    return outputs, {unit.id: unit for unit in found.delta.put_units}
