"""Kinds of names, as far as they are known: rules that find names in prose know too little of their types.

A model that extracted the records says what a name is; without one, only what can be seen is said: that a name titles
a document, is written as code, or is a number or a date.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

NAME_KINDS = {
    "person": "person",
    "organization": "organization",
    "place": "place",
    "title": "title of a document",
    "code": "code",
    "number": "number or date",
    "name": "other name",
}
"""Words for every kind, in the order of a legend."""

MARKS = {
    "person": "M5 0a2.4 2.4 0 1 1 0 4.8a2.4 2.4 0 1 1 0-4.8M.5 10a4.5 4.3 0 0 1 9 0z",
    "organization": "M1 10V2L5 0L9 2V10H6V7H4V10z",
    "place": "M5 0a3.6 3.6 0 0 1 3.6 3.6C8.6 6 5 10 5 10S1.4 6 1.4 3.6A3.6 3.6 0 0 1 5 0z",
    "title": "M1.5 0H6L8.5 2.5V10H1.5z",
    "code": "M3 1.5L4.2 2.6L2.2 5L4.2 7.4L3 8.5L0 5zM7 1.5L5.8 2.6L7.8 5L5.8 7.4L7 8.5L10 5z",
    "number": "M2.3 0H3.8V10H2.3zM6.2 0H7.7V10H6.2zM0 2.3H10V3.8H0zM0 6.2H10V7.7H0z",
    "name": "M5 .3L9.7 5L5 9.7L.3 5z",
}
"""The sign of every kind as a path in a square of 10: no colour alone tells a kind."""

_SPACY_KINDS = {
    **dict.fromkeys(("person", "people", "human", "per", "individual", "character"), "person"),
    **dict.fromkeys(
        "organization organisation org company institution agency team band party government university".split(),
        "organization",
    ),
    **dict.fromkeys("location place loc gpe city country region state town village building".split(), "place"),
    **dict.fromkeys("date time year number quantity money percent cardinal ordinal measurement".split(), "number"),
    **dict.fromkeys("code function class method variable parameter option file command".split(), "code"),
}
_NAME_CHARACTER = r"[A-Za-z0-9]"
_CODE_NAME = re.compile(
    rf"--?[a-z][\w-]*|[$@][A-Za-z]\w*|[\w.:-]+\(.*\)|\S*(?:{_NAME_CHARACTER}_|_{_NAME_CHARACTER}|::|->|\$\{{|\{{\{{)\S*|<[^<>]+>"
    rf"|(?:\.{{0,2}}|~)/\S+|{_NAME_CHARACTER}+(?:/\S+){{2,}}|[a-z]{{2,}}[0-9]*[A-Z][a-z]\w*"
    rf"|[\w/-]*[\w-]{{2}}\.(?:[a-z]\w+\.)*[a-z]\w+(?:\(\))?|\.[a-z]\w+"
)
"""An option, variable, call, path, camel-case or dotted name; names of products (`iPhone`, `HTTP/2`) are none."""
_DATE_WORD = (
    "january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug"
    "|sept?|oct|nov|dec|monday|tuesday|wednesday|thursday|friday|saturday|sunday|bce?|ad|am|pm|century|percent|million"
    "|billion|thousand|of|the"
)
_QUANTITY = re.compile(
    rf"(?=.*\d)(?:(?:[$\u20ac\u00a3]?v?\d[\d.,:/%\u2013-]*(?![\d.,:/%\u2013-])(?:st|nd|rd|th|s|%)?|{_DATE_WORD}|[%-])[\s,.]*)+",
    re.IGNORECASE,
)
_MAX_NAME_LETTERS = 80


class NameKind(NamedTuple):
    """The kind of a name, a key of `NAME_KINDS`, and how it is known."""

    kind: str
    known_by: str


def kind_of_name(
    name: str, *, is_title: bool = False, texts: Sequence[str] = (), types: Sequence[str] = ()
) -> NameKind:
    """Return the kind of a name, by types that a model gave to it, and by passages that use it.

    `types` are most trusted first among equally frequent ones; what most of `texts` mark as code is code.
    """
    if types:
        commonest = Counter(types).most_common(1)[0][0]
        known_by = f"the model that read the passages calls it {commonest}"
        return NameKind(_SPACY_KINDS.get(commonest.strip().lower(), "title" if is_title else "name"), known_by)
    if len(name) <= _MAX_NAME_LETTERS and _CODE_NAME.fullmatch(name):
        return NameKind("code", "by its form")
    using = [text for text in texts if name in text]
    if using and 2 * sum(f"`{name}`" in text for text in using) >= len(using):
        return NameKind("code", "most passages mark it as code")
    if is_title:
        return NameKind("title", "it titles a document or section")
    if len(name) <= _MAX_NAME_LETTERS and _QUANTITY.fullmatch(name):
        return NameKind("number", "by its form")
    return NameKind("name", "")
