"""Word and PowerPoint files as Markdown, by python-docx and python-pptx."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sire_core.documents.markdown_writing import list_item, plain_text, table
from sire_core.documents.titles import first_title
from sire_core.files.charts import graphic_blocks, referred_graphic
from sire_core.files.conversion import spend
from sire_core.files.formulas import office_math
from sire_core.files.html import LONGEST_REPEATED, html_to_markdown
from sire_core.files.office_package import Source, parse_part, read_package
from sire_core.files.raised_text import lowered, raised, ruby, write_scripts
from sire_core.files.source_files import declared_encoding, decode_any

_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"

_WORD_NAMESPACE = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_PLACED = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_LEFT_OUT = frozenset(
    f"{_WORD_NAMESPACE}{name}"
    for name in "del moveFrom rPr pPr sdtPr sdtEndPr instrText delText delInstrText tblPr tblGrid trPr tcPr sectPr "
    "annotationRef footnoteRef endnoteRef softHyphen lastRenderedPageBreak rubyPr ffData".split()
)
_FIELD_MARKS = {
    f"{_WORD_NAMESPACE}tab": "\t",
    f"{_WORD_NAMESPACE}ptab": "\t",
    f"{_WORD_NAMESPACE}br": "\n",
    f"{_WORD_NAMESPACE}cr": "\n",
    f"{_WORD_NAMESPACE}noBreakHyphen": "-",
}
_TEXTS = (f"{_WORD_NAMESPACE}t", f"{_MATH}t")
_NOTES = {
    f"{_WORD_NAMESPACE}footnoteReference": "footnotes",
    f"{_WORD_NAMESPACE}endnoteReference": "endnotes",
    f"{_WORD_NAMESPACE}commentReference": "comments",
}
_CHOSEN = "CHOSEN"
"""Stands before the instruction of a field of a form whose value is read from its settings."""
_UNREAD_FIELDS = ("PAGE", "NUMPAGES", "SECTIONPAGES", "TOC", "INDEX", "PAGEREF", _CHOSEN)
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
_SCRIPTS = {"superscript": raised, "subscript": lowered}
_MOST_FILES_IN_FILES = 3
_MIME = re.compile(rb"\s*(?:MIME-Version|From|Content-Type)\s*:", re.IGNORECASE)
_HTML_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_SLIDES = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_SLIDE_TEXTS = (f"{_DRAWING}t", f"{_MATH}t")
_TITLES = ("title", "ctrTitle")
_MARGINS = ("ftr", "hdr", "dt")
_LISTS = ("body", "obj", None)
"""Placeholders whose paragraphs are items of a list unless they say otherwise; `type` is left out for `obj`."""
_BULLETS = (f"{_DRAWING}buChar", f"{_DRAWING}buBlip")
_HEADING_WORDS = 12


def _graphics(part: Any, graphic: Any) -> Iterator[str]:
    """Blocks of the charts and diagrams of an element, which lie in parts of their own."""
    for relation in referred_graphic(graphic):
        if relation in part.rels and not part.rels[relation].is_external:
            with suppress(Exception):  # a chart that cannot be read never costs the file
                root = parse_part(part.rels[relation].target_part.blob, mend=True)
                yield from filter(None, graphic_blocks(root))


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
    """Style of a paragraph: level of a heading (0 for none), list and level in it."""

    heading: int = 0
    number: str = ""
    level: int = 0
    contents: bool = False


def read_docx(path: Path) -> tuple[str, str]:
    """Title of the file's properties and Markdown of a Word file."""
    return read_package(path, _read_word)


def _read_word(source: Source, depth: int = 0) -> tuple[str, str]:
    import docx

    document = docx.Document(source if isinstance(source, io.BytesIO) else str(source))
    return _properties_title(document), _Reader(document, depth).text()


def _properties_title(document: Any) -> str:
    with suppress(Exception):  # properties that cannot be read never cost the file
        return first_title(document.core_properties.title, document.core_properties.subject)
    return ""


