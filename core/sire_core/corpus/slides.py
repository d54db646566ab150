"""PowerPoint files (`.pptx`) as Markdown, by python-pptx: a section for each slide, its notes behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sire_core.corpus.markdown_writing import list_item, plain_text, table
from sire_core.corpus.office_parts import graphic_words
from sire_core.corpus.titles import first_title

__all__ = ["read_pptx"]

_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SLIDES = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_TITLES = ("title", "ctrTitle")
_MARGINS = ("ftr", "hdr", "dt")
_LISTS = ("body", "obj", None)
"""Placeholders whose paragraphs are items of a list unless they say otherwise; `type` is left out for `obj`."""
_BULLETS = (f"{_DRAWING}buChar", f"{_DRAWING}buBlip")


def read_pptx(path: Path) -> tuple[str, str]:
    """Title of the file's properties and Markdown of a PowerPoint file.

    Footers stand on the first slide that has them. Numbers of slides are left out.
    """
    import pptx

    presentation = pptx.Presentation(str(path))
    margins: set[str] = set()
    slides: list[str] = []
    for slide in presentation.slides:
        blocks = list(_blocks(slide.part, slide.shapes._spTree, margins))  # noqa: SLF001 (its elements, in order)
        titles = [f"## {' '.join(text.split())}" for is_title, text in blocks if is_title]
        parts = [*titles[:1], *(text for is_title, text in blocks if not is_title), *titles[1:]]
        if slide.has_notes_slide:
            notes = slide.notes_slide
            parts += [text for _, text in _blocks(notes.part, notes.shapes._spTree, margins)]  # noqa: SLF001 (as above)
        slides.append("\n\n".join(parts))
    return first_title(presentation.core_properties.title, presentation.core_properties.subject), "\n\n".join(
        filter(None, slides)
    )


def _blocks(part: Any, shapes: Any, margins: set[str]) -> Iterator[tuple[bool, str]]:
    """Whether it is the title, and the text, of each shape that has words."""
    for shape in shapes:
        if shape.tag == f"{_COMPATIBILITY}AlternateContent":
            yield from _blocks(part, shape[0] if len(shape) else (), margins)  # what follows is for older programs
        elif shape.tag == f"{_SLIDES}grpSp":
            yield from _blocks(part, shape, margins)
        elif shape.tag == f"{_SLIDES}graphicFrame":
            yield from ((False, text) for text in _graphic(part, shape))
        elif shape.tag == f"{_SLIDES}pic":
            described = next((plain_text(p.get("descr", "")) for p in shape.iter(f"{_SLIDES}cNvPr")), "")
            if described:
                yield False, described
        elif shape.tag in (f"{_SLIDES}sp", f"{_SLIDES}cxnSp"):
            holder = shape.find(f"{_SLIDES}nvSpPr/{_SLIDES}nvPr/{_SLIDES}ph")
            kind = "" if holder is None else holder.get("type")
            body = shape.find(f"{_SLIDES}txBody")
            text = "" if body is None or kind in ("sldNum", "sldImg") else _paragraphs(body, listed=kind in _LISTS)
            if not text or (kind in _MARGINS and text in margins):
                continue
            if kind in _MARGINS:
                margins.add(text)
            yield kind in _TITLES, text


def _graphic(part: Any, frame: Any) -> Iterator[str]:
    for graphic in frame.iter(f"{_DRAWING}graphicData"):
        for found in graphic.iterchildren(f"{_DRAWING}tbl"):
            look = found.find(f"{_DRAWING}tblPr")
            rows = [
                [_paragraphs(cell, listed=False) for cell in row.iterchildren(f"{_DRAWING}tc")]
                for row in found.iterchildren(f"{_DRAWING}tr")
            ]
            yield from filter(None, [table(rows, header=look is None or look.get("firstRow") in ("1", "true"))])
        yield from filter(None, [plain_text(graphic_words(part, graphic))])


def _paragraphs(body: Any, *, listed: bool) -> str:
    """Text of a shape or a cell: paragraphs and items of lists."""
    lines: list[str] = []
    counts: dict[int, int] = {}
    paragraphs = [(p, text) for p in body.iter(f"{_DRAWING}p") if (text := plain_text("".join(_words(p))))]
    for paragraph, text in paragraphs:
        properties = paragraph.find(f"{_DRAWING}pPr")
        marks = () if properties is None else [child.tag for child in properties]
        level = _digit(None if properties is None else properties.get("lvl"))
        counts = {deep: count for deep, count in counts.items() if deep <= level}
        item = listed and len(paragraphs) > 1 and f"{_DRAWING}buNone" not in marks
        if f"{_DRAWING}buAutoNum" in marks:
            counts[level] = counts.get(level, 0) + 1
            lines.append(list_item(text, f"{counts[level]}.", level))
        elif item or any(mark in marks for mark in _BULLETS):
            lines.append(list_item(text, "-", level))
        else:
            lines += ["", text, ""]
    return "\n".join(lines).replace("\n\n\n", "\n\n").strip("\n")


def _digit(level: str | None) -> int:
    return int(level) if level and len(level) == 1 and level.isdigit() else 0


def _words(paragraph: Any) -> Iterator[str]:
    for element in paragraph.iter(f"{_DRAWING}t", f"{_DRAWING}br", f"{_MATH}t"):
        parent = element.getparent()
        if parent.tag == f"{_DRAWING}fld" and parent.get("type") == "slidenum":
            continue
        yield "\n" if element.tag == f"{_DRAWING}br" else element.text or ""
