"""PowerPoint files as Markdown, by python-pptx."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sire_core.documents.markdown_writing import list_item, plain_text, table
from sire_core.files.charts import graphics_of
from sire_core.files.conversion import spend, whole_number
from sire_core.files.formulas import office_math
from sire_core.files.html import LONGEST_REPEATED
from sire_core.files.office_package import COMPATIBILITY, DRAWING, MATH, Source, properties_title, read_package
from sire_core.files.raised_text import lowered, raised, write_scripts

_SLIDES = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_SLIDE_TEXTS = (f"{DRAWING}t", f"{MATH}t")
_TITLES = ("title", "ctrTitle")
_MARGINS = ("ftr", "hdr", "dt")
_LISTS = ("body", "obj", None)
"""Placeholders whose paragraphs are items of a list unless they say otherwise; `type` is left out for `obj`."""
_BULLETS = (f"{DRAWING}buChar", f"{DRAWING}buBlip")
_HEADING_WORDS = 12


def read_pptx(path: Path) -> tuple[str, str]:
    """Title of the file's properties and Markdown of a PowerPoint file."""
    return read_package(path, _read_slides)


def _read_slides(source: Source) -> tuple[str, str]:
    import pptx

    presentation = pptx.Presentation(source)
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
    return properties_title(presentation), "\n\n".join(filter(None, slides))


def _blocks(part: Any, shapes: Any, margins: set[str]) -> Iterator[tuple[bool, str]]:
    """True if it is the title, and the text, of each shape that has words."""
    for shape in shapes:
        if shape.tag == f"{COMPATIBILITY}AlternateContent":
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
    for graphic in frame.iter(f"{DRAWING}graphicData"):
        for grid in graphic.iterchildren(f"{DRAWING}tbl"):
            look = grid.find(f"{DRAWING}tblPr")
            merged: dict[int, str] = {}
            rows = [_slide_cells(row, merged) for row in grid.iterchildren(f"{DRAWING}tr")]
            yield from filter(None, [table(rows, header=look is None or look.get("firstRow") in ("1", "true"))])
        yield from graphics_of(part, graphic)


def _slide_cells(row: Any, merged: dict[int, str]) -> list[str]:
    """Texts of a row, of cells that are merged with those above the same again."""
    cells: list[str] = []
    for column, cell in enumerate(row.iterchildren(f"{DRAWING}tc")):
        if cell.get("vMerge") in ("1", "true"):
            cells.append(spend(merged.get(column, "")))
            continue
        text = _paragraphs(cell, listed=False)
        merged[column] = text if cell.get("rowSpan", "1") != "1" and len(text) <= LONGEST_REPEATED else ""
        cells.append(text)
    return cells


def _paragraphs(body: Any, *, listed: bool) -> str:
    """Text of a shape or a cell: paragraphs and items of lists."""
    lines: list[str] = []
    counts: dict[int, int] = {}
    paragraphs = [
        (p, text) for p in body.iter(f"{DRAWING}p") if (text := plain_text(write_scripts("".join(_words(p)))))
    ]
    for paragraph, text in paragraphs:
        properties = paragraph.find(f"{DRAWING}pPr")
        marks = () if properties is None else [child.tag for child in properties]
        level = 0 if properties is None else whole_number(properties.get("lvl"), digits=1)
        numbered = None if properties is None else properties.find(f"{DRAWING}buAutoNum")
        counts = {deep: count for deep, count in counts.items() if deep < level + (numbered is not None)}
        item = listed and len(paragraphs) > 1 and f"{DRAWING}buNone" not in marks
        if numbered is not None:
            counts.setdefault(level, whole_number(numbered.get("startAt"), 1, digits=5) - 1)
            counts[level] += 1
            lines.append(list_item(text, f"{counts[level]}.", level))
        elif item or any(mark in marks for mark in _BULLETS):
            lines.append(list_item(text, "-", level))
        elif listed and len(paragraphs) > 1 and _is_bold_heading(paragraph, text):
            lines += ["", f"### {text}", ""]
        else:
            lines += ["", text, ""]
    return "\n".join(lines).replace("\n\n\n", "\n\n").strip("\n")


def _is_bold_heading(paragraph: Any, text: str) -> bool:
    """True if a paragraph of a slide is a short line in bold letters that ends no sentence."""
    runs = [run for run in paragraph.iterchildren(f"{DRAWING}r") if "".join(run.itertext()).strip()]
    styles = [run.find(f"{DRAWING}rPr") for run in runs]
    bold = bool(runs) and all(style is not None and style.get("b") in ("1", "true") for style in styles)
    return bold and "\n" not in text and len(text.split()) <= _HEADING_WORDS and text[-1] not in ".:,;"


def _words(paragraph: Any) -> Iterator[str]:
    """Text of a paragraph of a slide, with marks around raised and lowered letters."""
    has_formula = next(paragraph.iter(f"{MATH}oMath"), None) is not None
    for element in paragraph.iter(f"{DRAWING}t", f"{DRAWING}br", f"{MATH}oMath"):
        parent = element.getparent()
        if element.tag == f"{MATH}oMath":
            yield office_math(element, lambda run: "".join(leaf.text or "" for leaf in run.iter(*_SLIDE_TEXTS)))
        elif element.tag == f"{DRAWING}br":
            yield "\n"
        elif has_formula and next(element.iterancestors(f"{MATH}oMath"), None) is not None:
            continue
        elif parent.tag != f"{DRAWING}fld" or parent.get("type") != "slidenum":
            style = parent.find(f"{DRAWING}rPr")
            baseline = "" if style is None else style.get("baseline", "").rstrip("%")
            words = element.text or ""
            yield words if baseline.strip("-0.") == "" else lowered(words) if baseline[0] == "-" else raised(words)
