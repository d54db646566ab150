"""One small filter expression on chunk metadata: eq, ne, in, lt, gt, and, or, not.

Missing keys: a comparison with a key that a chunk does not have is false, except `ne`, which is true. Values that
cannot be ordered against each other make `lt` and `gt` false.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from sire_core.errors import ConfigurationError

__all__ = ["Condition", "Filter", "Group", "parse_filter"]

_OPERATORS = ("eq", "ne", "in", "lt", "gt")
_SYMBOLS = {"!=": "ne", "=": "eq", "<": "lt", ">": "gt"}
_TERM = re.compile(r"\s*([^=!<>]+?)\s*(!=|==|=|<|>)\s*(.+?)\s*$")


@dataclass(frozen=True, slots=True)
class Condition:
    """`key operator value`, with operator in eq, ne, in, lt, gt.

    Raises:
        ConfigurationError: Another operator, or `in` without a list of values.
    """

    key: str
    operator: str
    value: Any

    def __post_init__(self) -> None:
        if self.operator not in _OPERATORS:
            known = ", ".join(_OPERATORS)
            raise ConfigurationError(f"Unknown filter operator {self.operator!r} for {self.key!r}; use one of {known}.")
        if self.operator == "in":
            if isinstance(self.value, str) or not isinstance(self.value, (Sequence, set, frozenset)):
                raise ConfigurationError(f"'in' for {self.key!r} takes a list of values, not {self.value!r}.")
            object.__setattr__(self, "value", tuple(self.value))

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a chunk with this metadata passes."""
        if self.key not in metadata:
            return self.operator == "ne"
        found = metadata[self.key]
        if self.operator == "eq":
            return bool(found == self.value)
        if self.operator == "ne":
            return bool(found != self.value)
        if self.operator == "in":
            return found in self.value
        try:
            return bool(found < self.value if self.operator == "lt" else found > self.value)
        except TypeError:
            return False


@dataclass(frozen=True, slots=True)
class Group:
    """`and`, `or` over one or more filters; `not` over one.

    Raises:
        ConfigurationError: Another operator, or another number of filters.
    """

    operator: str
    parts: tuple[Filter, ...]

    def __post_init__(self) -> None:
        if self.operator not in ("and", "or", "not"):
            raise ConfigurationError(f"Filters are joined by 'and', 'or' or 'not', not by {self.operator!r}.")
        if not self.parts:
            raise ConfigurationError(f"'{self.operator}' in a filter takes a non-empty list of filters.")
        if self.operator == "not" and len(self.parts) != 1:
            raise ConfigurationError("'not' in a filter takes exactly one filter.")

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a chunk with this metadata passes."""
        if self.operator == "not":
            return not self.parts[0].matches(metadata)
        results = (part.matches(metadata) for part in self.parts)
        return all(results) if self.operator == "and" else any(results)


Filter = Union[Condition, Group]


def parse_filter(given: Filter | Mapping[str, Any] | str | None) -> Filter | None:
    """Read a filter from what people write.

    Accepted forms:
        * a `Filter`, or None;
        * a mapping: `{"tenant": "a"}`, `{"year": {"gt": 1990}, "lang": {"in": ["en", "de"]}}` (all must hold),
          `{"and": [...]}`, `{"or": [...]}`, `{"not": {...}}`;
        * a string: the mapping as JSON, or terms joined by commas: `tenant=a, year>1990, lang!=de`.

    Raises:
        ConfigurationError: The expression cannot be read.
    """
    if given is None or isinstance(given, (Condition, Group)):
        return given
    if isinstance(given, str):
        return _parse_text(given)
    if isinstance(given, Mapping):
        return _parse_mapping(given)
    msg = f"A filter is a mapping, a string or a Filter, not {type(given).__name__}; for example {{'tenant': 'a'}}."
    raise ConfigurationError(msg)


def _parse_mapping(given: Mapping[str, Any]) -> Filter | None:
    parts: list[Filter] = []
    for key, value in given.items():
        if key in ("and", "or", "not"):
            parts.append(_parse_group(key, value))
        elif isinstance(value, Mapping):
            parts.extend(Condition(key, operator, operand) for operator, operand in value.items())
        else:
            parts.append(Condition(key, "eq", value))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Group("and", tuple(parts))


def _parse_group(operator: str, value: Any) -> Group:
    items: Sequence[Any] = [value] if isinstance(value, (Mapping, Condition, Group)) else value
    if not isinstance(items, Sequence) or isinstance(items, str) or not items:
        raise ConfigurationError(f"'{operator}' in a filter takes a non-empty list of filters, not {value!r}.")
    parsed = tuple(parse_filter(item) for item in items)
    if any(part is None for part in parsed):
        raise ConfigurationError(f"'{operator}' in a filter holds an empty filter.")
    return Group(operator, tuple(part for part in parsed if part is not None))


def _parse_text(given: str) -> Filter | None:
    text = given.strip()
    if not text:
        return None
    if text.startswith("{"):
        try:
            return parse_filter(json.loads(text))
        except json.JSONDecodeError as error:
            raise ConfigurationError(f"The filter is not valid JSON ({error}): {given[:200]}") from error
        except RecursionError as error:
            raise ConfigurationError("The filter is nested too deeply.") from error
    parts: list[Filter] = []
    for term in text.split(","):
        match = _TERM.match(term)
        if not match:
            raise ConfigurationError(
                f"Cannot read the filter term {term!r}; write key=value, key!=value, key<value or key>value."
            )
        key, symbol, raw = match.groups()
        parts.append(Condition(key, _SYMBOLS.get(symbol, "eq"), _scalar(raw)))
    return parts[0] if len(parts) == 1 else Group("and", tuple(parts))


def _scalar(raw: str) -> Any:
    try:
        return json.loads(raw)
    except json.JSONDecodeError:
        return raw