class _Reader:
    """Goes through a file once. What a paragraph refers to is read behind it."""

    def __init__(self, document: Any, depth: int = 0) -> None:
        self._document = document
        self._depth = depth  # of files in files
        self._part = document.part
        self._lists = _Lists(document.part)
        self._styles = _styles(document.part)
        self._raised = _raised_styles(document.part)
        self._notes = {kind: _notes(document.part, kind) for kind in ("footnotes", "endnotes", "comments")}
        self._blocks: list[tuple[bool, str]] = []  # whether an item of a list, and its Markdown
        self._behind: list[Any] = []  # elements with paragraphs, and blocks, that follow this one
        self._fields: list[str | None] = []  # open fields: what is left out, None where the text counts
        self._included: set[str] = set()  # names of the files in the file that are read
        self._odd_marks: set[Any] = set()  # marks of fields that are no fields

    def text(self) -> str:
        """The whole file."""
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
        known: set[str] = set()
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
                new = [block for block in self._blocks[start:] if block[1] not in known]
                self._blocks[start:] = new
                known.update(text for _, text in new)

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
            if tag == f"{_WORD_NAMESPACE}p":
                self._paragraph(element)
            elif tag == f"{_WORD_NAMESPACE}tbl":
                self._table(element)
            elif tag == f"{_WORD_NAMESPACE}altChunk":
                self._blocks += [(False, text) for text in self._chunk(element.get(f"{_RELATION}id", "")) if text]
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
            self._blocks.append((False, f"{'#' * min(style.heading, 6)} {' '.join(f'{label} {text}'.split())}"))
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

    def _style(self, paragraph: Any) -> _Style:
        properties = paragraph.find(f"{_WORD_NAMESPACE}pPr")
        name = _value(properties, "pStyle")
        known = _HEADING.fullmatch(name)  # of a file without styles
        style = self._styles.get(name, _Style(heading=int(known[1]) if known else 0))
        if properties is None:
            return style
        outline = _value(properties, "outlineLvl")
        if outline.isdigit():
            style = style._replace(heading=int(outline) + 1 if int(outline) < 9 else 0)
        numbers = properties.find(f"{_WORD_NAMESPACE}numPr")
        if numbers is not None:
            number, level = _value(numbers, "numId") or style.number, _value(numbers, "ilvl")
            style = style._replace(number="" if number == "0" else number, level=_small(level, style.level))
        return style

    def _collect(self, parent: Any, words: list[str]) -> None:
        """Text of a paragraph, of a run, or of what stands between them."""
        for element in parent:
            tag = element.tag
            if tag == f"{_WORD_NAMESPACE}fldChar":
                words.append(self._field(element))
            elif tag == f"{_WORD_NAMESPACE}instrText" and self._fields and self._fields[-1] is not None:
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
        if tag == f"{_WORD_NAMESPACE}sym":
            words.append(_symbol(element))
        elif tag in _NOTES:
            note = self._notes[_NOTES[tag]].pop(
                element.get(f"{_WORD_NAMESPACE}id"), None
            )  # once, however often it is named
            self._behind += [] if note is None else [note]
        elif tag == f"{_WORD_NAMESPACE}txbxContent":
            self._behind.append(element)
        elif tag == f"{_COMPATIBILITY}AlternateContent":
            self._collect(element[:1], words)  # the same a second time, for older programs
        elif tag == f"{_PLACED}docPr":
            words.append(f" {element.get('descr', '')} ")
        elif tag == f"{_WORD_NAMESPACE}ruby":
            words.append(ruby(*(self._text_of(part) for part in _ruby_parts(element))))
        elif tag == f"{_MATH}oMath":
            words.append(office_math(element, self._text_of))
        elif tag == f"{_WORD_NAMESPACE}r" and (mark := self._script(element)):
            words.append(mark(self._text_of(element)))
        elif not (
            tag == f"{_WORD_NAMESPACE}fldSimple"
            and _field_name(element.get(f"{_WORD_NAMESPACE}instr", "")) in _UNREAD_FIELDS
        ):
            self._behind += _graphics(self._part, element) if tag == f"{_DRAWING}graphicData" else ()
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
        properties = run.find(f"{_WORD_NAMESPACE}rPr")
        if properties is None:
            return None
        position = _value(properties, "vertAlign") or self._raised.get(_value(properties, "rStyle"), "")
        return _SCRIPTS.get(position)

    def _field(self, mark: Any) -> str:
        """Begin the instruction of a field, its result, or end it; return the value of a box or list to choose from.

        What an instruction is made of is no text.
        """
        kind = mark.get(f"{_WORD_NAMESPACE}fldCharType")
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
        for row in _children(element, f"{_WORD_NAMESPACE}tr"):
            before = _value(row.find(f"{_WORD_NAMESPACE}trPr"), "gridBefore")
            cells = [""] * _small(before, 0)
            for cell in _children(row, f"{_WORD_NAMESPACE}tc"):
                properties = cell.find(f"{_WORD_NAMESPACE}tcPr")
                text = self._merged_cell(cell, properties, len(cells), merged)
                cells += [text, *[""] * (_small(_value(properties, "gridSpan"), 1) - 1)]
            rows.append(cells)
        look = element.find(f"{_WORD_NAMESPACE}tblPr/{_WORD_NAMESPACE}tblLook")
        header = look is None or look.get(f"{_WORD_NAMESPACE}firstRow", "1") not in ("0", "false")
        text = table(rows, header=header)
        if text:
            self._blocks.append((False, text))

    def _merged_cell(self, cell: Any, properties: Any, column: int, merged: dict[int, str]) -> str:
        """Text of a cell, of one that is merged with that above the same again."""
        merge = None if properties is None else properties.find(f"{_WORD_NAMESPACE}vMerge")
        if merge is not None and merge.get(f"{_WORD_NAMESPACE}val") != "restart" and column in merged:
            return spend(merged[column])
        text = self._cell(cell)
        merged[column] = text if len(text) <= LONGEST_REPEATED else ""
        if merge is None:
            del merged[column]
        return text

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
            *(
                f"{_WORD_NAMESPACE}sdt",
                f"{_WORD_NAMESPACE}sdtContent",
                f"{_WORD_NAMESPACE}ins",
                f"{_WORD_NAMESPACE}moveTo",
                f"{_WORD_NAMESPACE}customXml",
            ),
        ):
            yield from _children(element, tag)


