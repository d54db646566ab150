"""`FileTitles`: the title in the front matter of a file's first part is the title of all its parts."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from sire_core.documents.heading_paths import title_of
from sire_core.documents.titles import file_of, header_title
from sire_core.errors import ConfigurationError, IndexMissingError
from sire_core.text.pluralize import count, some

if TYPE_CHECKING:
    from sire_core.index import Index
    from sire_core.types import Document


_logger = logging.getLogger(__name__)


class FileTitles:
    """Follows the titles of files through changes of an index, which may hold parts that were added before.

    Documents with the same `source` (or `file_path`) in their metadata are parts of one file. The title in the front
    matter of the first part that has one is the title of all parts without a title of their own (under `title_key`), as
    long as it stands in one of them. Only the parts of files that change are read.
    """

    def __init__(self, title_key: str | Sequence[str], index: Index | None = None) -> None:
        if not isinstance(title_key, (str, list, tuple)):
            raise ConfigurationError(f"title_key is a metadata key or a list of keys, not {title_key!r:.100}.")
        self._title_key = title_key
        self._index = index
        self._files: dict[str, str] = {}
        self._parts: dict[str, dict[str, str]] = {}
        """Titles in front matter of the parts without a title of their own, of the files that changed."""
        self._used: dict[str, str] = {}
        """The title that the parts of a file have."""
        self._state: object = None
        self.dropped: list[str] = []
        """Stored parts of the sources that were replaced last."""
        self._put: set[str] = set()
        self._mentioned: set[str] = set()
        """Files of which a warning has named old parts."""

    def put(
        self, documents: Sequence[Document], same: Sequence[str] = (), *, replacing: Literal["source", "all", ""] = ""
    ) -> list[Document]:
        """Documents with the titles of their files, then stored ones whose titles change with them.

        The given ones are these and the stored ones with the ids in `same`; of all others, or those of the same
        sources, nothing stays.
        """
        given_ids = {document.id for document in documents}
        self._put.update(given_ids, same)
        self._load()
        files = {file_of(document.metadata) for document in documents} | {self._files.get(name, "") for name in same}
        others = given_ids.union(same)
        others = {name for name, file in self._files.items() if file and file in files and name not in others}
        self.dropped = sorted(others) if replacing == "source" else []
        dropped = self._files.keys() - set(same) if replacing == "all" else set(self.dropped)
        self._mentioned -= {self._files[name] for name in dropped}
        staying = {file for name, file in self._files.items() if name not in dropped}
        for name in [name for name in dropped if self._files[name] not in staying]:
            self._drop(name)  # with its file: unread
        before = self._read([*given_ids, *dropped], files)
        for name in dropped:
            self._drop(name)
        for document in documents:
            self._note(document)
        shared = self._titles()
        titled = [replace(d, title=title) if (title := self._title(d.id, shared)) else d for d in documents]
        return [*titled, *self._changed(before, given_ids)]

    def warn_of_old_parts(self) -> None:
        """Log a warning, once per file, if the index keeps parts of the files that were put since the last call.

        They may be of an older split: its parts can have other ids than those of a new one, or be more.
        """
        put, self._put = self._put, set()
        files = {self._files.get(name, "") for name in put} - {"", *self._mentioned}
        old = sorted(name for name, file in self._files.items() if file in files and name not in put)
        if old:
            concerned = {self._files[name] for name in old}
            self._mentioned |= concerned
            _logger.warning(
                "The index keeps %s of %s beside those that were given now (%s). If a file was split again or is "
                "shorter now, they are old: give all parts of the file with replace_source=True.",
                count(len(old), "other part"),
                some(sorted(concerned)),
                some(old),
            )

    def delete(self, doc_ids: Iterable[str]) -> list[Document]:
        """Stored documents whose titles change when these documents are deleted."""
        removed = set(doc_ids)
        self._load()
        self._mentioned -= {self._files.get(name, "") for name in removed}
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

    def _changed(self, before: Mapping[str, str], given_ids: set[str]) -> list[Document]:
        after = self._titles()
        files = [file for file in before.keys() | after.keys() if before.get(file) != after.get(file)]
        names = [name for file in files for name in self._parts.get(file, ()) if name not in given_ids]
        if self._index is None or not names:
            return []
        stored = self._index.documents(names)
        return [replace(d, title=title) for d in stored if d.title != (title := self._title(d.id, after))]
