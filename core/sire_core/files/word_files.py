"""Word files as Markdown, by python-docx."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sire_core.documents.markdown_writing import cell_text, list_item, plain_text, table
from sire_core.files.charts import graphics_of
from sire_core.files.conversion import spend, whole_number
from sire_core.files.formulas import office_math
from sire_core.files.html import LONGEST_REPEATED, html_to_markdown
from sire_core.files.office_package import (
    COMPATIBILITY,
    DRAWING,
    MATH,
    OFFICE,
    RELATION,
    WORDPROCESSING,
    Source,
    parse_part,
    properties_title,
    read_package,
)
from sire_core.files.raised_text import ruby, write_scripts
from sire_core.files.source_files import declared_encoding, decode_any
from sire_core.files.word_lists import (
    HEADING,
    RAISED_OR_LOWERED,
    WordLists,
    WordStyle,
    outline_heading,
    paragraph_styles,
    raised_styles,
    small_number,
    value_of,
)

_PLACED = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_LEFT_OUT = frozenset(
    f"{WORDPROCESSING}{name}"
    for name in "del moveFrom rPr pPr sdtPr sdtEndPr instrText delText delInstrText tblPr tblGrid trPr tcPr sectPr "
    "annotationRef footnoteRef endnoteRef softHyphen lastRenderedPageBreak rubyPr ffData".split()
)
_FIELD_MARKS = {
    f"{WORDPROCESSING}tab": "\t",
    f"{WORDPROCESSING}ptab": "\t",
    f"{WORDPROCESSING}br": "\n",
    f"{WORDPROCESSING}cr": "\n",
    f"{WORDPROCESSING}noBreakHyphen": "-",
}
_TEXTS = (f"{WORDPROCESSING}t", f"{MATH}t")
_NOTES = {
    f"{WORDPROCESSING}footnoteReference": "footnotes",
    f"{WORDPROCESSING}endnoteReference": "endnotes",
    f"{WORDPROCESSING}commentReference": "comments",
}
_CHOSEN = "CHOSEN"  # Stands before the instruction of a field of a form whose value is read from its settings
_UNREAD_FIELDS = ("PAGE", "NUMPAGES", "SECTIONPAGES", "TOC", "INDEX", "PAGEREF", _CHOSEN)
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
_MOST_FILES_IN_FILES = 3
_MIME = re.compile(rb"\s*(?:MIME-Version|From|Content-Type)\s*:", re.IGNORECASE)
_HTML_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)


_SYMBOLS |= dict(
    enumerate("ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑", start=0xA1)  # noqa: RUF001
)
"""The letters of the font Symbol."""


def read_docx(path: Path) -> tuple[str, str]:
    """Title of the file's properties and Markdown of a Word file."""
    return read_package(path, _read_word)


def _read_word(source: Source, depth: int = 0) -> tuple[str, str]:
    import docx

    document = docx.Document(source)
    return properties_title(document), _Reader(document, depth).text()


