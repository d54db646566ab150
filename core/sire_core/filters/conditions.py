"""Filter expressions on document metadata.

Types are not converted: text is compared with text, numbers with numbers, `true` with `true`; `1` equals neither `True`
nor `"1"`. Dates, paths, decimals and the like compare as metadata stores them (`sire_core.metadata_values`). A
comparison with a key that a document does not have is false, except `ne`, `nin` and `exists: false`. `lt`, `lte`, `gt`
and `gte` are false for values that cannot be ordered. An invalid filter is an error: only None means "no filter".
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any, Union

from sire_core.errors import ConfigurationError
from sire_core.metadata_values import plain_value

MOST_CONDITIONS = 500
DEEPEST = 50
JOINS = ("and", "or", "not")
_ORDERED = ("lt", "lte", "gt", "gte")
_LISTED = ("in", "nin")
_TEXTUAL = ("text_match", "text_match_insensitive")
_OPERATORS = ("eq", "ne", *_LISTED, *_ORDERED, "contains", "exists", *_TEXTUAL)


@dataclass(frozen=True, slots=True)
class Condition:
    """`key operator value`.

    Operators: eq, ne; in, nin (a list of values); lt, lte, gt, gte (numbers or texts); contains (an item of a list, or
    a part of a text); exists (true or false); text_match, text_match_insensitive (a part of a text).
    """

    key: str
    operator: str
    value: Any
    _wanted: frozenset[Hashable] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.key, str):
            raise ConfigurationError(f"Metadata keys are strings, not {shortened(self.key)}.")
        if self.operator not in _OPERATORS:
            known = ", ".join(_OPERATORS)
            raise ConfigurationError(
                f"Unknown filter operator {shortened(self.operator)} for {shortened(self.key)}; use one of {known}."
            )
        value = self._checked()
        object.__setattr__(self, "value", value)
        wanted = value if self.operator in _LISTED else [value]
        object.__setattr__(self, "_wanted", frozenset(map(comparable, wanted)))

    def _checked(self) -> Any:
        name, value = self.operator, _plain(self.value)
        if name in _LISTED:
            if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, (Sequence, set, frozenset)):
                raise self._refusal("a list of values")
            return tuple(_scalar(item, self.key) for item in value)
        if name == "exists":
            if not isinstance(value, bool):
                raise self._refusal("true or false")
            return value
        if name in _TEXTUAL and not isinstance(value, str):
            raise self._refusal("a text")
        if name in _ORDERED and (isinstance(value, bool) or not isinstance(value, (str, Real))):
            raise self._refusal("a number, a date or a text")
        if name in ("eq", "ne") and isinstance(value, (list, tuple)):
            return tuple(_scalar(item, self.key) for item in value)
        return _scalar(value, self.key)

    def _refusal(self, expected: str) -> ConfigurationError:
        return ConfigurationError(
            f"{self.operator!r} for {shortened(self.key)} takes {expected}, not {shortened(self.value)}."
        )

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a document with this metadata passes."""
        name = self.operator
        if name == "exists":
            return (self.key in metadata) is self.value
        if self.key not in metadata:
            return name in ("ne", "nin")
        value = metadata[self.key]
        if name in _ORDERED:
            return self._ordered(value)
        if name == "contains" or name in _TEXTUAL:
            return self._part_of(value)
        return (comparable(value) in self._wanted) is (name in ("eq", "in"))

    def _part_of(self, value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return self.operator == "contains" and any(comparable(item) in self._wanted for item in value)
        if not isinstance(value, str) or not isinstance(self.value, str):
            return False
        if self.operator == "text_match_insensitive":
            return self.value.lower() in value.lower()
        return self.value in value

    def _ordered(self, value: Any) -> bool:
        kind = str if isinstance(self.value, str) else Real
        if isinstance(value, bool) or not isinstance(value, kind):
            return False
        if self.operator == "lt":
            return bool(value < self.value)
        if self.operator == "lte":
            return bool(value <= self.value)
        return bool(value > self.value if self.operator == "gt" else value >= self.value)


@dataclass(frozen=True, slots=True)
class FilterGroup:
    """`and` or `or` of one or more filters, or `not` of one.

    Attributes:
        operator: `and`, `or` or `not`.
        parts: The filters.
        shape: How deeply they are nested, and how many conditions there are.
    """

    operator: str
    parts: tuple[Filter, ...]
    shape: tuple[int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.operator not in JOINS:
            raise ConfigurationError(f"Filters are joined by 'and', 'or' or 'not', not by {shortened(self.operator)}.")
        if not self.parts:
            raise ConfigurationError(f"'{self.operator}' in a filter takes a non-empty list of filters.")
        if self.operator == "not" and len(self.parts) != 1:
            raise ConfigurationError("'not' in a filter takes exactly one filter.")
        shapes = [part.shape if isinstance(part, FilterGroup) else (0, 1) for part in self.parts]
        depth, conditions = 1 + max(depth for depth, _ in shapes), sum(count for _, count in shapes)
        check_depth(depth)
        if conditions > MOST_CONDITIONS:
            raise ConfigurationError(
                f"The filter has more than {MOST_CONDITIONS} conditions. To compare one key with many values use 'in'."
            )
        object.__setattr__(self, "shape", (depth, conditions))

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a document with this metadata passes."""
        if self.operator == "not":
            return not self.parts[0].matches(metadata)
        results = (part.matches(metadata) for part in self.parts)
        return all(results) if self.operator == "and" else any(results)


Filter = Union[Condition, FilterGroup]

FilterLike = Union[Filter, Mapping[str, Any], str, None]
"""Accepted by `parse_filter`: a filter object, a mapping (`{"year": {"gt": 1990}}`) or a text (`year>1990`)."""


def check_depth(depth: int) -> None:
    """Refuse filters that are nested too deeply."""
    if depth > DEEPEST:
        raise ConfigurationError(f"The filter is nested too deeply; {DEEPEST} levels are the most.")


def _plain(value: Any) -> Any:
    """A date, path, decimal or other single value as metadata stores it; other values unchanged."""
    if isinstance(value, (str, bool, Real, Mapping, Sequence, set, frozenset)) and not isinstance(value, Enum):
        return value
    with suppress(TypeError):
        return plain_value(value)
    return value


def _scalar(value: Any, key: str) -> Any:
    """A value as plain JSON."""
    value = _plain(value)
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    raise ConfigurationError(
        f"A filter compares {shortened(key)} with texts, finite numbers, dates, true, false or null, "
        f"not with {shortened(value)}."
    )


def comparable(value: Any) -> Hashable:
    """A key that is equal for values that filters do not distinguish; numbers are one type, `True` is no number."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, (int, float)):
        return (float, value)
    if isinstance(value, (list, tuple)):
        return (list, tuple(map(comparable, value)))
    if isinstance(value, Mapping):
        return (dict, frozenset((name, comparable(item)) for name, item in value.items()))
    return (str, value) if isinstance(value, str) else (None, value)


DOCUMENT_KEYS = ("doc_id", "document_id", "ref_doc_id", "id")
"""Names of a document's id: ours, and those of LlamaIndex and LangChain."""

PASSAGE_KEYS = ("passage_id", "node_id")
TITLE = "title"
FIELDS = (*DOCUMENT_KEYS, *PASSAGE_KEYS, TITLE)


def asks_for_fields(filter: Filter) -> bool:
    """Whether a filter uses a key that may stand for a field."""
    return any(condition.key in FIELDS for condition in conditions(filter))


def filtered_title(of_document: str, own: str) -> str:
    """The title that filters compare: the document's, if it has one, for all of its passages."""
    return of_document or own


def passes(filter: Filter, passages: Iterable[tuple[Mapping[str, Any], str, str, str]]) -> Iterator[bool]:
    """Whether each passage passes a filter."""
    has_fields = asks_for_fields(filter)
    return (filter.matches(_with_fields(*passage) if has_fields else passage[0]) for passage in passages)


def _with_fields(metadata: Mapping[str, Any], document: str, passage: str, title: str) -> dict[str, Any]:
    """Metadata with the fields; its own keys win, an empty title is omitted."""
    fields = {**dict.fromkeys(DOCUMENT_KEYS, document), **dict.fromkeys(PASSAGE_KEYS, passage)}
    return {**fields, **({TITLE: title} if title else {}), **metadata}


def conditions(filter: Filter) -> Iterator[Condition]:
    """All conditions of a filter."""
    if isinstance(filter, Condition):
        yield filter
        return
    for part in filter.parts:
        yield from conditions(part)
