"""What may be wrong with a filter that nothing passes."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from sire_core.filter_ids import DOCUMENT_KEYS, PASSAGE_KEYS, conditions

if TYPE_CHECKING:
    from sire_core.filters import Condition, Filter

__all__ = ["filter_hint"]

_LISTED = 20
_COMPARED = 20_000
"""So many ids are searched for a similar one in far less than a second."""


def filter_hint(where: Filter, metadata: Iterable[Mapping[str, Any]], documents: Collection[str]) -> str:
    """Keys and ids of a filter that nothing has, with the nearest ones, and values of another type than the key's.

    Args:
        where: The filter.
        metadata: Of the passages that may be seen.
        documents: Ids of the documents that may be seen.

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
    for condition in dict.fromkeys(conditions(where)):
        key, asked = condition.key, _types(condition.value)
        if key not in known and key in DOCUMENT_KEYS:
            said += _unknown_ids(condition, documents)
        elif key not in known and key in PASSAGE_KEYS:
            said.append(f"{key!r} is compared with ids of passages.")
        elif key not in known:
            missing = True
            nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
            said.append(f"No passage has the metadata key {key!r}{hint}")
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


def _unknown_ids(asked: Condition, documents: Collection[str]) -> list[str]:
    """Which ids of documents there are not, of those that a condition asks for."""
    if asked.operator not in ("eq", "in"):
        return []
    known = dict.fromkeys(documents)
    unknown = [name for name in (asked.value if asked.operator == "in" else (asked.value,)) if name not in known]
    nearest = difflib.get_close_matches(str(unknown[0]), known, n=1) if unknown and len(known) < _COMPARED else []
    said = [f"No document has the id {name!r}." for name in unknown[:_LISTED]]
    return [*said, f"Did you mean {nearest[0]!r}?"] if nearest else said
