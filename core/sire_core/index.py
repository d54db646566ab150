"""`Index`: documents in, cited evidence out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.configuration import Configuration
from sire_core.errors import ConfigurationError, IndexMissingError
from sire_core.filters import Filter, FilterLike, parse_filter
from sire_core.index_changes import IndexChanges
from sire_core.index_searches import IndexSearches
from sire_core.index_writer import IndexWriter
from sire_core.models.sync import run_sync
from sire_core.progress import ProgressLike, progress_of
from sire_core.session import Session
from sire_core.types import Document, Failure

if TYPE_CHECKING:
    from sire_core.corpus.chunker import SentenceChunker
    from sire_core.models.usage import UsageLimits
    from sire_core.protocols import Embedder, Extractor, LanguageModel, Mirror, Recipe, Runner, UnitStore, WrapModel
    from sire_core.search.view import PoolView
    from sire_core.storage.pending_documents import PendingDocuments

__all__ = ["Index"]


class Index(IndexChanges, IndexSearches):
    """One corpus, indexed by one or more recipes, in a folder or in memory.

    Creating an `Index` does no I/O and calls no model. Methods that build, change or search have an async version with
    the prefix `a`; the sync versions run it on an event loop of the package, so they also work in notebooks and
    servers.

    Args:
        path: The folder; None keeps the index in memory.
        recipe: A `Recipe` or a name; None means the folder's latest, or `sire` for a first build. This object keeps the
            recipe of its first search, even if another recipe is built in the folder later.
        language_model: Extracts and summarises; None works without a model.
        embedder: An `Embedder` or what `resolve_embedder` reads (`st:NAME_OR_FOLDER`, `openai:MODEL`, ...); None means
            what the folder was built with, or the default embedder, which needs no download, for a first build.
        extractor: Makes extraction records; None chooses one according to `language_model`.
        chunker: Splits documents into passages, by default at sentence boundaries; None makes each document one
            passage.
        seed: Random seed.
        workers: Number of concurrent model calls.
        max_failure_ratio: Share of failed passages or summaries above which a build stops.
        progress: Called as `progress(stage, done, total)`; True draws progress bars on terminals.
        limits: Maximum model calls and tokens of one build: `UsageLimits(max_calls=..., max_tokens=...)`, or a mapping.
        extraction: How a model extracts: `joint` makes one call per passage; `native` extracts as in the recipe's paper
            (`Recipe.native`; `sire` and `smart` as SiReRAG, `pagerank` as MS-RAG); `model+rules` asks for facts about
            the names that rules find and adds what the rules extract, for models that leave much out.
        mirrors: Your vector stores that are updated with every change; see `sire_core.protocols.Mirror`.
        store: A database of `sire_core.stores` (PostgreSQL, Qdrant, LanceDB) that is updated with every change and does
            the nearest-neighbour search instead of the built-in scan.
        lock_timeout: Seconds that a change waits for another writer before it raises `IndexLockedError`.
        allow: A filter on what this object shows: it applies to every search, snapshot and explanation, to `documents`
            and `stats`, and no argument can widen it. Changes are not restricted; see `delete`.
        runner: Where parallel parts of a build run: None means in this process; `ray` as Ray tasks on this machine or
            on the cluster of `RAY_ADDRESS`, `ray://HOST:PORT` on another cluster (extra `ray`); or a `Runner`. The
            resulting index is the same.
        wrap_model: Wraps a model that a setting names (`rerank_model`), for example to count, limit or store its
            calls. None uses the model as it is.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        recipe: Recipe | str | None = None,
        language_model: LanguageModel | None = None,
        embedder: Embedder | str | None = None,
        extractor: Extractor | None = None,
        chunker: SentenceChunker | str | None = "sentences",
        seed: int = 0,
        workers: int = 8,
        max_failure_ratio: float = 0.1,
        progress: ProgressLike = None,
        limits: UsageLimits | Mapping[str, int] | None = None,
        extraction: str = "joint",
        mirrors: Sequence[Mirror] = (),
        store: UnitStore | None = None,
        lock_timeout: float = 10.0,
        allow: FilterLike = None,
        runner: Runner | str | None = None,
        wrap_model: WrapModel | None = None,
    ) -> None:
        configuration = Configuration(
            path=Path(path) if path is not None else None,
            recipe=recipe,
            language_model=language_model,
            embedder=embedder,
            extractor=extractor,
            chunker=chunker,
            seed=seed,
            workers=workers,
            max_failure_ratio=max_failure_ratio,
            progress=progress_of(progress),
            limits=None if limits is None else _limits(limits),
            extraction=extraction,
            mirrors=(*mirrors, *([store] if store is not None else [])),
            store=store,
            lock_timeout=lock_timeout,
            allow=parse_filter(allow),
            runner=runner,
            wrap_model=wrap_model,
        )
        self._begin(configuration)

    def _begin(
        self, configuration: Configuration, opened: Session | None = None, pending: PendingDocuments | None = None
    ) -> None:
        self._configuration = configuration
        self._session = Session(configuration, opened)
        self._writer = IndexWriter(configuration, self._session, pending)
        self._others: dict[str, Index] = {}

    @property
    def path(self) -> Path | None:
        """The folder; None in memory."""
        return self._configuration.path

    @property
    def allow(self) -> Filter | None:
        """What this object shows; None means everything."""
        return self._configuration.allow

    @property
    def language_model(self) -> LanguageModel | None:
        """The language model of this index; None without one."""
        return self._configuration.language_model

    @property
    def chunker(self) -> SentenceChunker | str | None:
        """What splits documents into passages; None makes each one a passage."""
        return self._configuration.chunker

    @property
    def recipe_name(self) -> str:
        """Name of the recipe used for searches; empty if nothing was built and no recipe was given."""
        configuration = self._configuration
        try:
            return self._session.built()[1].name
        except IndexMissingError:
            return (
                configuration.recipe_name if configuration.recipe_object is None else configuration.recipe_object.name
            )

    def using(self, recipe: str) -> Index:
        """The same open index, searched with another of its recipes.

        Args:
            recipe: Its name.
        """
        if recipe not in self._others:
            other = object.__new__(type(self))
            other._begin(replace(self._configuration, recipe=recipe), self._session, self._writer.pending)
            other._others = self._others
            self._others[recipe] = other
        return self._others[recipe]

    def stats(self) -> dict[str, Any]:
        """Counts of documents and units, and what the index was built with; `pending`: changes not indexed yet."""
        pending = self._writer.pending.changes()
        return {**self._session.stats(), **({"pending": len(pending)} if pending else {})}

    def failures(self) -> list[Failure]:
        """Passages (by title) and summaries of the recipe that failed, and why; the next build tries them again."""
        return self._session.failures()

    def spent(self) -> list[tuple[str, int, int, int]]:
        """What models were used for: stage, number of answers, input tokens, output tokens.

        Raises:
            ConfigurationError: The index was opened with `allow`.
        """
        return self._session.spent()

    def view(self) -> PoolView:
        """A read-only snapshot of all units of the recipe, with vectors and edges. For exports and adapters.

        Raises:
            IndexMissingError: There is no index.
            ConfigurationError: The index was opened with `allow`; a view shows everything.
        """
        self._configuration.refuse_limited("a view shows everything")
        if self._writer.pending:
            run_sync(self._writer.index_pending(for_search=True))
        return self._session.reader()[0]

    def documents(self, doc_ids: Iterable[str] | None = None) -> list[Document]:
        """Documents in corpus order, with their passages (`Document.chunks`); those that wait as they were given.

        Args:
            doc_ids: Ids, or one id; None returns all documents. Unknown ids are ignored.

        Raises:
            IndexMissingError: There is no index.
        """
        from sire_core.corpus.stored import with_changes

        wanted = None if doc_ids is None else {doc_ids} if isinstance(doc_ids, str) else set(doc_ids)
        changes = self._writer.pending.changes()
        try:
            stored = self._session.documents(wanted)
        except IndexMissingError:
            if not changes:
                raise
            stored = []
        return with_changes(stored, changes, wanted, self.allow) if changes else stored

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the index into a new folder, for example an index that was built in memory.

        Raises:
            ConfigurationError: The index was opened with `allow`, but a copy contains everything.
            StorageError: The folder is not empty.
        """
        self._configuration.refuse_limited("a copy holds everything")
        run_sync(self._writer.index_pending())
        self._session.files().save(Path(path))

    def close(self) -> None:
        """Close files. The next use opens them again; an index in memory is lost."""
        self._session.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.path is None:
            raise ConfigurationError(
                "An index in memory cannot be sent to another process. Give it a path, or save() it and open the copy."
            )
        return {"_configuration": self._configuration, "_began": self._session.began}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._begin(state["_configuration"])
        self._session.began = state["_began"]

    def __copy__(self) -> Index:
        """An index is a handle to one place: a copy of what holds it shares it."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Index:
        """See `__copy__`."""
        return self

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _limits(given: UsageLimits | Mapping[str, int]) -> UsageLimits:
    from sire_core.models.usage import UsageLimits, limits_of  # here: most indexes have no limits

    return limits_of(given, UsageLimits)
