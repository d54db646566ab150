"""`Reader`: the open files of an index, its current generation, and snapshots of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sire_core.errors import (
    ConfigurationError,
    EmbedderMismatchError,
    IndexClosedError,
    IndexMissingError,
    SnapshotExpiredError,
)
from sire_core.filters import Filter, both
from sire_core.storage.pending_documents import PendingDocuments
from sire_core.types import Document, Failure

if TYPE_CHECKING:
    from sire_core.configuration import Configuration
    from sire_core.documents.chunker import SentenceChunker
    from sire_core.protocols import Recipe, VectorIndex
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.search.vectors.vector_store import FollowedIndex
    from sire_core.search.view import PoolView
    from sire_core.storage.call_cache import CallStore
    from sire_core.storage.index_files import IndexFiles, PendingUnits
    from sire_core.storage.manifest import BuiltRecipe, Manifest
    from sire_core.storage.pool import Pool, Pools
    from sire_core.storage.store import LazyReader

T = TypeVar("T")

_MAX_LOOKUPS_BY_ID = (
    500  # So many documents are looked up by id in a verified file; else all are read, which shows damage
)
_TRIES = 5
_POLL = 0.01  # Seconds between two checks whether a generation was published


class _Generation(NamedTuple):
    """A loaded generation: its units, the recipe that ranks them, and the stamp of the files when it was loaded."""

    stamp: tuple[object, object]
    commit: str
    built: BuiltRecipe
    view: PoolView
    recipe: Recipe

    def is_latest(self, stamp: tuple[object, object]) -> bool:
        """True if nothing was published since."""
        return self.stamp[0] == stamp[0] and self.view.intact()

    def may_serve(self, stamp: tuple[object, object]) -> bool:
        """True if only other processes published since, so that it may serve searches while the next one is loaded."""
        return self.stamp[1] == stamp[1] and self.view.intact(may_be_gone=True)


class Reader:
    """Opens the files of an index at the first use, and loads its newest generation when one was published.

    One thread loads a generation and prepares its ranker; meanwhile other threads search the generation before, unless
    this process made the change.
    """

    def __init__(self, configuration: Configuration, shared: Reader | None = None) -> None:
        self._configuration = configuration
        self._shared = shared
        self.first_recipe: BuiltRecipe | None = None
        """The recipe of the first use, if none was given as an object; one that is built later does not replace it."""
        self._files: IndexFiles | None = None
        self._is_closed = False
        self._pools: Pools | None = None
        self._generation: _Generation | None = None
        self._pending_units: PendingUnits | None = None
        self.after_fork()
        if configuration.recipe_object is not None:
            from sire_core.recipes.registry import remember

            remember(configuration.recipe_object)

    def after_fork(self) -> None:
        """New locks: in a forked process no other thread can release them."""
        self._opening, self._loading = threading.RLock(), threading.RLock()

    @property
    def pending(self) -> PendingDocuments:
        """Documents that were given and are not indexed yet."""
        return PendingDocuments(self._calls)  # made anew: kept here, it would keep this object and its files open

    def _calls(self, *, create: bool = False) -> CallStore | None:
        """Return the cache of model calls; None where nothing was built."""
        self._require_open()
        with suppress(IndexMissingError):
            return self.files(create=create).calls
        return None

    def _require_open(self) -> None:
        """Raise if this reader was closed."""
        if self._is_closed:
            raise IndexClosedError(
                "This index was closed, and what it held in memory is lost. Make a new one, or give it a path (save() "
                "writes a copy into a folder)."
                if self._configuration.path is None
                else f"This index was closed. Open another one: Index({str(self._configuration.path)!r})."
            )

    # --- files and recipe -------------------------------------------------------------------------------------------

    def files(self, *, create: bool = False) -> IndexFiles:
        """Return the open index; if another index was moved to its place on disk, that one."""
        self._require_open()
        files = self._open(create=create) if self._shared is None else self._shared.files(create=create)
        files.follow()
        before, self._pools = self._pools, files.pools
        if before is not None and before is not files.pools:  # another index has taken the place of the open one
            self._forget()
        return files

    def _open(self, *, create: bool) -> IndexFiles:
        with self._opening:
            self._require_open()
            if self._files is None:
                from sire_core.storage.index_files import IndexFiles

                self._files = IndexFiles(self._configuration.path, create=create)
            return self._files

    def open_files(self) -> IndexFiles | None:
        """Return the files if something has opened them."""
        self._require_open()
        return (self._shared or self)._files  # noqa: SLF001 - another Reader

    def built(self) -> tuple[Manifest, BuiltRecipe]:
        """Return the manifest of the last commit and the recipe in it that is searched."""
        from sire_core.storage.index_files import require_built

        files = self.files()
        manifest = files.refresh()
        require_built(files)
        return manifest, self.resolve_recipe(manifest)

    def resolve_recipe(self, manifest: Manifest) -> BuiltRecipe:
        """Return the given recipe; else that of the first use: the folder's default, or the latest of the name."""
        if self._configuration.recipe_object is not None:
            return manifest.find(self._configuration.recipe_object)
        if self.first_recipe is None:
            self.first_recipe = manifest.find(None, self._configuration.recipe_name)
        return manifest.again(self.first_recipe)

    def recipe_name(self) -> str:
        """Return the name of the recipe that is searched; empty if nothing was built and none was given."""
        try:
            return self.built()[1].name
        except IndexMissingError:
            recipe = self._configuration.recipe_object
            return self._configuration.recipe_name if recipe is None else recipe.name

    def changed(self, manifest: Manifest) -> None:
        """Called after a change by this object: if it removed the recipe of the first use, the next use chooses one."""
        if self.first_recipe is not None and self.first_recipe.name not in {built.name for built in manifest.recipes}:
            self.first_recipe = None

    def close(self) -> None:
        """Close the files; nothing opens them again."""
        self._forget()
        with self._opening:
            self._is_closed = True
            files, self._files, self._pools = self._files, None, None
        if files is not None:  # without the lock: a thread that reads the database may wait for it
            files.close()

    def _forget(self) -> None:
        with self._loading:
            self._generation, pending, self._pending_units = None, self._pending_units, None
        if pending is not None:
            pending.close()

    # --- snapshots --------------------------------------------------------------------------------------------------

    def latest(self) -> tuple[PoolView, Recipe]:
        """Return the units of the newest generation and the recipe that ranks them."""
        generation = self._load_newest(wait=True)
        return generation.view, generation.recipe

    async def current(self, where: Filter | None) -> SearchSnapshot:
        """Return a snapshot for one search; a later commit may expire it."""
        import asyncio

        generation, files = self._generation, self.open_files()
        if generation is None or files is None or not generation.is_latest(files.stamp()):
            generation = await asyncio.to_thread(self._load_newest)
        return self._snapshot(generation.view, generation.recipe, where)

    async def snapshot(self, where: Filter | None) -> SearchSnapshot:
        """Return a snapshot that commits to a folder do not expire."""
        import asyncio

        return self._snapshot(*await asyncio.to_thread(self._pinned), where)

    async def search(
        self, where: Filter | None, ask: Callable[[SearchSnapshot], Awaitable[T]], *, pinned: bool = False
    ) -> T:
        """Call `ask` with the current snapshot; again with one that does not expire, if a commit comes in between."""
        with suppress(SnapshotExpiredError):
            return await ask(await (self.snapshot(where) if pinned else self.current(where)))
        # Those of an index in memory and of files on a read-only mount, which cannot be locked, may expire again.
        for _ in range(_TRIES):
            with suppress(SnapshotExpiredError):
                return await ask(await self.snapshot(where))
        return await ask(await self.snapshot(where))

    def _snapshot(self, view: PoolView, recipe: Recipe, where: Filter | None = None) -> SearchSnapshot:
        from sire_core.search.snapshot import SearchSnapshot

        return SearchSnapshot(view, recipe, both(self._configuration.allow, where))

    def _load_newest(self, *, wait: bool = False) -> _Generation:
        stamp, last = self.files().stamp(), self._generation
        if last is not None and last.is_latest(stamp):
            return last
        before = last if last is not None and not wait and last.may_serve(stamp) else None
        if not self._loading.acquire(blocking=before is None):
            assert before is not None
            return before
        try:
            stamp, last = self.files().stamp(), self._generation
            if last is None or not last.is_latest(stamp):
                self._generation = last = self._load(stamp, last)
            return last
        finally:
            self._loading.release()

    def _load(self, stamp: tuple[object, object], last: _Generation | None) -> _Generation:
        from sire_core.fork_handlers import register_after_fork
        from sire_core.protocols import PreparedRanker
        from sire_core.storage.store import LazyReader

        register_after_fork(self)
        files = self.files()
        tries = 0
        while True:
            tries += 1
            self._wait_for(files.refresh().generation)
            with files.store.snapshot():
                manifest, built = self.built()
                commit = files.store.commits()[0]
                if last is not None and (commit, built) == (last.commit, last.built) and last.view.intact():
                    return last._replace(stamp=stamp)
                pool = files.pools.get(files.store, built, manifest.generation)
            lazy = LazyReader(files.store, commit, tuple(built.owners))
            try:
                view, recipe = self._view(pool, manifest, built, lazy, None if last is None else last.view)
            except EmbedderMismatchError:
                # A writer that fitted the embedder again drops the old state after its commit: look again.
                if files.refresh().generation == manifest.generation:
                    raise
                continue
            if last is not None and isinstance(recipe.ranker, PreparedRanker):
                try:
                    recipe.ranker.prepare(view)  # other threads search the generation before meanwhile
                except SnapshotExpiredError:
                    if tries < _TRIES:
                        continue
            return _Generation(stamp, commit, built, view, recipe)

    def _wait_for(self, generation: int) -> None:
        """Wait until the process that committed a generation has derived its pool, too, or takes too long."""
        while self.files().pools.expected(generation):
            time.sleep(_POLL)

    def _pinned(self) -> tuple[PoolView, Recipe]:
        """The newest generation, with edges and notes on a connection that stays at its commit."""
        from sire_core.storage.manifest import Manifest
        from sire_core.storage.pool import Pools
        from sire_core.storage.store import LazyReader, Store

        files, newest = self.files(), self._load_newest(wait=True)
        if files.folder is None or not newest.built.owners:
            return newest.view, newest.recipe  # no second connection is possible, or there is nothing to read lazily
        store = Store(files.folder.index_file)
        commit = store.hold()
        manifest = Manifest.from_json(store.manifest())
        built = self.resolve_recipe(manifest)
        lazy = LazyReader(store, commit, tuple(built.owners))
        if (commit, built) != (newest.commit, newest.built):
            # A commit came in between, or its writer has not published it and may have died: load it anyway.
            with self._loading:
                self._generation = newest = self._load(self.files().stamp(), self._generation)
        if (commit, built) == (newest.commit, newest.built):
            return newest.view.reading(lazy.edges, lazy.notes), newest.recipe
        pool = Pools(files.folder).get(store, built, manifest.generation)
        try:
            return self._view(pool, manifest, built, lazy, None if files.store.replaced() else newest.view)
        except EmbedderMismatchError:  # see `_load`
            if files.refresh().generation == manifest.generation:
                raise
            return self._pinned()

    def _view(
        self, pool: Pool, manifest: Manifest, built: BuiltRecipe, lazy: LazyReader, before: PoolView | None
    ) -> tuple[PoolView, Recipe]:
        from sire_core.documents.stored_corpus import shown_id
        from sire_core.knowledge.entity_graph import shown_entities
        from sire_core.recipes.registry import registered_recipe
        from sire_core.search.view import PoolView

        embedder = self._embedder(manifest)
        recipe = self._configuration.recipe_object or registered_recipe(built)
        if embedder is not None:
            recipe.check_embedder(embedder)
        model, wrap = self._configuration.language_model, self._configuration.wrap_model
        store = self._user_store(tuple(built.owners))
        records = partial(self.files().calls.records, built.extraction) if built.extracted_by_model else None
        allow = self._configuration.allow
        pool = pool if allow is None else replace(pool, shown_id=partial(shown_id, allow=allow))
        view = PoolView(pool, embedder, model, lazy.edges, lazy.notes, store, before, wrap, records)
        view.paraphrase_score = manifest.paraphrase_score
        view.shown_entities = None if allow is None else partial(shown_entities, view, allow)
        return view, recipe

    @property
    def vectors(self) -> VectorIndex | None:
        """The user's own store, if one was given; that of a recipe object serves other recipes of the index, too."""
        configuration = (self._shared or self)._configuration  # noqa: SLF001 - another Reader
        recipe = configuration.recipe_object
        return configuration.store if recipe is None or recipe.vectors is None else recipe.vectors

    def _user_store(self, owners: tuple[str, ...]) -> FollowedIndex | None:
        """The user's own store, with the units that were not sent to it yet."""
        from sire_core.search.vectors.vector_store import FollowedIndex
        from sire_core.storage.index_files import PendingUnits

        vectors = self.vectors
        if vectors is None:
            return None
        if self._pending_units is None:
            self._pending_units = PendingUnits(self.files(), [mirror.name for mirror in self._configuration.mirrors])
        return FollowedIndex(vectors, partial(self._pending_units.ids, owners))

    def _embedder(self, manifest: Manifest) -> Any:
        from sire_core.models.embedders import lacks_state, other_embedder, restore

        if not manifest.embedder:  # nothing was ever embedded
            return None
        configured = self._configuration.embedder_for(manifest)
        embedder = restore(configured, "embedder", manifest.embedder, self.files().calls)
        if lacks_state(embedder, manifest.embedder):
            raise EmbedderMismatchError(
                f"What the embedder {manifest.embedder} has learned of this corpus is not in calls.sqlite: the file is "
                "damaged or missing, or an earlier version built the index, with other vectors of words. Restore the "
                "file, give the documents again (sire index or sire sync), or run sire reembed DIR --embedder lexical."
            )
        if embedder.fingerprint != manifest.embedder:
            raise other_embedder(manifest.embedder, embedder.fingerprint, manifest.embedder_spec or "")
        return embedder

    # --- what the index contains ------------------------------------------------------------------------------------

    def documents(self, doc_ids: Iterable[str] | None) -> list[Document]:
        """Return documents in corpus order, with the passages that are allowed and with pending changes."""
        from sire_core.documents.chunker import joined
        from sire_core.documents.stored_corpus import with_changes

        wanted = None if doc_ids is None else set(doc_ids)
        changes = self.pending.changes()
        try:
            stored = self._stored_documents(wanted)
        except IndexMissingError:
            if not changes:
                raise
            stored = []
        documents = with_changes(stored, changes, wanted, self._configuration.allow) if changes else stored
        return [each if each.text else replace(each, text=joined(each.passages)) for each in documents]

    def _stored_documents(self, wanted: set[str] | None) -> list[Document]:
        from sire_core.documents.stored_corpus import scoped_id, to_documents
        from sire_core.storage.index_files import require_built

        files, allow = self.files(), self._configuration.allow
        if wanted is not None and allow is not None:
            wanted = wanted.union(scoped_id(name, allow) for name in wanted)
        files.refresh()
        require_built(files)
        with (store := files.store).snapshot():  # documents and passages of one generation
            if wanted is not None and len(wanted) <= _MAX_LOOKUPS_BY_ID and files.is_sound():
                documents = store.documents(list(wanted))
                passages = sorted(store.chunks_of(documents), key=attrgetter("position", "id"))
            else:
                documents = store.documents()
                passages = store.chunks(documents)
        selected = {name: document for name, document in documents.items() if wanted is None or name in wanted}
        return to_documents(selected, passages, allow)

    def chunker(self) -> SentenceChunker | None:
        """Return what splits documents that are added."""
        from sire_core.storage.manifest import Manifest

        try:
            manifest = self.built()[0]
        except (ConfigurationError, IndexMissingError):  # another recipe is built there, or nothing
            files = self.open_files()
            manifest = Manifest() if files is None else files.manifest()
        return self._configuration.chunker_for(manifest)

    def sources(self) -> dict[str, str]:
        """Return the file of every document that is from one, with pending changes; empty if nothing was built."""
        from sire_core.documents.titles import FILE_KEYS, file_of

        if self._configuration.allow is not None:  # decided by passage
            return {document.id: file for document in self.documents(None) if (file := file_of(document.metadata))}
        try:
            values = self.files().store.metadata_values(FILE_KEYS)
        except IndexMissingError:
            values = {}
        files = {name: file_of(dict(zip(FILE_KEYS, stored, strict=True))) for name, stored in values.items()}
        changes = self.pending.changes().items()
        files.update({name: "" if document is None else file_of(document.metadata) for name, document in changes})
        return {name: file for name, file in files.items() if file}

    def stats(self) -> dict[str, Any]:
        """Return counts of the recipe's units as far as they are allowed, and what the index was built with."""
        manifest, built = self.built()
        files, limited, pending = self.files(), self._configuration.allow is not None, self.pending.changes()
        allowed = self._snapshot(*self.latest()).counts() if limited else None
        kinds = files.counts(built) if allowed is None else allowed.kinds
        return {
            "units": sum(kinds.values()),
            "kinds": kinds,
            "documents": manifest.counts.get("documents", 0) if allowed is None else allowed.documents,
            "passages": manifest.counts.get("chunks", 0) if allowed is None else allowed.chunks,
            "recipe": built.name,
            "recipes": manifest.recipe_names,
            "embedder": manifest.embedder,
            "dimension": manifest.dimension,
            "paraphrase_score": manifest.paraphrase_score,
            "extraction": built.extraction,
            "language_model": built.language_model,
            "failed": 0 if limited else manifest.failed_count(built),
            "generation": manifest.generation,
            "vectors": "own scan" if self.vectors is None else self.vectors.description,
            **({"pending": len(pending)} if pending else {}),
            **({} if limited else self._waiting(built.owners)),
            **({} if limited else {"languages": files.store.languages()}),
            **({} if limited else files.figures(built)),
        }

    def _waiting(self, owners: Sequence[str]) -> dict[str, Any]:
        """Number of units that were not sent yet to each of the user's stores, and the ids of the first of them."""
        from sire_core.storage.store import CORPUS

        store, names = self.files().store, [mirror.name for mirror in self._configuration.mirrors]
        if not names:
            return {}
        waiting = {name: store.outbox(name).pending_of([CORPUS, *owners]) for name in names}
        listed = {name: ids[:20] for name, ids in waiting.items() if ids}
        counts = {name: len(ids) for name, ids in waiting.items()}
        return {"waiting": counts, **({"waiting_ids": listed} if listed else {})}

    def failures(self) -> list[Failure]:
        """Return passages (as far as allowed) and summaries that failed in the recipe's last build, with reasons."""
        from sire_core.documents.stored_corpus import is_allowed, shown_id
        from sire_core.storage.manifest import VECTORS

        manifest, built = self.built()
        failed, allow = set(manifest.failed.get(built.extraction, ())), self._configuration.allow
        failures: list[Failure] = []
        if failed:
            reasons = dict(self.files().calls.failures(built.extraction))
            with (store := self.files().store).snapshot():
                chunks = [chunk for chunk in store.chunks() if chunk.hash in failed]
                documents = store.documents()
            allowed = [chunk for chunk in chunks if is_allowed(chunk, allow, documents)]
            failures += [
                Failure(chunk.title or shown_id(chunk.doc_id, allow), reasons.get(chunk.hash, "no answer"))
                for chunk in allowed
            ]
        if allow is None:
            without = dict(entry.split(" ", 1) for entry in manifest.failed.get(VECTORS, ()))
            if without:
                units = self.files().store.units_by_id(list(without))
                failures += [Failure(f"vector of {unit.title or name}", without[name]) for name, unit in units.items()]
            for (name, _), owner in zip(built.organizers, built.owners, strict=True):
                failures += [Failure(name, text) for text in manifest.failed.get(owner, ())]
        return failures

    def spent(self) -> list[tuple[str, int, int, int]]:
        """Return stage, number of answers, input and output tokens of all stored model answers."""
        if self._configuration.allow is not None:
            raise ConfigurationError("What a model was paid for is not separated by `allow`. Open the index without.")
        return self.files().calls.spent()
