"""Items, rows by key and outputs, which steps exchange; and how they are stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sire_core.types import Chunk, ExtractionRecord, Failure, Unit, digest

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


_POSITIONS = 1 << 20  # Places of passages inside a document; what is behind them shares the last place


def place_of(document: int, position: int) -> int:
    """Place of a passage in the corpus, from its document's sequence number and its position there."""
    return document * _POSITIONS + min(position, _POSITIONS - 1)


def document_of(place: int) -> int:
    """Sequence number of the document that a place belongs to."""
    return place // _POSITIONS


class Row(NamedTuple):
    """A contribution of an item to a key.

    Attributes:
        key: What rows are grouped by.
        body: JSON-serialisable.
        at: Place in the corpus and number inside the passage; None takes those of the item, and the rows in order.
    """

    key: str
    body: Any = None
    at: tuple[int, int] | None = None


class Item(NamedTuple):
    """Input of a step's map: a passage, or an output of an earlier step.

    Attributes:
        id: Id of the passage, or key of the output.
        place: Place of its passage in the corpus; smaller ones come first.
        number: Place inside the passage.
        value: A `PassageInput`, or the data of the output.
    """

    id: str
    place: int
    number: int
    value: Any


class Entry(NamedTuple):
    """A row inside its group, with where it comes from."""

    place: int  # See `Item.place`
    number: int  # Place of the row inside the passage
    item: str  # Id of the item
    key: str  # The row's own key; differs from the group's where names were resolved
    body: Any  # See `Row.body`


class Group(NamedTuple):
    """All rows of a key, in corpus order; never empty."""

    key: str
    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class PassageInput:
    """A distinct passage of the corpus, as steps read it.

    Attributes:
        unit: Its chunk unit.
        chunks: All chunks with these words and metadata, in corpus order.
        record: What was extracted from it; None when nothing was.
    """

    unit: Unit
    chunks: tuple[Chunk, ...]
    record: ExtractionRecord | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """Result of a step for a key.

    Attributes:
        data: JSON-serialisable; what later steps, rankers and exports read.
        units: Units that stand for the key. Their ids must not be those of units of another key.
        failure: Why there is nothing; the key is reduced again with the next change.
        retry: Whether this is a makeshift: the key is reduced again with the next change, too.
    """

    data: Any = None
    units: tuple[Unit, ...] = ()
    failure: Failure | None = None
    retry: bool = False


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """An output as it is written down: its data, and ids and digests of its units."""

    place: int  # Of its first row
    number: int  # Of its first row
    data: Any  # See `Output.data`
    units: Mapping[str, str] = field(default_factory=dict)  # Digest of every unit by id, in order
    failed: bool = False  # Whether it is reduced again with the next change

    @classmethod
    def of(cls, place: int, number: int, output: Output) -> StoredOutput:
        """Make the stored form of an output, given place and number of the first row of its key."""
        return cls(
            place,
            number,
            output.data,
            {unit.id: _digest(unit) for unit in output.units},
            output.failure is not None or output.retry,
        )


@dataclass(frozen=True, slots=True)
class OutputChange:
    """An output before and after a change; None where there is none."""

    key: str
    before: StoredOutput | None
    after: StoredOutput | None


def encode(body: Any) -> bytes:
    """JSON as bytes; lone surrogates, which foreign text may hold, survive."""
    return _encode(body).encode("utf-8", "surrogatepass")


def decode(body: bytes) -> Any:
    """Decode a value that `encode` wrote."""
    return json.loads(body.decode("utf-8", "surrogatepass"))


def decode_all(bodies: Sequence[bytes]) -> list[Any]:
    """Decode many values that `encode` wrote; parsed in one go, which takes a third of the time."""
    values: list[Any] = decode(b"[" + b",".join(bodies) + b"]")
    return values


def _digest(unit: Unit) -> str:
    """Changes with anything that a unit says or shows."""
    names = (unit.kind.value, unit.text, str(unit.level), unit.tree, unit.title, *unit.entity_keys, "", *unit.chunk_ids)
    return digest(*names, _encode(unit.metadata) if unit.metadata else "", size=8)
