"""Titles in short: without the name of the site, which most titles of web pages have, and without repetitions."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

import numpy as np

from sire_core.documents.heading_paths import is_path, joined_path, title_path
from sire_core.explore.highlight import first_words
from sire_core.search.explanation import text_below_title
from sire_core.search.snapshot import SearchSnapshot
from sire_core.text.pluralize import shorten
from sire_core.types import Unit

_MIN_SITE_DOCUMENTS = 4  # Documents below which nothing of a title is the name of a site
_SEPARATOR = re.compile(r"\s(?:[-\u2013\u2014|\u00b7\u2022\u00bb]|::)\s")
_SAMPLED_DOCUMENTS = 1000  # Documents that are read for what their first headings add to the title
_CONTINUED = re.compile(r"[\s:,]")  # Where the words of a title end in a heading that begins with them
_EXPLAINED = re.compile(r"\s*[:(|\u2013\u2014]|\s-")
"""Where a name ends in a title that goes on to say what it is: `ntpd - Network Time Protocol daemon`."""
_BOOK = re.compile(rf":\s|{_SEPARATOR.pattern}")  # Separators between the name of a book and that of its part
_STRAIGHT_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_TITLE_MARKS = " \t:.,;|-\u2013\u2014\u00b6"


def shared_affixes(titles: Sequence[str], share: float = 0.5) -> tuple[str, ...]:
    """Beginnings and endings that a part of some titles share, with their separator; the longest first."""
    counts: Counter[str] = Counter()
    for title in titles:
        for separator in _SEPARATOR.finditer(title):
            counts[title[: separator.end()]] += 1
            counts[title[separator.start() :]] += 1
    shared = [affix for affix, number in counts.items() if number >= max(_MIN_SITE_DOCUMENTS, len(titles) * share)]
    return tuple(sorted(shared, key=lambda affix: (-len(affix), affix)))


def without_affixes(title: str, affixes: Iterable[str]) -> str:
    """Cut what titles share from a title, which headings may follow; what would be empty stays whole."""
    name, *headings = title_path(title)
    for affix in affixes:
        name = (name.removesuffix(affix) if affix[0].isspace() else name.removeprefix(affix)).strip() or name
    return joined_path([name, *headings])


def without_repeats(title: str, endings: Collection[str] = ()) -> str:
    """Leave out headings that repeat what stands before them, and what a heading begins with and goes on from.

    In `git-am(1) > git-am(1) Manual Page > NAME`, `endings` are what the headings of many documents add to the title,
    such as `Manual Page`; they are left out, too.
    """
    parts: list[str] = []
    for name in title_path(title):
        before = parts[-1] if parts else ""
        plain = {_folded(part.strip(_TITLE_MARKS)) for other in parts for part in (other, _BOOK.split(other)[-1])}
        if _folded(name.strip(_TITLE_MARKS)) in plain or _rest(before, name, _EXPLAINED):
            continue
        ending = _rest(name, before, _CONTINUED)
        if not ending:
            parts.append(name)
        elif ending not in endings:
            parts[-1] = name
    return joined_path(parts)


def _folded(name: str) -> str:
    """A name as it is compared: without capitals and forms of quotation marks."""
    return name.translate(_STRAIGHT_QUOTES).casefold()


def _rest(name: str, beginning: str, boundary: re.Pattern[str]) -> str:
    """The rest of a name after a beginning; empty if it does not begin with it, up to a boundary."""
    rest = name[len(beginning) :]
    is_longer = beginning and boundary.match(rest) and _folded(name).startswith(_folded(beginning))
    return rest.strip(_TITLE_MARKS) if is_longer else ""


def short_title(snapshot: SearchSnapshot, title: str) -> str:
    """A title without what at least half of the titles of a folder share, or of all documents, and said once."""
    view = snapshot.view
    title = without_affixes(title, _affixes(snapshot))
    if not is_path(title):
        return title
    return without_repeats(title, view.derived("explore title endings", lambda: _endings(snapshot)))


def compact_title(snapshot: SearchSnapshot, title: str, size: int) -> str:
    """A title in about `size` letters: without the book that several documents belong to, if it is longer than that.

    If that is not enough, only the last of its headings is kept, and nothing after a dash in the title.
    """
    title = short_title(snapshot, title)
    if len(title) > size:
        title = without_affixes(title, _affixes(snapshot, 0.0))
    if len(title) <= size:
        return title
    name, *headings = title_path(title)
    room = max(size - len(joined_path(["", *headings[-1:]])), size // 2) if headings else size
    name = name if len(name) <= room else shorten(_SEPARATOR.split(name)[0], room)
    rest = size - len(joined_path(("", ""))) - min(len(name), room)
    return joined_path([name, *(shorten(last, rest) for last in headings[-1:])])


def compact_titles(snapshot: SearchSnapshot, titles: Sequence[str], size: int) -> list[str]:
    """Titles in about `size` letters; where different ones become equal, without the words that they begin with."""
    short = [compact_title(snapshot, title, size) for title in titles]
    alike: dict[str, set[str]] = {}
    for title, label in zip(titles, short, strict=True):
        alike.setdefault(label, set()).add(short_title(snapshot, title))
    shown = []
    for title, label in zip(titles, short, strict=True):
        columns = zip(*(other.split(" ") for other in alike[label]), strict=False)
        shared = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
        rest = short_title(snapshot, title).split(" ")[shared:]
        ending = " ".join(rest).removeprefix(joined_path(("", "")).lstrip())
        shown.append(compact_title(snapshot, f"... {ending}", size) if ending else label)
    return shown


def document_titles(snapshot: SearchSnapshot) -> Sequence[str]:
    """Titles of all documents in short, by number; empty where a document has none. Made once per snapshot."""
    pool = snapshot.view.pool
    titles: list[str] = snapshot.view.derived(
        "explore document titles", lambda: [short_title(snapshot, title) for title in json.loads(pool.titles)]
    )
    return titles


def with_short_title(snapshot: SearchSnapshot, unit: Unit) -> Unit:
    """The unit with its title in short, or with its first words for one."""
    return replace(unit, title=short_title(snapshot, unit.title) or first_words(unit.text))


def told_apart(named: Sequence[tuple[str, str]]) -> list[str]:
    """Labels of texts: their titles, and their first words where several share one or have none; no two are equal."""
    counts = Counter(title for title, _ in named)
    labels = [
        f"{title}: {first_words(text)}" if title and counts[title] > 1 else title or first_words(text)
        for title, text in named
    ]
    repeats = Counter[str]()
    for number, label in enumerate(labels):
        repeats[label] += 1
        labels[number] = f"{label} ({repeats[label]})" if repeats[label] > 1 else label
    return labels


def distinct_titles(snapshot: SearchSnapshot, units: Iterable[Unit]) -> list[str]:
    """Short titles of units, told apart."""
    return told_apart([(short_title(snapshot, unit.title), text_below_title(unit)) for unit in units])


def _affixes(snapshot: SearchSnapshot, share: float = 0.5) -> tuple[str, ...]:
    """Affixes that a part of the titles of a folder share, or of all documents; read once per snapshot."""

    def read() -> tuple[str, ...]:
        pool = snapshot.view.pool
        titles: list[str] = json.loads(pool.titles)
        folders: dict[str, list[str]] = {}
        for name, other in zip(pool.document_ids(), titles, strict=True):
            folders.setdefault(name.partition("/")[0] if "/" in name else "", []).append(other)
        affixes = {affix for some in (titles, *folders.values()) for affix in shared_affixes(some, share)}
        return tuple(sorted(affixes, key=lambda affix: (-len(affix), affix)))

    affixes: tuple[str, ...] = snapshot.view.derived(f"explore title affixes {share}", read)
    return affixes


def _endings(snapshot: SearchSnapshot) -> frozenset[str]:
    """Endings that the first headings of at least half of the documents add to titles that they begin with."""
    view = snapshot.view
    affixes = _affixes(snapshot)
    _, first = np.unique(view.chunk_documents[view.pool.indices[view.pool.indptr[:-1]]], return_index=True)
    counts: Counter[str] = Counter()
    for unit in view.units(np.sort(first)[:: max(1, len(first) // _SAMPLED_DOCUMENTS)]):
        name, *headings = title_path(without_affixes(unit.title, affixes))
        ending = _rest("".join(headings[:1]), name, _CONTINUED)
        counts.update([ending] if ending else [])
    return frozenset(
        ending for ending, number in counts.items() if number >= max(_MIN_SITE_DOCUMENTS, counts.total() / 2)
    )
