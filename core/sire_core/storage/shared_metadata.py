"""Metadata that several documents have in common."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from sire_core.filters import comparable

__all__ = ["differing_metadata", "shared_metadata"]


def shared_metadata(sources: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return keys and values that all documents have in common."""
    first, *others = sources
    return {
        key: value
        for key, value in first.items()
        if all(key in other and comparable(other[key]) == comparable(value) for other in others)
    }


def differing_metadata(sources: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Return the values that differ by key, each once, in order; a missing key counts as None."""
    shared = shared_metadata(sources)
    by_key: dict[str, dict[Hashable, Any]] = {key: {} for source in sources for key in source if key not in shared}
    for key, values in by_key.items():
        for source in sources:
            values.setdefault(comparable(source.get(key)), source.get(key))
    return {key: tuple(values.values()) for key, values in by_key.items()}
