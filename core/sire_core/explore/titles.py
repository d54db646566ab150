"""Titles in short: without the name of the site, which most titles of web pages begin or end with."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sire_core.search.snapshot import SearchSnapshot

_FEW = 4
"""Documents below which nothing of a title is the name of a site."""
_SEPARATOR = re.compile(r"\s(?:[-\u2013\u2014|\u00b7\u2022\u00bb]|::)\s")
_HEADING = " > "
"""Stands between the title of a document and the headings of a passage."""


def shared_affixes(titles: Sequence[str]) -> tuple[str, ...]:
    """Beginnings and endings that at least half of some titles share, with their separator; the longest first."""
    counts: Counter[str] = Counter()
    for title in titles:
        for found in _SEPARATOR.finditer(title):
            counts[title[: found.end()]] += 1
            counts[title[found.start() :]] += 1
    shared = [affix for affix, number in counts.items() if number >= max(_FEW, len(titles) / 2)]
    return tuple(sorted(shared, key=lambda affix: (-len(affix), affix)))


def without_affixes(title: str, affixes: Iterable[str]) -> str:
    """Cut what titles share from a title, which headings may follow; what would be empty stays whole."""
    name, mark, headings = title.partition(_HEADING)
    for affix in affixes:
        name = (name.removesuffix(affix) if affix[0].isspace() else name.removeprefix(affix)).strip() or name
    return f"{name}{mark}{headings}"


def short_title(snapshot: SearchSnapshot, title: str) -> str:
    """A title without what at least half of the titles of a folder share, or of all documents."""

    def read() -> tuple[str, ...]:
        pool = snapshot.view.pool
        titles: list[str] = json.loads(pool.titles)
        folders: dict[str, list[str]] = {}
        for name, other in zip(pool.document_ids(), titles, strict=True):
            folders.setdefault(name.partition("/")[0] if "/" in name else "", []).append(other)
        affixes = {affix for some in (titles, *folders.values()) for affix in shared_affixes(some)}
        return tuple(sorted(affixes, key=lambda affix: (-len(affix), affix)))

    return without_affixes(title, snapshot.view.derived("explore title affixes", read))
