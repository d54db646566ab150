"""Opens archives of Office Open XML, and mends those that no library opens: Strict ones, absent and broken parts."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Union

from sire_core.documents.titles import first_title
from sire_core.errors import CorpusError

Source = Union[str, io.BytesIO]  # An archive, or one that was mended

WORDPROCESSING = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"

_STRICT = b"http://purl.oclc.org/ooxml/"
_STRICT_NAME = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_TRANSITIONAL = rb"http://schemas.openxmlformats.org/\1/2006/"
_TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".emf", ".wmf", ".wdp", ".svg", ".mp4", ".bin")
_MAIN_TYPES = {
    "word/document.xml": "wordprocessingml.document.main",
    "xl/workbook.xml": "spreadsheetml.sheet.main",
    "ppt/presentation.xml": "presentationml.presentation.main",
}
_XML_TYPE = "application/vnd.openxmlformats-officedocument.{}+xml"
_MOST_PICTURES = 16 << 20  # Bytes of pictures above which a file is read without them


class Relation(NamedTuple):
    """A part that another one refers to: the last word of its type, and its name in the archive."""

    kind: str
    part: str


def parse_part(raw: bytes, *, mend: bool = False) -> Any:
    """Parse a part without entities and network; with `mend`, whatever can be read of one that is not well-formed."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=mend, huge_tree=False)
    return etree.fromstring(raw, parser)


def read_package(path: Path, read: Callable[[Source], tuple[str, str]]) -> tuple[str, str]:
    """Title and text by a reader; where it fails or there is no text, those of a mended copy of the file."""
    with zipfile.ZipFile(path) as archive:
        relations = next((name for name in archive.namelist() if name.lower() == "_rels/.rels"), "")
        is_odd = not relations or _STRICT in archive.read(relations)
        pictures = sum(m.file_size for m in archive.infolist() if m.filename.lower().endswith(_PICTURES))
    if is_odd or pictures > _MOST_PICTURES:
        return read(_mended(path))
    try:
        title, text = read(str(path))
    except (CorpusError, ImportError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 (each library has errors of its own)
        try:
            return read(_mended(path))
        except Exception:  # noqa: BLE001 (the first error says more)
            raise error from None
    return (title, text) if text.strip() else read(_mended(path))


def _mended(path: Path) -> io.BytesIO:
    """A copy with Transitional names, without pictures, absent and unreadable parts."""
    made = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as copy:
        parts = dict(_readable_parts(archive))
        names = {name.lower() for name in parts}
        for name, raw in parts.items():
            if name.lower() != "[content_types].xml":
                is_relations = name.lower().endswith(".rels")
                copy.writestr(name, _without_dangling(name, raw, names) if is_relations else raw)
        types = next((raw for name, raw in parts.items() if name.lower() == "[content_types].xml"), b"")
        copy.writestr("[Content_Types].xml", _content_types(types, parts))
    made.seek(0)
    return made


def _readable_parts(archive: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    from lxml import etree

    seen: set[str] = set()
    for member in archive.infolist():
        name = member.filename.replace("\\", "/").lstrip("/")
        if not name or name.endswith("/") or name.lower() in seen:
            continue
        seen.add(name.lower())
        if name.lower().endswith(_PICTURES):
            yield name, b""
            continue
        try:
            raw = archive.read(member)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError):
            continue  # one bad part never costs the file
        if name.lower().endswith((".xml", ".rels")):
            raw = _STRICT_NAME.sub(_TRANSITIONAL, raw)
            try:
                parse_part(raw)
            except (etree.XMLSyntaxError, ValueError):
                root = _recovered(raw)
                if root is None:
                    continue
                raw = root
        yield name, raw


def _recovered(raw: bytes) -> bytes | None:
    from lxml import etree

    try:
        root = parse_part(raw, mend=True)
    except (etree.XMLSyntaxError, ValueError):
        return None
    return None if root is None else bytes(etree.tostring(root, encoding="UTF-8", xml_declaration=True))


def _without_dangling(name: str, raw: bytes, names: set[str]) -> bytes:
    """Relations of a part without those to parts that are not there."""
    from lxml import etree

    root = parse_part(raw)
    for relation in list(root):
        if relation.get("TargetMode") != "External" and _target(name, relation.get("Target", "")).lower() not in names:
            root.remove(relation)
    return bytes(etree.tostring(root, encoding="UTF-8", xml_declaration=True, standalone=True))


def _target(relations: str, target: str) -> str:
    """Name in the archive of what relations (`word/_rels/document.xml.rels`) refer to."""
    folder = posixpath.dirname(posixpath.dirname(relations))
    joined = posixpath.normpath(posixpath.join("/", folder, target.replace("\\", "/")))
    return joined.lstrip("/").partition("#")[0]


def _content_types(raw: bytes, parts: Mapping[str, bytes]) -> bytes:
    """Types of all parts; of those that have none, by their names."""
    from lxml import etree

    root = parse_part(raw) if raw else etree.Element(f"{_TYPES}Types")
    names = {name.lower() for name in parts}
    for child in list(root):
        if child.tag == f"{_TYPES}Override" and child.get("PartName", "").lstrip("/").lower() not in names:
            root.remove(child)
    declared = {child.get("Extension", "").lower() for child in root if child.tag == f"{_TYPES}Default"}
    typed = {child.get("PartName", "").lstrip("/").lower() for child in root if child.tag == f"{_TYPES}Override"}
    defaults = {"rels": "application/vnd.openxmlformats-package.relationships+xml", "xml": "application/xml"}
    endings = {name.rpartition(".")[2].lower() for name in parts} - declared
    for ending in sorted(endings):
        kind = defaults.get(ending, "application/octet-stream")
        etree.SubElement(root, f"{_TYPES}Default", Extension=ending, ContentType=kind)
    for name, kind in _MAIN_TYPES.items():
        if name in names and name not in typed:
            etree.SubElement(root, f"{_TYPES}Override", PartName=f"/{name}", ContentType=_XML_TYPE.format(kind))
    return bytes(etree.tostring(root, encoding="UTF-8", xml_declaration=True, standalone=True))


def part_relations(archive: zipfile.ZipFile, part: str) -> dict[str, Relation]:
    """Parts that a part refers to, by the ids of the relations; those that are not there are left out."""
    folder, _, base = part.rpartition("/")
    name = f"{folder}/_rels/{base}.rels" if folder else f"_rels/{base}.rels"
    names = {member.lower(): member for member in archive.namelist()}
    if name.lower() not in names:
        return {}
    relations: dict[str, Relation] = {}
    for relation in parse_part(archive.read(names[name.lower()]), mend=True):
        target = _target(name, relation.get("Target", "")).lower()
        if relation.get("TargetMode") != "External" and target in names:
            kind = relation.get("Type", "").rpartition("/")[2]
            relations[relation.get("Id", "")] = Relation(kind, names[target])
    return relations


def properties_title(document: Any) -> str:
    """Title or subject in the properties of a file; empty without them."""
    with suppress(Exception):  # properties that cannot be read never cost the file
        return first_title(document.core_properties.title, document.core_properties.subject)
    return ""
