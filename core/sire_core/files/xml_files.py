"""XML, FictionBook, OPML, EPUB and OpenDocument texts as Markdown, by the standard library's parser."""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from sire_core.documents.markdown_writing import cell_text, list_item, plain_text
from sire_core.documents.titles import first_title
from sire_core.errors import CorpusError
from sire_core.files.conversion import note, spend, whole_number
from sire_core.files.file_types import ENCRYPTED
from sire_core.files.formulas import Element, mathml
from sire_core.files.html import LONGEST_REPEATED, html_to_markdown
from sire_core.files.office_package import parse_part
from sire_core.files.raised_text import END, LOWERED, RAISED, lowered, raised, ruby, write_scripts
from sire_core.files.source_files import declared_encoding, decode_any
from sire_core.files.workbooks import compact_table
from sire_core.files.xml_entities import without_entities
from sire_core.text.pluralize import count, some

_MANIFEST = "META-INF/manifest.xml"
_HEADING_STYLE = re.compile(r"Title|Heading_20_([1-9])")
_LEFT_OUT = frozenset("binary script style metadata tracked-changes sequence-decls forms document-info genre".split())
_HEADINGS = frozenset("title head heading subtitle".split())
_TITLES = ("book-title", "article-title", "doctitle")
_PROSE = frozenset(
    "p para paragraph simpara text-author li item listitem line l v note quote abstract body div sec section sect1 "
    "sect2 sect3 chapter article book row entry td th cell description summary content text subtitle title".split()
)
_SECTIONS = frozenset("sec section sect1 sect2 sect3 sect4 chapter part".split())
_LEVEL = 6
_PAGES = (".xhtml", ".html", ".htm")
_NAMED_ELEMENTS = 3
_SCRIPTS = {name: (RAISED if "sup" in name else LOWERED, END) for name in ("sup", "sub", "superscript", "subscript")}
_RUBY = ("ruby-base", "ruby-text")
_FORMULA_DEPTH = 60
_HEAD = 2000
_DECLARATION = re.compile(r"\A\s*<\?xml[^<>]*\?>")
_FOOTER = re.compile(r"<(/?)(?:\w+:)?footer\b", re.IGNORECASE)


