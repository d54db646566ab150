"""XML, FictionBook, OPML, EPUB and OpenDocument texts as Markdown, by the standard library's parser."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from sire_core.documents.markdown_writing import list_item, plain_text, table
from sire_core.documents.titles import first_title
from sire_core.errors import CorpusError
from sire_core.files.html import html_to_markdown

_LEFT_OUT = frozenset("binary script style metadata tracked-changes sequence-decls forms".split())
_HEADINGS = frozenset("title head heading subtitle".split())
_TITLES = ("book-title", "article-title", "doctitle")
_PROSE = frozenset(
    "p para paragraph simpara text-author li item listitem line l v note quote abstract body div sec section sect1 "
    "sect2 sect3 chapter article book row entry td th cell description summary content text subtitle title".split()
)
_SECTIONS = frozenset("sec section sect1 sect2 sect3 sect4 chapter part".split())
_LEVEL = 6
_FOOTER = re.compile(r"<(/?)(?:\w+:)?footer\b", re.IGNORECASE)


def _name(element: ET.Element) -> str:
    """Local name of an element in lower case; empty for comments."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def _root(raw: bytes) -> ET.Element:
    """Parse XML that was checked for entities."""
    try:
        return ET.fromstring(raw)  # noqa: S314 (files that declare entities are refused before)
    except ET.ParseError as error:
        raise CorpusError(f"is not well-formed XML ({error})") from error


def read_xml(path: Path) -> tuple[str, str]:
    """Title and Markdown of an XML file, such as FictionBook. Values of data elements are written as `price: 44.95`."""
    root = _root(path.read_bytes())
    titles = [_words(element) for element in root.iter() if _name(element) in _TITLES]
    return first_title(*titles[:1]), "\n\n".join(_blocks(root))


def _blocks(root: ET.Element) -> Iterator[str]:
    """Paragraphs, values and headings; iterative, since elements may be nested deeply."""
    stack: list[tuple[ET.Element, int]] = [(root, 0)]
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


def _words(element: ET.Element) -> str:
    return " ".join("".join(element.itertext()).split())


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
    with zipfile.ZipFile(path) as book:
        container = _root(book.read("META-INF/container.xml"))
        package_path = next(
            element.get("full-path", "") for element in container.iter() if _name(element) == "rootfile"
        )
        package = _root(book.read(package_path))
        items = {e.get("id"): e for e in package.iter() if _name(e) == "item"}
        order = [e.get("idref") for e in package.iter() if _name(e) == "itemref"]
        title = next((_words(e) for e in package.iter() if _name(e) == "title"), "")
        pages = []
        for name in dict.fromkeys(order):
            item = items.get(name)
            if item is None or "nav" in (item.get("properties") or "").split():
                continue
            target = posixpath.normpath(
                posixpath.join(posixpath.dirname(package_path), unquote(item.get("href") or ""))
            )
            page = book.read(target).decode("utf-8-sig", "replace")
            pages.append(html_to_markdown(_FOOTER.sub(r"<\1div", page))[1])  # of a book's page it is content
    return first_title(title), "\n\n".join(filter(None, pages))


def read_odt(path: Path) -> tuple[str, str]:
    """Title and Markdown of an OpenDocument text, presentation or sheet."""
    with zipfile.ZipFile(path) as packed:
        content = _root(packed.read("content.xml"))
        meta = _root(packed.read("meta.xml")) if "meta.xml" in packed.namelist() else ET.Element("none")
    titles = [_words(e) for name in ("title", "subject") for e in meta.iter() if _name(e) == name]
    body = next((e for e in content.iter() if _name(e) == "body"), content)
    return first_title(*titles), "\n\n".join(filter(None, _open_blocks(body, 0)))


def _open_blocks(parent: ET.Element, level: int) -> Iterator[str]:
    for element in parent:
        name = _name(element)
        if name == "h":
            deep = next((value for key, value in element.attrib.items() if key.endswith("outline-level")), "1")
            yield f"{'#' * min(int(deep) if deep.isdigit() else 1, _LEVEL)} {' '.join(_open_words(element).split())}"
            yield from _notes(element)
        elif name == "p":
            yield plain_text(_open_words(element))
            yield from _notes(element)
        elif name == "list":
            items = ["\n".join(filter(None, _open_blocks(item, level + 1))) for item in element]
            yield "\n".join(list_item(item, "-", 0) for item in items if item)
        elif name == "table":
            yield from _open_table(element)
        elif name and name not in _LEFT_OUT:
            yield from _open_blocks(element, level)


def _notes(paragraph: ET.Element) -> Iterator[str]:
    """Notes, comments and text boxes of a paragraph."""
    for element in paragraph.iter():
        if _name(element) in ("note-body", "annotation", "text-box"):
            yield from (block for block in _open_blocks(element, 0) if block)


def _open_table(element: ET.Element) -> Iterator[str]:
    rows = []
    for row in element.iter():
        if _name(row) == "table-row":
            cells: list[str] = []
            for cell in row:
                words = " ".join(filter(None, _open_blocks(cell, 0)))
                repeated = next((value for key, value in cell.attrib.items() if key.endswith("columns-repeated")), "1")
                cells += [words] * (min(int(repeated[:6]), 64) if words and repeated.isdigit() else 1)
            rows.append(cells)
    name = next((value for key, value in element.attrib.items() if key.endswith("}name")), "")
    text = table(rows)
    if text:
        yield from (
            [f"## {name}", text] if _name(element) == "table" and name and not name.startswith("Table") else [text]
        )


def _open_words(element: ET.Element) -> str:
    """Text of a paragraph with its tabs, line ends and runs of spaces."""
    parts = [element.text or ""]
    for child in element:
        name = _name(child)
        if name in ("tab", "s"):
            parts.append(" ")
        elif name == "line-break":
            parts.append("\n")
        elif name not in ("note", "annotation", "frame", "page-number", "page-count", "bookmark", "desc"):
            parts.append(_open_words(child))
        parts.append(child.tail or "")
    return "".join(parts)
