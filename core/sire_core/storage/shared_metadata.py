"""What the metadata of several documents agree on."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from sire_core.filters import comparable

__all__ = ["differing_metadata", "shared_metadata"]


def shared_metadata(sources: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Keys and values that all of these have in common.

    A derived unit carries these in a vector store, so that a filter of the store (`tenant == "a"`) never lets a unit
    through that also stands on another tenant's document.
    """
    first, *others = sources
    return {
        key: value
        for key, value in first.items()
        if all(key in other and comparable(other[key]) == comparable(value) for other in others)
    }


def differing_metadata(sources: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Values that these do not agree on by key, each once, in their order; a missing key counts as None."""
    shared = shared_metadata(sources)
    found: dict[str, dict[Hashable, Any]] = {key: {} for source in sources for key in source if key not in shared}
    for key, values in found.items():
        for source in sources:
            values.setdefault(comparable(source.get(key)), source.get(key))
    return {key: tuple(values.values()) for key, values in found.items()}