class _Reader:
    """Goes through a file once. What a paragraph refers to is read behind it."""

    def __init__(self, document: Any, depth: int = 0) -> None:
        self._document = document
        self._depth = depth  # of files in files
        self._part = document.part
        self._lists = WordLists(document.part)
        self._styles = paragraph_styles(document.part)
        self._raised = raised_styles(document.part)
        self._notes = {kind: _notes(document.part, kind) for kind in ("footnotes", "endnotes", "comments")}
        self._blocks: list[tuple[bool, str]] = []  # whether an item of a list, and its Markdown
        self._has_title: bool | None = None  # the first heading is that of the document; None before it
        self._behind: list[Any] = []  # elements with paragraphs, and blocks, that follow this one
        self._fields: list[str | None] = []  # open fields: what is left out, None where the text counts
        self._included: set[str] = set()  # names of the files in the file that are read
        self._odd_marks: set[Any] = set()  # marks of fields that are no fields

    def text(self) -> str:
        self._margins("header")
        self._read_story(self._document.element.body)
        self._margins("footer")
        parts: list[str] = []
        for number, (item, block) in enumerate(self._blocks):
            if number:
                parts.append("\n" if item and self._blocks[number - 1][0] else "\n\n")
            parts.append(block)
        return "".join(parts)

    def _margins(self, kind: str) -> None:
        """Headers or footers, each text once."""
        texts: set[str] = set()
        for section in self._document.sections:
            for name in (f"first_page_{kind}", kind, f"even_page_{kind}"):
                margin = getattr(section, name)
                start = len(self._blocks)
                with suppress(KeyError):  # a reference to a part that is not there
                    if not margin.is_linked_to_previous and margin.part.partname not in self._included:
                        self._included.add(margin.part.partname)
                        self._part = margin.part
                        self._read_story(margin._element)  # noqa: SLF001 (for what python-docx has no class)
                self._part = self._document.part
                new = [block for block in self._blocks[start:] if block[1] not in texts]
                self._blocks[start:] = new
                texts.update(text for _, text in new)

    def _read_story(self, root: Any) -> None:
        """Read the text of the file, a header, a note or a box, in which fields begin and end."""
        outer, self._fields = self._fields, []
        self._odd_marks.update(_odd_marks(root))
        self._read(root)
        self._fields = outer

    def _read(self, parent: Any) -> None:
        """Paragraphs and tables of an element."""
        for element in parent:
            tag = element.tag
            if tag == f"{WORDPROCESSING}p":
                self._paragraph(element)
            elif tag == f"{WORDPROCESSING}tbl":
                self._table(element)
            elif tag == f"{WORDPROCESSING}altChunk":
                self._blocks += [(False, text) for text in self._chunk(element.get(f"{RELATION}id", "")) if text]
            elif isinstance(tag, str) and tag not in _LEFT_OUT:
                self._read(element)

    def _chunk(self, relation: str) -> Iterator[str]:
        """Text of a whole file of another format that the file includes."""
        if relation not in self._part.rels or self._part.rels[relation].is_external:
            return
        part = self._part.rels[relation].target_part
        if part.partname in self._included:
            return
        self._included.add(part.partname)
        kind, raw = str(part.content_type).lower(), part.blob
        if raw[:2] == b"PK" and self._depth < _MOST_FILES_IN_FILES:
            yield _read_word(io.BytesIO(raw), self._depth + 1)[1]
        elif raw[:5] == rb"{\rtf":
            from sire_core.files.other_formats import rtf_text

            yield rtf_text(raw)
        elif kind.startswith("message/") or _MIME.match(raw):
            from sire_core.files.mail import web_archive_text

            yield web_archive_text(raw)
        elif "html" in kind or _HTML_START.match(raw):
            yield html_to_markdown(decode_any(raw, declared_encoding(raw)))[1]
        elif kind.startswith("text/") or kind == "application/txt":
            yield plain_text(decode_any(raw))

    def _paragraph(self, paragraph: Any) -> None:
        style = self._style(paragraph)
        if style.heading and self._fields and not style.contents:
            self._fields = [None] * len(self._fields)  # no list of contents goes on over a heading
        words: list[str] = []
        self._collect(paragraph, words)
        text = "" if style.contents else plain_text(write_scripts("".join(words)))
        label = self._lists.label(style.number, style.level) if style.number and text else ""
        if text and style.heading:
            self._has_title = style.is_title if self._has_title is None else self._has_title
            level = style.heading + (self._has_title and not style.is_title)
            self._blocks.append((False, f"{'#' * min(level, 6)} {' '.join(f'{label} {text}'.split())}"))
        elif text and label:
            self._blocks.append((True, list_item(text, label, style.level)))
        elif text:
            self._blocks.append((False, text))
        trailing, self._behind = self._behind, []
        for element in trailing:
            if isinstance(element, str):
                self._blocks.append((False, element))
            else:
                self._read_story(element)

    def _style(self, paragraph: Any) -> WordStyle:
        properties = paragraph.find(f"{WORDPROCESSING}pPr")
        name = value_of(properties, "pStyle")
        match = HEADING.fullmatch(name)  # of a file without styles
        style = self._styles.get(name, WordStyle(heading=int(match[1]) if match else 0))
        if properties is None:
            return style
        outline = value_of(properties, "outlineLvl")
        if outline:
            style = style._replace(heading=outline_heading(outline))
        numbers = properties.find(f"{WORDPROCESSING}numPr")
        if numbers is not None:
            number, level = value_of(numbers, "numId") or style.number, value_of(numbers, "ilvl")
            style = style._replace(number="" if number == "0" else number, level=small_number(level, style.level))
        return style

    def _collect(self, parent: Any, words: list[str]) -> None:
        """Text of a paragraph, of a run, or of what stands between them."""
        for element in parent:
            tag = element.tag
            if tag == f"{WORDPROCESSING}fldChar":
                words.append(self._field(element))
            elif tag == f"{WORDPROCESSING}instrText" and self._fields and self._fields[-1] is not None:
                self._fields[-1] += element.text or ""
            elif not isinstance(tag, str) or tag in _LEFT_OUT:
                continue
            elif any(field is not None for field in self._fields):
                self._collect(element, words)  # down to the end of the field
            elif tag in _FIELD_MARKS:
                words.append(_FIELD_MARKS[tag])
            elif tag in _TEXTS:
                words.append(element.text or "")
            else:
                self._collect_special(tag, element, words)

    def _collect_special(self, tag: str, element: Any, words: list[str]) -> None:
        """Text of what is more than letters, and of all around them."""
        if tag == f"{WORDPROCESSING}sym":
            words.append(_symbol(element))
        elif tag in _NOTES:
            note = self._notes[_NOTES[tag]].pop(
                element.get(f"{WORDPROCESSING}id"), None
            )  # once, however often it is named
            self._behind += [] if note is None else [note]
        elif tag == f"{WORDPROCESSING}txbxContent":
            self._behind.append(element)
        elif tag == f"{COMPATIBILITY}AlternateContent":
            self._collect(element[:1], words)  # the same a second time, for older programs
        elif tag == f"{_PLACED}docPr":
            words.append(f" {element.get('descr', '')} ")
        elif tag == f"{WORDPROCESSING}ruby":
            words.append(ruby(*(self._text_of(part) for part in _ruby_parts(element))))
        elif tag == f"{MATH}oMath":
            words.append(office_math(element, self._text_of))
        elif tag == f"{WORDPROCESSING}r" and (mark := self._script(element)):
            words.append(mark(self._text_of(element)))
        elif not (
            tag == f"{WORDPROCESSING}fldSimple"
            and _field_name(element.get(f"{WORDPROCESSING}instr", "")) in _UNREAD_FIELDS
        ):
            self._behind += graphics_of(self._part, element) if tag == f"{DRAWING}graphicData" else ()
            self._collect(element, words)

    def _text_of(self, element: Any) -> str:
        """Text of a run, or of another element within a paragraph."""
        if element.tag in _TEXTS:
            return str(element.text or "")
        words: list[str] = []
        self._collect(element, words)
        return "".join(words)

    def _script(self, run: Any) -> Callable[[str], str] | None:
        """Mark of the letters of a run: raised or lowered."""
        properties = run.find(f"{WORDPROCESSING}rPr")
        if properties is None:
            return None
        position = value_of(properties, "vertAlign") or self._raised.get(value_of(properties, "rStyle"), "")
        return RAISED_OR_LOWERED.get(position)

    def _field(self, mark: Any) -> str:
        """Begin the instruction of a field, its result, or end it; return the value of a box or list to choose from.

        What an instruction is made of is no text.
        """
        kind = mark.get(f"{WORDPROCESSING}fldCharType")
        if mark in self._odd_marks:
            return ""
        if kind == "begin":
            chosen = "" if any(field is not None for field in self._fields) else _chosen(mark)
            self._fields.append(f"{_CHOSEN} " if chosen else "")
            return chosen
        if kind == "separate" and self._fields:
            name = _field_name(self._fields[-1] or "")
            self._fields[-1] = name if name in _UNREAD_FIELDS else None
        elif kind == "end" and self._fields:
            self._fields.pop()
        return ""

    def _table(self, element: Any) -> None:
        rows: list[list[str]] = []
        merged: dict[int, str] = {}  # texts of the cells that go on below, by column
        for row in _children(element, f"{WORDPROCESSING}tr"):
            before = value_of(row.find(f"{WORDPROCESSING}trPr"), "gridBefore")
            cells = [""] * small_number(before, 0)
            for cell in _children(row, f"{WORDPROCESSING}tc"):
                properties = cell.find(f"{WORDPROCESSING}tcPr")
                text = self._merged_cell(cell, properties, len(cells), merged)
                cells += [text, *[""] * (small_number(value_of(properties, "gridSpan"), 1) - 1)]
            rows.append(cells)
        look = element.find(f"{WORDPROCESSING}tblPr/{WORDPROCESSING}tblLook")
        header = look is None or look.get(f"{WORDPROCESSING}firstRow", "1") not in ("0", "false")
        text = table(rows, header=header)
        if text:
            self._blocks.append((False, text))

    def _merged_cell(self, cell: Any, properties: Any, column: int, merged: dict[int, str]) -> str:
        """Text of a cell, of one that is merged with that above the same again."""
        merge = None if properties is None else properties.find(f"{WORDPROCESSING}vMerge")
        if merge is not None and merge.get(f"{WORDPROCESSING}val") != "restart" and column in merged:
            return spend(merged[column])
        text = self._cell(cell)
        merged[column] = text if len(text) <= LONGEST_REPEATED else ""
        if merge is None:
            del merged[column]
        return text

    def _cell(self, cell: Any) -> str:
        """Text of a cell: its paragraphs, empty ones too, which stand beside those of other cells."""
        outer, self._blocks = self._blocks, []
        for element in cell:
            before = len(self._blocks)
            self._read([element])
            if element.tag == f"{WORDPROCESSING}p" and len(self._blocks) == before:
                self._blocks.append((False, ""))
        inner, self._blocks = self._blocks, outer
        return cell_text(block for _, block in inner)


