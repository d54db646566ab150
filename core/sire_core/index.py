"""`Index`: documents in, cited evidence out."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.bars import ProgressLike, progress_of
from sire_core.configuration import Configuration
from sire_core.errors import ConfigurationError, IndexMissingError, SnapshotExpiredError
from sire_core.filters import Filter, FilterLike, parse_filter
from sire_core.index_writer import IndexWriter
from sire_core.models.sync import run_sync
from sire_core.session import Session
from sire_core.types import BuildReport, Document, Failure, Hit

if TYPE_CHECKING:
    from sire_core.corpus.chunker import SentenceChunker
    from sire_core.explore.asked import AskedQuestion
    from sire_core.models.prices import Price
    from sire_core.models.usage import UsageLimits
    from sire_core.pipeline.estimate import Estimate
    from sire_core.protocols import Embedder, Extractor, LanguageModel, Mirror, Recipe, Runner, UnitStore, WrapModel
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.search.view import PoolView

__all__ = ["Index"]

_logger = logging.getLogger(__name__)


class Index:
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
        limits: Maximum model calls and tokens of one build.
        extraction: How a model extracts: `joint` makes one call per passage; `native` extracts as in the recipe's paper
            (`Recipe.native`); `model+rules` asks for facts about the names that rules find and adds what the rules
            extract, for models that leave much out.
        mirrors: Your vector stores that are updated with every change; see `sire_core.protocols.Mirror`.
        store: A database of `sire_core.stores` (PostgreSQL, Qdrant, LanceDB) that is updated with every change and does
            the nearest-neighbour search instead of the built-in scan.
        lock_timeout: Seconds that a change waits for another writer before it raises `IndexLockedError`.
        allow: A filter on what this object shows: it applies to every search, snapshot and explanation, to `documents`
            and `stats`, and no argument can widen it. Changes are not restricted; see `delete`.
        runner: Where parallel parts of a build run: None means in this process; `ray` as Ray tasks on this machine or
            on the cluster of `RAY_ADDRESS`, `ray://HOST:PORT` on another cluster (extra `ray`); or a `Runner`. The
            resulting index is the same.
        named_models: Wraps a model that a setting names (`rerank_model`), for example to count, limit or store its
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
        limits: UsageLimits | None = None,
        extraction: str = "joint",
        mirrors: Sequence[Mirror] = (),
        store: UnitStore | None = None,
        lock_timeout: float = 10.0,
        allow: FilterLike = None,
        runner: Runner | str | None = None,
        named_models: WrapModel | None = None,
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
            limits=limits,
            extraction=extraction,
            mirrors=(*mirrors, *([store] if store is not None else [])),
            store=store,
            lock_timeout=lock_timeout,
            allow=parse_filter(allow),
            runner=runner,
            named_models=named_models,
        )
        self._begin(configuration)

    def _begin(self, configuration: Configuration, opened: Session | None = None) -> None:
        self._configuration = configuration
        self._session = Session(configuration, opened)
        self._writer = IndexWriter(configuration, self._session)
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
            other._begin(replace(self._configuration, recipe=recipe), self._session)
            other._others = self._others
            self._others[recipe] = other
        return self._others[recipe]

    def build(self, documents: Iterable[Document], *, keep: Collection[str] = ()) -> BuildReport:
        """Build the index so that it contains exactly these documents. Resumes an interrupted build.

        Args:
            documents: With unique ids.
            keep: Ids of stored documents to keep in addition.

        Raises:
            CorpusError: Contradicting documents, for example one id with two texts.
            BuildError: Too many passages failed; results so far are stored.
            EmbedderMismatchError: The folder was built with another embedder.
            IndexLockedError: Another process is writing to the folder.
        """
        return run_sync(self.abuild(documents, keep=keep))

    async def abuild(self, documents: Iterable[Document], *, keep: Collection[str] = ()) -> BuildReport:
        """See `build`."""
        return await self._writer.build(documents, keep)

    def add(self, documents: Iterable[Document]) -> BuildReport:
        """Add documents. Unchanged documents are skipped.

        Raises:
            CorpusError: A document with the same id and a different text exists; use `update`.
        """
        return run_sync(self.aadd(documents))

    async def aadd(self, documents: Iterable[Document]) -> BuildReport:
        """See `add`."""
        return await self._writer.put(documents, may_replace=False)

    def update(self, documents: Iterable[Document]) -> BuildReport:
        """Replace documents by id; new ones are added."""
        return run_sync(self.aupdate(documents))

    async def aupdate(self, documents: Iterable[Document]) -> BuildReport:
        """See `update`."""
        return await self._writer.put(documents, may_replace=True)

    def delete(self, doc_ids: Iterable[str], *, missing_ok: bool = False, only_shown: bool = False) -> BuildReport:
        """Remove documents and everything derived from them.

        Args:
            doc_ids: Ids of the documents.
            missing_ok: Ignore unknown ids.
            only_shown: Keep passages that `allow` hides, and treat documents that it hides as unknown.

        Raises:
            CorpusError: An id is unknown; nothing is deleted.
            IndexMissingError: There is no index, and `missing_ok` is set.
        """
        return run_sync(self.adelete(doc_ids, missing_ok=missing_ok, only_shown=only_shown))

    async def adelete(
        self, doc_ids: Iterable[str], *, missing_ok: bool = False, only_shown: bool = False
    ) -> BuildReport:
        """See `delete`."""
        return await self._writer.delete(doc_ids, missing_ok=missing_ok, only_shown=only_shown)

    def delete_passages(self, passage_ids: Iterable[str]) -> BuildReport:
        """Remove single passages by the ids they were added with, and everything derived from them.

        A document without any remaining passage is removed, too. Unknown ids are ignored, and so are passages that
        `allow` hides.

        Raises:
            CorpusError: A passage was split from a document by the index, so an update of the document would restore
                it; nothing is deleted.
            IndexMissingError: There is no index.
        """
        return run_sync(self.adelete_passages(passage_ids))

    async def adelete_passages(self, passage_ids: Iterable[str]) -> BuildReport:
        """See `delete_passages`."""
        return await self._writer.delete_passages(passage_ids)

    def drop_recipe(self, name: str) -> None:
        """Remove a recipe from the folder, with everything derived only for it. Documents and other recipes stay.

        Raises:
            ConfigurationError: The index does not have this recipe, or has no other.
            IndexLockedError: Another process is writing to the folder.
        """
        run_sync(self.adrop_recipe(name))

    async def adrop_recipe(self, name: str) -> None:
        """See `drop_recipe`."""
        await self._writer.drop_recipe(name)

    def purge(self) -> None:
        """Overwrite what deleted and replaced documents left on disk, then `push`, so that no mirror keeps it.

        Raises:
            IndexLockedError: Another process reads or writes the folder; try again later.
        """
        run_sync(self.apurge())

    async def apurge(self) -> None:
        """See `purge`."""
        await self._writer.purge()

    def push(self, *, full: bool = False) -> dict[str, int]:
        """Send mirrors what they missed after a crash or while unreachable. Returns the units sent, by mirror.

        Every change does this, too. A new mirror receives everything, and so does every mirror with `full`.

        Raises:
            IndexLockedError: Another process is writing to the folder.
            Exception: An error of the vector store; nothing is lost, and the next `push` tries again.
        """
        return run_sync(self.apush(full=full))

    async def apush(self, *, full: bool = False) -> dict[str, int]:
        """See `push`."""
        return await self._writer.push(full=full)

    def estimate(self, documents: Iterable[Document], price: Price | None = None) -> Estimate:
        """Estimate the model calls of `build(documents)`, without making any.

        The number of calls for extraction is exact, without those already stored; for summaries it is a range,
        estimated by a trial build without a model.

        Args:
            documents: As for `build`.
            price: Price of the model; None uses the included price table, if it has the model.
        """
        return run_sync(self.aestimate(documents, price))

    async def aestimate(self, documents: Iterable[Document], price: Price | None = None) -> Estimate:
        """See `estimate`."""
        return await self._writer.estimate(documents, price)

    def search(self, query: str, k: int = 10, *, filter: FilterLike = None, returns: str = "passages") -> list[Hit]:
        """Find evidence for a question.

        Args:
            query: The question. Search time grows linearly with its length. For long texts, some recipes compare only
                the first 64 different words or names that occur in the corpus, in addition to the vector of the whole
                text.
            k: Number of passages or units; fewer are returned only if fewer match the filter.
            filter: On the metadata of passages; see `parse_filter`. A derived unit matches only if all its source
                passages match.
            returns: "passages" returns distinct passages of the documents; a derived unit is replaced by its source
                passages. "units" returns summaries, aggregates and reports, too.

        Raises:
            QueryError: Empty question or k below one.
            ConfigurationError: The filter is invalid, or the recipe was not built in this folder.
            IndexMissingError: There is no index.
            EmbedderMismatchError: The index was built with another embedder.
        """
        return run_sync(self.asearch(query, k, filter=filter, returns=returns))

    async def asearch(
        self, query: str, k: int = 10, *, filter: FilterLike = None, returns: str = "passages"
    ) -> list[Hit]:
        """See `search`."""
        from sire_core.search.snapshot import check_query

        check_query(query, k)
        where = parse_filter(filter)
        try:
            hits = await (await self._session.current(where)).asearch(query, k, returns=returns)
        except SnapshotExpiredError:  # a commit came in between: search what it made
            hits = await (await self._session.snapshot(where)).asearch(query, k, returns=returns)
        if not hits and (hint := await self.afilter_hint(filter)):
            _logger.warning(hint)
        return hits

    def search_many(
        self, queries: Sequence[str], k: int = 10, *, filter: FilterLike = None, returns: str = "passages"
    ) -> list[list[Hit]]:
        """Find evidence for several questions, on the same state of the index. Returns a list of hits per question.

        Makes one request to the embedder for up to 64 questions, and one matrix product with the vectors of the index.
        Scores may differ from those of `search` in the last digit.

        Args:
            queries: The questions.
            k: See `search`.
            filter: Applies to all questions; see `search`.
            returns: "passages" or "units".

        Raises:
            QueryError: A single question was given instead of a list; otherwise as in `search`.
        """
        return run_sync(self.asearch_many(queries, k, filter=filter, returns=returns))

    async def asearch_many(
        self, queries: Sequence[str], k: int = 10, *, filter: FilterLike = None, returns: str = "passages"
    ) -> list[list[Hit]]:
        """See `search_many`."""
        snapshot = await self.asnapshot(filter=filter)
        return await snapshot.asearch_many(queries, k, returns=returns)

    async def afilter_hint(self, filter: FilterLike) -> str:
        """Keys, values and ids of a filter that the index does not have, with similar ones; empty if there are none."""
        from sire_core.search.filter_hint import filter_hint

        where = parse_filter(filter)
        if where is None:
            return ""
        seen = await self.asnapshot()
        return filter_hint(where, seen.metadata(), seen.document_ids(), seen.titles)

    def explain(self, query: str, k: int = 10, *, filter: FilterLike = None, returns: str = "passages") -> str:
        """The hits of a question and why each was found, as text."""
        return run_sync(self.aexplain(query, k, filter=filter, returns=returns))

    async def aexplain(self, query: str, k: int = 10, *, filter: FilterLike = None, returns: str = "passages") -> str:
        """See `explain`."""
        from sire_core.search.explanation import explain_hits

        snapshot = await self.asnapshot(filter=filter)
        return explain_hits(query, await snapshot.asearch(query, k, returns=returns), snapshot)

    def show(self, query: str, k: int = 5, *, filter: FilterLike = None, returns: str = "passages") -> AskedQuestion:
        """A question with its hits and a picture of the paths to them; Jupyter and marimo display it.

        Elsewhere, `.save("question.html")` writes a page that works offline, and `.save("question.svg")` only the
        picture.
        """
        return run_sync(self.ashow(query, k, filter=filter, returns=returns))

    async def ashow(
        self, query: str, k: int = 5, *, filter: FilterLike = None, returns: str = "passages"
    ) -> AskedQuestion:
        """See `show`."""
        from sire_core.explore.asked import aask

        return await aask(await self.asnapshot(filter=filter), query, k, returns=returns)

    def snapshot(self, *, filter: FilterLike = None) -> SearchSnapshot:
        """The current state of the index, for several searches on the same state. Raises what `search` raises."""
        return run_sync(self.asnapshot(filter=filter))

    async def asnapshot(self, *, filter: FilterLike = None) -> SearchSnapshot:
        """See `snapshot`."""
        return await self._session.snapshot(parse_filter(filter))

    def stats(self) -> dict[str, Any]:
        """Counts of documents and units, and what the index was built with."""
        return self._session.stats()

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
        return self._session.reader()[0]

    def documents(self, doc_ids: Iterable[str] | None = None) -> list[Document]:
        """Documents as they were indexed, in corpus order, with their passages (`Document.chunks`).

        Args:
            doc_ids: Ids, or one id; None returns all documents. Unknown ids are ignored.

        Raises:
            IndexMissingError: There is no index.
        """
        wanted = {doc_ids} if isinstance(doc_ids, str) else doc_ids
        return self._session.documents(None if wanted is None else set(wanted))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the index into a new folder, for example an index that was built in memory.

        Raises:
            ConfigurationError: The index was opened with `allow`, but a copy contains everything.
            StorageError: The folder is not empty.
        """
        self._configuration.refuse_limited("a copy holds everything")
        self._session.files().save(Path(path))

    def reembed(self, path: str | os.PathLike[str], embedder: Embedder | str) -> BuildReport:
        """Rebuild this index with another embedder in a new folder, with all its recipes.

        Stored answers of models are copied, so extraction is not repeated. Settings of adapters and their documents
        that are not indexed yet are copied, too. To resume an interrupted call, make it again.

        Args:
            path: The new folder.
            embedder: See the class.

        Returns:
            The report of the folder's latest recipe.

        Raises:
            ConfigurationError: A recipe was built with a model or an extractor that this index does not have, or the
                index was opened with `allow`.
            StorageError: The new folder contains something else.
        """
        return run_sync(self.areembed(path, embedder))

    async def areembed(self, path: str | os.PathLike[str], embedder: Embedder | str) -> BuildReport:
        """See `reembed`."""
        return await self._writer.reembed(Path(path), embedder)

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
