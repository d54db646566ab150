"""Filters as users give them: mappings, texts and objects; `parse_filter`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from reprlib import repr as shortened
from typing import Any

from sire_core.errors import ConfigurationError
from sire_core.filters.conditions import JOINS, Condition, Filter, FilterGroup, check_depth
from sire_core.filters.text import read_text

__all__ = ["both", "condition", "parse_filter"]

_SYMBOLS = {"==": "eq", "=": "eq", "!=": "ne", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_EMPTY = "The filter is empty. To search everything pass no filter at all (None)."


def parse_filter(given: Filter | Mapping[str, Any] | str | None) -> Filter | None:
    """Parse a filter. Takes time linear in its length.

    Accepted forms:
        * a `Filter`, or None for no filter;
        * a mapping whose conditions must all match: `{"tenant": "a"}`, `{"page": [1, 2]}`, `{"year": {"gte": 1990,
          "lt": 2000}, "lang": {"in": ["en"]}}`, `{"and": [...]}`, `{"or": [...]}`, `{"not": {...}}`. Operators are
          those of `Condition`, also with a dollar sign (`$gte`, `$and`) or as symbols (`>=`), and `any`, `all` (items
          of a list) and `is_empty`;
        * a string: the mapping as JSON, or conditions such as `tenant=a, year>=1990`, `(lang=en or lang=de) and not
          draft=true`, `page in [1, 2]`, `tags contains x`, `page exists`. Quote values that contain special characters
          or the words `and` and `or`.

    Raises:
        ConfigurationError: The expression is empty or invalid.
    """
    return None if given is None else _parse(given, 0)


def both(one: Filter | None, other: Filter | None) -> Filter | None:
    """Both have to hold: a filter that is added never widens what another one lets through."""
    parts = [part for part in (one, other) if part is not None]
    return _joined("and", parts) if parts else None


def condition(key: str, operator: str, operand: Any) -> Filter:
    """One comparison under any name of its operator: those of `Condition`, `$gte`, `>=`, `any`, `all`, `is_empty`.

    Raises:
        ConfigurationError: There is no such operator, or the value does not go with it.
    """
    name = operator.removeprefix("$") if isinstance(operator, str) else operator
    if name in ("any", "all"):
        return _joined("or" if name == "any" else "and", [Condition(key, "contains", i) for i in _items(key, operand)])
    if name == "is_empty":
        there = [Condition(key, "exists", value=True), *(Condition(key, "ne", none) for none in (None, "", ()))]
        if not isinstance(operand, bool):
            raise ConfigurationError(f"'is_empty' for {shortened(key)} takes true or false, not {shortened(operand)}.")
        return FilterGroup("not", (_joined("and", there),)) if operand else _joined("and", there)
    return Condition(key, _SYMBOLS.get(name, name) if isinstance(name, str) else name, operand)


def _parse(given: Any, depth: int) -> Filter:
    check_depth(depth)
    if isinstance(given, (Condition, FilterGroup)):
        return given
    if isinstance(given, str):
        return _parse_mapping(_loaded(given) if given.lstrip()[:1] == "{" else read_text(given), depth)
    if isinstance(given, Mapping):
        return _parse_mapping(given, depth)
    msg = f"A filter is a mapping, a string or a Filter, not {type(given).__name__}; for example {{'tenant': 'a'}}."
    raise ConfigurationError(msg)


def _parse_mapping(given: Mapping[Any, Any], depth: int) -> Filter:
    if not given:
        raise ConfigurationError(_EMPTY)
    parts: list[Filter] = []
    for key, value in given.items():
        name = key[1:] if isinstance(key, str) and key.startswith("$") else key
        if name in JOINS:
            parts.append(_parse_group(name, value, depth))
        elif name != key:
            raise ConfigurationError(f"{shortened(key)} does not join filters; use $and, $or, $not or a metadata key.")
        else:
            parts.extend(_parse_conditions(key, value))
    return _joined("and", parts)


def _parse_conditions(key: Any, value: Any) -> list[Filter]:
    if isinstance(value, (list, tuple, set, frozenset)):
        return [Condition(key, "in", value)]
    if not isinstance(value, Mapping):
        return [Condition(key, "eq", value)]
    if not value:
        raise ConfigurationError(f"The filter says nothing about {shortened(key)}: {{}} is empty. Give it a value.")
    return [condition(key, operator, operand) for operator, operand in value.items()]


def _items(key: Any, operand: Any) -> tuple[Any, ...]:
    items: tuple[Any, ...] = Condition(key, "in", operand).value
    if not items:
        raise ConfigurationError(f"'any' and 'all' for {shortened(key)} take a list of at least one value.")
    return items


def _parse_group(operator: str, value: Any, depth: int) -> FilterGroup:
    items = [value] if isinstance(value, (Mapping, Condition, FilterGroup)) else value
    if not isinstance(items, (list, tuple)) or not items:
        raise ConfigurationError(f"'{operator}' in a filter takes a non-empty list of filters, not {shortened(value)}.")
    return FilterGroup(operator, tuple(_parse(item, depth + 1) for item in items))


def _joined(operator: str, parts: Sequence[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else FilterGroup(operator, tuple(parts))


def _loaded(text: str) -> Mapping[str, Any]:
    """JSON, but stricter: no key twice, no NaN."""
    try:
        loaded = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError as error:
        raise ConfigurationError("The filter is nested too deeply.") from error
    except ValueError as error:
        raise ConfigurationError(f"The filter is not valid JSON ({error}): {shortened(text)}") from error
    return dict(loaded)


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigurationError(f"The filter names {shortened(key)} twice; join the two with 'and' or 'or'.")
        found[key] = value
    return found


def _no_constant(name: str) -> Any:
    raise ConfigurationError(f"{name} in a filter is no number that anything could equal.")
