"""`Index`: documents in, cited evidence out."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from sire_core.changes.writer import IndexWriter
from sire_core.configuration import Configuration, explains_settings
from sire_core.errors import IndexMissingError, SireError
from sire_core.filters import Filter, FilterLike, both, parse_filter
from sire_core.index_options import MAX_FAILURE_RATIO, WORKERS
from sire_core.models.sync import run_sync
from sire_core.reader import Reader
from sire_core.search.search_options import SearchOptions
from sire_core.search.validity import Day, filter_as_of
from sire_core.types import BuildReport, Document, Failure, Hit

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.changes.estimate import Estimate
    from sire_core.documents.chunker import SentenceChunker
    from sire_core.explore.query_result import QueryResult
    from sire_core.models.usage import Price, UsageLimits
    from sire_core.progress import ProgressLike
    from sire_core.protocols import Embedder, Extractor, LanguageModel, Mirror, Recipe, Runner, UnitStore, WrapModel
    from sire_core.search.context import Context, ContextOptions
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.search.view import PoolView

T = TypeVar("T")
_logger = logging.getLogger(__name__)


@explains_settings
class Index:
    """One corpus, indexed by one or more recipes, in a folder or in memory.

    Creating an `Index` does no I/O and calls no model. Methods that build, change or search have an async version with
    the prefix `a`; the sync versions also work in notebooks and servers. Reading an index that was not built raises
    `IndexMissingError`; a change while another process writes to the folder raises `IndexLockedError`.

    Args:
        path: The folder; None keeps the index in memory.
        recipe: A `Recipe` or a name; None means `sire` for a first build, and then the recipe of the first build or
            that of `set_default_recipe`. This object keeps the recipe of its first search.
        language_model: Extracts and summarises; None works without a model.
        embedder: An `Embedder` or what `resolve_embedder` reads (`semantic`, `onnx:NAME_OR_FOLDER`, `openai:MODEL`,
            ...); None means that of the folder, or for a first build the default one, which needs no download.
        extractor: Makes extraction records; None chooses one according to `language_model`.
        chunker: Splits documents that this object adds into passages: a `SentenceChunker`, "sentences" for one with its
            defaults, or None, which makes each document a passage. By default that of the folder, and for a first build
            "sentences". The first build, `build` and `set_chunker` store it in the folder; `add` and `update` do not.
            "whole" makes documents of this object passages, and stores nothing.
        seed: Random seed.
        workers: Number of concurrent model calls.
        max_failure_ratio: Share of failed passages or summaries above which a build stops.
        progress: Called as `progress(stage, done, total)`; True draws progress bars on terminals.
        limits: Maximum model calls and tokens of one build: `UsageLimits(max_calls=..., max_tokens=...)`, or a mapping.
        extraction: How a model extracts: `joint`, one call per passage; `native`, as in the recipe's paper
            (`Recipe.native`); `model+rules`, for models that leave much out: facts about the names that rules find,
            and what the rules extract. None is `joint`, and `native` for a recipe with a preset of its paper.
        mirrors: Your vector stores that are updated with every change; see `sire_core.protocols.Mirror`.
        store: A mirror of `sire_core.stores` (PostgreSQL, Qdrant, LanceDB) that also does the nearest-neighbour search.
        lock_timeout: Seconds that a change waits for another writer before it raises `IndexLockedError`.
        allow: A filter on what this object shows: it applies to every search, snapshot and explanation, to `documents`
            and `stats`, and no argument can widen it. Changes are limited, too: documents that it hides are not deleted
            or replaced, and those that are added must pass it. An object without it writes everything.
        runner: Where parallel parts of a build run: `local` in this process; `processes`, or `processes:N`, in
            processes of this machine; `ray` as Ray tasks on this machine or the cluster of `RAY_ADDRESS`,
            `ray://HOST:PORT` elsewhere (extra `ray`); or a `Runner`. None takes processes for builds of 2 MB of text or
            more: `SIRE_JOBS` of them, or one for each core that this process may use.
        wrap_model: Wraps a model that a setting names (`rerank_model`), for example to count, limit or store its calls.
        strict_metadata: Refuse values that JSON does not have; by default dates become ISO texts, sets lists, NaN null.
        language: Language of documents that this object adds, by ISO 639-1 code or English name, where their metadata
            state no `lang`; it is stored as that. By default found from the text of each.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        recipe: Recipe | str | None = None,
        language_model: LanguageModel | None = None,
        embedder: Embedder | str | None = None,
        extractor: Extractor | None = None,
        chunker: SentenceChunker | str | None = "folder",
        seed: int = 0,
        workers: int = WORKERS,
        max_failure_ratio: float = MAX_FAILURE_RATIO,
        progress: ProgressLike = None,
        limits: UsageLimits | Mapping[str, int] | None = None,
        extraction: str | None = None,
        mirrors: Sequence[Mirror] = (),
        store: UnitStore | None = None,
        lock_timeout: float = 10.0,
        allow: FilterLike = None,
        runner: Runner | str | None = None,
        wrap_model: WrapModel | None = None,
        strict_metadata: bool = False,
        language: str = "",
    ) -> None:
        self._open(Configuration.of(**{name: value for name, value in locals().items() if name != "self"}))

    def _open(self, configuration: Configuration, shared: Reader | None = None) -> None:
        self._configuration = configuration
        self._reader = Reader(configuration, shared)
        self._writer = IndexWriter(configuration, self._reader)
        self._by_recipe: dict[str, Index] = {}

    @property
    def path(self) -> Path | None:
        """The folder; None in memory."""
        return self._configuration.path

    @property
    def allow(self) -> Filter | None:
        """Filter on the passages that this object shows; None shows all."""
        return self._configuration.allow

    @property
    def language_model(self) -> LanguageModel | None:
        """The language model of this index; None without one."""
        return self._configuration.language_model

    @property
    def chunker(self) -> SentenceChunker | None:
        """Chunker of documents that this object adds; None makes each one a passage."""
        return self._reader.chunker()

    @property
    def strict_metadata(self) -> bool:
        """True if metadata values that JSON does not have are refused."""
        return self._configuration.strict_metadata

    @property
    def recipe_name(self) -> str:
        """Name of the recipe used for searches; empty if nothing was built and no recipe was given."""
        return self._reader.recipe_name()

    def using(self, recipe: str) -> Index:
        """Return this open index, searched with another of its recipes; `ConfigurationError` if it does not hold it."""
        if recipe not in self._by_recipe:
            other = object.__new__(type(self))
            other._open(replace(self._configuration, recipe=recipe), self._reader)
            other._by_recipe = self._by_recipe
            other._reader.recipe_name()  # refuses what was not built
            self._by_recipe[recipe] = other
        return self._by_recipe[recipe]

    def stats(self) -> dict[str, Any]:
        """Counts of documents, passages and units, and what built them; `pending`: changes not indexed yet."""
        return self._reader.stats()

    def failures(self) -> list[Failure]:
        """Passages (by title) and summaries of the recipe that failed, and why; the next build tries them again."""
        return self._reader.failures()

    def spent(self) -> list[tuple[str, int, int, int]]:
        """Use of models: stage, number of answers, input tokens, output tokens. Not with `allow`."""
        return self._reader.spent()

    def view(self) -> PoolView:
        """A read-only view of all units of the recipe, with vectors and edges, for exports. Not with `allow`."""
        self._configuration.refuse_limited("a view shows everything")
        if self._reader.pending:
            run_sync(self._writer.index_pending(for_search=True))
        return self._reader.latest()[0]

    def documents(self, doc_ids: Iterable[str] | None = None) -> list[Document]:
        """Documents in corpus order with their passages (`Document.chunks`): all, or those with these ids (or one)."""
        return self._reader.documents({doc_ids} if isinstance(doc_ids, str) else doc_ids)

    def sources(self) -> dict[str, str]:
        """The `source` (or `file_path`) in the metadata of every document that has one, by document id."""
        return self._reader.sources()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the index, for example of one in memory, into a new folder. Not with `allow`."""
        self._configuration.refuse_limited("a copy holds everything")
        run_sync(self._writer.index_pending())
        self._reader.files().save(Path(path))

    def build(self, documents: Iterable[Document], *, keep: Collection[str] = ()) -> BuildReport:
        """Build the index so that it contains exactly these documents, and the stored ones with the ids in `keep`.

        Resumes an interrupted build. `CorpusError` if documents contradict each other (one id with two texts);
        `BuildError` if too many passages failed: results so far are stored.
        """
        return run_sync(self.abuild(documents, keep=keep))

    async def abuild(self, documents: Iterable[Document], *, keep: Collection[str] = ()) -> BuildReport:
        """See `build`."""
        return await self._writer.build(documents, keep)

    def add(self, documents: Iterable[Document]) -> BuildReport:
        """Add documents, except unchanged ones; `CorpusError` if an id exists with a different text: use `update`."""
        return run_sync(self.aadd(documents))

    async def aadd(self, documents: Iterable[Document]) -> BuildReport:
        """See `add`."""
        return await self._writer.put(documents, may_replace=False)

    def update(self, documents: Iterable[Document], *, delete: Iterable[str] = ()) -> BuildReport:
        """Replace documents by id; new ones are added. Removes those in `delete`; unknown ids there are ignored."""
        return run_sync(self.aupdate(documents, delete=delete))

    async def aupdate(self, documents: Iterable[Document], *, delete: Iterable[str] = ()) -> BuildReport:
        """See `update`."""
        return await self._writer.put(documents, may_replace=True, delete=list(delete))

    def delete(self, doc_ids: Iterable[str], *, missing_ok: bool = False) -> BuildReport:
        """Remove documents and everything derived from them. `CorpusError` if an id is unknown; nothing is deleted.

        With `missing_ok`, unknown ids are ignored. Passages that `allow` hides are kept, and documents that it hides
        are unknown.
        """
        return run_sync(self.adelete(doc_ids, missing_ok=missing_ok))

    async def adelete(self, doc_ids: Iterable[str], *, missing_ok: bool = False) -> BuildReport:
        """See `delete`."""
        return await self._writer.delete(doc_ids, missing_ok=missing_ok)

    def defer(self, documents: Iterable[Document] = (), *, delete: Iterable[str] = ()) -> list[str]:
        """Store changes now and index them together before the next search by any process; return the documents' ids.

        Changes are on disk when this returns, if the index has a folder. The first documents of a new folder are
        indexed at once, and with `allow` all. Documents replace others with the same id; unknown ids in `delete` are
        ignored.
        """
        return run_sync(self.adefer(documents, delete=delete))

    async def adefer(self, documents: Iterable[Document] = (), *, delete: Iterable[str] = ()) -> list[str]:
        """See `defer`."""
        return await self._writer.defer(documents, delete)

    def flush(self) -> None:
        """Index what `defer` stored. If this fails, nothing is lost: the next search or change tries again."""
        run_sync(self.aflush())

    async def aflush(self) -> None:
        """See `flush`."""
        await self._writer.index_pending()

    def delete_passages(self, passage_ids: Iterable[str]) -> BuildReport:
        """Remove single passages by the ids they were added with, and everything derived from them.

        Removes documents without any remaining passage. Ignores unknown ids and passages that `allow` hides.
        `CorpusError` if the index itself split the passage from a document, whose update would restore it.
        """
        return run_sync(self.adelete_passages(passage_ids))

    async def adelete_passages(self, passage_ids: Iterable[str]) -> BuildReport:
        """See `delete_passages`."""
        return await self._writer.delete_passages(passage_ids)

    def reextract(self, doc_ids: Iterable[str]) -> BuildReport:
        """Ask the models about some documents again: for answers that are valid and bad, which would stay for ever.

        Deletes and repeats their extractions, all answers that were made from them among others, and what was derived.
        What fails is asked again by the next change. `CorpusError`: unknown id; `ConfigurationError` as in `reembed`.
        """
        return run_sync(self.areextract(doc_ids))

    async def areextract(self, doc_ids: Iterable[str]) -> BuildReport:
        """See `reextract`."""
        return await self._writer.reextract(doc_ids)

    def drop_recipe(self, name: str) -> None:
        """Remove a recipe, unless it is the only one, and everything derived only for it. Documents stay."""
        run_sync(self.adrop_recipe(name))

    async def adrop_recipe(self, name: str) -> None:
        """See `drop_recipe`."""
        await self._writer.drop_recipe(name)

    def set_chunker(self, chunker: SentenceChunker | None) -> None:
        """Make a chunker that of the folder, for documents that are added or updated from now on without another one.

        Nothing is cut again; `build`, or an update with the documents, does that.
        """
        run_sync(self._writer.set_chunker(chunker))

    def set_default_recipe(self, name: str) -> None:
        """Make a recipe of the index its default (else `ConfigurationError`); objects that are open keep theirs."""
        run_sync(self.aset_default_recipe(name))

    async def aset_default_recipe(self, name: str) -> None:
        """See `set_default_recipe`."""
        await self._writer.set_default_recipe(name)

    def purge(self) -> None:
        """Overwrite what deleted and replaced documents left on disk, then `push`, so that no mirror keeps it."""
        run_sync(self.apurge())

    async def apurge(self) -> None:
        """See `purge`."""
        await self._writer.purge()

    def push(self, *, full: bool = False) -> dict[str, int]:
        """Send mirrors what they missed after a crash or while unreachable. Returns the units sent, by mirror.

        Every change does this, too. New mirrors receive everything; with `full` all do. An error of a vector store is
        raised as it is; the next `push` tries again.
        """
        return run_sync(self.apush(full=full))

    async def apush(self, *, full: bool = False) -> dict[str, int]:
        """See `push`."""
        return await self._writer.push(full=full)

    def estimate(self, documents: Iterable[Document], price: Price | None = None) -> Estimate:
        """Estimate the model calls of `build(documents)`, without making any.

        The number of calls for extraction is exact, that for summaries a range, from a trial build without a model.
        Without `price` the included price table is used.
        """
        return run_sync(self.aestimate(documents, price))

    async def aestimate(self, documents: Iterable[Document], price: Price | None = None) -> Estimate:
        """See `estimate`."""
        return await self._writer.estimate(documents, price)

    def reembed(self, path: str | os.PathLike[str], embedder: Embedder | str) -> BuildReport:
        """Rebuild this index with another embedder in a new folder, with all its recipes.

        Stored answers of models and settings of adapters are copied, so extraction is not repeated. To resume an
        interrupted call, make it again. Returns the report of the default recipe. `ConfigurationError` if a recipe was
        built with a model or extractor that this index has not; `StorageError` if the folder contains something else.
        """
        return run_sync(self.areembed(path, embedder))

    async def areembed(self, path: str | os.PathLike[str], embedder: Embedder | str) -> BuildReport:
        """See `reembed`."""
        return await self._writer.reembed(Path(path), embedder)

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        filter: FilterLike = None,
        returns: str = "passages",
        history: Sequence[Any] = (),
        as_of: Day = None,
    ) -> list[Hit]:
        """Find evidence for a question.

        Args:
            query: The question. Search time grows linearly with its length; of more than 8,000 characters the first are
                searched for, and a warning says so. Of long texts, some recipes compare the
                vector of the whole text and only the first 64 different words or names that occur in the corpus.
            k: Number of passages or units; fewer are returned only if fewer match the filter.
            filter: On the metadata of passages; see `parse_filter`. A derived unit matches if all its sources match.
            returns: "passages" returns passages of the documents, with "units" also summaries, aggregates and reports.
            history: Earlier turns of the conversation, oldest first: texts, or pairs of a role and a text. Names and
                words that a follow-up question refers to are searched for with it; see
                `sire_core.search.history.standalone_question`, and `rewrite_question` there for a model.
            as_of: A day, such as "2026-01-31": documents of a later date are left out, and superseded versions (same
                `url` or `source`, earlier date) come last, marked in their path (keys: `sire_core.search.validity`).

        Raises:
            QueryError: Empty question, k below one, or the history or the date cannot be read.
            ConfigurationError: The filter is invalid, or the recipe was not built in this folder.
            EmbedderMismatchError: The index was built with another embedder.
        """
        return run_sync(self.asearch(query, k, filter=filter, returns=returns, history=history, as_of=as_of))

    async def asearch(
        self, query: str, k: int = 10, *, history: Sequence[Any] = (), **options: Unpack[SearchOptions]
    ) -> list[Hit]:
        """See `search`."""
        if history:
            from sire_core.search.history import standalone_question

            query = standalone_question(query, history)
        hits: list[Hit] = await self._search(
            lambda snapshot, **how: snapshot.asearch(query, k, **how), pinned=False, **options
        )
        if not hits and (hint := await self.afilter_hint(options.get("filter"))):
            _logger.warning(hint)
        return hits

    def search_many(self, queries: Sequence[str], k: int = 10, **options: Unpack[SearchOptions]) -> list[list[Hit]]:
        """Find evidence for several questions, on the same state of the index. Returns a list of hits per question.

        Makes one request to the embedder for up to 64 questions. Scores may differ from those of `search` in the last
        digit. Arguments and errors are those of `search`, without `history`.
        """
        return run_sync(self.asearch_many(queries, k, **options))

    async def asearch_many(
        self, queries: Sequence[str], k: int = 10, **options: Unpack[SearchOptions]
    ) -> list[list[Hit]]:
        """See `search_many`."""
        return await self._search(lambda snapshot, **how: snapshot.asearch_many(queries, k, **how), **options)

    async def _search(
        self, ask: Callable[..., Awaitable[T]], *, pinned: bool = True, **options: Unpack[SearchOptions]
    ) -> T:
        left_out = await self._writer.prepare_search()
        where, day = filter_as_of(options.get("filter"), options.get("as_of"))
        where = both(where, left_out)
        ask = partial(ask, returns=options.get("returns", "passages"))
        return await self._reader.search(where, lambda snapshot: ask(replace(snapshot, as_of=day)), pinned=pinned)

    def context(
        self,
        query: str,
        max_tokens: int = 2000,
        *,
        history: Sequence[Any] = (),
        options: ContextOptions | None = None,
        **search: Unpack[SearchOptions],
    ) -> Context:
        """Choose what a model should read for a question, within a number of tokens.

        The best blocks (paragraphs, list items, rows of tables) of the first 30 passages, in the order of their
        documents, behind labels and heading paths: `context.text`. `context.evidence` has the passages and the spans
        that are quoted, `context.more` the names of further documents that match well.

        Args:
            query: The question.
            max_tokens: Tokens of `context.text`, labels and headings counted.
            history: As in `search`.
            options: A reranker, another way to count tokens or to write the context; see `ContextOptions`.
            **search: `filter`, `returns` and `as_of`, as in `search`.

        Raises:
            QueryError: As in `search`, or `max_tokens` is below one.
            ConfigurationError: As in `search`, or the reranker cannot be used.
        """
        return run_sync(self.acontext(query, max_tokens, history=history, options=options, **search))

    async def acontext(
        self,
        query: str,
        max_tokens: int = 2000,
        *,
        history: Sequence[Any] = (),
        options: ContextOptions | None = None,
        **search: Unpack[SearchOptions],
    ) -> Context:
        """See `context`."""
        if history:
            from sire_core.search.history import standalone_question

            query = standalone_question(query, history)
        return await self._search(
            lambda snapshot, **how: snapshot.acontext(query, max_tokens, options, **how), pinned=False, **search
        )

    async def afilter_hint(self, filter: FilterLike) -> str:
        """Keys, values and ids of a filter that the index does not have, with similar ones; empty if there are none."""
        where = parse_filter(filter)
        return "" if where is None else (await self.asnapshot()).filter_hint(where)

    def explain(self, query: str, k: int = 10, **options: Unpack[SearchOptions]) -> str:
        """The hits of a question and why each was found, as text; `filter`, `returns` and `as_of` as in `search`."""
        return run_sync(self.aexplain(query, k, **options))

    async def aexplain(self, query: str, k: int = 10, **options: Unpack[SearchOptions]) -> str:
        """See `explain`."""
        from sire_core.search.explanation import explain_query

        return await self._search(lambda snapshot, **how: explain_query(snapshot, query, k, **how), **options)

    def show(self, query: str, k: int = 5, **options: Unpack[SearchOptions]) -> QueryResult:
        """A question with its hits and a picture of the paths to them, for notebooks or `.save("question.html")`.

        `filter`, `returns` and `as_of` are those of `search`.
        """
        return run_sync(self.ashow(query, k, **options))

    async def ashow(self, query: str, k: int = 5, **options: Unpack[SearchOptions]) -> QueryResult:
        """See `show`."""
        from sire_core.explore.query_result import query_result

        return await self._search(lambda snapshot, **how: query_result(snapshot, query, k, **how), **options)

    def snapshot(self, *, filter: FilterLike = None, as_of: Day = None) -> SearchSnapshot:
        """The current state of the index, for several searches on the same state. Raises what `search` raises."""
        return run_sync(self.asnapshot(filter=filter, as_of=as_of))

    async def asnapshot(self, *, filter: FilterLike = None, as_of: Day = None) -> SearchSnapshot:
        """See `snapshot`."""
        left_out = await self._writer.prepare_search()
        where, day = filter_as_of(filter, as_of)
        return replace(await self._reader.snapshot(both(where, left_out)), as_of=day)

    def close(self) -> None:
        """Close the files. Every later use raises `IndexClosedError`; an index in memory is lost."""
        self._reader.close()

    def __getstate__(self) -> dict[str, Any]:
        self._configuration.refuse_in_memory()
        return {"configuration": self._configuration, "first_recipe": self._reader.first_recipe}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._open(state["configuration"])
        self._reader.first_recipe = state["first_recipe"]

    def __deepcopy__(self, memo: object = None) -> Index:
        return self  # a handle of one folder: copies of an object that has it share it

    __copy__ = __deepcopy__

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_warned: WeakSet[Index] = WeakSet()


def warn_of_first_cost(index: Index, documents: int) -> None:
    """Warn once of a first build that calls a language model, whose price nobody has been shown."""
    model = index.language_model
    if model is None or not documents or index in _warned:
        return
    _warned.add(index)
    try:
        index.stats()
    except IndexMissingError:
        _logger.warning(
            "Indexing %d documents calls %s, once or more per passage. To see calls and price first: "
            "Index.estimate(documents). To bound them: limits={'max_calls': ...}.",
            documents,
            model.fingerprint,
        )
    except SireError:  # it is built
        return


def warn_of_no_documents(index: Index, called: str, add: str) -> None:
    """Warn that a call with documents was given none, and the index has none; `add` is the call for later ones."""
    with suppress(SireError):  # nothing was built yet
        if index.stats()["documents"]:
            return
    _logger.warning(
        "%s was given no documents, and the index is empty. See whether the loader read anything; documents that "
        "come later are added by %s.",
        called,
        add,
    )