def _children(parent: Any, tag: str) -> Iterator[Any]:
    """Children of a name, also where content controls or changes are around them."""
    for element in parent:
        if element.tag == tag:
            yield element
        elif element.tag not in _LEFT_OUT and element.tag in (
            *(
                f"{WORDPROCESSING}sdt",
                f"{WORDPROCESSING}sdtContent",
                f"{WORDPROCESSING}ins",
                f"{WORDPROCESSING}moveTo",
                f"{WORDPROCESSING}customXml",
            ),
        ):
            yield from _children(element, tag)


def _odd_marks(root: Any) -> Iterator[Any]:
    """Marks of fields that have no end, or no result and an end in another paragraph."""
    fields: list[list[Any]] = []
    for mark in root.iter(f"{WORDPROCESSING}fldChar"):
        kind = mark.get(f"{WORDPROCESSING}fldCharType")
        if kind == "begin":
            fields.append([mark])
        elif kind == "separate" and fields:
            fields[-1].append(mark)
        elif kind == "end" and fields:
            field = fields.pop()
            if len(field) == 1 and _paragraph_of(field[0]) is not _paragraph_of(mark):
                yield from [*field, mark]
    yield from (mark for field in fields for mark in field)


def _paragraph_of(element: Any) -> Any:
    return next(element.iterancestors(f"{WORDPROCESSING}p"), None)


