"""Filter expressions on document metadata.

Types are not converted: text is compared with text, numbers with numbers, `true` with `true`; `1` equals neither `True`
nor `"1"`. Dates, paths, decimals and the like compare as metadata stores them (`sire_core.metadata_values`). A
comparison with a key that a document does not have is false, except `ne`, `nin` and `exists: false`. `lt`, `lte`, `gt`
and `gte` are false for values that cannot be ordered. An invalid filter is an error: only None means "no filter".
"""

from __future__ import annotations

import json
import math
import re
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
_LIST_OPERATORS = ("in", "nin")
_TEXTUAL = ("text_match", "text_match_insensitive")
_OPERATORS = ("eq", "ne", *_LIST_OPERATORS, *_ORDERED, "contains", "exists", *_TEXTUAL)
# No two alternatives begin with the same character, so the text is read once, whatever it holds.
_FILTER_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<double>"[^"\\]*(?:\\.[^"\\]*)*")
      | (?P<single>'[^']*(?:''[^']*)*')
      | (?P<sign>!=|<=|>=|==|[=<>])
      | (?P<mark>[,()\[\]])
      | (?P<word>[^\s,()\[\]=<>!"'][^\s,()\[\]=<>!]*)""",
    re.VERBOSE | re.DOTALL,
)
_UNQUOTED_VALUE = re.compile(r"[\w./*-]+")
_WORD_OPERATORS = ("in", "nin", "contains", "text_match", "text_match_insensitive")
_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_NUMERIC_VALUE = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?")
_CLOSING = {"(": ")", "[": "]"}

_SYMBOLS = {"==": "eq", "=": "eq", "!=": "ne", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_EMPTY = "The filter is empty. To search everything pass no filter at all (None)."


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
            operators = ", ".join(_OPERATORS)
            raise ConfigurationError(
                f"Unknown filter operator {shortened(self.operator)} for {shortened(self.key)}; use one of {operators}."
            )
        value = self._checked()
        object.__setattr__(self, "value", value)
        wanted = value if self.operator in _LIST_OPERATORS else [value]
        object.__setattr__(self, "_wanted", frozenset(map(comparable, wanted)))

    def _checked(self) -> Any:
        name, value = self.operator, _plain(self.value)
        if name in _LIST_OPERATORS:
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
        """True if a document with this metadata passes."""
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
    """`and` or `or` of one or more filters, or `not` of one."""

    operator: str  # `and`, `or` or `not`
    parts: tuple[Filter, ...]
    # How deeply they are nested, and how many conditions there are
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
        """True if a document with this metadata passes."""
        if self.operator == "not":
            return not self.parts[0].matches(metadata)
        results = (part.matches(metadata) for part in self.parts)
        return all(results) if self.operator == "and" else any(results)


Filter = Union[Condition, FilterGroup]


def filter_text(filter: Filter) -> str:
    """A filter as people write it; `parse_filter` reads it again."""
    if isinstance(filter, FilterGroup):
        parts = [
            f"({filter_text(part)})" if isinstance(part, FilterGroup) else filter_text(part) for part in filter.parts
        ]
        return f"not {parts[0]}" if filter.operator == "not" else f" {filter.operator} ".join(parts)
    if filter.operator == "exists":
        return f"{filter.key} exists" if filter.value else f"not {filter.key} exists"
    sign = next((sign for sign, name in _SYMBOLS.items() if name == filter.operator and sign != "=="), "")
    items = [_written(item) for item in filter.value] if isinstance(filter.value, tuple) else []
    value = f"[{', '.join(items)}]" if isinstance(filter.value, tuple) else _written(filter.value)
    return f"{filter.key}{sign or f' {filter.operator} '}{value}"


def filter_mapping(filter: Filter) -> dict[str, Any]:
    """Return a filter as JSON values that `parse_filter` reads; refuse keys that no mapping can name (`and`)."""
    if isinstance(filter, FilterGroup):
        parts = [filter_mapping(part) for part in filter.parts]
        return {filter.operator: parts[0] if filter.operator == "not" else parts}
    if filter.key in JOINS or filter.key.startswith("$"):
        raise ConfigurationError(
            f"A stored filter cannot name the key {shortened(filter.key)}; pass it to each object."
        )
    value = list(filter.value) if isinstance(filter.value, tuple) else filter.value
    return {filter.key: {filter.operator: value}}


def _written(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value, default=str)
    is_word = _UNQUOTED_VALUE.fullmatch(value) and not _NUMERIC_VALUE.fullmatch(value) and value not in _CONSTANTS
    return value if is_word else json.dumps(value, ensure_ascii=False)


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
    """True if a filter uses a key that may stand for a field."""
    return any(condition.key in FIELDS for condition in conditions(filter))


def filtered_title(of_document: str, of_passage: str) -> str:
    """The title that filters compare: the document's, if it has one, for all of its passages."""
    return of_document or of_passage


def passes(filter: Filter, passages: Iterable[tuple[Mapping[str, Any], str, str, str]]) -> Iterator[bool]:
    """True if each passage passes a filter."""
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


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words


_END = _Token("end", "", 0, 0)


def read_text(text: str) -> Mapping[str, Any]:
    """A filter in one line, as the mapping that means the same. Linear in the length of the text."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._scan()
        self._token = next(self._tokens)
        self._conditions = 0

    def read(self) -> Mapping[str, Any]:
        if self._token is _END:
            raise ConfigurationError("The filter is empty. To search everything pass no filter at all (None).")
        result = self._comma_list(0)
        if self._token is not _END:
            raise self._fault("expected 'and', 'or' or a comma")
        return result

    def _scan(self) -> Iterator[_Token]:
        position = 0
        while position < len(self._text):
            match = _FILTER_TOKEN.match(self._text, position)
            if match is None:
                sign = self._text[position]
                reason = "the quote is not closed" if sign in "\"'" else f"{sign!r} stands alone; put it in quotes"
                raise _fault(self._text, reason, position)
            if match.lastgroup != "space":
                yield _Token(str(match.lastgroup), match.group(), position, match.end())
            position = match.end()
        while True:
            yield _END

    # --- joining ----------------------------------------------------------------------------------------------------

    def _comma_list(self, depth: int) -> Mapping[str, Any]:
        parts = [self._either(depth)]
        while self._take("mark", ","):
            parts.append(self._either(depth))
        if len(parts) == 1:
            return parts[0][0]
        if any(mixed for _, mixed in parts):
            raise ConfigurationError("The filter mixes commas with 'or'; put brackets around what belongs together.")
        return {"and": [part for part, _ in parts]}

    def _either(self, depth: int) -> tuple[Mapping[str, Any], bool]:
        parts = [self._all(depth)]
        while self._take_word("or"):
            parts.append(self._all(depth))
        return (parts[0], False) if len(parts) == 1 else ({"or": parts}, True)

    def _all(self, depth: int) -> Mapping[str, Any]:
        parts = [self._term(depth)]
        while self._take_word("and"):
            parts.append(self._term(depth))
        return parts[0] if len(parts) == 1 else {"and": parts}

    def _term(self, depth: int) -> Mapping[str, Any]:
        if depth > DEEPEST:
            raise ConfigurationError(f"The filter is nested too deeply; {DEEPEST} levels are the most.")
        if self._take_word("not"):
            return {"not": self._term(depth + 1)}
        if self._take("mark", "("):
            result = self._comma_list(depth + 1)
            if not self._take("mark", ")"):
                raise self._fault("a bracket is not closed")
            return result
        return self._condition()

    # --- one condition ----------------------------------------------------------------------------------------------

    def _condition(self) -> Mapping[str, Any]:
        self._conditions += 1
        if self._conditions > MOST_CONDITIONS:
            raise ConfigurationError(
                f"The filter has more than {MOST_CONDITIONS} conditions. To compare one key with many values use 'in'."
            )
        key = self._key()
        token = self._token
        if token.kind == "sign":
            self._advance()
            listed = token.text in ("=", "==") and self._token.text == "[" and self._token.kind == "mark"
            return {key: self._list() if listed else {token.text: self._value()}}
        if self._take_word("exists"):
            return {key: {"exists": True}}
        negated = self._take_word("not")
        operator = self._token
        if operator.is_word(*_WORD_OPERATORS) and not (negated and operator.text.lower() != "in"):
            self._advance()
            name = "nin" if negated else operator.text.lower()
            return {key: {name: self._list() if name in ("in", "nin") else self._value()}}
        raise self._fault(f"expected a comparison after {shortened(key)}: =, !=, <, <=, >, >=, in, contains, exists")

    def _key(self) -> str:
        token = self._token
        if token.kind not in ("word", "single", "double") or token.is_word("and", "or"):
            raise self._fault("expected a metadata key")
        self._advance()
        key = str(self._unquoted(token)) if token.kind != "word" else token.text
        if key in ("and", "or", "not") or key.startswith("$"):
            raise ConfigurationError(f"A filter in one line cannot name the key {shortened(key)}; use a Condition.")
        return key

    def _list(self) -> list[Any]:
        opening = self._token.text if self._token.kind == "mark" else ""
        if opening not in _CLOSING:
            raise self._fault("expected a list such as [1, 2]")
        self._advance()
        values: list[Any] = []
        while not self._take("mark", _CLOSING[opening]):
            if values and not self._take("mark", ","):
                raise self._fault("expected a comma or the end of the list")
            values.append(self._value(listed=True))
        return values

    def _value(self, *, listed: bool = False) -> Any:
        token = self._token
        if token.kind in ("single", "double"):
            self._advance()
            return self._unquoted(token)
        last = None
        while self._token.kind == "word" and (listed or not self._token.is_word("and", "or")):
            last = self._token
            self._advance()
        if last is None:
            raise self._fault("expected a value; put texts with special characters in quotes")
        return _unquoted(self._text[token.start : last.end])

    def _unquoted(self, token: _Token) -> str:
        if token.kind == "single":
            return token.text[1:-1].replace("''", "'")
        try:
            return str(json.loads(token.text, strict=False))
        except ValueError as error:
            raise self._fault(f"the quoted text cannot be read ({error})") from error

    # --- tokens -----------------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        self._token = next(self._tokens)

    def _take(self, kind: str, text: str) -> bool:
        matches = self._token.kind == kind and self._token.text == text
        if matches:
            self._advance()
        return matches

    def _take_word(self, word: str) -> bool:
        matches = self._token.is_word(word)
        if matches:
            self._advance()
        return matches

    def _fault(self, reason: str) -> ConfigurationError:
        return _fault(self._text, reason, len(self._text) if self._token is _END else self._token.start)


def _fault(text: str, reason: str, position: int) -> ConfigurationError:
    context = text[max(0, position - 30) : position + 30]
    return ConfigurationError(
        f"Cannot read the filter at character {position + 1} ({context!r}): {reason}. "
        "For example: tenant=a and year>=1990."
    )


def _unquoted(text: str) -> Any:
    """An unquoted value as in JSON or Python, else a text; `007` is a text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _NUMERIC_VALUE.fullmatch(text):
        with suppress(ValueError):
            return json.loads(text)
    return text


def parse_filter(value: Filter | Mapping[str, Any] | str | None) -> Filter | None:
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
    """
    return None if value is None else _parse(value, 0)


def both(one: Filter | None, other: Filter | None) -> Filter | None:
    """Join two filters with `and`."""
    parts = [part for part in (one, other) if part is not None]
    return _join("and", parts) if parts else None


def condition(key: str, operator: str, operand: Any) -> Filter:
    """A condition under any name of its operator: those of `Condition`, `$gte`, `>=`, `any`, `all`, `is_empty`."""
    name = operator.removeprefix("$") if isinstance(operator, str) else operator
    if name in ("any", "all"):
        return _join("or" if name == "any" else "and", [Condition(key, "contains", i) for i in _items(key, operand)])
    if name == "is_empty":
        there = [Condition(key, "exists", value=True), *(Condition(key, "ne", none) for none in (None, "", ()))]
        if not isinstance(operand, bool):
            raise ConfigurationError(f"'is_empty' for {shortened(key)} takes true or false, not {shortened(operand)}.")
        return FilterGroup("not", (_join("and", there),)) if operand else _join("and", there)
    return Condition(key, _SYMBOLS.get(name, name) if isinstance(name, str) else name, operand)


def _parse(value: Any, depth: int) -> Filter:
    check_depth(depth)
    if isinstance(value, (Condition, FilterGroup)):
        return value
    if isinstance(value, str):
        return _parse_mapping(_loaded(value) if value.lstrip()[:1] == "{" else read_text(value), depth)
    if isinstance(value, Mapping):
        return _parse_mapping(value, depth)
    msg = f"A filter is a mapping, a string or a Filter, not {type(value).__name__}; for example {{'tenant': 'a'}}."
    raise ConfigurationError(msg)


def _parse_mapping(mapping: Mapping[Any, Any], depth: int) -> Filter:
    if not mapping:
        raise ConfigurationError(_EMPTY)
    parts: list[Filter] = []
    for key, value in mapping.items():
        name = key[1:] if isinstance(key, str) and key.startswith("$") else key
        if name in JOINS:
            parts.append(_parse_group(name, value, depth))
        elif name != key:
            raise ConfigurationError(f"{shortened(key)} does not join filters; use $and, $or, $not or a metadata key.")
        else:
            parts.extend(_parse_conditions(key, value))
    return _join("and", parts)


def _parse_conditions(key: Any, value: Any) -> list[Filter]:
    if isinstance(value, (list, tuple, set, frozenset)):
        return [Condition(key, "in", value)]
    if not isinstance(value, Mapping):
        return [Condition(key, "eq", value)]
    if not value:
        raise ConfigurationError(f"The filter has no condition for {shortened(key)}: {{}} is empty. Give it a value.")
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


def _join(operator: str, parts: Sequence[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else FilterGroup(operator, tuple(parts))


def _loaded(text: str) -> Mapping[str, Any]:
    """Parse JSON strictly: no duplicate keys, no NaN."""
    try:
        loaded = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError as error:
        raise ConfigurationError("The filter is nested too deeply.") from error
    except ValueError as error:
        raise ConfigurationError(f"The filter is not valid JSON ({error}): {shortened(text)}") from error
    return dict(loaded)


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ConfigurationError(f"The filter names {shortened(key)} twice; join the two with 'and' or 'or'.")
        result[key] = value
    return result


def _no_constant(name: str) -> Any:
    raise ConfigurationError(f"{name} in a filter equals no number.")
