"""Word, PowerPoint and Excel files as Markdown, by python-docx, python-pptx and openpyxl; CSV and TSV as tables."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sire_core.documents.markdown_writing import list_item, plain_text, table, table_lines
from sire_core.documents.titles import first_title
from sire_core.errors import CorpusError

_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_PLACED = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_LEFT_OUT = frozenset(
    f"{_WORD}{name}"
    for name in "del moveFrom rPr pPr sdtPr sdtEndPr instrText delText delInstrText tblPr tblGrid trPr tcPr sectPr "
    "annotationRef footnoteRef endnoteRef softHyphen lastRenderedPageBreak rubyPr".split()
)
_MARKS = {
    f"{_WORD}tab": "\t",
    f"{_WORD}ptab": "\t",
    f"{_WORD}br": "\n",
    f"{_WORD}cr": "\n",
    f"{_WORD}noBreakHyphen": "-",
}
_TEXTS = (f"{_WORD}t", f"{_MATH}t")
_NOTES = {
    f"{_WORD}footnoteReference": "footnotes",
    f"{_WORD}endnoteReference": "endnotes",
    f"{_WORD}commentReference": "comments",
}
_UNREAD_FIELDS = ("PAGE", "NUMPAGES", "SECTIONPAGES", "TOC", "INDEX", "PAGEREF")
_HEADING = re.compile(r"heading ?([1-9])", re.IGNORECASE)
_SYMBOLS = dict(
    enumerate(
        " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",  # noqa: RUF001
        start=0x20,
    )
)
_DINGBATS = {
    0xFC: "✓",
    0xFB: "✗",
    0xFE: "☑",
    0xFD: "☒",
    0xA8: "☐",
    0x6F: "□",
    0xE0: "→",
    0xDF: "←",
    0x4A: "☺",
    0xA7: "▪",
}
_SLIDES = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_TITLES = ("title", "ctrTitle")
_MARGINS = ("ftr", "hdr", "dt")
_LISTS = ("body", "obj", None)
"""Placeholders whose paragraphs are items of a list unless they say otherwise; `type` is left out for `obj`."""
_BULLETS = (f"{_DRAWING}buChar", f"{_DRAWING}buBlip")
_HEADING_WORDS = 12
_COLUMNS = 20_000
"""Excel has 16,384. A file with more is no table that someone reads."""
_LETTERS = 100_000_000
"""A cell may repeat a long text that is stored once; so many letters are no table any more."""
_PADDING = 4
"""So many times as many cells as there are words in a table may be empty before its rows become lines of words."""


def graphic_words(part: Any, graphic: Any) -> str:
    """Words of a chart or diagram, which lie in a part of their own."""
    from lxml import etree

    names = [(element.tag, element) for element in graphic if element.tag in (f"{_CHART}chart", f"{_DIAGRAM}relIds")]
    words: list[str] = []
    for tag, element in names:
        relation = element.get(f"{_RELATION}{'id' if tag == f'{_CHART}chart' else 'dm'}")
        if relation in part.rels and not part.rels[relation].is_external:
            root = etree.fromstring(part.related_part(relation).blob, etree.XMLParser(resolve_entities=False))
            known: dict[str, None] = {}  # each series of a chart names the categories again
            for leaf in root.iter(f"{_DRAWING}t", f"{_CHART}v"):
                known.setdefault((leaf.text or "").strip(), None)
            words += [word for word in known if word]
    return f"\n{'; '.join(words)}\n" if words else ""


_SYMBOLS |= dict(
    enumerate("ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑", start=0xA1)  # noqa: RUF001
)
"""The letters of the font Symbol."""


class _Level(NamedTuple):
    """A level of a numbered list: form of its numbers, the text around them, the first number."""

    form: str
    text: str
    start: int


class _Style(NamedTuple):
    """What a paragraph's style says: level of a heading (0 for none), list and level in it."""

    heading: int = 0
    number: str = ""
    level: int = 0
    contents: bool = False


def read_docx(path: Path) -> tuple[str, str]:
    """Title of the file's properties and Markdown of a Word file."""
    import docx

    document = docx.Document(str(path))
    return first_title(document.core_properties.title, document.core_properties.subject), _Reader(document).text()


