"""What the metadata of several documents agree on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["shared_metadata"]


def shared_metadata(sources: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Keys and values that all of these have in common.

    A derived unit carries these in a vector store, so that a filter of the store (`tenant == "a"`) never lets a unit
    through that also stands on another tenant's document.

    Args:
        sources: Metadata of at least one document.
    """
    first, *others = sources
    return {key: value for key, value in first.items() if all(key in o and o[key] == value for o in others)}
