"""Days that a text names, in one form: a question says `21 February`, a table `2024-02-21`, a roster from when to when.

A day is written `2024-02-21`, and `02-21` where its year is not told or shall not matter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from typing import Literal

from sire_core.text.languages import ENGLISH, Language
from sire_core.text.lexicon import MONTHS

_MAX_SPAN = 45  # Days from the first to the last of a line with two, such as a week of a roster
_LEAP_YEAR = 2000  # Has every day
_PARTS = ("year", "month", "day")
_CONTEXTS: tuple[Literal["format", "stand-alone"], ...] = ("format", "stand-alone")
_DAY = re.compile(r"(?:\d{4}-)?\d\d-\d\d")
_IN_DIGITS = re.compile(
    r"(?<![\d.-])(?:(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?![\d-])"
    r"|(?P<day_of>\d{1,2})\.(?P<month_of>\d{1,2})\.(?P<year_of>\d{4})(?!\d)"
    r"|(?:(?P<east_year>\d{4})[\u5e74\ub144] ?)?(?P<east_month>\d{1,2})[\u6708\uc6d4] ?"
    r"(?P<east_day>\d{1,2})[\u65e5\uc77c])"
)
_NUMBER = r"\d{1,2})(?:st|nd|rd|th|\.|er|\u00ba)?"
_NAME, _YEAR = r"(?P<month>[^\s\d.,]{3,12})", r"(?:[.,]{0,2}(?: de| of)? (?P<year>\d{4})(?!\d))?"
_FIRST = rf"(?:(?P<first>{_NUMBER}(?: ?[-\u2013] ?| [^\W\d]{{1,5}} ))?"  # Of `20 to 21 April`
_DAY_FIRST = re.compile(rf"(?<![\d.:]){_FIRST}(?P<day>{_NUMBER} (?:of |de )?{_NAME}{_YEAR}")
_MONTH_FIRST = re.compile(rf"(?<!\w){_NAME}\.? (?P<day>{_NUMBER}(?![\d:]){_YEAR}")


def is_day(word: str) -> bool:
    """True for a day as `days_in` writes it."""
    return _DAY.fullmatch(word) is not None


def days_in(text: str, spoken: Language | None, words: Collection[str] = ()) -> frozenset[str]:
    """Days that a text names, each with its year, if that is told, and without.

    Args:
        text: The text. A line with two days not far apart names all between, too.
        spoken: Its language; None for English.
        words: Words of the text where they are known, which is faster.
    """
    months = _months(ENGLISH if spoken is None or spoken.is_english else spoken.code)
    is_written = not words or not months.keys().isdisjoint(words)
    in_digits = "-0" in text or "-1" in text or ".20" in text or ".19" in text or "\u6708" in text or "\uc6d4" in text
    if not (is_written or in_digits):
        return frozenset()
    days: set[str] = set()
    for line in text.splitlines():
        named = [*_in_digits(line), *(_written(line, months) if is_written else ())]
        of_years = {day for day, has_year in named if has_year}
        if len(of_years) == 2 and (max(of_years) - min(of_years)).days <= _MAX_SPAN:
            named += [(day, True) for day in _between(min(of_years), max(of_years))]
        days.update(f"{day:%m-%d}" for day, _ in named)
        days.update(day.isoformat() for day, has_year in named if has_year)
    return frozenset(days)


def _in_digits(line: str) -> Iterator[tuple[date, bool]]:
    for match in _IN_DIGITS.finditer(line):
        year, month, day = (match[part] or match[f"{part}_of"] or match[f"east_{part}"] for part in _PARTS)
        yield from _day(year, int(month), day)


def _written(line: str, months: Mapping[str, int]) -> Iterator[tuple[date, bool]]:
    for match in _DAY_FIRST.finditer(line):
        month = months.get(match["month"], 0)
        last = list(_day(match["year"], month, match["day"]))
        yield from last
        for first, _ in _day(match["year"], month, match["first"] or ""):
            yield from ((day, has_year) for end, has_year in last for day in _between(first, end))
    for match in _MONTH_FIRST.finditer(line):
        yield from _day(match["year"], months.get(match["month"], 0), match["day"])


def _day(year: str | None, month: int, day: str) -> Iterator[tuple[date, bool]]:
    """The day and whether its year is told, unless the calendar lacks it."""
    try:
        yield date(int(year or _LEAP_YEAR), month, int(day)), bool(year)
    except ValueError:
        return


def _between(first: date, last: date) -> Iterator[date]:
    return (first + timedelta(days) for days in range((last - first).days))


@cache
def _months(code: str) -> Mapping[str, int]:
    """Numbers of the months by their names, long and short, as texts of a language write them; "may" is no month."""
    if code == ENGLISH:
        names = [(name, number) for number, name in enumerate(MONTHS, 1)]
        names += [(name[:3], number) for name, number in names] + [("sept", 9)]
    else:
        from babel.dates import get_month_names

        forms = [get_month_names(width, context, code) for width in ("wide", "abbreviated") for context in _CONTEXTS]
        names = [(name.rstrip("."), number) for form in forms for number, name in form.items()]
    forms_of = ((form, number) for name, number in names for form in (name.lower(), name.title(), name.upper()))
    return {form: number for form, number in forms_of if (form, code) != ("may", ENGLISH)}
