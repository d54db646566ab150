"""Titles in the front matter of files whose parts are documents: all parts of a file share its title."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sire_core.corpus.sections import title_of
from sire_core.corpus.titles import header_title
from sire_core.errors import IndexMissingError

if TYPE_CHECKING:
    from sire_core.index import Index
    from sire_core.types import Document

_FILE_KEYS = ("source", "file_path")


class FileTitles:
    """Follows the titles of files through changes of an index.

    Documents with the same `source` (or `file_path`) in their metadata are parts of one file. The title in the front
    matter of the first part that has one is the title of all parts without a title of their own.

    Args:
        title_key: Metadata key, or keys, of a document's own title.
        index: Holds parts that were added before; None if there are none.
    """

    def __init__(self, title_key: str | Sequence[str], index: Index | None = None) -> None:
        self._title_key = title_key
        self._index = index
        self._parts: dict[str, dict[str, str]] = {}
        self._files: dict[str, str] = {}
        self._state: object = None

    def put(self, documents: Sequence[Document], keep: Collection[str] | None = None) -> list[Document]:
        """Documents with the titles of their files, then stored ones whose titles change with them.

        Args:
            documents: New or changed documents.
            keep: Ids of the stored documents that stay; None keeps all.
        """
        self._load()
        before, given = self._titles(), {document.id for document in documents}
        if keep is not None:
            for name in self._files.keys() - keep:
                self._drop(name)
        for document in documents:
            self._note(document)
        titled = [replace(d, title=title) if (title := self._title(d.id)) else d for d in documents]
        return [*titled, *self._changed(before, given)]

    def delete(self, doc_ids: Iterable[str]) -> list[Document]:
        """Stored documents whose titles change when these documents are deleted."""
        self._load()
        before, removed = self._titles(), set(doc_ids)
        for name in removed:
            self._drop(name)
        return self._changed(before, removed)

    def done(self) -> None:
        """The change that was asked about last is in the index: what is known of its files holds."""
        self._state = self._current()

    def _load(self) -> None:
        """Read the parts in the index, unless they are known; a change that failed is forgotten."""
        state, self._state = self._state, None
        if self._index is None or (state is not None and state == self._current()):
            return
        self._parts, self._files = {}, {}
        try:
            documents = self._index.documents()
        except IndexMissingError:
            return
        for document in documents:
            self._note(document)
        for document in documents:  # a title from elsewhere stays
            if document.title and document.title not in self._parts.get(self._files.get(document.id, ""), {}).values():
                self._drop(document.id)

    def _current(self) -> object:
        try:
            stats = {} if self._index is None else self._index.stats()
        except IndexMissingError:
            return None
        return stats.get("generation"), stats.get("pending")

    def _note(self, document: Document) -> None:
        file = next((v for key in _FILE_KEYS if isinstance(v := document.metadata.get(key), str) and v), "")
        if self._files.get(document.id, file) != file or not file or title_of(document.metadata, self._title_key):
            self._drop(document.id)
        if file and not title_of(document.metadata, self._title_key):
            text = document.passages[0].text if document.passages else document.text
            self._files[document.id] = file
            self._parts.setdefault(file, {})[document.id] = header_title(text)

    def _drop(self, name: str) -> None:
        if (file := self._files.pop(name, None)) is not None:
            del self._parts[file][name]

    def _title(self, name: str) -> str:
        parts = self._parts.get(self._files.get(name, ""), {})
        return next(filter(None, parts.values()), "")

    def _titles(self) -> dict[str, str]:
        return {file: title for file, parts in self._parts.items() if (title := next(filter(None, parts.values()), ""))}

    def _changed(self, before: Mapping[str, str], given: set[str]) -> list[Document]:
        after = self._titles()
        files = [file for file in before.keys() | after.keys() if before.get(file) != after.get(file)]
        names = [name for file in files for name in self._parts.get(file, ()) if name not in given]
        if self._index is None or not names:
            return []
        stored = self._index.documents(names)
        return [replace(d, title=title) for d in stored if d.title != (title := self._title(d.id))]
