"""`ArrayNote`: a record of arrays that an organizer stores as one note."""

from __future__ import annotations

from typing import TypeVar

from typing_extensions import Self

from sire_core.arrays.lists import arrays_of, record_of
from sire_core.storage.array_file import pack_arrays, unpack_arrays

Note = TypeVar("Note", bound="ArrayNote")


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
