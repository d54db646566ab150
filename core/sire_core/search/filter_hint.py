"""What may be wrong with a filter that nothing passes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sire_core.filters import Condition, Filter

__all__ = ["filter_hint"]

_LISTED = 20


def filter_hint(where: Filter, metadata: Iterable[Mapping[str, Any]]) -> str:
    """Keys of a filter that no passage has, with the nearest ones that some have; empty when all are known.

    Args:
        where: The filter.
        metadata: Of the passages that may be seen.
    """
    known = sorted({key for found in metadata for key in found if not key.startswith("sire_")})
    missing = [key for key in dict.fromkeys(_keys(where)) if key not in known]
    if not missing:
        return ""
    said = []
    for key in missing:
        nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
        said.append(
            f"No passage has the metadata key {key!r}" + (f"; did you mean {nearest[0]!r}?" if nearest else ".")
        )
    more = f", and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    there = f"The keys are {', '.join(known[:_LISTED])}{more}." if known else "The documents have no metadata."
    return f"{' '.join(said)} {there}"


def _keys(where: Filter) -> Iterator[str]:
    if isinstance(where, Condition):
        yield where.key
        return
    for part in where.parts:
        yield from _keys(part)
