"""Arrays by name in one form: as bytes or as a memory-mapped file; `Joined`, `ArrayNote`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from sire_core.arrays.lists import arrays_of, record_of

_ALIGNED = 64
_LENGTH = 8
ARRAYS_FILE = "arrays.bin"  # Name of the file in a folder of derived arrays


@dataclass(frozen=True, slots=True)
class Joined:
    """An array in pieces, one after the other along its first axis, which is never made in memory."""

    pieces: Sequence[NDArray[Any]]  # At least one

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.pieces[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole."""
        return (sum(map(len, self.pieces)), *self.pieces[0].shape[1:])

    @property
    def nbytes(self) -> int:
        """Bytes of all pieces."""
        return sum(piece.nbytes for piece in self.pieces)


Saved = Union[NDArray[Any], Joined]


def save_arrays(file: Path, arrays: Mapping[str, Saved]) -> None:
    """Write arrays after a header with their positions, each aligned to 64 bytes."""
    with file.open("wb") as written:
        written.writelines(_pieces(arrays))


def map_arrays(file: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of `save_arrays`, read-only, mapped from the file."""
    return _arrays_in(np.asarray(np.memmap(file, dtype=np.uint8, mode="r")))


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Serialize arrays by name."""
    return b"".join(_pieces(arrays))


def unpack_arrays(note: bytes, *, in_place: bool = False) -> dict[str, NDArray[Any]]:
    """Inverse of `pack_arrays`; `in_place` returns read-only arrays over the bytes instead of copies."""
    arrays = _arrays_in(np.frombuffer(note, dtype=np.uint8))
    return arrays if in_place else {name: array.copy() for name, array in arrays.items()}


def _pieces(arrays: Mapping[str, Saved]) -> Iterator[bytes | memoryview]:
    """Yield header and arrays, with zeros between them."""
    described: dict[str, tuple[str, tuple[int, ...], int]] = {}
    end = 0
    for name, array in arrays.items():
        described[name] = (array.dtype.str, array.shape, end)
        end = _aligned(end + array.nbytes)
    header = json.dumps(described).encode()
    yield len(header).to_bytes(_LENGTH, "little")
    yield header.ljust(_aligned(_LENGTH + len(header)) - _LENGTH, b"\0")
    for array in arrays.values():
        for piece in array.pieces if isinstance(array, Joined) else (array,):
            yield np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data
        yield bytes(_aligned(array.nbytes) - array.nbytes)


def _arrays_in(content: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    length = int.from_bytes(content[:_LENGTH].tobytes(), "little")
    described = json.loads(content[_LENGTH : _LENGTH + length].tobytes())
    start = _aligned(_LENGTH + length)
    arrays: dict[str, NDArray[Any]] = {}
    for name, (kind, shape, offset) in described.items():
        size = np.dtype(kind).itemsize * math.prod(shape)
        arrays[name] = content[start + offset : start + offset + size].view(kind).reshape(shape)
    return arrays


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNED) * _ALIGNED


class ArrayNote:
    """A dataclass of arrays, texts, and records of arrays, as bytes for the store and back."""

    __slots__ = ()

    def to_note(self) -> bytes:
        """Serialize for the store."""
        return pack_arrays(arrays_of(self))

    @classmethod
    def from_note(cls, note: bytes | None) -> Self:
        """Read what `to_note` wrote; `empty` if there is no note."""
        return cls.empty() if note is None else record_of(cls, unpack_arrays(note))

    @classmethod
    def empty(cls) -> Self:
        """Make the record of an organizer that has stored none."""
        return cls()
