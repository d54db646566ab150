"""Titles in the properties of a file, its front matter or a header; parts of a file share its title."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sire_core.documents.blocks import is_contents
from sire_core.documents.front_matter import front_matter
from sire_core.documents.markdown_sections import title_line, title_of
from sire_core.documents.markdown_writing import undo_inline
from sire_core.errors import IndexMissingError

if TYPE_CHECKING:
    from sire_core.index import Index
    from sire_core.types import Document

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
"""What Sphinx adds to the titles of all pages."""
_NAMELESS = re.compile(rf"{_SEPARATOR}\s+|\s+{_SEPARATOR}\Z")
"""Where a template left out the name of a page: `Site - `, `- Site`."""
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_NO_OPENING = re.compile(r"(?:dear|hi|hello|to whom|copyright)\b|\d{1,4}[-/:.]\d|.*[=<>{}\[\]*@\\]", re.IGNORECASE)
"""First lines that are no title: greetings, notices, times, code."""
_FEWEST_WORDS = 3
"""Of a first line that is a title; a file's name says more than `Meeting notes`."""
FILE_KEYS = ("source", "file_path")
"""Metadata keys that name the file of a document, the first that has a text counts."""


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
    """The title that a plain text opens with, above a blank line and a paragraph; empty if there is none."""
    head, paragraph, *_ = [*_BLANK_LINES.split(text.strip(), 2), "", ""]
    if "\n" in head or any(_NO_OPENING.match(part) for part in (head, paragraph.partition("\n")[0])):
        return ""
    title, _ = title_line(f"{head}\n{' '.join(paragraph.split())}")
    return title if len(title.split()) >= _FEWEST_WORDS and not is_contents(title) else ""


def file_of(metadata: Mapping[str, Any]) -> str:
    """The file that a document is a part of; empty if it is of none."""
    return next((value for key in FILE_KEYS if isinstance(value := metadata.get(key), str) and value), "")


class FileTitles:
    """Follows the titles of files through changes of an index.

    Documents with the same `source` (or `file_path`) in their metadata are parts of one file. The title in the front
    matter of the first part that has one is the title of all parts without a title of their own, as long as it stands
    in one of them. Only the parts of files that change are read.

    Args:
        title_key: Metadata key, or keys, of a document's own title.
        index: Holds parts that were added before; None if there are none.
    """

    def __init__(self, title_key: str | Sequence[str], index: Index | None = None) -> None:
        self._title_key = title_key
        self._index = index
        self._files: dict[str, str] = {}
        self._parts: dict[str, dict[str, str]] = {}
        """Titles in front matter of the parts without a title of their own, of the files that changed."""
        self._used: dict[str, str] = {}
        """The title that the parts of a file have."""
        self._state: object = None

    def put(self, documents: Sequence[Document], keep: Collection[str] | None = None) -> list[Document]:
        """Documents with the titles of their files, then stored ones whose titles change with them."""
        given, files = {document.id for document in documents}, {file_of(document.metadata) for document in documents}
        self._load()
        dropped = set() if keep is None else self._files.keys() - set(keep)
        staying = {file for name, file in self._files.items() if name not in dropped}
        for name in [name for name in dropped if self._files[name] not in staying]:
            self._drop(name)  # with its file: unread
        before = self._read([*given, *dropped], files)
        for name in dropped:
            self._drop(name)
        for document in documents:
            self._note(document)
        shared = self._titles()
        titled = [replace(d, title=title) if (title := self._title(d.id, shared)) else d for d in documents]
        return [*titled, *self._changed(before, given)]

    def delete(self, doc_ids: Iterable[str]) -> list[Document]:
        """Stored documents whose titles change when these documents are deleted."""
        removed = set(doc_ids)
        self._load()
        before = self._read(removed)
        for name in removed:
            self._drop(name)
        return self._changed(before, removed)

    def done(self) -> None:
        """The change that was asked about last is in the index: what is known of its files holds."""
        self._state = self._current()

    def _load(self) -> None:
        """Read which documents are of which file, unless that is known; a change that failed is forgotten."""
        state, self._state = self._state, None
        if self._index is not None and (state is None or state != self._current()):
            self._files, self._parts, self._used = self._index.sources(), {}, {}

    def _read(self, doc_ids: Iterable[str], files: Iterable[str] = ()) -> dict[str, str]:
        """Read the parts of the files of some documents, and of others; the titles of the files that are known."""
        concerned = {self._files.get(name, "") for name in doc_ids}.union(files) - self._parts.keys()
        unread = [name for name, file in self._files.items() if file in concerned]
        self._parts.update({file: {} for file in concerned})
        if unread and self._index is not None:
            documents = self._index.documents(unread)
            for document in documents:
                self._note(document)
            for document in documents:  # a title from elsewhere stays
                file = self._files[document.id]
                if document.title in self._parts[file].values():
                    self._used.setdefault(file, document.title)
                elif document.title:
                    self._parts[file].pop(document.id, None)
        return self._titles()

    def _current(self) -> object:
        try:
            stats = {} if self._index is None else self._index.stats()
        except IndexMissingError:
            return None
        return stats.get("generation"), stats.get("pending")

    def _note(self, document: Document) -> None:
        file, has_title = file_of(document.metadata), bool(title_of(document.metadata, self._title_key))
        if has_title or self._files.get(document.id, file) != file:
            self._drop(document.id)
        if file:
            self._files[document.id] = file
        if file and not has_title:
            text = document.passages[0].text if document.passages else document.text
            self._parts.setdefault(file, {})[document.id] = header_title(text)

    def _drop(self, name: str) -> None:
        self._parts.get(self._files.pop(name, ""), {}).pop(name, None)

    def _title(self, name: str, shared: Mapping[str, str]) -> str:
        file = self._files.get(name, "")
        return shared.get(file, "") if name in self._parts.get(file, ()) else ""

    def _titles(self) -> dict[str, str]:
        """Titles of files: the one in use where a part still has it, else the first."""
        for file, parts in self._parts.items():
            if not self._used.get(file) or self._used[file] not in parts.values():
                self._used[file] = next(filter(None, parts.values()), "")
        return dict(self._used)

    def _changed(self, before: Mapping[str, str], given: set[str]) -> list[Document]:
        after = self._titles()
        files = [file for file in before.keys() | after.keys() if before.get(file) != after.get(file)]
        names = [name for file in files for name in self._parts.get(file, ()) if name not in given]
        if self._index is None or not names:
            return []
        stored = self._index.documents(names)
        return [replace(d, title=title) for d in stored if d.title != (title := self._title(d.id, after))]
