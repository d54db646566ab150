"""`Session`: what an `Index` has open, and everything that it reads there."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from sire_core.configuration import Configuration
from sire_core.errors import ConfigurationError
from sire_core.filters import both
from sire_core.pool_reader import PoolReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sire_core.filters import Filter
    from sire_core.protocols import Recipe, VectorIndex
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.search.view import PoolView
    from sire_core.storage.index_files import IndexFiles
    from sire_core.storage.manifest import BuiltRecipe, Manifest
    from sire_core.storage.pools import Pools
    from sire_core.types import Document, Failure

__all__ = ["Session"]


class Session:
    """Opens the files when it is first needed and keeps the current view of its pool.

    Args:
        configuration: The arguments of `Index`.
        opened: A session of the same index whose files are used; None opens them.
    """

    def __init__(self, configuration: Configuration, opened: Session | None = None) -> None:
        self._configuration = configuration
        self._opened = opened
        self.began: BuiltRecipe | None = None
        """The recipe of the first use, where none was given as an object: what others build later changes nothing."""
        self._index_files: IndexFiles | None = None
        self._pools: Pools | None = None
        self._lock = threading.RLock()
        self._pool = PoolReader(
            configuration, self.files, self.open_files, self.built, self.meant, lambda: self.vectors
        )
        if configuration.recipe_object is not None:
            from sire_core.recipes.registry import remember

            remember(configuration.recipe_object)

    def files(self, *, create: bool = False) -> IndexFiles:
        """The open index; the one that has taken its place on disk, where one has.

        Raises:
            IndexMissingError: There is none, and `create` is off.
        """
        files = self._open(create=create) if self._opened is None else self._opened.files(create=create)
        files.follow()
        before, self._pools = self._pools, files.pools
        if before is not None and before is not files.pools:  # what was derived is of an index that is gone
            self._pool.forget()
        return files

    def _open(self, *, create: bool) -> IndexFiles:
        with self._lock:
            if self._index_files is None:
                from sire_core.storage.index_files import IndexFiles

                self._index_files = IndexFiles(self._configuration.path, create=create)
            return self._index_files

    def open_files(self) -> IndexFiles | None:
        """The index if it is open."""
        return (self._opened or self)._index_files  # noqa: SLF001 - a session like this one

    def built(self) -> tuple[Manifest, BuiltRecipe]:
        """The manifest, and the recipe in it that the configuration means."""
        from sire_core.storage.index_files import require_built

        files = self.files()
        manifest = files.refresh()
        require_built(files)
        return manifest, self.meant(manifest)

    def meant(self, manifest: Manifest) -> BuiltRecipe:
        """The given recipe; else the one of the first use, which was the folder's latest (of a name)."""
        if self._configuration.recipe_object is not None:
            return manifest.find(self._configuration.recipe_object)
        if self.began is None:
            self.began = manifest.find(None, self._configuration.recipe_name)
        return manifest.again(self.began)

    def changed(self, manifest: Manifest) -> None:
        """After a change of our own: where it removed the recipe of the first use, the next use starts from scratch."""
        if self.began is not None and self.began.name not in {built.name for built in manifest.recipes}:
            self.began = None

    def reader(self) -> tuple[PoolView, Recipe]:
        """The pool as of now and the recipe that ranks it; read again when another generation was published."""
        return self._pool.current(newest=True)

    async def current(self, where: Filter | None) -> SearchSnapshot:
        """The pool as of now for one search, as far as it is allowed; deriving it does not hold up the event loop."""
        return self._allowed(await self._pool.acurrent(), where)

    async def snapshot(self, where: Filter | None) -> SearchSnapshot:
        """As `current`, but what the view reads later is of the same generation, however late that is."""
        return self._allowed(await self._pool.aheld(), where)

    async def settled(self, where: Filter | None) -> SearchSnapshot:
        """As `snapshot`; in memory, where nothing can be held, everything is read at once."""
        return self._allowed(await self._pool.asettled(), where)

    def _allowed(self, read: tuple[PoolView, Recipe], where: Filter | None = None) -> SearchSnapshot:
        from sire_core.search.snapshot import SearchSnapshot

        return SearchSnapshot(*read, both(self._configuration.allow, where))

    @property
    def vectors(self) -> VectorIndex | None:
        """The user's own store, if one was given; a recipe object's holds for other recipes of the same index too."""
        configuration = (self._opened or self)._configuration  # noqa: SLF001 - a session like this one
        given = configuration.recipe_object
        return configuration.store if given is None or given.vectors is None else given.vectors

    def documents(self, wanted: set[str] | None) -> list[Document]:
        """Stored documents in corpus order, cut into the passages that are allowed; None means all."""
        from sire_core.corpus.stored import given_back
        from sire_core.storage.index_files import require_built

        files = self.files()
        files.refresh()
        require_built(files)
        with (store := files.store).snapshot():  # documents and passages of one generation
            documents = store.documents()
            passages = store.chunks(documents)
        found = {name: document for name, document in documents.items() if wanted is None or name in wanted}
        return given_back(found, passages, self._configuration.allow)

    def stats(self) -> dict[str, Any]:
        """Counts of the recipe's pool as far as it is allowed, and what the index was built with."""
        manifest, built = self.built()
        files, limited = self.files(), self._configuration.allow is not None
        shown = self._allowed(self.reader()).counts() if limited else None
        kinds = files.counts(built) if shown is None else shown.kinds
        return {
            "units": sum(kinds.values()),
            "kinds": kinds,
            "documents": manifest.counts.get("documents", 0) if shown is None else shown.documents,
            "chunks": manifest.counts.get("chunks", 0) if shown is None else shown.chunks,
            "recipe": built.name,
            "recipes": list(dict.fromkeys(r.name for r in manifest.recipes)),
            "embedder": manifest.embedder,
            "dimension": manifest.dimension,
            "extraction": built.extraction,
            "language_model": built.language_model,
            "failed": 0 if limited else manifest.failed_count(built),
            "generation": manifest.generation,
            "vectors": "own scan" if self.vectors is None else self.vectors.description,
            **({} if limited else self._waiting(built.owners)),
            **({} if limited else files.figures(built)),
        }

    def _waiting(self, owners: Sequence[str]) -> dict[str, Any]:
        """How many units of a pool each of the user's stores has still to get."""
        from sire_core.storage.pending_units import behind

        names = [mirror.name for mirror in self._configuration.mirrors]
        return {"waiting": {name: len(behind(self.files().store, name, owners)) for name in names}} if names else {}

    def failures(self) -> list[Failure]:
        """Passages and summaries of the recipe that failed in the last build, and why; passages as they are allowed."""
        from sire_core.corpus.stored import is_allowed
        from sire_core.types import Failure

        manifest, built = self.built()
        failed, allow = set(manifest.failed.get(built.extraction, ())), self._configuration.allow
        found: list[Failure] = []
        if failed:
            why = dict(self.files().calls.failures(built.extraction))
            with (store := self.files().store).snapshot():
                chunks = [chunk for chunk in store.chunks() if chunk.hash in failed]
                documents = store.documents()
            kept = [chunk for chunk in chunks if is_allowed(chunk, allow, documents)]
            found += [Failure(chunk.title or chunk.doc_id, why.get(chunk.hash, "no answer")) for chunk in kept]
        if allow is None:
            for (name, _), owner in zip(built.organizers, built.owners, strict=True):
                found += [Failure(name, text) for text in manifest.failed.get(owner, ())]
        return found

    def spent(self) -> list[tuple[str, int, int, int]]:
        """Stage, answers, input and output tokens of everything that a model was paid for in this index.

        Raises:
            ConfigurationError: The index was opened with `allow`.
        """
        if self._configuration.allow is not None:
            raise ConfigurationError("What a model was paid for is not separated by `allow`. Open the index without.")
        return self.files().calls.spent()

    def close(self) -> None:
        """Let go of files."""
        self._pool.forget()
        with self._lock:
            files, self._index_files, self._pools = self._index_files, None, None
        if files is not None:  # without the lock: a reader that holds the database may be waiting for it
            files.close()
