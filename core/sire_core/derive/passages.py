"""Passages that a change of the corpus touches, as the items of a derivation's first steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sire_core.derive.rows import Item, PassageInput, place_of

if TYPE_CHECKING:
    from sire_core.protocols import BuildView, Change
    from sire_core.types import Unit

__all__ = ["ItemChange", "changed_passages"]


@dataclass(frozen=True, slots=True)
class ItemChange:
    """What changed for a step.

    Attributes:
        items: Items that are new or may have changed, in corpus order, with their values now.
        touched: Ids of these and of those that are gone.
    """

    items: Sequence[Item]
    touched: Collection[str]


def changed_passages(change: Change, view: BuildView, *, everything: bool) -> ItemChange:
    """Passages that are new, changed or gone, and those whose records changed; or all of them."""
    touched = view.touched(change)
    units = [unit for unit in view.chunk_units if everything or unit.id in touched]
    return ItemChange(_PassageItems(view, units), touched)


class _PassageItems(Sequence[Item]):
    """Passages as items. They are made when they are asked for, so that not all records are held at once."""

    def __init__(self, view: BuildView, units: Sequence[Unit]) -> None:
        self._view, self._units = view, units

    def __len__(self) -> int:
        return len(self._units)

    def __getitem__(self, place: Any) -> Any:
        return self._items(self._units[place]) if isinstance(place, slice) else self._items([self._units[place]])[0]

    def _items(self, units: Sequence[Unit]) -> list[Item]:
        records = self._view.records({unit.id for unit in units})
        places = [place_of(*self._view.place(unit.chunk_ids[0])) for unit in units]
        chunks = [tuple(map(self._view.chunk, unit.chunk_ids)) for unit in units]
        return [
            Item(unit.id, place, 0, PassageInput(unit, own, records.get(unit.id)))
            for unit, place, own in zip(units, places, chunks, strict=True)
        ]
