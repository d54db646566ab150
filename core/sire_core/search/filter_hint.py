"""What may be wrong with a filter that nothing passes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from sire_core.filters.conditions import DOCUMENT_KEYS, FIELDS, PASSAGE_KEYS, TITLE, conditions

if TYPE_CHECKING:
    from sire_core.filters import Condition, Filter

_LISTED = 20
_LONGEST = 100
_COMPARED = 20_000
"""So many texts are searched for a similar one in far less than a second."""


def filter_hint(
    where: Filter,
    metadata: Iterable[Mapping[str, Any]],
    documents: Collection[str],
    titles: Callable[[], Collection[str]],
) -> str:
    """Keys, values and ids of a filter that nothing has, with the nearest ones.

    The result is text for the user; empty when nothing looks wrong.
    """
    values = _values(metadata)
    said = []
    for asked in dict.fromkeys(conditions(where)):
        if asked.key in values:
            said += _of_values(asked, values[asked.key])
        elif asked.key in DOCUMENT_KEYS:
            said += _not_among(asked, documents, "No document has the id {}.")
        elif asked.key == TITLE:
            said += _not_among(asked, titles(), "No passage has the title {}.")
        elif asked.key in PASSAGE_KEYS:
            said.append(f"{asked.key!r} is compared with ids of passages.")
    return " ".join(dict.fromkeys([*said, unknown_keys(where, values)])).strip()


def unknown_keys(where: Filter, known: Iterable[str]) -> str:
    """Keys of a filter that no passage has and that are no fields, with the nearest ones, in sentences."""
    keys = sorted(key for key in known if not key.startswith("sire_"))
    said = []
    for key in dict.fromkeys(asked.key for asked in conditions(where)):
        if key not in keys and key not in FIELDS:
            nearest = difflib.get_close_matches(key, [*keys, TITLE], n=1, cutoff=0.6)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
            said.append(f"No passage has the metadata key {_brief(key)}{hint}")
    if said:
        more = f", and {len(keys) - _LISTED} more" if len(keys) > _LISTED else ""
        held = f"The keys are {', '.join(keys[:_LISTED])}{more}" if keys else "The documents have no metadata"
        fields = [name for name in ("doc_id", "passage_id", TITLE) if name not in keys]
        named = " and ".join(fields).replace(" and ", ", ", len(fields) - 2)
        said.append(f"{held}; {named} can be filtered on, too." if fields else f"{held}.")
    return " ".join(said)


def _values(metadata: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Values by key, items of lists among them."""
    found: dict[str, list[Any]] = {}
    for one in metadata:
        for key, value in one.items():
            found.setdefault(key, []).extend(value if isinstance(value, list) else (value,))
    return found


def _of_values(asked: Condition, values: Collection[Any]) -> list[str]:
    """Values of another type than those of the key, or texts that none of them equals."""
    given, held = _types(asked.value), _types(values)
    if asked.operator == "exists" or not given:
        return []
    if given.isdisjoint(held):
        theirs, ours = (" and ".join(sorted(names)) for names in (held, given))
        return [f"Values of the metadata key {asked.key!r} are {theirs}, and the filter compares with {ours}."]
    texts = [value for value in values if isinstance(value, str)]
    return _not_among(asked, texts, f"No passage has {{}} under the metadata key {asked.key!r}.")


def _not_among(asked: Condition, known: Collection[str], words: str) -> list[str]:
    """Which texts that a condition compares with are none of those that are known, and one that is like the first."""
    if asked.operator not in ("eq", "in"):
        return []
    different = dict.fromkeys(known)
    wanted = asked.value if asked.operator == "in" else (asked.value,)
    missing = [name for name in wanted if isinstance(name, str) and name not in different]
    if not missing or len(missing) < len(wanted):  # where one of them is there, something else keeps passages out
        return []
    said = [words.format(_brief(name)) for name in missing[:_LISTED]]
    nearest = _nearest(missing[0], list(different)[:_COMPARED])
    return [*said, f"Did you mean {nearest!r}?"] if nearest else said


def _brief(text: str) -> str:
    """A text in quotes, at most so long as a line: what a stranger asked for goes into answers and logs."""
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ...")


def _nearest(name: str, known: Collection[str]) -> str:
    """A text that is similar, or holds it: the path of a file of which the name was given."""
    holding = (found for found in known if len(name) > 2 and name.lower() in found.lower())
    return next(holding, "") or next(iter(difflib.get_close_matches(name, known, n=1)), "")


def _types(value: object) -> set[str]:
    """What a value is in a filter, in the plural; of a list its items."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return set().union(*map(_types, value))
    if isinstance(value, bool):
        return {"truth values"}
    return {"numbers"} if isinstance(value, Real) else {"texts"} if isinstance(value, str) else {"something else"}
