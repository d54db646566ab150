"""Dated documents: what was known on a day, and which versions a later one supersedes.

The date of a document is the first of `DATE_KEYS` in its metadata, as a date or an ISO text. Versions of a document
have the same value under the first of `SOURCE_KEYS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Union

from sire_core.errors import QueryError
from sire_core.filters import Condition, Filter, FilterGroup, FilterLike, both, parse_filter
from sire_core.metadata_values import plain_value
from sire_core.types import Hit, PathStep

Day = Union[str, date, None]  # A day, such as "2026-01-31"; None for all


DATE_KEYS = ("updated", "modified", "last_modified", "date", "published", "created")
SOURCE_KEYS = ("url", "page_source", "source", "file_path")
SUPERSEDED = "superseded"  # Step of the path of a hit whose source has a later version
_BY = "superseded by "

_ISO = re.compile(r"\d{4}(-\d\d(-\d\d([T ]\d\d.*)?)?)?")


def read_day(as_of: str | date) -> str:
    """Return a date as metadata stores it."""
    text = plain_value(as_of) if isinstance(as_of, date) else as_of
    if not isinstance(text, str) or not _ISO.fullmatch(text) or not _is_day(text):
        raise QueryError(f'as_of is a date such as "2026-01-31", not {as_of!r}.')
    return text


def _is_day(text: str) -> bool:
    """True if the calendar has the day (month, year) that an ISO text begins with."""
    try:
        date.fromisoformat(f"{text[:10]}-01-01"[:10])
    except ValueError:
        return False
    return True


def filter_as_of(filter: FilterLike, as_of: Day) -> tuple[Filter | None, str]:
    """A filter that also leaves out documents later than a day, and that day; empty for none."""
    where = parse_filter(filter)
    if as_of is None:
        return where, ""
    day = read_day(as_of)
    return both(where, known_on(day)), day


def known_on(day: str, keys: Sequence[str] = DATE_KEYS) -> Filter:
    """Documents that are not later than a day (month, year), and those without a date."""
    key, *others = keys
    later = Condition(key, "gt", day + "~")  # behind every time of that day
    without: Filter = Condition(key, "exists", value=False)
    if others:
        without = FilterGroup("and", (without, known_on(day, others)))
    return FilterGroup(
        "or", (without, FilterGroup("and", (Condition(key, "exists", value=True), FilterGroup("not", (later,)))))
    )


def latest_versions(metadata: Iterable[Mapping[str, Any]]) -> dict[Any, str]:
    """The latest date of every source."""
    latest: dict[Any, str] = {}
    for values in metadata:
        source, day = version(values)
        if source is not None and day > latest.get(source, ""):
            latest[source] = day
    return latest


def version(metadata: Mapping[str, Any]) -> tuple[str | None, str]:
    """The source and the date of a document; None and an empty text if it has none."""
    source = next((metadata[key] for key in SOURCE_KEYS if isinstance(metadata.get(key), str)), None)
    day = next((metadata[key] for key in DATE_KEYS if key in metadata), "")
    return source, day if isinstance(day, str) else ""


def superseded_mark(notes: Iterable[str]) -> str:
    """Notice before a superseded text that people or agents read, from the notes of its path; empty for others."""
    return next((f"({note}) " for note in notes if note.startswith(_BY)), "")


def current_first(hits: Iterable[Hit], latest: Mapping[Any, str]) -> list[Hit]:
    """Hits of superseded versions behind all others, marked by a step of their path."""
    current, superseded = [], []
    for hit in hits:
        source, day = version(hit.metadata)
        later = latest.get(source, "") if day else ""
        if later > day:
            step = PathStep(SUPERSEDED, (hit.unit.id,), f"{_BY}{source} of {later}; this one is of {day}")
            superseded.append(replace(hit, path=(*hit.path, step)))
        else:
            current.append(hit)
    lowest = current[-1].score if current else float("inf")
    return [*current, *(replace(hit, score=min(hit.score, lowest)) for hit in superseded)]
