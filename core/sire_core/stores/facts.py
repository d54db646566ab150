"""Metadata and filters in the one form that every database can look up: texts in a list, and numbers by key.

The condition for the database lets through all that passes a filter, and as little else as it can decide: parts of
texts, and keys on which the passages of a derived unit do not agree, are left to the caller, who checks every filter in
any case. Values keep their types: the number 1, the text "1" and `True` are three facts.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from sire_core.filters import Condition, Filter
from sire_core.filters.conditions import FIELDS
from sire_core.metadata_values import is_number

_MAX_KEYWORD_LETTERS = 200
_ORDERED = ("lt", "lte", "gt", "gte")
_EXACT = 2**53  # Whole numbers up to this one are floating-point numbers as well


@dataclass(frozen=True, slots=True)
class Has:
    """True if an entry has one of some facts."""

    facts: tuple[str, ...]
    wanted: bool = True  # False turns it round


@dataclass(frozen=True, slots=True)
class Number:
    """Comparison of the number of a key; false where an entry has none."""

    key: str  # Metadata key
    operator: str  # `lt`, `lte`, `gt`, `gte`
    value: float  # What it is compared with
    wanted: bool = True  # False turns it round

    def fallback(self) -> Has | None:
        """For databases without numbers: whether there is one. None: nothing can be said."""
        return Has((_plain(f"#{self.key}"),)) if self.wanted else None


@dataclass(frozen=True, slots=True)
class Joined:
    """Several tests."""

    operator: str  # `and` or `or`
    parts: tuple[Test, ...]  # At least one


Test = Union[Has, Number, Joined]


def facts_of(metadata: Mapping[str, Any], differs: Sequence[str] = ()) -> list[str]:
    """Facts and numbers of metadata, as a database stores them."""
    facts = [f"?{key}" for key in differs]
    for key, value in metadata.items():
        facts += [f"!{key}", _fact("=", key, value)]
        if isinstance(value, str):
            facts.append(f"~{key}")
        elif isinstance(value, (list, tuple)):
            facts += [_fact("@", key, item) for item in value]
        elif is_number(value):
            facts.append(f"#{key}")
            if not _is_held(value):
                facts.append(f"%{key}")  # a number that the database cannot compare
    return list(dict.fromkeys(map(_plain, facts)))


def numbers_of(metadata: Mapping[str, Any]) -> dict[str, float]:
    """Numbers by key; those that floating point does not hold are left out."""
    return {key: float(value) for key, value in metadata.items() if is_number(value) and _is_held(value)}


def _is_held(value: float) -> bool:
    """True if floating point holds a number as it is; NaN is none that can be compared."""
    return abs(value) < _EXACT


def narrow(filter: Filter | None) -> Test | None:
    """Test of a database for a filter; None when it cannot narrow anything."""
    return None if filter is None else _test(filter, wanted=True)


def _test(filter: Filter, *, wanted: bool) -> Test | None:
    if isinstance(filter, Condition):
        return _leaf(filter, wanted=wanted)
    if filter.operator == "not":
        return _test(filter.parts[0], wanted=not wanted)
    parts = [_test(part, wanted=wanted) for part in filter.parts]
    certain = [part for part in parts if part is not None]
    operator = filter.operator if wanted else {"and": "or", "or": "and"}[filter.operator]
    if not certain or (operator == "or" and len(certain) < len(parts)):
        return None
    return certain[0] if len(certain) == 1 else Joined(operator, tuple(certain))


def _leaf(leaf: Condition, *, wanted: bool) -> Test | None:
    test = _of_metadata(leaf, wanted=wanted)
    if test is None or leaf.key not in FIELDS:
        return test
    unsaid = Has((f"!{leaf.key}", f"?{leaf.key}"), wanted=False)
    return Joined("or", (test, unsaid))  # where it is no metadata it is a field, which the caller compares


def _of_metadata(leaf: Condition, *, wanted: bool) -> Test | None:
    key, name, value = leaf.key, leaf.operator, leaf.value
    if name in ("eq", "ne", "in", "nin"):
        facts = [_fact("=", key, item) for item in (value if name in ("in", "nin") else (value,))]
        return _has(facts, key, wanted=wanted is (name in ("eq", "in")))
    if name == "exists":
        return _has([f"!{key}"], key, wanted=wanted is value)
    if name == "contains":
        return _has([_fact("@", key, value), *([f"~{key}"] if wanted else [])], key, wanted=wanted)
    of_number = name in _ORDERED and not isinstance(value, str)
    if of_number and abs(value) < _EXACT:
        number = Number(key, name, float(value), wanted)
        return Joined("or", (number, _has([f"%{key}"], key, wanted=True))) if wanted else number
    return _has([f"#{key}" if of_number else f"~{key}"], key, wanted=True) if wanted else None


def _has(facts: list[str], key: str, *, wanted: bool) -> Has:
    """True if the condition holds or cannot be decided; only what certainly fails is refused."""
    return Has(tuple(map(_plain, [*facts, f"?{key}"] if wanted else facts)), wanted)


def _fact(sign: str, key: str, value: Any) -> str:
    """A key with a value; a key that holds the sign between the two is told apart from a shorter one."""
    escaped = re.sub(r"([\\=])", r"\\\1", key)
    return f"{sign}{escaped}={_value(value)}"


def _value(value: Any) -> str:
    """Equal for equal values of one type."""
    if isinstance(value, (list, tuple)):
        return json.dumps([_value(item) for item in value])
    if is_number(value):
        whole = isinstance(value, int) or (math.isfinite(value) and value == int(value))
        return str(int(value)) if whole else repr(float(value))
    if isinstance(value, str):
        return f"'{value}"
    return {None: "null", True: "true", False: "false"}.get(value, "") if isinstance(value, (bool, type(None))) else ""


def _plain(fact: str) -> str:
    """A short text that every database takes: no NUL, no half of a surrogate pair."""
    if len(fact) <= _MAX_KEYWORD_LETTERS and fact.isprintable():
        return fact
    return f"{fact[0]}{hashlib.sha256(fact.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
