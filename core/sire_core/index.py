"""`Index`: documents in, cited evidence out."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from sire_core.bars import ProgressLike, progress_of
from sire_core.configuration import Configuration
from sire_core.errors import ConfigurationError, IndexMissingError, SnapshotExpiredError
from sire_core.filters import Filter, parse_filter
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

FilterLike = Union[Filter, Mapping[str, Any], str, None]


class Index:
    """One corpus, indexed by one or more recipes, in a folder or in memory.

    Constructing does no I/O and calls no model. Methods that build, change or search have an async twin with an `a` in
    front; the sync ones run it on a loop of the package's own, so they work in notebooks and servers too.

    Args:
        path: The folder; None keeps the index in memory.
        recipe: A `Recipe` or a name; None means the folder's latest, and `sire` for a first build. What this object
            searches with first it keeps: a recipe that is built beside, by anybody, changes nothing for it.
        language_model: Extracts and summarises; None uses the model-free ways.
        embedder: An `Embedder` or what `resolve_embedder` reads (`st:NAME_OR_FOLDER`, `openai:MODEL`, ...); None means
            what the folder was built with, and the zero-download default for a first build.
        extractor: Makes extraction records; None picks by `language_model`.
        chunker: Cuts documents; None takes each document as one passage. By default sentence-respecting chunks.
        seed: Seed of every random choice.
        workers: Model calls in flight at once.
        max_failure_ratio: Share of failed passages or summaries above which a build stops.
        progress: Called as `progress(stage, done, total)`; True draws bars with the time left, on terminals only.
        limits: Most calls and tokens that one build may spend on models.
        extraction: How a model extracts: `joint` asks once per passage; `native` as the recipe's paper does
            (`Recipe.native`); `model+rules` asks for facts about the names that rules find and completes them by the
            rules' own, for models that leave much out.
        mirrors: Vector stores of yours that follow every change; see `sire_core.protocols.Mirror`.
        store: A database of `sire_core.stores` (PostgreSQL, Qdrant, LanceDB) that follows every change and finds what
            is nearest in every search, in the place of our own scan.
        lock_timeout: Seconds that a change waits for another writer before it raises `IndexLockedError`.
        allow: What the readers of this object may see, as a filter: it holds in every search, snapshot and explanation,
            in `documents` and `stats`, and no argument of theirs widens it. Changes are not limited; see `delete`.
        runner: Who does a build's work that falls into parts: None this process; `ray` tasks of Ray on this machine or
            on the cluster of `RAY_ADDRESS`, `ray://HOST:PORT` those of another one (extra `ray`); or a `Runner`. The
            index is the same.
        named_models: Makes of a model that a setting names (`rerank_model`) the one that searches ask instead: one that
            counts, bounds or keeps what it is asked, for example. None asks the named one.
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
        """What readers of this object may see; None means everything."""
        return self._configuration.allow

    @property
    def language_model(self) -> LanguageModel | None:
        """The model that the index was given; None without one."""
        return self._configuration.language_model

    @property
    def chunker(self) -> SentenceChunker | str | None:
        """What cuts documents; None takes each as one passage."""
        return self._configuration.chunker

    @property
    def recipe_name(self) -> str:
        """Name of the recipe that searches; empty while nothing was built and none was named."""
        configuration = self._configuration
        try:
            return self._session.built()[1].name
        except IndexMissingError:
            return (
                configuration.recipe_name if configuration.recipe_object is None else configuration.recipe_object.name
            )

    def using(self, recipe: str) -> Index:
        """The same open index, searched by another of the recipes that were built in it.

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
        """Make the index hold exactly these documents. Resumes what an interrupted build has paid for.

        Args:
            documents: With unique ids.
            keep: Ids of further documents, which stay as they are stored.

        Raises:
            CorpusError: Contradicting documents, for example one id with two texts.
            BuildError: Too many passages failed; what succeeded is kept.
            EmbedderMismatchError: The folder was built with another embedder.
            IndexLockedError: Another process is writing to the folder.
        """
        return run_sync(self.abuild(documents, keep=keep))

    async def abuild(self, documents: Iterable[Document], *, keep: Collection[str] = ()) -> BuildReport:
        """See `build`."""
        return await self._writer.build(documents, keep)

    def add(self, documents: Iterable[Document]) -> BuildReport:
        """Add documents. One that is there already and unchanged is left alone.

        Raises:
            CorpusError: A document with the same id and another text is there; use `update`.
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
            doc_ids: Which.
            missing_ok: Leave out unknown ids.
            only_shown: Remove no passage that `allow` hides, and take documents that it hides for unknown ones.

        Raises:
            CorpusError: An id is unknown; nothing is deleted.
            IndexMissingError: There is no index, and ids may be missing.
        """
        return run_sync(self.adelete(doc_ids, missing_ok=missing_ok, only_shown=only_shown))

    async def adelete(
        self, doc_ids: Iterable[str], *, missing_ok: bool = False, only_shown: bool = False
    ) -> BuildReport:
        """See `delete`."""
        return await self._writer.delete(doc_ids, missing_ok=missing_ok, only_shown=only_shown)

    def delete_passages(self, passage_ids: Iterable[str]) -> BuildReport:
        """Remove single passages, by the ids that they were given with, and everything derived from them.

        A document that has no other goes, too. Unknown ids are passed over, and so are passages that `allow` hides.

        Raises:
            CorpusError: A passage was cut here, and an update of its document would bring it back; nothing is deleted.
            IndexMissingError: There is no index.
        """
        return run_sync(self.adelete_passages(passage_ids))

    async def adelete_passages(self, passage_ids: Iterable[str]) -> BuildReport:
        """See `delete_passages`."""
        return await self._writer.delete_passages(passage_ids)

    def drop_recipe(self, name: str) -> None:
        """Remove a recipe from the folder, with everything that only it derived. Documents and other recipes stay.

        Raises:
            ConfigurationError: The index does not hold it, or holds nothing else.
            IndexLockedError: Another process is writing to the folder.
        """
        run_sync(self.adrop_recipe(name))

    async def adrop_recipe(self, name: str) -> None:
        """See `drop_recipe`."""
        await self._writer.drop_recipe(name)

    def purge(self) -> None:
        """Overwrite on disk all that deleted and replaced documents left, then `push`, so that no mirror keeps it.

        Raises:
            IndexLockedError: Somebody else reads or writes; try again later.
        """
        run_sync(self.apurge())

    async def apurge(self) -> None:
        """See `purge`."""
        await self._writer.purge()

    def push(self, *, full: bool = False) -> dict[str, int]:
        """Send the mirrors what they missed, after a crash or when they could not be reached; units sent, by name.

        Every change does this, too. A mirror that is new, or every one with `full`, receives everything.

        Raises:
            IndexLockedError: Another process is writing to the folder.
            Exception: Whatever a vector store raises; nothing is lost.
        """
        return run_sync(self.apush(full=full))

    async def apush(self, *, full: bool = False) -> dict[str, int]:
        """See `push`."""
        return await self._writer.push(full=full)

    def estimate(self, documents: Iterable[Document], price: Price | None = None) -> Estimate:
        """What `build(documents)` would ask of the language model, without asking it anything.

        Extraction is exact, with what is stored deducted; summaries are a range, drawn from a trial without a model.

        Args:
            documents: As for `build`.
            price: Of the model; None takes the packaged price table's, if it knows the model.
        """
        return run_sync(self.aestimate(documents, price))

    async def aestimate(self, documents: Iterable[Document], price: Price | None = None) -> Estimate:
        """See `estimate`."""
        return await self._writer.estimate(documents, price)

    def search(self, query: str, k: int = 10, *, filter: FilterLike = None, returns: str = "passages") -> list[Hit]:
        """Find evidence for a question.

        Args:
            query: The question. Time is linear in its length; of a text of many words some recipes compare the first 64
                different ones or names that the corpus has, beside the vector of the whole.
            k: How many passages, or units; fewer come back only when fewer pass the filter.
            filter: On chunk metadata; see `parse_filter`. A derived unit passes only if all its chunks pass.
            returns: "passages" gives distinct passages of the documents; what was derived from them brings the
                passages that it stands on. "units" gives summaries, aggregates and reports as they are.

        Raises:
            QueryError: Empty question or k below one.
            ConfigurationError: The filter cannot be read, or the recipe was not built here.
            IndexMissingError: There is no index.
            EmbedderMismatchError: Another embedder than the one it was built with.
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
        """Find evidence for several questions: hits by question, all of one generation.

        One request to the embedder for up to 64 questions, and one matrix product with the vectors of the index, which
        is read once for all of them. Scores may differ from those of `search` in the last digit.

        Args:
            queries: The questions.
            k: See `search`, as for the rest.
            filter: The same for all.
            returns: "passages" or "units".

        Raises:
            QueryError: One question in the place of a list; else what `search` raises.
        """
        return run_sync(self.asearch_many(queries, k, filter=filter, returns=returns))

    async def asearch_many(
        self, queries: Sequence[str], k: int = 10, *, filter: FilterLike = None, returns: str = "passages"
    ) -> list[list[Hit]]:
        """See `search_many`."""
        snapshot = await self.asnapshot(filter=filter)
        return await snapshot.asearch_many(queries, k, returns=returns)

    async def afilter_hint(self, filter: FilterLike) -> str:
        """Keys, values and ids of a filter that nothing has, with the nearest ones; empty when nothing is wrong."""
        from sire_core.search.filter_hint import filter_hint

        where = parse_filter(filter)
        if where is None:
            return ""
        seen = await self.asnapshot()
        return filter_hint(where, seen.metadata(), seen.document_ids())

    def explain(self, query: str, k: int = 10, *, filter: FilterLike = None, returns: str = "passages") -> str:
        """The hits of a question and, for each, why it was chosen, as text."""
        return run_sync(self.aexplain(query, k, filter=filter, returns=returns))

    async def aexplain(self, query: str, k: int = 10, *, filter: FilterLike = None, returns: str = "passages") -> str:
        """See `explain`."""
        from sire_core.search.explanation import explain_hits

        snapshot = await self.asnapshot(filter=filter)
        return explain_hits(query, await snapshot.asearch(query, k, returns=returns), snapshot)

    def show(self, query: str, k: int = 5, *, filter: FilterLike = None, returns: str = "passages") -> AskedQuestion:
        """A question with its hits and the picture of how it led to them; Jupyter and marimo display it.

        Elsewhere `.save("question.html")` writes a page that works offline, `.save("question.svg")` the picture alone.
        """
        return run_sync(self.ashow(query, k, filter=filter, returns=returns))

    async def ashow(
        self, query: str, k: int = 5, *, filter: FilterLike = None, returns: str = "passages"
    ) -> AskedQuestion:
        """See `show`."""
        from sire_core.explore.asked import aask

        return await aask(await self.asnapshot(filter=filter), query, k, returns=returns)

    def snapshot(self, *, filter: FilterLike = None) -> SearchSnapshot:
        """The index as of now, for several searches that belong together; raises what `search` does."""
        return run_sync(self.asnapshot(filter=filter))

    async def asnapshot(self, *, filter: FilterLike = None) -> SearchSnapshot:
        """See `snapshot`."""
        return await self._session.snapshot(parse_filter(filter))

    def stats(self) -> dict[str, Any]:
        """Counts of the recipe's pool, and what the index was built with."""
        return self._session.stats()

    def failures(self) -> list[Failure]:
        """Passages (by title) and summaries of the recipe that failed, and why; the next build tries them again."""
        return self._session.failures()

    def spent(self) -> list[tuple[str, int, int, int]]:
        """What a model was paid for: stage, answers, input and output tokens.

        Raises:
            ConfigurationError: The index was opened with `allow`.
        """
        return self._session.spent()

    def view(self) -> PoolView:
        """A read-only snapshot of the recipe's whole pool: units, vectors, edges. For exports and adapters.

        Raises:
            IndexMissingError: There is no index.
            ConfigurationError: The index was opened with `allow`; a view shows everything.
        """
        self._configuration.refuse_limited("a view shows everything")
        return self._session.reader()[0]

    def documents(self, doc_ids: Iterable[str] | None = None) -> list[Document]:
        """Documents as they were indexed, in corpus order, cut into their passages (`Document.chunks`).

        Args:
            doc_ids: Which, or the id of one; None reads all. Unknown ids are left out.

        Raises:
            IndexMissingError: There is no index.
        """
        wanted = {doc_ids} if isinstance(doc_ids, str) else doc_ids
        return self._session.documents(None if wanted is None else set(wanted))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the index into a new folder, for example of one that was built in memory.

        Raises:
            ConfigurationError: The index was opened with `allow`; a copy holds everything.
            StorageError: The folder holds something already.
        """
        self._configuration.refuse_limited("a copy holds everything")
        self._session.files().save(Path(path))

    def reembed(self, path: str | os.PathLike[str], embedder: Embedder | str) -> BuildReport:
        """Write this corpus with all its recipes into a new folder, with the vectors of another embedder.

        What was extracted and answered is taken along, and not asked for again; so are settings of adapters, and
        documents that wait in one. Interrupted, the same call goes on.

        Args:
            path: The new folder.
            embedder: See the class.

        Returns:
            The report of the folder's latest recipe.

        Raises:
            ConfigurationError: A recipe was made by a model or an extractor that this index was not given, or the index
                was opened with `allow`.
            StorageError: The new folder holds something else.
        """
        return run_sync(self.areembed(path, embedder))

    async def areembed(self, path: str | os.PathLike[str], embedder: Embedder | str) -> BuildReport:
        """See `reembed`."""
        return await self._writer.reembed(Path(path), embedder)

    def close(self) -> None:
        """Let go of files. The next use opens them again; an index in memory is gone."""
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