def _odd_marks(root: Any) -> Iterator[Any]:
    """Marks of fields that have no end, or no result and an end in another paragraph."""
    fields: list[list[Any]] = []
    for mark in root.iter(f"{_WORD_NAMESPACE}fldChar"):
        kind = mark.get(f"{_WORD_NAMESPACE}fldCharType")
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
    return next(element.iterancestors(f"{_WORD_NAMESPACE}p"), None)


def _chosen(mark: Any) -> str:
    """Value of a box to tick, or of a list to choose from, in a form."""
    form = mark.find(f"{_WORD_NAMESPACE}ffData")
    if form is None:
        return ""
    box, choices = form.find(f"{_WORD_NAMESPACE}checkBox"), form.find(f"{_WORD_NAMESPACE}ddList")
    if box is not None:
        state = box.find(f"{_WORD_NAMESPACE}checked")
        state = box.find(f"{_WORD_NAMESPACE}default") if state is None else state
        ticked = state is not None and state.get(f"{_WORD_NAMESPACE}val", "1") not in ("0", "false", "off")
        return " \N{BALLOT BOX WITH X} " if ticked else " \N{BALLOT BOX} "
    if choices is None:
        return ""
    entries = [entry.get(f"{_WORD_NAMESPACE}val", "") for entry in choices.iterfind(f"{_WORD_NAMESPACE}listEntry")]
    number = _value(choices, "result") or _value(choices, "default") or "0"
    return entries[int(number)] if number.isdigit() and int(number[:6]) < len(entries) else ""