def _name(element: Any) -> str:
    """Local name of an element in lower case; empty for comments."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def _root(raw: bytes) -> Any:
    """Parse XML. What is not well-formed is read as far as that can be done, with a note."""
    if b"<!ENTITY" not in raw.replace(b"\0", b""):
        with suppress(ET.ParseError, ValueError, LookupError):
            return ET.fromstring(raw)  # noqa: S314 (without entities, only its size matters, which is limited)
    page = _DECLARATION.sub("", without_entities(decode_any(raw, declared_encoding(raw))), count=1)
    try:
        return ET.fromstring(page)  # noqa: S314 (its entities are written out)
    except (ET.ParseError, ValueError) as error:
        root = _recovered(page)
        if root is None:
            raise CorpusError(f"is not well-formed XML ({error})") from error
        note(f"is not well-formed XML ({error}), so some of it may be missing")
        return root


def _recovered(page: str) -> Any:
    """Root of what can be read of a page that is not well-formed; None if that is nothing."""
    from lxml import etree

    try:
        root = parse_part(page.lstrip("\ufeff \t\r\n").encode("utf-8", "replace"), mend=True)
    except (etree.XMLSyntaxError, ValueError):
        return None
    return root if root is not None and any(text.strip() for text in root.itertext()) else None


def read_xml(path: Path) -> tuple[str, str]:
    """Title and Markdown of an XML file, such as FictionBook. Values of data elements are written as `price: 44.95`."""
    root = _root(path.read_bytes())
    titles = [_words(element) for element in root.iter() if _name(element) in _TITLES]
    return first_title(*titles[:1]), "\n\n".join(_blocks(root))


def _blocks(root: Any) -> Iterator[str]:
    """Paragraphs, values and headings; iterative, since elements may be nested deeply."""
    stack: list[tuple[Any, int]] = [(root, 0)]
    while stack:
        element, depth = stack.pop()
        name = _name(element)
        if not name or name in _LEFT_OUT:
            continue
        mixed = any((child.tail or "").strip() for child in element) or (len(element) and (element.text or "").strip())
        if name in _HEADINGS:
            words = " ".join(_words(element).split())
            if words:
                yield f"{'#' * min(depth + 1, _LEVEL)} {words}"
        elif mixed or not len(element):
            words = plain_text(_words(element))
            if words:
                yield (
                    words
                    if mixed or name in _PROSE or name in _TITLES
                    else f"{element.tag.rpartition('}')[2]}: {words}"
                )
        else:
            below = depth + (name in _SECTIONS)
            stack += [(child, below) for child in reversed(element)]


def _words(element: Any) -> str:
    return " ".join(write_scripts("".join(_letters(element))).split())


def _letters(element: Any) -> Iterator[str]:
    """Text of an element, with marks around raised and lowered letters; iterative, as above."""
    stack: list[Any] = [element]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            yield part
            continue
        name = _name(part)
        begin, end = _SCRIPTS.get(name, ("", ""))
        behind: list[Any] = [part.tail or ""] if part is not element else []
        if name == "math":
            stack += [*behind, mathml(_formula(part))]
        elif name:
            stack += [*behind, end, *reversed(part), part.text or "", begin]
        else:
            stack += behind  # a comment


def _formula(element: Any, depth: int = 0) -> Element:
    """A formula with its parts; those that lie too deep are text."""
    children: list[Any] = [element.text or ""]
    for child in element:
        if _name(child):
            children.append(_formula(child, depth + 1) if depth < _FORMULA_DEPTH else "".join(child.itertext()))
        children.append(child.tail or "")
    return Element(_name(element), {}, [child for child in children if child != ""])


def read_opml(path: Path) -> tuple[str, str]:
    """Title and Markdown of an outline: a list of its items."""
    root = _root(path.read_bytes())
    title = next((_words(node) for node in root.iter() if _name(node) == "title"), "")
    lines: list[str] = []
    stack = [(node, 0) for node in root.iter() if _name(node) == "body"][:1]
    while stack:
        element, depth = stack.pop()
        words = [element.get("text") or element.get("title") or "", element.get("_note") or ""]
        text = plain_text(" ".join(filter(None, words)))
        if text:
            lines.append(list_item(text, "-", min(depth - 1, 12)))
        stack += [(child, depth + 1) for child in reversed(element)]
    return first_title(title), "\n".join(lines)


def read_epub(path: Path) -> tuple[str, str]:
    """Title and Markdown of a book, its pages in reading order."""
    with zipfile.ZipFile(path) as archive:
        book = _Book(archive)
        return first_title(book.title), "\n\n".join(filter(None, book.pages()))


class _Book:
    """An EPUB file: its `title`, and its pages, each of which is read once."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = {name.lower(): name for name in archive.namelist()}
        self.title = ""
        self._hrefs: list[str] = []
        self._folder = ""
        for name in self._packages():
            with suppress(KeyError, CorpusError, zipfile.BadZipFile, zlib.error, OSError):
                self._read_package(name, _root(archive.read(name)))
                break

    def _packages(self) -> list[str]:
        """Names of the package documents, that which the container names first."""
        named: list[str] = []
        with suppress(KeyError, CorpusError, zipfile.BadZipFile, zlib.error, OSError):
            container = _root(self._archive.read(self._names["meta-inf/container.xml"]))
            paths = (element.get("full-path", "") for element in container.iter() if _name(element) == "rootfile")
            named = [name for path in paths if (name := self._target(path))]
        return list(dict.fromkeys([*named, *(name for name in self._names.values() if name.lower().endswith(".opf"))]))

    def _read_package(self, name: str, package: Any) -> None:
        self._folder = posixpath.dirname(name)
        items = {e.get("id"): e for e in package.iter() if _name(e) == "item"}
        order = [items[e.get("idref")] for e in package.iter() if _name(e) == "itemref" and e.get("idref") in items]
        order = order or [item for item in items.values() if "html" in item.get("media-type", "")]
        self.title = next((_words(e) for e in package.iter() if _name(e) == "title"), "")
        self._hrefs = [
            item.get("href") or ""
            for item in order
            if "nav" not in (item.get("properties") or "").split()
            and not item.get("media-type", "").startswith(("image/", "audio/", "video/", "font/"))
        ]

    def _target(self, href: str) -> str:
        """Name in the archive of what a reference leads to; empty if it is not there."""
        plain = re.split("[#?]", href, maxsplit=1)[0]
        for form in dict.fromkeys((href, plain, unquote(href), unquote(plain))):
            joined = posixpath.normpath(posixpath.join("/", self._folder, form.replace("\\", "/"))).lstrip("/")
            if joined.lower() in self._names:
                return self._names[joined.lower()]
        return ""

    def pages(self) -> Iterator[str]:
        """Markdown of the pages in reading order; without an order, of all pages by their names."""
        targets = {href: self._target(href) for href in self._hrefs}
        gone = [href for href, name in targets.items() if not name]
        names = dict.fromkeys(filter(None, targets.values()))
        if not names:
            names = dict.fromkeys(sorted(name for name in self._names.values() if name.lower().endswith(_PAGES)))
        for name in names:
            try:
                raw = self._archive.read(name)
            except (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError, RuntimeError):
                gone.append(name)
                continue
            page = decode_any(raw, declared_encoding(raw))
            yield spend(html_to_markdown(_FOOTER.sub(r"<\1div", page))[1])  # of a book's page it is content
        if gone:
            note(f"{count(len(gone), 'page')} of the book cannot be read: {some(gone, _NAMED_ELEMENTS)}")


