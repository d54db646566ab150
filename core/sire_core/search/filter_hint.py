"""What may be wrong with a filter that nothing passes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

from sire_core.filters import Condition, Filter

__all__ = ["filter_hint"]

_LISTED = 20
_IDS = ("id", "id_", "doc_id", "document_id", "node_id", "ref_doc_id")
"""What vector stores of frameworks let one filter on beside metadata."""


def filter_hint(where: Filter, metadata: Iterable[Mapping[str, Any]]) -> str:
    """Keys of a filter that no passage has, with the nearest ones, and values of another type than those of the key.

    Args:
        where: The filter.
        metadata: Of the passages that may be seen.

    Returns:
        Sentences for the user; empty when nothing looks wrong.
    """
    types: dict[str, set[str]] = {}
    for found in metadata:
        for key, value in found.items():
            types.setdefault(key, set()).update(_types(value))
    known = sorted(key for key in types if not key.startswith("sire_"))
    said = []
    missing = False
    for condition in dict.fromkeys(_conditions(where)):
        key, asked = condition.key, _types(condition.value)
        if key not in known:
            missing = True
            nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
            said.append(f"No passage has the metadata key {key!r}{hint}")
            if key in _IDS:
                said.append("Ids are no metadata: to filter on one, write it into the metadata of the document, too.")
        elif condition.operator != "exists" and asked and asked.isdisjoint(types[key]):
            held, given = (" and ".join(sorted(names)) for names in (types[key], asked))
            said.append(f"Values of the metadata key {key!r} are {held}, and the filter compares with {given}.")
    if missing:
        more = f", and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        said.append(f"The keys are {', '.join(known[:_LISTED])}{more}." if known else "The documents have no metadata.")
    return " ".join(dict.fromkeys(said))


def _types(value: object) -> set[str]:
    """What a value is in a filter, in the plural; of a list its items."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return set().union(*map(_types, value))
    if isinstance(value, bool):
        return {"truth values"}
    return {"numbers"} if isinstance(value, Real) else {"texts"} if isinstance(value, str) else {"something else"}


def _conditions(where: Filter) -> Iterator[Condition]:
    if isinstance(where, Condition):
        yield where
        return
    for part in where.parts:
        yield from _conditions(part)
