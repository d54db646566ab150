"""Charts and diagrams of Office files as Markdown: titles, and the values as a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from sire_core.documents.markdown_writing import plain_text, table
from sire_core.files.conversion import whole_number
from sire_core.files.office_package import DRAWING, RELATION, parse_part

_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_NEW_CHART = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_REFERENCES = {f"{_CHART}chart": "id", f"{_NEW_CHART}chart": "id", f"{_DIAGRAM}relIds": "dm"}
"""Elements that stand for a chart or diagram in a part of its own, and the attributes that name it."""
_VALUES = ("val", "yVal", "bubbleSize")
_NAMES = ("cat", "xVal")
_MOST_POINTS = 1_000  # Points of a series that are written; a chart of more repeats data that are elsewhere


def referred_graphic(graphic: Any) -> Iterator[str]:
    """Ids of the relations to the charts and diagrams that stand in an element."""
    for element in graphic:
        name = _REFERENCES.get(element.tag) if isinstance(element.tag, str) else None
        if name is not None:
            yield element.get(f"{RELATION}{name}", "")


def graphic_blocks(root: Any) -> list[str]:
    """Markdown blocks of a chart or of the data of a diagram."""
    if root.tag.startswith(_DIAGRAM):
        return ["\n".join(f"- {text}" for text in _paragraphs(root))]
    if root.tag.startswith(_NEW_CHART):
        points = [" ".join((point.text or "").split()) for point in root.iter(f"{_NEW_CHART}pt")]
        return [*_paragraphs(root), "; ".join(filter(None, points[:_MOST_POINTS]))]
    return [*dict.fromkeys(_paragraphs(root)), *_titles_of_cells(root), _series_table(root)]


def _paragraphs(root: Any) -> list[str]:
    paragraphs = ("".join(leaf.text or "" for leaf in p.iter(f"{DRAWING}t")) for p in root.iter(f"{DRAWING}p"))
    return [text for words in paragraphs if (text := plain_text(words))]


def _titles_of_cells(root: Any) -> list[str]:
    titles = (value.text or "" for title in root.iter(f"{_CHART}title") for value in title.iter(f"{_CHART}v"))
    return [text for words in titles if (text := plain_text(words))]


def _series_table(root: Any) -> str:
    """A row for each category, a column for each series."""
    all_series = list(root.iter(f"{_CHART}ser"))
    names: dict[int, str] = {}
    columns: list[dict[int, str]] = []
    for series in all_series:
        for kind in _NAMES:
            for number, name in _points(series.find(f"{_CHART}{kind}")).items():
                names.setdefault(number, name)
        columns += [
            _points(series.find(f"{_CHART}{kind}")) for kind in _VALUES[:2] if _points(series.find(f"{_CHART}{kind}"))
        ]
    heads = ["".join(v.text or "" for v in s.iterfind(f"{_CHART}tx//{_CHART}v")) for s in all_series]
    numbers = sorted({*names, *(number for column in columns for number in column)})[:_MOST_POINTS]
    rows = [[names.get(number, ""), *(column.get(number, "") for column in columns)] for number in numbers]
    return table([["", *heads], *rows])


def _points(data: Any) -> dict[int, str]:
    """Values of a series by their numbers."""
    if data is None:
        return {}
    points: dict[int, str] = {}
    for point in data.iter(f"{_CHART}pt"):
        number = whole_number(point.get("idx"), -1, digits=7)
        words = " ".join((value.text or "").strip() for value in point.iterfind(f"{_CHART}v"))
        if number >= 0 and words:  # categories may have several levels
            points[number] = f"{words} {points[number]}" if number in points else words
    return points


def graphics_of(part: Any, graphic: Any) -> Iterator[str]:
    """Blocks of the charts and diagrams of an element, which lie in parts of their own."""
    for relation in referred_graphic(graphic):
        if relation in part.rels and not part.rels[relation].is_external:
            with suppress(Exception):  # a chart that cannot be read never costs the file
                root = parse_part(part.rels[relation].target_part.blob, mend=True)
                yield from filter(None, graphic_blocks(root))
