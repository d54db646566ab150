"""`PackedOutputs`: outputs of a step as they are written, which become objects when they are asked for."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sire_core.derive.rows import Item, OutputChange, StoredOutput, decode, decode_all, encode

if TYPE_CHECKING:
    from sire_core.protocols.building import OutputRow

__all__ = ["NewItems", "NewOutputs", "PackedOutputs"]

_AT_ONCE = 4096
"""Outputs that are objects at the same time when all are gone through."""
_NOTHING = encode([None])[:-1]
"""What the body of an output without data begins with."""


class PackedOutputs:
    """Outputs by key, in the order in which they came; as objects they would take six times as much memory."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._places, self._numbers, self._ends = array("q"), array("q"), array("q", (0,))
        self._failed = bytearray()
        self._bodies = bytearray()

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        """How many there are."""
        return len(self._rows)

    def put(self, key: str, output: StoredOutput) -> None:
        """Set the output of a key."""
        self._rows[key] = len(self._places)
        self._places.append(output.place)
        self._numbers.append(output.number)
        self._failed.append(output.failed)
        self._bodies += encode([output.data, output.units])
        self._ends.append(len(self._bodies))

    def drop(self, key: str) -> None:
        """Forget the output of a key, if there is one."""
        self._rows.pop(key, None)

    def data(self, key: str) -> Any:
        """Data of the output of a key."""
        return decode(self._body(self._rows[key]))[0]

    def stored(self) -> Iterator[OutputRow]:
        """All as they are written."""
        for key, row in self._rows.items():
            yield key, self._places[row], self._numbers[row], bool(self._failed[row]), self._body(row)

    def items(self) -> Iterator[tuple[str, StoredOutput]]:
        """All as objects, by key."""
        for start in range(0, len(self), _AT_ONCE):
            yield from self.some(slice(start, start + _AT_ONCE))

    def some(self, part: slice) -> list[tuple[str, StoredOutput]]:
        """Some of those that came one after the other."""
        return self.of(self.keys()[part])

    def of(self, keys: Sequence[str]) -> list[tuple[str, StoredOutput]]:
        """Those of some keys, in their order."""
        rows = [self._rows[key] for key in keys]
        bodies = decode_all([self._body(row) for row in rows])
        return [
            (key, StoredOutput(self._places[row], self._numbers[row], data, units, bool(self._failed[row])))
            for key, row, (data, units) in zip(keys, rows, bodies, strict=True)
        ]

    def keys(self) -> list[str]:
        """All keys."""
        return list(self._rows)

    def keys_in_order(self) -> list[str]:
        """Keys of those that have data, in corpus order of their first rows."""
        given = [key for key, row in self._rows.items() if not self._bodies.startswith(_NOTHING, self._ends[row])]
        return sorted(given, key=lambda key: (self._places[row := self._rows[key]], self._numbers[row], key))

    def _body(self, row: int) -> bytes:
        return bytes(self._bodies[self._ends[row] : self._ends[row + 1]])


class NewOutputs(Sequence[OutputChange]):
    """Outputs of a step that had none before, as changes."""

    def __init__(self, outputs: PackedOutputs) -> None:
        self._outputs = outputs

    def __len__(self) -> int:
        return len(self._outputs)

    def __getitem__(self, place: Any) -> Any:
        part = place if isinstance(place, slice) else slice(place, place + 1 or None)
        found = [OutputChange(key, None, output) for key, output in self._outputs.some(part)]
        return found if isinstance(place, slice) else found[0]

    def __iter__(self) -> Iterator[OutputChange]:
        return (OutputChange(key, None, output) for key, output in self._outputs.items())

    def as_items(self) -> NewItems:
        """Those that have data, as items of the next step."""
        return NewItems(self._outputs)

    def keys(self) -> list[str]:
        """Keys of all."""
        return self._outputs.keys()


class NewItems(Sequence[Item]):
    """Outputs of a step that had none before, as items of the next one, in corpus order."""

    def __init__(self, outputs: PackedOutputs) -> None:
        self._outputs, self._keys = outputs, outputs.keys_in_order()

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, place: Any) -> Any:
        part = place if isinstance(place, slice) else slice(place, place + 1 or None)
        found = [Item(key, o.place, o.number, o.data) for key, o in self._outputs.of(self._keys[part])]
        return found if isinstance(place, slice) else found[0]
