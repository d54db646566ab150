"""`IndexFiles`: the open files of an index, or its tables in memory."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from sire_core.errors import IndexLockedError, IndexMissingError, StorageError
from sire_core.storage.call_cache import CallStore
from sire_core.storage.checksums import stored_values
from sire_core.storage.database import file_stamp
from sire_core.storage.derived import carried_folder
from sire_core.storage.folder import Folder, check_format
from sire_core.storage.manifest import BuiltRecipe, Manifest
from sire_core.storage.plain_files import copy_adapter_files
from sire_core.storage.pool import Pools
from sire_core.storage.store import CORPUS, Store, Verified

_logger = logging.getLogger(__name__)

_LOOKS, _PAUSE = 10, 0.01


class IndexFiles:
    """The store, the cache of model calls and the derived files of one index."""

    _own: ClassVar[object] = object()  # replaced at every commit of this process to any index

    def __init__(self, path: Path | None, *, create: bool = False) -> None:
        self.folder = Folder(path) if path is not None else None
        self._lock = threading.RLock()
        self._store: Store | None = None
        self._calls: CallStore | None = None
        self._busy = threading.Lock()
        if self.folder is not None:
            if create:
                self.folder.create()
            else:
                self.folder.require()
        self._manifest = Manifest()
        self._published = ""
        self._opening = 0
        self._seen: tuple[Store | None, int] = (None, 0)
        self.pools = Pools(self.folder)
        self.refresh()

    @property
    def store(self) -> Store:
        """`index.sqlite`, opened when first used."""
        with self._lock:
            if self._store is None:
                self._store = Store(self.folder.index_file if self.folder else None)
            return self._store

    @property
    def calls(self) -> CallStore:
        """`calls.sqlite`, opened when first used."""
        with self._lock:
            if self._calls is None:
                if self.folder is not None and self._manifest.generation and not self.folder.calls_file.exists():
                    _logger.warning(
                        "%s was missing: a new one begins empty. What models answered for this index is asked for, and "
                        "paid for, again when it is needed. To keep it, restore that file from a backup.",
                        self.folder.calls_file,
                    )
                self._calls = CallStore(self.folder.calls_file if self.folder else None)
            return self._calls

    def follow(self) -> None:
        """Open the files again if others took their place, for example a restored backup."""
        if self.folder is not None and self._store is not None:
            self._is_there(self.folder)
        if any(self._replaced()) and self._busy.acquire(blocking=False):
            try:
                self._let_go()
            finally:
                self._busy.release()

    @staticmethod
    def _is_there(folder: Folder, lock: str = "") -> bool:
        """True if there is an index, and a lock of this name; both may be on their way here or being deleted."""
        for _ in range(_LOOKS):
            if folder.exists() and (folder.path / lock).exists():
                return True
            time.sleep(_PAUSE)
        return folder.exists()

    def _require_there(self, lock: str = "") -> None:
        """Raise if an index that was there is gone: a change must not begin a new one in its place."""
        was_there = self._manifest.generation or self._store is not None
        if self.folder is not None and was_there and not self._is_there(self.folder, lock):
            raise IndexMissingError(
                f"There is no index in {self.folder.path} any more: it was deleted or moved while it was open. Restore "
                "it, or open it where it is now, and repeat the change."
            )

    def _replaced(self) -> tuple[bool, bool]:
        store, calls = self._store, self._calls
        return store is not None and store.replaced(), calls is not None and calls.replaced()

    def _let_go(self) -> None:
        """Close files that others have taken the place of."""
        old_store, old_calls = self._replaced()
        old_store = old_store and not self.store.reading()  # without the lock: another reader may wait for it
        with self._lock:
            if old_calls:
                self._calls = None
            if old_store:
                self._store = None
                self._opening += 1
                self.pools = Pools(self.folder)

    def manifest(self) -> Manifest:
        """The manifest as of the last `refresh`."""
        return self._manifest

    def stamp(self) -> tuple[object, object]:
        """Return a stamp of publications by any process and replaced files, and one of publications by this process."""
        if self.folder is None:
            return self._published, self._published
        opened = (self._opening, self._store is not None and self._store.replaced())
        return (self.folder.stamp(), opened), (IndexFiles._own, opened)

    def refresh(self) -> Manifest:
        """Read the manifest of the last commit. The file beside the store is a copy that may lag behind."""
        if self.folder is not None:
            self.folder.require_plain()
            # Opened once: another thread may let go of it. Before the file is read: the generation in there only grows.
            opened = self.store if self.folder.exists() else None
            store, seen = self._seen
            shown = self.folder.read_manifest().get("generation", 0)
            committed = opened.manifest() if opened is not None else {}
            check_format(committed, self.folder.path)
            manifest = Manifest.from_json(committed)
            if opened is not None and not opened.replaced():  # else the next use opens the other one
                self._require_latest(shown, manifest.generation, seen if store is opened else 0)
                self._seen = (opened, shown)
            self._manifest = manifest
        else:
            self._manifest = Manifest.from_json(self.store.manifest())
        return self._manifest

    def _require_latest(self, shown: int, committed: int, seen: int) -> None:
        assert self.folder is not None
        if shown > committed:
            raise StorageError(
                f"{self.folder.index_file} has lost "
                f"{'its last changes' if committed else 'its content'}. Restore it, or delete that file and build "
                "again: what was extracted and answered is kept in calls.sqlite. (If you have put an older one "
                "there on purpose, delete manifest.json.)"
            )
        if 0 < shown < seen:
            raise StorageError(
                f"Older files were copied over those of {self.folder.path} while it was open, which may have damaged "
                "it. Close all that uses it, remove the folder, and put the copy in its place; then open it again."
            )

    def require_sound(self) -> None:
        """Verify everything in the store, before anything is computed from it and written."""
        self.store.require_sound(self._verified())

    def is_sound(self) -> bool:
        """True if everything in the store is verified already, so that a part of it can be looked up."""
        return self.store.path is None or self.store.verified_at(self._verified()) > 0

    def _verified(self) -> Verified | None:
        at, *stamp = (self.folder.verified() if self.folder else []) or [0]
        return Verified(tuple(stamp), at) if stamp else None

    def counts(self, built: BuiltRecipe) -> dict[str, int]:
        """Return the number of units in a recipe's pool, by kind."""
        return self.store.counts([CORPUS, *built.owners])

    def figures(self, built: BuiltRecipe) -> dict[str, Any]:
        """Return the `figures` in the states of a recipe's organizers, by name."""
        figures: dict[str, Any] = {}
        for owner in built.owners:
            with stored_values("The list of figures"):
                figures.update(self.store.state(owner).get("figures", {}))
        return figures

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writer's lock of the folder, or of this object in memory."""
        if not self._busy.acquire(blocking=False):
            raise IndexLockedError("This index is being changed by another task. Wait for it to finish.")
        try:
            if self.folder is None:
                yield
            else:
                self._require_there("writer.lock")  # before a lock is made
                with self.folder.writing():
                    self._let_go()
                    self.publish()  # completes the publication of a process that died after its commit
                    yield
        finally:
            self._busy.release()

    def publish(self) -> None:
        """Publish the last commit: derive the default recipe's pool, replace the manifest file, delete old files."""
        self._require_there()
        committed = self.refresh()
        if self.folder is None:
            self._published = self.store.commits()[0]
            return
        shown = self.folder.read_manifest()
        if committed.generation == shown.get("generation", 0):
            # Another recipe is the default now; pools are as they were. Of what was never built there is no manifest.
            if committed.generation and committed.to_json() != shown:
                self._show(committed)
            return
        pools = {self.folder.pool(built.pool, committed.generation).name for built in committed.recipes}
        if committed.recipes:
            with self.store.snapshot():
                self.pools.get(self.store, committed.recipes[-1], committed.generation, lasting=True)
        self.pools.committed(None)
        self._show(committed)
        current = pools | {carried_folder(built.pool) for built in committed.recipes}
        self.folder.clean(lambda name: name not in current)
        self.store.settle()
        self.calls.settle()

    def _show(self, committed: Manifest) -> None:
        assert self.folder is not None
        if self.store.replaced():
            raise StorageError(
                f"{self.folder.path} was replaced by another index during a change, which went into the old one. Open "
                "the index again and repeat the change."
            )
        IndexFiles._own = object()
        self.folder.write_manifest(committed.to_json())
        self._seen = (self.store, committed.generation)

    def purge(self) -> None:
        """Overwrite everything of deleted documents in all files; call it while `writing`."""
        manifest = self.refresh()
        self.calls.keep_only({chunk.hash for chunk in self.store.chunks()})
        self.store.compact()
        if self.folder is not None:
            pools = {self.folder.pool(built.pool, manifest.generation).name for built in manifest.recipes}
            self.folder.clean(lambda name: name not in pools)

    def save(self, path: Path) -> None:
        """Write a copy into a new folder."""
        self.refresh()
        require_built(self)
        target = Folder(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise StorageError(f"{path} holds something already. Name a new folder.")
        target.create()
        self.copy_adapter_files(path)
        self.calls.copy_to(target.calls_file)
        verified_at = self.store.verified_at(self._verified())
        self.store.copy_to(target.index_file)  # after documents that wait, which it may hold by now
        if verified_at:
            target.note_verified([verified_at, *file_stamp(target.index_file)])
        target.write_manifest(self._manifest.to_json())
        self._copy_sources(target)

    def copy_adapter_files(self, path: Path) -> None:
        """Copy settings of adapters to a copy of the index."""
        if self.folder is not None:
            copy_adapter_files(self.folder.path, path)

    def copy_calls(self, path: Path) -> None:
        """Copy the cache of model calls to a new folder, unless it has one."""
        target = Folder(path)
        if path.exists() and not target.calls_file.exists() and (not path.is_dir() or any(path.iterdir())):
            raise StorageError(f"{path} holds something already. Name a new folder.")
        target.create()
        if not target.calls_file.exists():
            self.calls.copy_to(target.calls_file)
        self._copy_sources(target)

    def _copy_sources(self, target: Folder) -> None:
        if self.folder is not None and self.folder.sources_file.exists():
            target.note_sources(self.folder.sources())

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            store, calls, self._store, self._calls = self._store, self._calls, None, None
            self.pools, self._seen = Pools(self.folder), (None, 0)
        # Without the lock: a reader that holds a database may be waiting for it.
        if calls is not None:
            calls.close()
        verified = store.close_verified() if store is not None else None
        if verified is not None and self.folder is not None:
            noted = [verified.at, *verified.stamp]
            if noted != self.folder.verified():
                self.folder.note_verified(noted)


def read_manifest(folder: Path | None) -> Manifest:
    """Return the manifest of an index folder; an empty one if there is no index."""
    if folder is None or not Folder(folder).exists():
        return Manifest()
    with closing(IndexFiles(folder)) as files:
        return files.manifest()


def require_built(files: IndexFiles) -> None:
    """Raise `IndexMissingError` if nothing was ever committed."""
    if not files.manifest().generation:
        name = files.folder.path if files.folder else "memory"
        if files.folder is not None and files.folder.is_being_written():
            raise IndexMissingError(
                f"The index in {name} is being built by another process for the first time. Nothing can be searched "
                "before that has finished: wait, and ask again."
            )
        if files.folder is not None and not files.folder.path.exists():
            raise IndexMissingError(
                f"There is no folder {name}: nothing was built there, or it was deleted or moved. Open it where it is "
                "now, or build it: Index.build(documents), or `sire index FOLDER --to DIR`."
            )
        raise IndexMissingError(
            f"The index in {name} is empty: nothing was built, or the build did not finish. Build it (again): "
            "Index.build(documents), or `sire index FOLDER --to DIR`. What was finished is kept."
        )


class PendingUnits:
    """Units of a pool that some of the user's vector stores have not got yet; read again after a change."""

    def __init__(self, files: IndexFiles, store_names: Sequence[str]) -> None:
        self._files = files
        self._store_names = store_names
        self._lock = threading.Lock()
        self._connection: Store | None = None
        self._last_state: tuple[object, ...] = ()
        self._last_pending: frozenset[str] = frozenset()

    def ids(self, owners: tuple[str, ...]) -> frozenset[str]:
        """Return the ids of pending units of the corpus and some owners; the first time there are some, log it."""
        with self._lock:
            store = self._open()
            with store.snapshot():
                state = (owners, *(store.outbox(name).state() for name in self._store_names))
                if state != self._last_state:
                    pending = {name: store.outbox(name).pending_of([CORPUS, *owners]) for name in self._store_names}
                    if not self._last_pending:
                        self._log_pending({name: len(ids) for name, ids in pending.items() if ids})
                    self._last_state = state
                    self._last_pending = frozenset(unit for ids in pending.values() for unit in ids)
            return self._last_pending

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _open(self) -> Store:
        """For a folder, a connection of its own, so that a change by this process does not block it."""
        if self._files.folder is None:
            return self._files.store
        if self._connection is None:
            self._connection = Store(self._files.folder.index_file)
        return self._connection

    def _log_pending(self, counts: dict[str, int]) -> None:
        for name, count in counts.items():
            _logger.warning(
                "%s units wait for the vector store %r, and are compared one by one until Index.push() has sent them.",
                f"{count:,}",
                name,
            )