def _ruby_parts(element: Any) -> list[Any]:
    """Base and reading of a ruby."""
    from lxml import etree

    parts = [element.find(f"{_WORD_NAMESPACE}{name}") for name in ("rubyBase", "rt")]
    return [etree.Element("none") if part is None else part for part in parts]


def _raised_styles(part: Any) -> dict[str, str]:
    """Styles of letters that are raised or lowered, by their ids."""
    return {
        style.get(f"{_WORD_NAMESPACE}styleId", ""): position
        for style in part.styles.element.iterfind(f"{_WORD_NAMESPACE}style[@{_WORD_NAMESPACE}type='character']")
        if (position := _value(style.find(f"{_WORD_NAMESPACE}rPr"), "vertAlign")) in _SCRIPTS
    }


def _value(parent: Any, name: str) -> str:
    element = None if parent is None else parent.find(f"{_WORD_NAMESPACE}{name}")
    return "" if element is None else str(element.get(f"{_WORD_NAMESPACE}val", ""))


def _small(number: str, other: int) -> int:
    """A number of at most 62, as many columns as a table may have; levels are below 9."""
    return min(int(number), 62) if number.isdigit() and len(number) < 9 else other


def _field_name(instruction: str) -> str:
    return next(iter(instruction.split()), "").upper()


def _symbol(element: Any) -> str:
    try:
        code = int(element.get(f"{_WORD_NAMESPACE}char", ""), 16)
    except ValueError:
        return ""
    code -= 0xF000 if 0xF000 <= code < 0xF100 else 0
    font = str(element.get(f"{_WORD_NAMESPACE}font", "")).lower()
    known = _SYMBOLS if font == "symbol" else _DINGBATS if font.startswith("wingdings") else {}
    return known.get(code) or (chr(code) if 0x20 <= code < 0xD800 else "\N{BULLET}")


def _styles(part: Any) -> dict[str, _Style]:
    """Styles of paragraphs by their id."""
    elements = {
        style.get(f"{_WORD_NAMESPACE}styleId", ""): style
        for style in part.styles.element.iterfind(f"{_WORD_NAMESPACE}style")
    }
    based_on = {name: _value(element, "basedOn") for name, element in elements.items()}
    own = {name: _own_style(element) for name, element in elements.items()}
    styles: dict[str, _Style] = {}
    for style_id in elements:
        name, chain = style_id, list[str]()
        while name in own and name not in styles and name not in chain:
            chain.append(name)
            name = based_on[name]
        style = styles.get(name, _Style())
        for derived in reversed(chain):
            style = styles[derived] = _over(own[derived], style)
    return styles


def _own_style(element: Any) -> _Style:
    """Properties that a style sets itself."""
    label = _value(element, "name")
    match_ = _HEADING.fullmatch(label)
    properties = element.find(f"{_WORD_NAMESPACE}pPr")
    outline = _value(properties, "outlineLvl")
    if match_:
        level = int(match_[1])
    elif label.lower() == "title":
        level = 1
    else:
        level = int(outline) + 1 if outline.isdigit() else 0
    numbers = None if properties is None else properties.find(f"{_WORD_NAMESPACE}numPr")
    number, depth = ("", 0) if numbers is None else (_value(numbers, "numId"), _small(_value(numbers, "ilvl"), 0))
    return _Style(level if level < 10 else 0, number, depth, label.lower().startswith("toc "))


def _over(style: _Style, base: _Style) -> _Style:
    """A style with what the one that it is based on adds."""
    number, level = (style.number, style.level) if style.number else (base.number, base.level)
    return _Style(style.heading or base.heading, number, level, style.contents or base.contents)


