"""Running heads, page numbers and repeated heads of tables, which a PDF has on many pages."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise, takewhile
from statistics import median

from sire_core.files.pdf_lines import Line

_MAX_EDGE_LINES = 3
_WIDE_GAP = 1.6  # Space between a running line and the text, as a multiple of that between the lines of the page
_MIN_GAP = 1.0  # Points: lines that are not further apart stand on one level
_NEAR = 2  # Pages between which a running line repeats: left and right ones may have their own
_PAGE_NUMBER = re.compile(
    r"\W*(?:(?:page|seite|p\.)\s*)?(?:\d{1,4}|[ivxlc]{1,6})(?:\s*(?:/|of|von)\s*\d{1,4})?[^\w.)]*", re.IGNORECASE
)
"""Not `3.`, which begins an item of a list."""
_NUMBER_AT_EDGE = re.compile(
    r"^(?:(?:page|seite|p\.)\s*)?(\d{1,4})(?:\s*(?:/|of|von)\s*\d{1,4})?(?=\s)"
    r"|(?<=\s)(?:(?:page|seite|p\.)\s*)?(\d{1,4})(?:\s*(?:/|of|von)\s*\d{1,4})?$",
    re.IGNORECASE,
)
_HEADING_NUMBER = re.compile(
    r"^(?:(?:chapter|part|section|appendix|kapitel|teil|anhang|chapitre|partie|annexe)\s+)?(?:\d[\d.]{0,9}|[ivx]{1,5}|[a-z])[.:]?\s+"
)

Slot = tuple[int, float]  # Height on the page and size of the letters of a line


def drop_running_lines(pages: Sequence[list[Line]], body: float) -> None:
    """Mark running lines; take out page numbers, and those whose words stand elsewhere.

    They have the same height on their pages, where most repeat from page to page or count the pages. `body` is the size
    of the text's letters: in larger ones stand the titles of chapters, of which each page may have one.
    """
    edges, outermost = [_edges(page) for page in pages], [_outermost(page) for page in pages]
    counting = _counting(pages, body)
    at_edge = {id(line) for lines in (*edges, *outermost) for line in lines}
    in_text = {_place(line) for page in pages for line in page if id(line) not in at_edge}  # such as a table's head
    slots: defaultdict[Slot, list[tuple[int, str]]] = defaultdict(list)
    for number, lines in enumerate(edges):
        lines[:] = [line for line in lines if _place(line) not in in_text or id(line) in counting]
        repeated = [*lines, *(line for line in outermost[number] if id(line) in counting)]
        names_by_slot = {_slot(line): "" if id(line) in counting else _name(line.text) for line in repeated}
        for slot, name in names_by_slot.items():
            slots[slot].append((number, name))
    running_slots = {slot for slot, names in slots.items() if _repeats(names)}
    for lines in (*edges, *outermost):
        for line in lines:
            line.running = _slot(line) in running_slots
    if not running_slots:
        return
    names_in_text = {_name(line.text) for page in pages for line in page if not line.running}
    for page in pages:
        rest = []
        for line in page:
            name = _name(counting.get(id(line), line.text)) if line.running else ""
            if not line.running or (name and name not in names_in_text):
                rest.append(line)
                names_in_text.add(name)
        page[:] = rest


def _edges(page: Sequence[Line]) -> list[Line]:
    """Lines at the top and bottom of a page with more space than usual to the text."""
    ordered = sorted(page, key=lambda line: line.base)
    gaps = [line.low - below.base for below, line in pairwise(ordered)]
    wide = _WIDE_GAP * median([gap for gap in gaps if gap > _MIN_GAP] or [0.0])
    below = next((row + 1 for row, gap in enumerate(gaps[:_MAX_EDGE_LINES]) if gap > wide), 0)
    above = next((row + 1 for row, gap in enumerate(gaps[: -_MAX_EDGE_LINES - 1 : -1]) if gap > wide), 0)
    return ordered[:below] + ordered[max(below, len(ordered) - above) :]


def _counting(pages: Sequence[Sequence[Line]], body: float) -> dict[int, str]:
    """Outermost lines that begin or end with the number of their page, by id, without that number."""
    numbered = [
        (int(match[1] or match[2]) - number, line, match)
        for number, page in enumerate(pages)
        for line in _outermost(page)
        for match in _NUMBER_AT_EDGE.finditer(line.text if line.size <= body else "")
    ]
    offset = next((offset for offset, _ in Counter(offset for offset, *_ in numbered).most_common(1)), 0)
    return {
        id(line): f"{line.text[: match.start()]}{line.text[match.end() :]}"
        for other, line, match in numbered
        if other == offset
    }


def _outermost(page: Sequence[Line]) -> list[Line]:
    return [pick(page, key=lambda line: line.base) for pick in (min, max)] if page else []


def _slot(line: Line) -> Slot:
    return round(line.base), line.size


def _place(line: Line) -> tuple[str, float, int]:
    return line.text, line.size, round(line.left)


def _name(text: str) -> str:
    """Words of a heading, or of a line that repeats it, without the number of a chapter; empty for that of a page."""
    text = text.strip()
    return "" if _PAGE_NUMBER.fullmatch(text) else _HEADING_NUMBER.sub("", text.casefold(), count=1)


def _repeats(names: Sequence[tuple[int, str]]) -> bool:
    """True if most lines of a slot have the name of one on a page nearby."""
    near = [names[max(0, number - _NEAR) : number + _NEAR + 1] for number in range(len(names))]
    repeated = sum(
        any(name == other and 0 < abs(page - other_page) <= _NEAR for other_page, other in others)
        for (page, name), others in zip(names, near, strict=True)
    )
    return repeated > 1 and 2 * repeated >= len(names)


def drop_repeated_heads(pages: Sequence[list[Line]]) -> None:
    """Take out the head of a table that goes on from the page before: rows at the top that are there, too."""
    for before, page in pairwise(pages):
        rows = [line for line in page if not line.running]
        above = [(line.text, line.size, line.left) for line in before]
        for start, first in enumerate(rows[:1] and above):
            if first != (rows[0].text, rows[0].size, rows[0].left):
                continue
            same = list(
                takewhile(
                    lambda pair: pair[0] == (pair[1].text, pair[1].size, pair[1].left),
                    zip(above[start:], rows, strict=False),
                )
            )
            if any(len(line.cells) > 1 for _, line in same) and len(same) < len(
                rows
            ):  # else it is a form, filled again
                gone = {id(line) for _, line in same}
                page[:] = [line for line in page if id(line) not in gone]
                break
