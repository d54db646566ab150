"""Ids of units as UUIDs, for vector stores that accept no other ids (Qdrant, Weaviate)."""

from __future__ import annotations

_UNIT = 24
_DIGITS = 32


def to_uuid(unit: str) -> str:
    """Return the id of a unit as a UUID: its 24 hexadecimal digits, padded with zeros."""
    digits = unit.ljust(_DIGITS, "0")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def from_uuid(name: str) -> str:
    """Return the id of the unit of a UUID; any other text comes back in some form."""
    return name.replace("-", "")[:_UNIT]
