"""Checks of an index folder against its checksums, with advice on damage."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sire_core.errors import StorageError
from sire_core.storage.call_cache import CallStore
from sire_core.storage.checksums import REBUILD_ADVICE
from sire_core.storage.derived import damaged_files
from sire_core.storage.folder import Folder, check_format
from sire_core.storage.manifest import Manifest
from sire_core.storage.plain_files import damaged_adapter_files, misplaced
from sire_core.storage.store import Store

_CALLS_ADVICE = (
    "Restore it from a backup. Without it what a model answered is asked for, and paid for, again when it is needed; "
    "and questions to an index with the default embedder fail until the next change (`sire index` or "
    "`sire sync` with the same documents, too) has learned again what lies there. Documents that a LangChain index was "
    "given and no search has seen yet have to be handed in again."
)
_SOURCES_ADVICE = (
    "Searches do not need it. Restore it from a backup, or delete it and name the whole folders that were indexed when "
    "you add or sync again, so that documents keep their ids."
)
_LINK_ADVICE = (
    "Move it away (what a link leads to stays), or restore the index from a backup: an index follows no links."
)
_UNFINISHED_ADVICE = "Run the same build again: it keeps the vectors and answers that it has. Unless it still runs."
_CLOSED_ADVICE = "This says nothing about damage: check as a user who may read it."
_DERIVED_ADVICE = "Nothing: it is not used, and made again from index.sqlite when it is needed."


@dataclass(frozen=True, slots=True)
class Finding:
    """Damage of a file."""

    file: str  # Path inside the folder
    problem: str  # What is wrong
    advice: str  # What to do


def check_folder(path: str | os.PathLike[str]) -> list[Finding]:
    """Read everything in an index folder and compare it with its checksums.

    What is found while a writer changes the files is looked at again; damage is what stays.
    """
    path = Path(path)
    before = _stamp(path)
    findings = _findings(path)
    for _ in range(_TRIES):
        if not findings:
            return []
        time.sleep(_PAUSE)  # a writer may be halfway through removing a folder
        again, after = _findings(path), _stamp(path)
        findings = [finding for finding in findings if finding in again]
        if before == after:
            return again
        before = after
    return findings


_TRIES, _PAUSE = 8, 0.05


def _stamp(path: Path) -> list[tuple[str, int, int, int]]:
    """Changes with every change of the files that writers replace or write to."""
    stamp = []
    for entry in sorted((*path.glob("*"), *path.glob("derived/*"))):
        with suppress(OSError):
            status = entry.lstat()
            stamp.append((entry.name, status.st_ino, status.st_size, status.st_mtime_ns))
    return [row for row in stamp if not row[0].endswith("-shm")]


def _findings(path: Path) -> list[Finding]:
    """Check everything once."""
    folder = Folder(path)
    entries = [path, *sorted((*path.glob("*"), *path.glob("*/*")))] if path.is_dir() else []
    unread = [entry for entry in entries if not os.access(entry, os.R_OK)]
    if closed := [str(entry.relative_to(path)) for entry in unread if os.path.lexists(entry)]:  # not removed meanwhile
        return [Finding(name, "it may not be read", _CLOSED_ADVICE) for name in closed]
    if entries and (wrong := sorted(misplaced(path))):
        return [Finding(entry.name, "it is a link, or no plain file or folder", _LINK_ADVICE) for entry in wrong]
    folder.require()
    shown = folder.read_manifest()
    findings = [Finding("index.sqlite", problem, REBUILD_ADVICE) for problem in _of(lambda: _index(folder, shown))]
    if not folder.calls_file.exists():
        findings.append(Finding("calls.sqlite", "it is missing", _CALLS_ADVICE))
    else:
        manifest = _manifest(folder, shown)
        problems = _of(lambda: _calls(folder.calls_file, manifest.get("embedder")))
        findings += [Finding("calls.sqlite", problem, _CALLS_ADVICE) for problem in problems]
        if not manifest and not findings:
            findings.append(Finding("index.sqlite", "its first build is unfinished", _UNFINISHED_ADVICE))
    if not shown and not findings and folder.manifest_file.exists():  # a killed change may not have written it
        findings.append(Finding("manifest.json", "it is damaged", "Nothing: the next change writes it again."))
    try:
        folder.sources()
    except StorageError:
        findings.append(Finding("sources.json", "it is not what was written", _SOURCES_ADVICE))
    findings += [Finding(name, "it is not what was written", advice) for name, advice in damaged_adapter_files(path)]
    return [*findings, *_derived(path)]


def _derived(path: Path) -> Iterator[Finding]:
    """Check the derived files. Those of a folder that a writer removes meanwhile do not count."""
    derived = path / "derived"
    for parent, names, _ in os.walk(derived):
        links = [Path(parent, name) for name in names if Path(parent, name).is_symlink()]
        yield from (Finding(str(link.relative_to(path)), "it is a link", _LINK_ADVICE) for link in links)
    directories = [Path(parent) for parent, _, names in os.walk(derived) if "checksums.json" in names]
    for directory in sorted(directories):
        if any(part.endswith(".partial") for part in directory.parts):
            continue  # what a killed process left; the next change tidies it away
        damaged = list(damaged_files(directory))
        if directory.is_dir():
            yield from (Finding(str(file.relative_to(path)), problem, _DERIVED_ADVICE) for file, problem in damaged)


def _of(check: Callable[[], Iterator[str]]) -> list[str]:
    """Return the findings of a check, or why it cannot run."""
    try:
        return list(check())
    except StorageError as error:
        return [str(error)]


def _index(folder: Folder, shown: dict[str, object]) -> Iterator[str]:
    with closing(Store(folder.index_file)) as store:
        problems = store.check()
        yield from problems
        if problems:
            return
        committed = store.manifest()
        check_format(committed, folder.path)
        if int(str(shown.get("generation", 0))) > Manifest.from_json(committed).generation:
            yield "it has lost its last changes: manifest.json names a later generation"


def _manifest(folder: Folder, shown: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the manifest in `index.sqlite`, empty before a first build; `manifest.json` only if it cannot be read."""
    try:
        with closing(Store(folder.index_file)) as store:
            return store.manifest()
    except StorageError:
        return shown


def _calls(path: Path, embedder: object) -> Iterator[str]:
    with closing(CallStore(path)) as calls:
        problems = calls.check()
        yield from problems
        if problems or not isinstance(embedder, Mapping) or embedder.get("spec") != "lexical":
            return  # of embedders that a folder names, `lexical` is the one that learns
        fingerprint = str(embedder.get("fingerprint", ""))
        if ":" in fingerprint and calls.fitted(f"embedder:{fingerprint}") is None:
            yield "what the embedder of this index has learned is not there"
