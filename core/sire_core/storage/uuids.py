"""Ids of units as UUIDs, and back: some vector stores (Qdrant, Weaviate) take no other ids."""

from __future__ import annotations

__all__ = ["from_uuid", "to_uuid"]

_UNIT = 24
_DIGITS = 32


def to_uuid(unit: str) -> str:
    """The id of a unit as a UUID: its 24 hexadecimal digits, zeros, dashes."""
    digits = unit.ljust(_DIGITS, "0")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def from_uuid(name: str) -> str:
    """The id of the unit that `to_uuid` made a UUID of; anything else is no unit's id and comes back in some form."""
    return name.replace("-", "")[:_UNIT]
