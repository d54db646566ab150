"""Entities that XML and XHTML files declare: harmless ones are written out, the others are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.entities import html5

from sire_core.files.conversion import ExpansionError

_LONGEST_DOCTYPE = 200_000
_LONGEST_VALUE = 1_000
_EXPANSION = 1_000_000  # Characters that references may add to a file, beside as many as it has
_NESTING = 10
_SPACE = re.compile(r"\s*")
_DOCTYPE = re.compile(r"<!DOCTYPE\b", re.IGNORECASE)
_PART = re.compile(
    r"""<!--[^-]{0,9999}(?:-(?!->)[^-]{0,9999}){0,9}-->|<\?[^?]{0,2000}\?>|"[^"]{0,20000}"|'[^']{0,20000}'|[\[\]<>]"""
)
_ENTITY = re.compile(
    r"""<!--[^-]*(?:-(?!->)[^-]*)*|<!ENTITY\s+(?P<parameter>%\s+)?(?P<name>[^\s"'<>&;%]{1,100})\s+"""
    r"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?:SYSTEM|PUBLIC)\b[^<>]*)"""
)
_REFERENCE = re.compile(
    r"<!\[CDATA\[[^\]]*(?:\](?!\]>)[^\]]*)*|<!--[^-]*(?:-(?!->)[^-]*)*|&(?P<name>[^\W\d][\w.:-]{0,100});|&(?P<bare>(?!#\w{1,9};))"
)
_NAMED_ENTITIES = re.compile(r"&([^\W\d][\w.:-]{0,100});")
_OF_XML = frozenset("amp lt gt quot apos".split())


def split_doctype(page: str) -> tuple[str, str, str]:
    """Split a page into what stands before its document type, the document type, and the rest."""
    start = _prolog_end(page)
    if not _DOCTYPE.match(page, start):
        return page, "", ""
    inside = ended = False
    for part in _PART.finditer(page, start + 1, start + _LONGEST_DOCTYPE):
        mark = part[0]
        inside, ended = (mark == "[" or inside) and not (inside and mark == "]"), mark == ">" and not inside
        if ended:
            return page[:start], page[start : part.end()], page[part.end() :]
    raise ExpansionError("its document type has no end, or is too long; take it out to read the file")


def _prolog_end(page: str) -> int:
    """Position behind white space, comments and instructions that a page begins with."""
    position = 1 if page.startswith("\ufeff") else 0
    while True:
        position = _SPACE.match(page, position).end()  # type: ignore[union-attr]
        for begin, end in (("<?", "?>"), ("<!--", "-->")):
            if page.startswith(begin, position):
                stop = page.find(end, position + len(begin))
                if stop < 0:
                    return position
                position = stop + len(end)
                break
        else:
            return position


def without_entities(page: str, *, is_xml: bool = True) -> str:
    """A page without declared entities: references to them are their text, and to those of HTML their characters.

    In XML a reference to an unknown entity, or a single `&`, is a fault. `ExpansionError` if they may expand without
    end.
    """
    before, doctype, rest = split_doctype(page)
    entities = _declared(doctype) if "[" in doctype else {}
    if not is_xml and not entities:
        return page if "[" not in doctype else f"{before}<!DOCTYPE html>{rest}"
    left = _EXPANSION + len(page)

    def written(match: re.Match[str]) -> str:
        nonlocal left
        name = match["name"]
        if name is None:
            return f"&amp;{match[0][1:]}" if match["bare"] is not None and is_xml else match[0]
        if name in entities:
            text = entities[name]
        elif not is_xml or name in _OF_XML:
            return match[0]
        else:
            letters = html5.get(f"{name};")
            text = f"&amp;{name};" if letters is None else "".join(f"&#{ord(letter)};" for letter in letters)
        left -= len(text)
        if left < 0:
            raise _expands()
        return text

    body = rest if doctype else page
    return f"{before if doctype else ''}{_REFERENCE.sub(written, body)}"


def _declared(doctype: str) -> dict[str, str]:
    """Values of the entities that a document type declares; of those in other files, which are not read, none."""
    raw: dict[str, str] = {}
    for match in _ENTITY.finditer(doctype):
        if match["name"] and not match["parameter"]:
            raw.setdefault(match["name"], match["double"] or match["single"] or "")
    return {name: _expanded(value, raw) for name, value in raw.items()}


def _expanded(text: str, raw: Mapping[str, str]) -> str:
    """The value of an entity, with the values of those that it refers to."""
    for _ in range(_NESTING):
        if len(text) > _LONGEST_VALUE:
            break
        before, text = text, _NAMED_ENTITIES.sub(lambda other: raw.get(other[1], other[0]), text)
        if before == text:
            return text
    raise _expands()


def _expands() -> ExpansionError:
    return ExpansionError("the file declares XML entities, which may expand without end; take them out to read it")
