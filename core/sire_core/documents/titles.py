"""Titles in the properties of a file, its front matter or a header."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sire_core.documents.front_matter import front_matter
from sire_core.documents.furniture import is_contents
from sire_core.documents.markdown_sections import title_line
from sire_core.documents.markdown_writing import undo_inline

_HEADER = re.compile(r"(?:[A-Z][\w-]{0,40}:(?:[ \t].*)?\n(?:[ \t]+\S.*\n)*){2,}(?=\s*\n|\Z)")
_TITLE = re.compile(r"^Title:[ \t]*(.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)

_NO_TITLE = re.compile(
    r"word document|microsoft (?:word|excel|powerpoint)(?: - .*)?"
    r"|untitled(?:[ _-]?(?:document|presentation|spreadsheet))?[ _-]?\d*"
    r"|powerpoint[ -]pr[eéä]sentation|(?:document|presentation)[ _-]?\d*|r graphics output|cm(?:r|bx|ssbx|ss)\d+"
    r"|.*\.(?:pdf|docx?|docm|dotx?|odt|rtf|pptx?|odp|xlsx?|xlsm|ods|csv|tsv|txt|md|html?|tex|dvi|indd|qxd|wpd|eps|tmp)",
    re.IGNORECASE,
)
"""Titles that programs write by default."""
_SEPARATOR = r"(?:[-|:\u00b7\u00bb\u2013\u2014]|::)"
_SITE_BEHIND = re.compile(rf"\s+{_SEPARATOR}\s+\S")
_SITE_BEFORE = re.compile(rf"[^\d\s](?:\s+{_SEPARATOR}|:)\s+\Z")
_MANUAL = re.compile(r"\s\u2014\s[^\u2014]{1,100} documentation\Z")
"""Endings that Sphinx adds to the titles of all pages."""
_NAMELESS = re.compile(rf"{_SEPARATOR}\s+|\s+{_SEPARATOR}\Z")
"""Where a template left out the name of a page: `Site - `, `- Site`."""
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_NO_OPENING = re.compile(r"(?:dear|hi|hello|to whom|copyright)\b|\d{1,4}[-/:.]\d|.*[=<>{}\[\]*@\\]", re.IGNORECASE)
"""First lines that are no title: greetings, notices, times, code."""
_UNDERLINED = re.compile(r"(?:[=*#~]{3,}[ \t]*\n)?[ \t]*(\S.{0,200})\n[ \t]*([-=*#~])\2{2,}[ \t]*(?=\n|\Z)")
_FEWEST_WORDS = 3  # Longest first line that is a title; a file's name says more than `Meeting notes`
FILE_KEYS = ("source", "file_path")  # Metadata keys that name the file of a document, the first that has a text counts


def first_title(*candidates: object) -> str:
    """The first title that a person may have written, on one line; empty if there is none."""
    titles = (" ".join(candidate.split()) for candidate in candidates if isinstance(candidate, str))
    return next((title for title in titles if title and not _NO_TITLE.fullmatch(title)), "")


def without_site_name(title: str, heading: str) -> str:
    """The title of a page without the name of its site, if the rest is the heading of the page or empty."""
    if nameless := _NAMELESS.match(title) or _NAMELESS.search(title[-4:]):
        return heading or title.strip(nameless[0])
    title = _MANUAL.sub("", title)
    lower, name = title.casefold(), heading.casefold()
    if name and not is_contents(heading):
        before, behind = title[: -len(heading)], title[len(heading) :]
        if lower.startswith(name) and _SITE_BEHIND.match(behind):
            return heading
        if lower.endswith(name) and _SITE_BEFORE.search(before[-20:]):
            return heading
    page, bar, site = title.rpartition(" | ")
    shared, of_site = (len(set(name.split()).intersection(part.casefold().split())) for part in (page, site))
    return page if bar and shared > of_site else title


def split_header(text: str) -> tuple[str, str, str]:
    """Split off a header of `Title: ...` lines: its title, its lines, and the text below."""
    body = text.lstrip("\n")
    match = _HEADER.match(body[:10_000])
    title_match = _TITLE.search(match[0]) if match else None
    if match is None or title_match is None or not title_match[1].strip():
        return "", "", text
    return " ".join(title_match[1].split()), match[0].rstrip(), body[match.end() :]


def header_title(text: str) -> str:
    """The title in the front matter or header of a text; empty if there is none."""
    if text.startswith(("---", "+++")):
        return undo_inline(str(front_matter(text).get("title", "")))
    return split_header(text)[0]


def opening_title(text: str) -> str:
    """The title that a plain text opens with, underlined or above a blank line and a paragraph; empty without one."""
    if underlined := _UNDERLINED.match(text.strip()):
        return "" if is_contents(underlined[1]) else " ".join(underlined[1].split())
    head, paragraph, *_ = [*_BLANK_LINES.split(text.strip(), 2), "", ""]
    if "\n" in head or any(_NO_OPENING.match(part) for part in (head, paragraph.partition("\n")[0])):
        return ""
    title, _ = title_line(f"{head}\n{' '.join(paragraph.split())}")
    return title if len(title.split()) >= _FEWEST_WORDS and not is_contents(title) else ""


def is_of_values(metadata: Mapping[str, Any]) -> bool:
    """True if a document is a part of a file of values: of CSV, or a workbook."""
    return file_of(metadata).lower().endswith((".csv", ".tsv", ".xlsx", ".xls", ".ods"))


def file_of(metadata: Mapping[str, Any]) -> str:
    """The file that a document is a part of; empty if it is of none."""
    return next((value for key in FILE_KEYS if isinstance(value := metadata.get(key), str) and value), "")
