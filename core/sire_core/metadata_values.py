"""Metadata values that JSON does not have: how they are stored, compared by filters, and given back.

Dates and times are stored as ISO texts (with a time zone: in UTC), so that ranges compare rightly; paths and UUIDs as
texts; decimals as numbers; sets as sorted lists; enumerations as their values; numpy's scalars and arrays as Python's
numbers and lists; NaN and the infinities as null; pydantic models and dataclasses as mappings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from datetime import date, datetime, time, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import Any
from uuid import UUID

TYPES_KEY = "sire_types"  # Metadata key under which adapters store what `lost_types` says, as JSON

_TYPE_TAG = "__type__"


def plain_value(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or type(value) in (str, bool, int):
        return value
    for kinds, convert in _FORMS:
        if isinstance(value, kinds):
            return convert(value)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return plain_value(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return plain_value(asdict(value))
    if not isinstance(value, type) and callable(dump := getattr(value, "model_dump", None)):
        return plain_value(dump())
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _plain_set(value: Any) -> list[Any]:
    return sorted(map(plain_value, value), key=lambda item: (type(item).__name__, _dumped(item)))


def _plain_datetime(value: datetime) -> str:
    return (value if value.tzinfo is None else value.astimezone(timezone.utc)).isoformat()


def _plain_decimal(value: Decimal) -> Any:
    whole = value.is_finite() and value == value.to_integral_value()
    return int(value) if whole else plain_value(float(value))


_FORMS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    (Enum, lambda value: plain_value(value.value)),
    (float, lambda value: float(value) if math.isfinite(value) else None),
    (str, str.__str__),
    (int, int),
    (Mapping, lambda value: {_key(key): plain_value(item) for key, item in value.items()}),
    ((list, tuple), lambda value: [plain_value(item) for item in value]),
    ((set, frozenset), _plain_set),
    (datetime, _plain_datetime),
    ((date, time), lambda value: value.isoformat()),
    ((PurePath, UUID), str),
    (Decimal, _plain_decimal),
)
"""Types with their forms in JSON; the first that fits counts."""


def _key(key: object) -> str:
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, (str, bool, int, float)) or key is None:
        return key if isinstance(key, str) else json.dumps(key)
    raise TypeError(f"keys must be texts, not {type(key).__name__}")


def _dumped(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:+030.12f}" if is_number(value) else json.dumps(value)


def is_number(value: object) -> bool:
    """True for numbers; truth values are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "path": Path,
    "uuid": UUID,
    "decimal": Decimal,
    "float": float,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}
"""Functions that restore a value from the content beside its tag."""

_WRITERS: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (datetime, "datetime", datetime.isoformat),
    (date, "date", date.isoformat),
    (time, "time", time.isoformat),
    (PurePath, "path", str),
    (UUID, "uuid", str),
    (Decimal, "decimal", str),
    (tuple, "tuple", lambda value: [_tagged(item) for item in value]),
    (frozenset, "frozenset", lambda value: [_tagged(item) for item in sorted(value, key=repr)]),
    (set, "set", lambda value: [_tagged(item) for item in sorted(value, key=repr)]),
)


def flat_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata for stores that take single values only: lists and mappings as JSON, without keys that hold null."""
    return {
        key: json.dumps(value, ensure_ascii=False) if isinstance(value, (list, tuple, Mapping)) else value
        for key, value in metadata.items()
        if value is not None
    }


def shown_value(value: Any) -> str:
    """A value for people to read: `water, hardware` for a list, `year: 1893` for a mapping."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {shown_value(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(shown_value, value))
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def lost_types(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The values, with tags, that would not come back from `plain_value` with their types; by key."""
    tagged = {str(key): _tagged(value) for key, value in metadata.items()}
    return {key: value for key, value in tagged.items() if _TYPE_TAG in json.dumps(value)}


def _tagged(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_key(key): _tagged(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_tagged(item) for item in value]
    for kind, name, write in _WRITERS:
        if isinstance(value, kind) and not isinstance(value, Enum):
            return {_TYPE_TAG: name, "value": write(value)}
    odd = isinstance(value, float) and not isinstance(value, Enum) and not math.isfinite(value)
    return {_TYPE_TAG: "float", "value": str(float(value))} if odd else plain_value(value)


def with_types(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata with a key for the types that storing loses; the same where it loses none."""
    types = lost_types(metadata)
    return {**metadata, TYPES_KEY: json.dumps(types)} if types else dict(metadata)


def restored(metadata: Mapping[str, Any], types: str | None = None) -> dict[str, Any]:
    """Stored metadata with the values that it was given with, without the key for their types."""
    noted = metadata.get(TYPES_KEY) if types is None else types
    tagged = json.loads(noted) if isinstance(noted, str) else {}
    values = {key: value for key, value in metadata.items() if key != TYPES_KEY}
    return {key: _untagged(tagged[key]) if key in tagged else value for key, value in values.items()}


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _TYPE_TAG not in value:
        return {key: _untagged(item) for key, item in value.items()}
    return _READERS[value[_TYPE_TAG]](_untagged(value["value"]))
