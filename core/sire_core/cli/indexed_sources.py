"""Files and folders that an index was made from: which are known already, and what their ids are."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path, PurePath
from unicodedata import normalize

from sire_core.errors import StorageError
from sire_core.files.source_files import SourceFile, file_id
from sire_core.storage.plain_files import read_checked, write_checked

KNOWN_FILES = "known_files.json"  # Name of the list in an index folder

_RECENT = 2_000_000_000  # Nanoseconds within which a file system may give two contents one time

_BYTES_PER_PART = 1 << 20


@dataclass(frozen=True, slots=True)
class _Known:
    """A file as it was read."""

    doc_id: str  # The document that the file is
    status: tuple[int, ...]  # Size, and times of the last change of content and of status, in nanoseconds
    content: str  # SHA-256 of its bytes
    stored: str  # `StoredDocument.hash` of the document
    noted: int  # Time of reading, in nanoseconds


class KnownFiles:
    """The list of files that an index folder keeps of what was read into it. Where it is damaged, all files are read.

    A file is known if its document is stored as it was read, and its size and times are the same; where only the times
    differ, its bytes are compared. Only files that are one document, read without any complaint, are noted. Under other
    `rules` of reading and cutting nothing is known, nor without a folder; `stored` are hashes by document id.
    """

    def __init__(self, folder: Path | None, rules: str, stored: Mapping[str, str]) -> None:
        self._file = None if folder is None else folder / KNOWN_FILES
        self._rules = rules
        self._stored = stored
        self._files = self._read()
        self._before: dict[str, _Known] = {}

    def _read(self) -> dict[str, _Known]:
        if self._file is None:
            return {}
        try:
            content = read_checked(self._file, dict)
            rows = content["files"] if content["rules"] == self._rules else {}
            return {path: _Known(row[0], tuple(row[1]), *row[2:]) for path, row in rows.items()}
        except (FileNotFoundError, StorageError, KeyError, TypeError, IndexError, AttributeError):
            return {}

    def holds(self, file: SourceFile) -> bool:
        """True if the index holds the document of a file as it is now; else it is going to be read."""
        path = os.path.realpath(file.path)
        if not Path(path).is_file():  # a pipe or a device would be read for ever
            return False
        with suppress(OSError):  # whoever reads the file says what is wrong with it
            noted, status, now = self._files.get(path), _status(path), time.time_ns()
            if noted is not None and noted.doc_id == file.name and self._stored.get(file.name) == noted.stored:
                if noted.status == status and noted.noted - max(status[1:]) > _RECENT:
                    return True
                if noted.status[0] == status[0] and noted.content == _digest(path):
                    self._files[path] = replace(noted, status=status, noted=now)
                    return True
            self._before[path] = _Known(file.name, status, _digest(path), "", now)
        return False

    def note(self, read: Iterable[SourceFile], stored: Mapping[str, str]) -> None:
        """Write down which files were read, and which documents are stored now."""
        if self._file is None:
            return
        for file in read:
            path = os.path.realpath(file.path)
            before = self._before.get(path)
            with suppress(OSError):
                if before is not None and file.name in stored and before.status == _status(path):
                    self._files[path] = replace(before, stored=stored[file.name])
        files = {
            path: astuple(entry) for path, entry in self._files.items() if stored.get(entry.doc_id) == entry.stored
        }
        with suppress(OSError):  # then all are read again
            write_checked(self._file, {"rules": self._rules, "files": files})

    def gone(self, sources: Iterable[Path], unread: Collection[str]) -> list[str]:
        """Unread documents whose files in these folders no longer exist."""
        roots = [os.path.realpath(source) for source in sources]
        return sorted(
            entry.doc_id
            for path, entry in self._files.items()
            if entry.doc_id in unread and any(map(PurePath(path).is_relative_to, roots)) and not os.path.lexists(path)
        )


def _status(path: str) -> tuple[int, ...]:
    status = os.stat(path)  # noqa: PTH116 - of a text
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with Path(path).open("rb") as content:
        while part := content.read(_BYTES_PER_PART):
            digest.update(part)
    return digest.hexdigest()


def stored_hashes(folder: Path) -> dict[str, str]:
    """Hashes of the documents of an index, by id; also of one that has to be mended before it can be searched."""
    from sire_core.storage.index_files import IndexFiles

    with closing(IndexFiles(folder)) as files:
        return {name: document.hash for name, document in files.store.documents().items()}


def ids_of(names: Iterable[str], folder: Path) -> list[str]:
    """Ids as they were given, or of the files that were named by their paths, which need not exist any more."""
    from sire_core.storage.folder import Folder

    stored_ids, roots = set(stored_hashes(folder)), Folder(folder).sources()
    return list(dict.fromkeys(_id_of(name, stored_ids, roots) for name in names))


def _id_of(name: str, stored_ids: Collection[str], roots: Mapping[str, str]) -> str:
    if name in stored_ids:
        return name
    path = PurePath(os.path.realpath(Path(name).parent), Path(name).name)
    below = [
        file_id(prefix, path.relative_to(root).as_posix())
        for root, prefix in roots.items()
        if path.is_relative_to(root)
    ]
    # Where folders are known, a bare name is the id of a file right inside one: another file may have the same name.
    candidates = [name, *(below if roots else [path.name])]
    match = next((candidate for candidate in candidates if candidate in stored_ids), None)
    if match is not None:
        return match
    # systems write accents as letters of their own, or not
    composed = {normalize("NFC", other): other for other in stored_ids}
    return next((composed[form] for form in (normalize("NFC", one) for one in candidates) if form in composed), name)


def left_out_sources(removed: Iterable[str], sources: Iterable[Path], folder: Path) -> list[str]:
    """Folders that were read before, are not or not wholly read now, and still hold some of the documents."""
    from sire_core.storage.folder import Folder

    now, names = [PurePath(os.path.realpath(source)) for source in sources], list(removed)
    return [
        root
        for root, prefix in Folder(folder).sources().items()
        if not any(PurePath(root).is_relative_to(one) for one in now)
        and any(name.startswith(file_id(prefix, "")) and _file(root, prefix, name).is_file() for name in names)
    ]


def _file(root: str, prefix: str, name: str) -> Path:
    """The file of an id in a folder whose ids begin with a prefix."""
    return Path(root, name[len(file_id(prefix, "")) :])


def is_inside(source: Path, root: str) -> bool:
    """True if a file or folder lies below a folder, and is not the folder itself."""
    path = os.path.realpath(source)
    return path != os.path.realpath(root) and PurePath(path).is_relative_to(os.path.realpath(root))