class _Reader:
    """Goes through a file once. What a paragraph refers to is read behind it."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._part = document.part
        self._lists = _Lists(document.part)
        self._styles = _styles(document.part)
        self._notes = {kind: _notes(document.part, kind) for kind in ("footnotes", "endnotes", "comments")}
        self._blocks: list[tuple[bool, str]] = []  # whether an item of a list, and its Markdown
        self._behind: list[Any] = []  # elements with paragraphs that follow this one
        self._fields: list[str | None] = []  # open fields: what is left out, None where the text counts

    def text(self) -> str:
        """The whole file."""
        self._margins("header")
        self._read(self._document.element.body)
        self._margins("footer")
        parts: list[str] = []
        for number, (item, block) in enumerate(self._blocks):
            if number:
                parts.append("\n" if item and self._blocks[number - 1][0] else "\n\n")
            parts.append(block)
        return "".join(parts)

    def _margins(self, kind: str) -> None:
        """Headers or footers, each text once."""
        known: set[str] = set()
        for section in self._document.sections:
            for name in (f"first_page_{kind}", kind, f"even_page_{kind}"):
                margin = getattr(section, name)
                if margin.is_linked_to_previous:
                    continue
                start = len(self._blocks)
                self._part = margin.part
                self._read(margin._element)  # noqa: SLF001 (the only way to what python-docx has no class for)
                self._part = self._document.part
                new = [block for block in self._blocks[start:] if block[1] not in known]
                self._blocks[start:] = new
                known.update(text for _, text in new)

    def _read(self, parent: Any) -> None:
        """Paragraphs and tables of an element."""
        for element in parent:
            tag = element.tag
            if tag == f"{_WORD}p":
                self._paragraph(element)
            elif tag == f"{_WORD}tbl":
                self._table(element)
            elif isinstance(tag, str) and tag not in _LEFT_OUT:
                self._read(element)

    def _paragraph(self, paragraph: Any) -> None:
        style = self._style(paragraph)
        words: list[str] = []
        self._collect(paragraph, words)
        text = "" if style.contents else plain_text("".join(words))
        label = self._lists.label(style.number, style.level) if style.number and text else ""
        if text and style.heading:
            self._blocks.append((False, f"{'#' * min(style.heading, 6)} {' '.join(f'{label} {text}'.split())}"))
        elif text and label:
            self._blocks.append((True, list_item(text, label, style.level)))
        elif text:
            self._blocks.append((False, text))
        trailing, self._behind = self._behind, []
        for element in trailing:
            self._read(element)

    def _style(self, paragraph: Any) -> _Style:
        properties = paragraph.find(f"{_WORD}pPr")
        name = _value(properties, "pStyle")
        known = _HEADING.fullmatch(name)  # of a file without styles
        style = self._styles.get(name, _Style(heading=int(known[1]) if known else 0))
        if properties is None:
            return style
        outline = _value(properties, "outlineLvl")
        if outline.isdigit():
            style = style._replace(heading=int(outline) + 1 if int(outline) < 9 else 0)
        numbers = properties.find(f"{_WORD}numPr")
        if numbers is not None:
            number, level = _value(numbers, "numId") or style.number, _value(numbers, "ilvl")
            style = style._replace(number="" if number == "0" else number, level=_small(level, style.level))
        return style

    def _collect(self, parent: Any, words: list[str]) -> None:
        """Text of a paragraph, of a run, or of what stands between them."""
        for element in parent:
            tag = element.tag
            if tag == f"{_WORD}fldChar":
                self._field(element)
            elif tag == f"{_WORD}instrText" and self._fields and self._fields[-1] is not None:
                self._fields[-1] += element.text or ""
            elif not isinstance(tag, str) or tag in _LEFT_OUT:
                continue
            elif any(field is not None for field in self._fields):
                self._collect(element, words)  # down to the end of the field
            elif tag in _MARKS:
                words.append(_MARKS[tag])
            elif tag in _TEXTS:
                words.append(element.text or "")
            else:
                self._collect_special(tag, element, words)

    def _collect_special(self, tag: str, element: Any, words: list[str]) -> None:
        """Text of what is more than letters, and of all around them."""
        if tag == f"{_WORD}sym":
            words.append(_symbol(element))
        elif tag in _NOTES:
            note = self._notes[_NOTES[tag]].get(element.get(f"{_WORD}id"))
            self._behind += [] if note is None else [note]
        elif tag == f"{_WORD}txbxContent":
            self._behind.append(element)
        elif tag == f"{_COMPATIBILITY}AlternateContent":
            self._collect(element[:1], words)  # the same a second time, for older programs
        elif tag == f"{_PLACED}docPr":
            words.append(f" {element.get('descr', '')} ")
        elif tag == f"{_WORD}rt":
            ruby: list[str] = []
            self._collect(element, ruby)
            words.append(f"({''.join(ruby)})")
        elif not (tag == f"{_WORD}fldSimple" and _field_name(element.get(f"{_WORD}instr", "")) in _UNREAD_FIELDS):
            words += [graphic_words(self._part, element)] if tag == f"{_DRAWING}graphicData" else []
            self._collect(element, words)

    def _field(self, mark: Any) -> None:
        """Begin the instruction of a field, its result, or end it. What an instruction is made of is no text."""
        kind = mark.get(f"{_WORD}fldCharType")
        if kind == "begin":
            self._fields.append("")
        elif kind == "separate" and self._fields:
            name = _field_name(self._fields[-1] or "")
            self._fields[-1] = name if name in _UNREAD_FIELDS else None
        elif kind == "end" and self._fields:
            self._fields.pop()

    def _table(self, element: Any) -> None:
        rows: list[list[str]] = []
        for row in _children(element, f"{_WORD}tr"):
            before = _value(row.find(f"{_WORD}trPr"), "gridBefore")
            cells = [""] * _small(before, 0)
            for cell in _children(row, f"{_WORD}tc"):
                properties = cell.find(f"{_WORD}tcPr")
                cells += [self._cell(cell), *[""] * (_small(_value(properties, "gridSpan"), 1) - 1)]
            rows.append(cells)
        look = element.find(f"{_WORD}tblPr/{_WORD}tblLook")
        header = look is None or look.get(f"{_WORD}firstRow", "1") not in ("0", "false")
        text = table(rows, header=header)
        if text:
            self._blocks.append((False, text))

    def _cell(self, cell: Any) -> str:
        """Text of a cell; what stands in it, tables too, becomes one line."""
        outer, self._blocks = self._blocks, []
        self._read(cell)
        inner, self._blocks = self._blocks, outer
        return "\n".join(_cell_text(block) for _, block in inner)


def _cell_text(block: str) -> str:
    """A block for a cell: without marks of a heading, and a table within it as words."""
    if block.startswith("|"):
        lines = [line for line in block.split("\n") if line.strip("|- ")]
        return "\n".join(" ".join(line.replace("\\|", "\0").replace("|", " ").split()) for line in lines).replace(
            "\0", "|"
        )
    return block.lstrip("#").lstrip() if block.startswith("#") else block


def _children(parent: Any, tag: str) -> Iterator[Any]:
    """Children of a name, also where content controls or changes are around them."""
    for element in parent:
        if element.tag == tag:
            yield element
        elif element.tag not in _LEFT_OUT and element.tag in (
            *(f"{_WORD}sdt", f"{_WORD}sdtContent", f"{_WORD}ins", f"{_WORD}moveTo", f"{_WORD}customXml"),
        ):
            yield from _children(element, tag)


def _value(parent: Any, name: str) -> str:
    element = None if parent is None else parent.find(f"{_WORD}{name}")
    return "" if element is None else str(element.get(f"{_WORD}val", ""))


def _small(number: str, other: int) -> int:
    """A number of at most 62, as many columns as a table may have; levels are below 9."""
    return min(int(number), 62) if number.isdigit() and len(number) < 9 else other


def _field_name(instruction: str) -> str:
    return next(iter(instruction.split()), "").upper()


def _symbol(element: Any) -> str:
    try:
        code = int(element.get(f"{_WORD}char", ""), 16)
    except ValueError:
        return ""
    code -= 0xF000 if 0xF000 <= code < 0xF100 else 0
    font = str(element.get(f"{_WORD}font", "")).lower()
    known = _SYMBOLS if font == "symbol" else _DINGBATS if font.startswith("wingdings") else {}
    return known.get(code) or (chr(code) if 0x20 <= code < 0xD800 else "\N{BULLET}")


def _styles(part: Any) -> dict[str, _Style]:
    """Styles of paragraphs by their id; `""` is the default one."""
    elements = {style.get(f"{_WORD}styleId", ""): style for style in part.styles.element.iterfind(f"{_WORD}style")}
    styles: dict[str, _Style] = {}
    for name, element in elements.items():
        chain, seen = element, set()
        style = _Style()
        while chain is not None and id(chain) not in seen:
            seen.add(id(chain))
            style = _with_style(style, chain)
            chain = elements.get(_value(chain, "basedOn"))
        styles[name] = style
    return styles


def _with_style(style: _Style, element: Any) -> _Style:
    """A style with what one that it is based on adds."""
    label = _value(element, "name")
    match_ = _HEADING.fullmatch(label)
    outline = _value(element.find(f"{_WORD}pPr"), "outlineLvl")
    if match_:
        level = int(match_[1])
    elif label.lower() == "title":
        level = 1
    else:
        level = int(outline) + 1 if outline.isdigit() else 0
    numbers = element.find(f"{_WORD}pPr/{_WORD}numPr")
    if numbers is not None and not style.number:
        style = style._replace(number=_value(numbers, "numId"), level=_small(_value(numbers, "ilvl"), 0))
    heading = style.heading or (level if level < 10 else 0)
    return style._replace(heading=heading, contents=style.contents or label.lower().startswith("toc "))


def _notes(part: Any, kind: str) -> dict[str, Any]:
    """Notes or comments by their id; separators are none."""
    from lxml import etree

    for relation in part.rels.values():
        if relation.reltype == f"{_OFFICE}/{kind}" and not relation.is_external:
            parser = etree.XMLParser(resolve_entities=False, no_network=True)
            root = etree.fromstring(relation.target_part.blob, parser)
            return {note.get(f"{_WORD}id"): note for note in root if note.get(f"{_WORD}type", "normal") == "normal"}
    return {}


class _Lists:
    """Numbers of the items of lists, as Word counts them."""

    def __init__(self, part: Any) -> None:
        self._levels: dict[str, dict[int, _Level]] = {}
        self._counted_as: dict[str, str] = {}
        self._counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        numbering = next((r.target_part for r in part.rels.values() if r.reltype == f"{_OFFICE}/numbering"), None)
        if numbering is None:
            return
        root = numbering.element
        shared = {
            abstract.get(f"{_WORD}abstractNumId"): {
                level.get(f"{_WORD}ilvl"): level for level in abstract.iterfind(f"{_WORD}lvl")
            }
            for abstract in root.iterfind(f"{_WORD}abstractNum")
        }
        for number in root.iterfind(f"{_WORD}num"):
            name, abstract = number.get(f"{_WORD}numId"), _value(number, "abstractNumId")
            levels = {int(key): _level(level) for key, level in shared.get(abstract, {}).items() if str(key).isdigit()}
            overrides = number.findall(f"{_WORD}lvlOverride")
            for override in overrides:
                depth = _small(override.get(f"{_WORD}ilvl", ""), 0)
                changed = override.find(f"{_WORD}lvl")
                level = levels.get(depth, _Level("decimal", "%1.", 1)) if changed is None else _level(changed)
                levels[depth] = level._replace(start=_small(_value(override, "startOverride"), level.start))
            self._levels[name] = levels
            self._counted_as[name] = f"num {name}" if overrides else f"abstract {abstract}"

    def label(self, number: str, depth: int) -> str:
        """The label of the next item of a list at a level."""
        levels = self._levels.get(number, {})
        level = levels.get(depth)
        if level is None or level.form == "bullet":
            return "-"
        counts = self._counts[self._counted_as[number]]
        counts[depth] = counts.get(depth, level.start - 1) + 1
        for deeper in [other for other in counts if other > depth]:
            del counts[deeper]
        if level.form == "none":
            return ""

        def number_of(match: re.Match[str]) -> str:
            other = int(match[1]) - 1
            form = levels.get(other, level)
            return _number_text(counts.get(other, form.start), form.form)

        return re.sub(r"%([1-9])", number_of, level.text).strip()


def _level(element: Any) -> _Level:
    form, start = _value(element, "numFmt") or "decimal", _small(_value(element, "start"), 1)
    return _Level(form, _value(element, "lvlText"), start)


def _number_text(number: int, form: str) -> str:
    if form.endswith("Letter") and number > 0:
        letter = chr(ord("a") + (number - 1) % 26) * (1 + (number - 1) // 26)
        return letter.upper() if form.startswith("upper") else letter
    if form.endswith("Roman") and 0 < number < 4000:
        roman = ""
        for value, letters in zip(
            (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
            "m cm d cd c xc l xl x ix v iv i".split(),
            strict=True,
        ):
            roman += letters * (number // value)
            number %= value
        return roman.upper() if form.startswith("upper") else roman
    return f"{number:02d}" if form == "decimalZero" else str(number)


def read_pptx(path: Path) -> tuple[str, str]:
    """Title of the file's properties and Markdown of a PowerPoint file."""
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
        for grid in graphic.iterchildren(f"{_DRAWING}tbl"):
            look = grid.find(f"{_DRAWING}tblPr")
            rows = [
                [_paragraphs(cell, listed=False) for cell in row.iterchildren(f"{_DRAWING}tc")]
                for row in grid.iterchildren(f"{_DRAWING}tr")
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
        numbered = None if properties is None else properties.find(f"{_DRAWING}buAutoNum")
        counts = {deep: count for deep, count in counts.items() if deep < level + (numbered is not None)}
        item = listed and len(paragraphs) > 1 and f"{_DRAWING}buNone" not in marks
        if numbered is not None:
            start = numbered.get("startAt", "1")
            counts.setdefault(level, int(start) - 1 if start.isdigit() and len(start) < 6 else 0)
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
    """Whether a paragraph of a slide is a short line in bold letters that ends no sentence."""
    runs = [run for run in paragraph.iterchildren(f"{_DRAWING}r") if "".join(run.itertext()).strip()]
    styles = [run.find(f"{_DRAWING}rPr") for run in runs]
    bold = bool(runs) and all(style is not None and style.get("b") in ("1", "true") for style in styles)
    return bold and "\n" not in text and len(text.split()) <= _HEADING_WORDS and text[-1] not in ".:,;"


def _digit(level: str | None) -> int:
    return int(level) if level and len(level) == 1 and level.isdigit() else 0


def _words(paragraph: Any) -> Iterator[str]:
    for element in paragraph.iter(f"{_DRAWING}t", f"{_DRAWING}br", f"{_MATH}t"):
        parent = element.getparent()
        if parent.tag == f"{_DRAWING}fld" and parent.get("type") == "slidenum":
            continue
        yield "\n" if element.tag == f"{_DRAWING}br" else element.text or ""


def read_xlsx(path: Path) -> tuple[str, str]:
    """Title of the file's properties and Markdown of a workbook: a section and a table for each sheet."""
    import openpyxl

    book = openpyxl.load_workbook(str(path), read_only=True, data_only=True, keep_links=False)
    parts: list[str] = []
    try:
        for sheet in book:
            if not hasattr(sheet, "_get_source"):  # a sheet that is a chart
                parts.append(f"## {plain_text(sheet.title)}")
                continue
            rows = [dict(row) for row in _sparse_rows(book, sheet)]
            parts += filter(None, [f"## {plain_text(sheet.title)}", _compact(rows.__iter__)])
    finally:
        book.close()
    return first_title(book.properties.title, book.properties.subject), "\n\n".join(parts)


def _sparse_rows(book: Any, sheet: Any) -> Iterator[list[tuple[int, str]]]:
    """Cells with a value, by column, of each row that has any."""
    from openpyxl.worksheet._reader import WorkSheetParser

    with sheet._get_source() as source:  # noqa: SLF001 (see above)
        parser = WorkSheetParser(
            *(source, sheet._shared_strings),  # noqa: SLF001 (see above)
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,  # noqa: SLF001 (see above)
            timedelta_formats=book._timedelta_formats,  # noqa: SLF001 (see above)
        )
        left = _LETTERS
        for _, row in parser.parse():
            cells = [(cell["column"], text) for cell in row if (text := _cell_value(cell["value"]))]
            left -= sum(len(text) for _, text in cells)
            if left < 0:
                raise CorpusError(f"a sheet has more than {_LETTERS:,} letters; that is not a table")
            if cells:
                yield cells


def _cell_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, dt.datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return str(value).strip()


def _compact(rows: Callable[[], Iterable[Mapping[int, str]]]) -> str:
    """A table of the columns that hold anything; lines of words where nearly all cells of that would be empty.

    `rows` gives the cells of each row that are not empty, by column, and is called twice: millions of them take memory.
    """
    held: set[int] = set()
    number = cells = 0
    for row in rows():
        held.update(row)
        number, cells = number + 1, cells + len(row)
    columns = sorted(held)
    if len(columns) * number > _PADDING * cells + 100:
        return "\n".join(plain_text(" ; ".join(row[column] for column in sorted(row))) for row in rows())
    return "\n".join(table_lines(([row.get(column, "") for column in columns] for row in rows()), len(columns)))


def read_values(text: str, delimiter: str) -> str:
    """Values between commas (or what stands in their place: `;`, tabs) as a Markdown table."""
    head = text[:10_000].split("\n", 1)[0]
    delimiter = delimiter or max(",;\t|", key=head.count)
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))

    def rows() -> Iterator[Mapping[int, str]]:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if len(row) > _COLUMNS:
                raise CorpusError(
                    f"a row has {len(row):,} columns; that is not a table. Read it as text: rename it to .txt"
                )
            if cells := {number: cell.strip() for number, cell in enumerate(row) if cell.strip()}:
                yield cells

    try:
        return _compact(rows)
    except csv.Error as error:
        raise CorpusError(f"cannot be read as a table: {error}") from error
