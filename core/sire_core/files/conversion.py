"""Shared by all readers: their result, how much text a file may still give, notes for people, small parsers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from sire_core.errors import CorpusError
from sire_core.text.words import clean_text

_FREE, _PER_BYTE = 5_000_000, 10
"""Letters that every file may give, and more for each byte that it unpacks to: cells and notes repeat some text."""


class ExpansionError(CorpusError):
    """A file unpacks to more than a document does; no other reader tries it."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A file as text."""

    title: str  # Its title, of a mail its subject; empty if it has none
    # Markdown. Of a mail sender, recipients and date, a line each; the text; then attachments under headings.
    text: str
    notes: Sequence[str] = ()  # What people should know of the text
    # Of a mail `from`, `reply_to`, `to`, `cc`, `bcc` and `date` (ISO 8601), those that it has
    fields: Mapping[str, str] = field(default_factory=dict)
    unread: Sequence[tuple[str, str]] = ()  # Names of what else it holds, and why that is not read


@dataclass(slots=True)
class Conversion:
    """A running conversion."""

    letters_left: int  # How many letters it may still give
    # What people should know of the text: parts that were left out, an encoding that was guessed
    notes: list[str] = field(default_factory=list)


_RUNNING: ContextVar[Conversion | None] = ContextVar("_RUNNING", default=None)


@contextmanager
def conversion(size: int) -> Iterator[Conversion]:
    """Convert a file that unpacks to so many bytes."""
    running = Conversion(_FREE + _PER_BYTE * size)
    token = _RUNNING.set(running)
    try:
        yield running
    finally:
        _RUNNING.reset(token)


def spend(text: str) -> str:
    """Count a piece of text, and return it.

    Raises:
        CorpusError: The file gives more text than a document of its size.
    """
    running = _RUNNING.get()
    if running is not None:
        running.letters_left -= len(text)
        if running.letters_left < 0:
            raise ExpansionError("the file repeats its text more often than a document does; split it, or save it anew")
    return text


def note(words: str) -> None:
    """Note what people should know of the text."""
    running = _RUNNING.get()
    if running is not None and words not in running.notes:
        running.notes.append(words)


def whole_number(text: str | None, default: int = 0, *, digits: int = 8) -> int:
    """The number that an attribute holds, of at most so many ASCII digits; the default for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= digits else default


def clean_lines(text: str) -> str:
    r"""A text without what cannot be stored, with `\n` at the ends of lines."""
    return clean_text(text).replace("\r\n", "\n").replace("\r", "\n")
