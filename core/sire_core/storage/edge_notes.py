"""Decoders of notes that hold edges. Organizers that store edges as notes register one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sire_core.types import Edge

EDGE_NOTES: dict[str, Callable[[str, bytes], Iterable[Edge]]] = {}
"""Decoders by note key; a key of the form `%/%` stands for all keys with a slash."""

BLOCKS = "%/%"  # All notes with keys `kind/number`


def register_edge_note(key: str, decode: Callable[[str, bytes], Iterable[Edge]]) -> None:
    """Register the decoder of a note that holds edges."""
    EDGE_NOTES[key] = decode


def edges_of_note(key: str, note: bytes) -> Iterable[Edge]:
    """Return the edges of a note whose key is registered."""
    return EDGE_NOTES[key if key in EDGE_NOTES else BLOCKS](key, note)