def _notes(part: Any, kind: str) -> dict[str, Any]:
    """Notes or comments by their id; separators are none."""
    from lxml import etree

    for relation in part.rels.values():
        if relation.reltype == f"{_OFFICE}/{kind}" and not relation.is_external:
            parser = etree.XMLParser(resolve_entities=False, no_network=True)
            root = etree.fromstring(relation.target_part.blob, parser)
            return {
                note.get(f"{_WORD_NAMESPACE}id"): note
                for note in root
                if note.get(f"{_WORD_NAMESPACE}type", "normal") == "normal"
            }
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
            abstract.get(f"{_WORD_NAMESPACE}abstractNumId"): {
                level.get(f"{_WORD_NAMESPACE}ilvl"): level for level in abstract.iterfind(f"{_WORD_NAMESPACE}lvl")
            }
            for abstract in root.iterfind(f"{_WORD_NAMESPACE}abstractNum")
        }
        for number in root.iterfind(f"{_WORD_NAMESPACE}num"):
            name, abstract = number.get(f"{_WORD_NAMESPACE}numId"), _value(number, "abstractNumId")
            levels = {int(key): _level(level) for key, level in shared.get(abstract, {}).items() if str(key).isdigit()}
            overrides = number.findall(f"{_WORD_NAMESPACE}lvlOverride")
            for override in overrides:
                depth = _small(override.get(f"{_WORD_NAMESPACE}ilvl", ""), 0)
                changed = override.find(f"{_WORD_NAMESPACE}lvl")
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
    return read_package(path, _read_slides)


def _read_slides(source: Source) -> tuple[str, str]:
    import pptx

    presentation = pptx.Presentation(source if isinstance(source, io.BytesIO) else str(source))
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
    return _properties_title(presentation), "\n\n".join(filter(None, slides))


def _blocks(part: Any, shapes: Any, margins: set[str]) -> Iterator[tuple[bool, str]]:
    """True if it is the title, and the text, of each shape that has words."""
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
            merged: dict[int, str] = {}
            rows = [_slide_cells(row, merged) for row in grid.iterchildren(f"{_DRAWING}tr")]
            yield from filter(None, [table(rows, header=look is None or look.get("firstRow") in ("1", "true"))])
        yield from _graphics(part, graphic)


def _slide_cells(row: Any, merged: dict[int, str]) -> list[str]:
    """Texts of a row, of cells that are merged with those above the same again."""
    cells: list[str] = []
    for column, cell in enumerate(row.iterchildren(f"{_DRAWING}tc")):
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
        (p, text) for p in body.iter(f"{_DRAWING}p") if (text := plain_text(write_scripts("".join(_words(p)))))
    ]
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
    """True if a paragraph of a slide is a short line in bold letters that ends no sentence."""
    runs = [run for run in paragraph.iterchildren(f"{_DRAWING}r") if "".join(run.itertext()).strip()]
    styles = [run.find(f"{_DRAWING}rPr") for run in runs]
    bold = bool(runs) and all(style is not None and style.get("b") in ("1", "true") for style in styles)
    return bold and "\n" not in text and len(text.split()) <= _HEADING_WORDS and text[-1] not in ".:,;"


def _digit(level: str | None) -> int:
    return int(level) if level and len(level) == 1 and level.isdigit() else 0


def _words(paragraph: Any) -> Iterator[str]:
    """Text of a paragraph of a slide, with marks around raised and lowered letters."""
    has_formula = next(paragraph.iter(f"{_MATH}oMath"), None) is not None
    for element in paragraph.iter(f"{_DRAWING}t", f"{_DRAWING}br", f"{_MATH}oMath"):
        parent = element.getparent()
        if element.tag == f"{_MATH}oMath":
            yield office_math(element, lambda run: "".join(leaf.text or "" for leaf in run.iter(*_SLIDE_TEXTS)))
        elif element.tag == f"{_DRAWING}br":
            yield "\n"
        elif has_formula and next(element.iterancestors(f"{_MATH}oMath"), None) is not None:
            continue
        elif parent.tag != f"{_DRAWING}fld" or parent.get("type") != "slidenum":
            style = parent.find(f"{_DRAWING}rPr")
            baseline = "" if style is None else style.get("baseline", "").rstrip("%")
            words = element.text or ""
            yield words if baseline.strip("-0.") == "" else lowered(words) if baseline[0] == "-" else raised(words)