def read_odt(path: Path) -> tuple[str, str]:
    """Title and Markdown of an OpenDocument text, presentation or sheet."""
    with zipfile.ZipFile(path) as packed:
        document = _OpenDocument(packed)
        return document.title(), "\n\n".join(filter(None, document.blocks()))


class _OpenDocument:
    """Goes through an OpenDocument file once; formulas and charts in it are read where they stand."""

    def __init__(self, packed: zipfile.ZipFile) -> None:
        self._packed = packed
        self._names = set(packed.namelist())
        if _MANIFEST in self._names and b"encryption-data" in packed.read(_MANIFEST):
            raise CorpusError(ENCRYPTED)
        self._content = _root(packed.read("content.xml"))
        self._objects: set[str] = set()  # which are read
        styles = [element for element in self._content.iter() if _name(element) == "style"]
        self._parent_styles = {_attribute(style, "name"): _attribute(style, "parent-style-name") for style in styles}
        self._scripts = {
            _attribute(style, "name"): raised if position.startswith(("super", *"123456789")) else lowered
            for style in styles
            for properties in style
            if (position := _attribute(properties, "text-position")) and position[0] != "0"
        }

    def title(self) -> str:
        """The title or subject in the file's properties."""
        if "meta.xml" not in self._names:
            return ""
        meta = list(_root(self._packed.read("meta.xml")).iter())
        return first_title(*(_words(e) for name in ("title", "subject") for e in meta if _name(e) == name))

    def blocks(self) -> Iterator[str]:
        """Markdown blocks of the whole file."""
        body = next((e for e in self._content.iter() if _name(e) == "body"), self._content)
        yield from (spend(block) for block in self._blocks(body, 0))

    def _blocks(self, parent: Any, level: int) -> Iterator[str]:
        for element in parent:
            name = _name(element)
            if name in ("h", "p"):
                words, deep = write_scripts(self._words(element)), self._depth(element)
                is_heading = deep and (words.strip() or name == "h")
                yield f"{'#' * min(deep, _LEVEL)} {' '.join(words.split())}" if is_heading else plain_text(words)
                yield from self._behind(element)
            elif name == "list":
                items = ["\n".join(filter(None, self._blocks(item, level + 1))) for item in element]
                yield "\n".join(list_item(item, "-", 0) for item in items if item)
            elif name == "table":
                yield from self._table(element)
            elif name == "object":
                yield from self._object(element)
            elif name and name not in _LEFT_OUT:
                yield from self._blocks(element, level)

    def _depth(self, paragraph: Any) -> int:
        """Depth of a heading, also of a paragraph that only has the style of one; 0 of other paragraphs."""
        if _name(paragraph) == "h":
            return whole_number(_attribute(paragraph, "outline-level"), 1)
        style = _attribute(paragraph, "style-name")
        match = _HEADING_STYLE.fullmatch(self._parent_styles.get(style) or style)
        return int(match[1] or 1) if match else 0

    def _behind(self, paragraph: Any) -> Iterator[str]:
        """Notes, comments, text boxes and charts of a paragraph."""
        for element in paragraph:
            if _name(element) in ("note-body", "annotation", "text-box"):
                yield from filter(None, self._blocks(element, 0))
            elif _name(element) == "object":
                yield from filter(None, self._object(element))
            else:
                yield from self._behind(element)

    def _object(self, element: Any) -> Iterator[str]:
        """Titles and values of a chart; a formula stands in its paragraph."""
        root = self._object_root(element)
        if root is not None and _name(root) != "math":
            yield from self._blocks(root, 0)

    def _formula(self, element: Any) -> str:
        """A formula as a line; empty for another object."""
        name = f"{posixpath.normpath(_attribute(element, 'href') or '.')}/content.xml"
        if name in self._names and b"<math" in self._packed.read(name)[:_HEAD]:
            root = self._object_root(element)
            return "" if root is None else mathml(_formula(root))
        return ""

    def _object_root(self, element: Any) -> Any:
        """Content of an object that is a part of the file, when it is met first."""
        part = posixpath.normpath(_attribute(element, "href") or ".")
        name = f"{part}/content.xml"
        if name not in self._names or name in self._objects:
            return None
        self._objects.add(name)
        try:
            return _root(self._packed.read(name))
        except (CorpusError, zipfile.BadZipFile, zlib.error):
            note(f"{part} in the file cannot be read")
            return None

    def _table(self, element: Any) -> Iterator[str]:
        merged: dict[int, tuple[int, str]] = {}  # by column, how many more rows have the cell above, and its text
        rows = [self._row(row, merged) for row in _rows_of(element)]
        name, text = _attribute(element, "name"), compact_table(rows.__iter__)
        is_sheet = name and not name.startswith(("Table", "local-table"))
        if text:
            yield from [f"## {name}", text] if is_sheet else [text]

    def _row(self, row: Any, merged: dict[int, tuple[int, str]]) -> dict[int, str]:
        """Cells with text, by column."""
        cells: dict[int, str] = {}
        column = 0
        for cell in row:
            words = cell_text(self._blocks(cell, 0))
            repeated, below = (
                max(1, whole_number(_attribute(cell, f"number-{name}")))
                for name in ("columns-repeated", "rows-spanned")
            )
            left, above = merged.get(column, (0, ""))
            if left and _name(cell) == "covered-table-cell":
                merged[column], words = (left - 1, above), words or above
            is_short = len(words) <= LONGEST_REPEATED
            if below > 1 and is_short:
                merged[column] = below - 1, words
            if words:
                is_one = not is_short or _name(cell) == "covered-table-cell"
                cells |= {column + number: spend(words) for number in range(1 if is_one else min(repeated, 64))}
            column += repeated
        return cells

    def _words(self, element: Any) -> str:
        """Text of a paragraph with its tabs, line ends and runs of spaces."""
        parts = [element.text or ""]
        for child in element:
            name = _name(child)
            if name in ("tab", "s"):
                parts.append(" ")
            elif name == "line-break":
                parts.append("\n")
            elif name == "ruby":
                parts.append(ruby(*("".join(self._words(e) for e in child if _name(e) == n) for n in _RUBY)))
            elif name == "frame":
                parts += [self._formula(e) for e in child.iter() if _name(e) == "object"]
            elif name not in ("note", "annotation", "page-number", "page-count", "bookmark", "desc"):
                mark = self._scripts.get(_attribute(child, "style-name"))
                words = self._words(child)
                parts.append(mark(words) if mark else words)
            parts.append(child.tail or "")
        return "".join(parts)


def _rows_of(table: Any) -> Iterator[Any]:
    """Rows of a table, without those of tables in its cells."""
    for element in table:
        if _name(element) == "table-row":
            yield element
        else:
            yield from _rows_of(element)


def _attribute(element: Any, name: str) -> str:
    """Value of an attribute, in whatever namespace."""
    return next((str(value) for key, value in element.attrib.items() if key.rpartition("}")[2] == name), "")
