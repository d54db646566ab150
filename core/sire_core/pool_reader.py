"""`PoolReader`: the pool of an index as of now, for searches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sire_core.errors import EmbedderMismatchError, SnapshotExpiredError

if TYPE_CHECKING:
    from sire_core.configuration import Configuration
    from sire_core.protocols import Recipe, VectorIndex
    from sire_core.search.vectors.store_scores import FollowedIndex
    from sire_core.search.view import PoolView
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.lazy_reads import LazyReader
    from sire_core.storage.manifest import BuiltRecipe, Manifest
    from sire_core.storage.pending_units import PendingUnits
    from sire_core.storage.pool import Pool

__all__ = ["PoolReader"]

_TRIES = 5
_POLL = 0.01
"""Seconds between two looks whether a commit was published."""


class _Read(NamedTuple):
    """A view, as of which stamp of the files, and of which commit and recipe it is."""

    stamp: tuple[object, object]
    commit: str
    built: BuiltRecipe
    view: PoolView
    recipe: Recipe

    def fresh(self, stamp: tuple[object, object]) -> bool:
        """Whether nobody has published anything since."""
        return self.stamp[0] == stamp[0] and self.view.intact()

    def serves(self, stamp: tuple[object, object]) -> bool:
        """Whether only others have published something since, so that a search may still be answered from it."""
        return self.stamp[1] == stamp[1] and self.view.intact(may_be_gone=True)


class PoolReader:
    """Keeps the current view of a pool, and reads it again when another generation was published.

    One thread reads it and makes what the ranker needs; meanwhile the others go on with the view before it, unless it
    was this process that made the change.

    Args:
        configuration: The arguments of `Index`.
        files: Opens the index.
        opened: Its files when they are open; None otherwise.
        built: The manifest, and the recipe in it that the configuration means.
        meant: The recipe in a manifest that the configuration means.
        vectors: The user's own store, if one was given.
    """

    def __init__(
        self,
        configuration: Configuration,
        files: Callable[[], IndexFiles],
        opened: Callable[[], IndexFiles | None],
        built: Callable[[], tuple[Manifest, BuiltRecipe]],
        meant: Callable[[Manifest], BuiltRecipe],
        vectors: Callable[[], VectorIndex | None],
    ) -> None:
        self._configuration = configuration
        self._files = files
        self._opened = opened
        self._built = built
        self._meant = meant
        self._vectors = vectors
        self._last: _Read | None = None
        self._behind: PendingUnits | None = None
        self._lock = threading.RLock()

    def after_fork(self) -> None:
        """In a process that was just forked: no thread is reading."""
        self._lock = threading.RLock()

    def forget(self) -> None:
        """Let go of the view."""
        with self._lock:
            self._last, behind, self._behind = None, self._behind, None
        if behind is not None:
            behind.close()

    async def acurrent(self) -> tuple[PoolView, Recipe]:
        """See `current`; deriving a pool does not hold up the event loop."""
        import asyncio

        last, files = self._last, self._opened()
        if last is not None and files is not None and last.fresh(files.stamp()):
            return last.view, last.recipe
        return await asyncio.to_thread(self.current)

    def current(self, *, newest: bool = False) -> tuple[PoolView, Recipe]:
        """The pool as of now and the recipe that ranks it; read again when another generation was published.

        Args:
            newest: Wait, even if another thread is reading what another process has published.
        """
        read = self._current(newest=newest)
        return read.view, read.recipe

    def _current(self, *, newest: bool) -> _Read:
        stamp, last = self._files().stamp(), self._last
        if last is not None and last.fresh(stamp):
            return last
        before = last if last is not None and not newest and last.serves(stamp) else None
        if not self._lock.acquire(blocking=before is None):
            assert before is not None
            return before
        try:
            stamp, last = self._files().stamp(), self._last
            if last is None or not last.fresh(stamp):
                self._last = last = self._read(stamp, last)
            return last
        finally:
            self._lock.release()

    async def aheld(self) -> tuple[PoolView, Recipe]:
        """As `current` with `newest`, but what a view of a folder reads later is of the same commit however late.

        Connections that hold a commit are closed when nobody needs the view any more; until then the space of what is
        replaced is not reused.
        """
        import asyncio

        return await asyncio.to_thread(self._held)

    async def asettled(self) -> tuple[PoolView, Recipe]:
        """As `aheld`, in memory too: everything is read at once there."""
        import asyncio

        return await asyncio.to_thread(self._held if self._files().folder is not None else self._settled)

    def _held(self) -> tuple[PoolView, Recipe]:
        from sire_core.storage.lazy_reads import LazyReader
        from sire_core.storage.manifest import Manifest
        from sire_core.storage.pools import Pools
        from sire_core.storage.store import Store

        files, read = self._files(), self._current(newest=True)
        if files.folder is None or not read.built.owners:
            return read.view, read.recipe  # nothing is read later, or nobody else could hold it
        store = Store(files.folder.index_file)
        commit = store.hold()
        manifest = Manifest.from_json(store.manifest())
        built = self._meant(manifest)
        later = LazyReader(store, commit, tuple(built.owners))
        if (commit, built) != (read.commit, read.built):
            # A commit came in between, or its writer has not published it (it may have died before): read it anyway.
            with self._lock:
                self._last = read = self._read(self._files().stamp(), self._last)
        if (commit, built) == (read.commit, read.built):
            return read.view.reading(later.edges, later.notes), read.recipe
        pool = Pools(files.folder, lambda: store).get(built, manifest.generation)
        try:
            return self._view(pool, manifest, built, later, None if files.store.replaced() else read.view)
        except EmbedderMismatchError:  # see `_read`
            if files.refresh().generation == manifest.generation:
                raise
            return self._held()

    def _settled(self) -> tuple[PoolView, Recipe]:
        from sire_core.storage.lazy_reads import LazyReader

        files, last = self._files(), self._last
        with files.store.snapshot():
            manifest, built = self._built()
            pool = files.pools.get(built, manifest.generation)
            later = LazyReader(files.store, files.store.commits()[0], tuple(built.owners))
            later.read_now()
            return self._view(pool, manifest, built, later, None if last is None else last.view)

    def _wait_for(self, generation: int) -> None:
        """Until the one who has committed a generation has derived its pool, too, or takes too long."""
        while self._files().pools.expected(generation):
            time.sleep(_POLL)

    def _read(self, stamp: tuple[object, object], last: _Read | None) -> _Read:
        from sire_core.protocols import PreparedRanker
        from sire_core.storage.fork_handlers import register_after_fork
        from sire_core.storage.lazy_reads import LazyReader

        register_after_fork(self)
        files = self._files()
        tries = 0
        while True:
            tries += 1
            self._wait_for(files.refresh().generation)
            with files.store.snapshot():
                manifest, built = self._built()
                commit = files.store.commits()[0]
                if last is not None and (commit, built) == (last.commit, last.built) and last.view.intact():
                    return last._replace(stamp=stamp)
                pool = files.pools.get(built, manifest.generation)
            later = LazyReader(files.store, commit, tuple(built.owners))
            try:
                view, recipe = self._view(pool, manifest, built, later, None if last is None else last.view)
            except EmbedderMismatchError:
                # A writer that fitted the embedder again drops the old state when it has committed: look again.
                if files.refresh().generation == manifest.generation:
                    raise
                continue
            if last is not None and isinstance(recipe.ranker, PreparedRanker):
                try:
                    recipe.ranker.prepare(view)  # while the others go on with the view before
                except SnapshotExpiredError:
                    if tries < _TRIES:
                        continue
            return _Read(stamp, commit, built, view, recipe)

    def _view(
        self, pool: Pool, manifest: Manifest, built: BuiltRecipe, later: LazyReader, before: PoolView | None
    ) -> tuple[PoolView, Recipe]:
        from sire_core.recipes.registry import registered_recipe
        from sire_core.search.view import PoolView

        embedder = self._embedder(manifest)
        recipe = self._configuration.recipe_object or registered_recipe(built)
        if embedder is not None:
            recipe.check_embedder(embedder)
        model, wrap = self._configuration.language_model, self._configuration.wrap_model
        followed = self._followed(self._files(), tuple(built.owners))
        return PoolView(pool, embedder, model, later.edges, later.notes, followed, before, wrap), recipe

    def _followed(self, files: IndexFiles, owners: tuple[str, ...]) -> FollowedIndex | None:
        """The user's own store, and what it has still to hear of."""
        from sire_core.search.vectors.store_scores import FollowedIndex
        from sire_core.storage.pending_units import PendingUnits

        vectors = self._vectors()
        if vectors is None:
            return None
        if self._behind is None:
            self._behind = PendingUnits(files, [mirror.name for mirror in self._configuration.mirrors])
        return FollowedIndex(vectors, partial(self._behind.ids, owners))

    def _embedder(self, manifest: Manifest) -> Any:
        from sire_core.models.embedders import lacks_state, restore

        if not manifest.embedder:  # nothing was ever embedded
            return None
        given = self._configuration.embedder_for(manifest)
        embedder = restore(given, "embedder", manifest.embedder, self._files().calls)
        if lacks_state(embedder, manifest.embedder):
            raise EmbedderMismatchError(
                f"What the embedder {manifest.embedder} has learned of this corpus is not in calls.sqlite, which is "
                "damaged or missing. Restore it from a backup, or give the documents again (sire index or sire sync)."
            )
        if embedder.fingerprint != manifest.embedder:
            raise EmbedderMismatchError(
                f"This index was built with the embedder {manifest.embedder}, not with {embedder.fingerprint}. "
                "Give that one, or build into another folder."
            )
        return embedder
