"""Titles that people gave, among those that programs wrote into the properties of a file."""

from __future__ import annotations

import re

__all__ = ["first_title"]

_NO_TITLE = re.compile(
    r"word document|microsoft (?:word|excel|powerpoint)(?: - .*)?"
    r"|untitled(?:[ _-]?(?:document|presentation|spreadsheet))?[ _-]?\d*"
    r"|powerpoint[ -]pr[eéä]sentation|(?:document|presentation)[ _-]?\d*"
    r"|.*\.(?:pdf|docx?|docm|dotx?|odt|rtf|pptx?|odp|xlsx?|xlsm|ods|csv|tsv|txt|md|html?|tex|dvi|indd|qxd|wpd|eps|tmp)",
    re.IGNORECASE,
)
"""What programs write as the title of a file that nobody gave one."""


def first_title(*candidates: object) -> str:
    """The first that a person may have written, on one line; empty if there is none.

    Args:
        candidates: Title, subject and the like of a file's properties; None and what is no text are none.
    """
    titles = (" ".join(candidate.split()) for candidate in candidates if isinstance(candidate, str))
    return next((title for title in titles if title and not _NO_TITLE.fullmatch(title)), "")