def _chosen(mark: Any) -> str:
    """Value of a box to tick, or of a list to choose from, in a form."""
    form = mark.find(f"{WORDPROCESSING}ffData")
    if form is None:
        return ""
    box, choices = form.find(f"{WORDPROCESSING}checkBox"), form.find(f"{WORDPROCESSING}ddList")
    if box is not None:
        state = box.find(f"{WORDPROCESSING}checked")
        state = box.find(f"{WORDPROCESSING}default") if state is None else state
        ticked = state is not None and state.get(f"{WORDPROCESSING}val", "1") not in ("0", "false", "off")
        return " \N{BALLOT BOX WITH X} " if ticked else " \N{BALLOT BOX} "
    if choices is None:
        return ""
    entries = [entry.get(f"{WORDPROCESSING}val", "") for entry in choices.iterfind(f"{WORDPROCESSING}listEntry")]
    number = whole_number(value_of(choices, "result") or value_of(choices, "default"))
    return entries[number] if number < len(entries) else ""


def _ruby_parts(element: Any) -> list[Any]:
    from lxml import etree

    parts = [element.find(f"{WORDPROCESSING}{name}") for name in ("rubyBase", "rt")]
    return [etree.Element("none") if part is None else part for part in parts]


def _field_name(instruction: str) -> str:
    return next(iter(instruction.split()), "").upper()


def _symbol(element: Any) -> str:
    try:
        code = int(element.get(f"{WORDPROCESSING}char", ""), 16)
    except ValueError:
        return ""
    font = str(element.get(f"{WORDPROCESSING}font", "")).lower()
    if 0x20 <= code < 0xD800 and font != "symbol" and "dings" not in font:
        return chr(code)
    return (_SYMBOLS if font == "symbol" else _DINGBATS).get(code & 0xFF, "\N{BULLET}")


def _notes(part: Any, kind: str) -> dict[str, Any]:
    """Notes or comments by their id; separators are none."""
    for relation in part.rels.values():
        if relation.reltype == f"{OFFICE}/{kind}" and not relation.is_external:
            root = parse_part(relation.target_part.blob)
            return {
                note.get(f"{WORDPROCESSING}id"): note
                for note in root
                if note.get(f"{WORDPROCESSING}type", "normal") == "normal"
            }
    return {}
