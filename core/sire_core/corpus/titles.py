"""Titles in the properties of a file, in its front matter, or in a header above its text."""

from __future__ import annotations

import re

from sire_core.corpus.markdown_cleaning import front_matter
from sire_core.corpus.markdown_writing import undo_inline

_HEADER = re.compile(r"(?:[A-Z][\w-]{0,40}:(?:[ \t].*)?\n(?:[ \t]+\S.*\n)*){2,}(?=\s*\n|\Z)")
_TITLE = re.compile(r"^Title:[ \t]*(.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)

_NO_TITLE = re.compile(
    r"word document|microsoft (?:word|excel|powerpoint)(?: - .*)?"
    r"|untitled(?:[ _-]?(?:document|presentation|spreadsheet))?[ _-]?\d*"
    r"|powerpoint[ -]pr[eéä]sentation|(?:document|presentation)[ _-]?\d*"
    r"|.*\.(?:pdf|docx?|docm|dotx?|odt|rtf|pptx?|odp|xlsx?|xlsm|ods|csv|tsv|txt|md|html?|tex|dvi|indd|qxd|wpd|eps|tmp)",
    re.IGNORECASE,
)
"""Titles that programs write by default."""


def first_title(*candidates: object) -> str:
    """The first title that a person may have written, on one line; empty if there is none."""
    titles = (" ".join(candidate.split()) for candidate in candidates if isinstance(candidate, str))
    return next((title for title in titles if title and not _NO_TITLE.fullmatch(title)), "")


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
