"""`PoolReader`: the pool of an index as of now, for searches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from sire_core.errors import EmbedderMismatchError

if TYPE_CHECKING:
    from sire_core.configuration import Configuration
    from sire_core.protocols import Recipe, VectorIndex
    from sire_core.search.vectors.store_scores import FollowedIndex
    from sire_core.search.view import PoolView
    from sire_core.storage.behind import Behind
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.manifest import BuiltRecipe, Manifest

__all__ = ["PoolReader"]

_TRIES = 5


class PoolReader:
    """Keeps the current view of a pool, and reads it again when another generation was published.

    Args:
        configuration: The arguments of `Index`.
        files: Opens the index.
        opened: Its files when they are open; None otherwise.
        built: The manifest, and the recipe in it that the configuration means.
        vectors: The user's own store, if one was given.
    """

    def __init__(
        self,
        configuration: Configuration,
        files: Callable[[], IndexFiles],
        opened: Callable[[], IndexFiles | None],
        built: Callable[[], tuple[Manifest, BuiltRecipe]],
        vectors: Callable[[], VectorIndex | None],
    ) -> None:
        self._configuration = configuration
        self._files = files
        self._opened = opened
        self._built = built
        self._vectors = vectors
        self._reader: tuple[tuple[object, ...], PoolView, Recipe] | None = None
        self._behind: Behind | None = None
        self._lock = threading.RLock()

    def forget(self) -> None:
        """Let go of the view."""
        with self._lock:
            self._reader, behind, self._behind = None, self._behind, None
        if behind is not None:
            behind.close()

    async def acurrent(self) -> tuple[PoolView, Recipe]:
        """See `current`; deriving a pool does not hold up the event loop."""
        import asyncio

        reader, library = self._reader, self._opened()
        if reader is not None and library is not None and reader[0] == library.stamp() and reader[1].intact():
            return reader[1], reader[2]
        return await asyncio.to_thread(self.current)

    def current(self) -> tuple[PoolView, Recipe]:
        """The pool as of now and the recipe that ranks it; read again when another generation was published."""
        stamp = self._files().stamp()
        reader = self._reader
        if reader is None or reader[0] != stamp or not reader[1].intact():
            with self._lock:
                if self._reader is None or self._reader[0] != stamp or not self._reader[1].intact():
                    self._reader = (stamp, *self._read())
                reader = self._reader
        return reader[1], reader[2]

    async def aheld(self) -> tuple[PoolView, Recipe]:
        """As `acurrent`, but what the view reads later is of the same generation, however late that is."""
        import asyncio

        return await asyncio.to_thread(self._held)

    def _held(self) -> tuple[PoolView, Recipe]:
        from sire_core.storage.later_reads import LaterReads

        library = self._files()
        for _ in range(_TRIES):
            view, recipe = self.current()
            _, built = self._built()
            if library.folder is None or not built.owners:
                break  # nothing is read later, or nobody else could hold it
            later = LaterReads.held(library.folder.index_file, tuple(built.owners))
            if later.generation == view.generation:
                return view.reading(later.edges, later.notes), recipe
            later.close()
            # A commit came in between, or its writer has not published it (it may have died before): read it anyway.
            self.forget()
        return view, recipe

    def _read(self) -> tuple[PoolView, Recipe]:
        from sire_core.recipes.base import registered_recipe
        from sire_core.search.view import PoolView
        from sire_core.storage.later_reads import LaterReads

        library = self._files()
        while True:
            with library.store.snapshot():
                manifest, built = self._built()
                commit = library.store.commits()[0]
                pool = library.pools.get(built, manifest.generation)
            try:
                embedder = self._embedder(manifest)
                break
            except EmbedderMismatchError:
                # A writer that fitted the embedder again drops the old state when it has committed: look again.
                if library.refresh().generation == manifest.generation:
                    raise
        recipe = self._configuration.recipe_object or registered_recipe(built)
        if embedder is not None:
            recipe.check_embedder(embedder)
        model, wrap = self._configuration.language_model, self._configuration.named_models
        later = LaterReads(library.store, commit, tuple(built.owners))
        before = None if self._reader is None else self._reader[1]
        followed = self._followed(library, tuple(built.owners))
        return PoolView(pool, embedder, model, later.edges, later.notes, followed, before, wrap), recipe

    def _followed(self, library: IndexFiles, owners: tuple[str, ...]) -> FollowedIndex | None:
        """The user's own store, and what it has still to hear of."""
        from sire_core.search.vectors.store_scores import FollowedIndex
        from sire_core.storage.behind import Behind

        vectors = self._vectors()
        if vectors is None:
            return None
        if self._behind is None:
            self._behind = Behind(library, [mirror.name for mirror in self._configuration.mirrors])
        return FollowedIndex(vectors, partial(self._behind.ids, owners))

    def _embedder(self, manifest: Manifest) -> Any:
        from sire_core.models.embedders import restore

        if not manifest.embedder:  # nothing was ever embedded
            return None
        given = self._configuration.embedder_for(manifest)
        embedder = restore(given, "embedder", manifest.embedder, self._files().calls)
        same = embedder.fingerprint.split(":", 1)[0] == manifest.embedder.split(":", 1)[0]
        if same and not getattr(embedder, "fitted", True):
            raise EmbedderMismatchError(
                f"What the embedder {manifest.embedder} has learned of this corpus is not in calls.sqlite, which is "
                "damaged or missing. Restore it from a backup, or give the documents again (sire index)."
            )
        if embedder.fingerprint != manifest.embedder:
            raise EmbedderMismatchError(
                f"This index was built with the embedder {manifest.embedder}, not with {embedder.fingerprint}. "
                "Give that one, or build into another folder."
            )
        return embedder
