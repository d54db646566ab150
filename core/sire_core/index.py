"""`Index`: documents in, cited evidence out."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union

from sire_core.bars import ProgressLike, progress_of
from sire_core.configuration import Configuration
from sire_core.errors import ConfigurationError, SnapshotExpiredError
from sire_core.filters import Filter, both, parse_filter
from sire_core.session import Session
from sire_core.types import BuildReport, Document, Failure, Hit

if TYPE_CHECKING:
    from sire_core.corpus.chunker import SentenceChunker
    from sire_core.explore.asked import AskedQuestion
    from sire_core.models.prices import Price
    from sire_core.models.usage import UsageLimits
    from sire_core.pipeline.estimate import Estimate
    from sire_core.protocols import Embedder, Extractor, LanguageModel, Mirror, Recipe, Runner, UnitStore
    from sire_core.search.snapshot import PoolCounts, SearchSnapshot
    from sire_core.search.view import PoolView

__all__ = ["Index"]

_logger = logging.getLogger(__name__)

T = TypeVar("T")
FilterLike = Union[Filter, Mapping[str, Any], str, None]


class Index:
    """One corpus, indexed by one or more recipes, in a folder or in memory.

    Constructing does no I/O and calls no model. Methods that build, change or search have an async twin with an `a` in
    front; the sync ones run it on a loop of the package's own, so they work in notebooks and servers too.

    Args:
        path: The folder; None keeps the index in memory.
        recipe: A `Recipe` or a name; None means the folder's latest, and `sire` for a first build.
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
    ) -> None:
        self._configuration = Configuration(
            path=Path(path) if path is not None else None,
            recipe=recipe,
            language_model=language_model,
            embedder=embedder,
            extractor=extractor,
            chunker=chunker,
            seed=seed,
            workers=workers,
            max_failure_ratio=max_failure_ratio,
            progress=progress_of(progress) or _silent,
            limits=limits,
            extraction=extraction,
            mirrors=(*mirrors, *([store] if store is not None else [])),
            store=store,
            lock_timeout=lock_timeout,
            allow=parse_filter(allow),
            runner=runner,
        )
        self._session = Session(self._configuration)
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

    def using(self, recipe: str) -> Index:
        """The same open index, searched by another of the recipes that were built in it.

        Args:
            recipe: Its name.
        """
        if recipe not in self._others:
            configuration = replace(self._configuration, recipe=recipe)
            other = object.__new__(type(self))
            vars(other).update(
                _configuration=configuration, _session=Session(configuration, self._session), _others=self._others
            )
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
        return _run(self.abuild(documents, keep=keep))

    async def abuild(self, documents: Iterable[Document], *, keep: Collection[str] = ()) -> BuildReport:
        """See `build`."""
        from sire_core.corpus.changes import plan_build
        from sire_core.corpus.validation import check_documents

        given, chunker = check_documents(documents), self._configuration.chunker_object()
        kept = {keep} if isinstance(keep, str) else set(keep)
        report = await self._session.apply(lambda stored, _: plan_build(stored, given, chunker, kept))
        await self._session.prepare()
        return report

    def add(self, documents: Iterable[Document]) -> BuildReport:
        """Add documents. One that is there already and unchanged is left alone.

        Raises:
            CorpusError: A document with the same id and another text is there; use `update`.
        """
        return _run(self.aadd(documents))

    async def aadd(self, documents: Iterable[Document]) -> BuildReport:
        """See `add`."""
        return await self._session.put(documents, may_replace=False)

    def update(self, documents: Iterable[Document]) -> BuildReport:
        """Replace documents by id; new ones are added."""
        return _run(self.aupdate(documents))

    async def aupdate(self, documents: Iterable[Document]) -> BuildReport:
        """See `update`."""
        return await self._session.put(documents, may_replace=True)

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
        return _run(self.adelete(doc_ids, missing_ok=missing_ok, only_shown=only_shown))

    async def adelete(
        self, doc_ids: Iterable[str], *, missing_ok: bool = False, only_shown: bool = False
    ) -> BuildReport:
        """See `delete`."""
        from sire_core.corpus.changes import plan_delete, plan_delete_shown

        wanted = [doc_ids] if isinstance(doc_ids, str) else list(doc_ids)
        allow, chunker = self._configuration.allow, self._configuration.chunker_object()
        if missing_ok:
            self._session.files()  # nothing is made where there is nothing to delete
        if only_shown and allow is not None:
            return await self._session.apply(
                lambda stored, chunks: plan_delete_shown(
                    stored, chunks, wanted, allow, missing_ok=missing_ok, chunker=chunker
                )
            )
        return await self._session.apply(lambda stored, _: plan_delete(stored, wanted, missing_ok=missing_ok))

    def delete_passages(self, passage_ids: Iterable[str]) -> BuildReport:
        """Remove single passages, by the ids that they were given with, and everything derived from them.

        A document that has no other goes, too. Unknown ids are passed over, and so are passages that `allow` hides.

        Raises:
            CorpusError: A passage was cut here, and an update of its document would bring it back; nothing is deleted.
            IndexMissingError: There is no index.
        """
        return _run(self.adelete_passages(passage_ids))

    async def adelete_passages(self, passage_ids: Iterable[str]) -> BuildReport:
        """See `delete_passages`."""
        from sire_core.corpus.changes import plan_delete_passages

        wanted = {passage_ids} if isinstance(passage_ids, str) else set(passage_ids)
        allow, chunker = self._configuration.allow, self._configuration.chunker_object()
        self._session.files()  # nothing is made where there is nothing to delete
        return await self._session.apply(
            lambda stored, chunks: plan_delete_passages(stored, chunks, wanted, allow=allow, chunker=chunker)
        )

    def drop_recipe(self, name: str) -> None:
        """Remove a recipe from the folder, with everything that only it derived. Documents and other recipes stay.

        Raises:
            ConfigurationError: The index does not hold it, or holds nothing else.
            IndexLockedError: Another process is writing to the folder.
        """
        _run(self.adrop_recipe(name))

    async def adrop_recipe(self, name: str) -> None:
        """See `drop_recipe`."""
        await self._session.drop_recipe(name)

    def purge(self) -> None:
        """Overwrite on disk all that deleted and replaced documents left, then `push`, so that no mirror keeps it.

        Raises:
            IndexLockedError: Somebody else reads or writes; try again later.
        """
        _run(self.apurge())

    async def apurge(self) -> None:
        """See `purge`."""
        await self._session.purge()

    def push(self, *, full: bool = False) -> dict[str, int]:
        """Send the mirrors what they missed, after a crash or when they could not be reached; units sent, by name.

        Every change does this, too. A mirror that is new, or every one with `full`, receives everything.

        Raises:
            IndexLockedError: Another process is writing to the folder.
            Exception: Whatever a vector store raises; nothing is lost.
        """
        return _run(self.apush(full=full))

    async def apush(self, *, full: bool = False) -> dict[str, int]:
        """See `push`."""
        return await self._session.push(full=full)

    def estimate(self, documents: Iterable[Document], price: Price | None = None) -> Estimate:
        """What `build(documents)` would ask of the language model, without asking it anything.

        Extraction is exact, with what is stored deducted; summaries are a range, drawn from a trial without a model.

        Args:
            documents: As for `build`.
            price: Of the model; None takes the packaged price table's, if it knows the model.
        """
        return _run(self.aestimate(documents, price))

    async def aestimate(self, documents: Iterable[Document], price: Price | None = None) -> Estimate:
        """See `estimate`."""
        from sire_core.corpus.validation import check_documents

        return await self._session.estimate(check_documents(documents), price)

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        filter: FilterLike = None,  # noqa: A002 - the word users look for
        returns: str = "passages",
    ) -> list[Hit]:
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
        return _run(self.asearch(query, k, filter=filter, returns=returns))

    async def asearch(
        self,
        query: str,
        k: int = 10,
        *,
        filter: FilterLike = None,  # noqa: A002 - as above
        returns: str = "passages",
    ) -> list[Hit]:
        """See `search`."""
        from sire_core.search.snapshot import check_query

        check_query(query, k)
        try:
            hits = await (await self._current(filter)).asearch(query, k, returns=returns)
        except SnapshotExpiredError:  # a commit came in between: search what it made
            hits = await (await self.asnapshot(filter=filter)).asearch(query, k, returns=returns)
        if not hits and (hint := await self.afilter_hint(filter)):
            _logger.warning(hint)
        return hits

    def search_many(
        self,
        queries: Sequence[str],
        k: int = 10,
        *,
        filter: FilterLike = None,  # noqa: A002 - as above
        returns: str = "passages",
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
        return _run(self.asearch_many(queries, k, filter=filter, returns=returns))

    async def asearch_many(
        self,
        queries: Sequence[str],
        k: int = 10,
        *,
        filter: FilterLike = None,  # noqa: A002 - as above
        returns: str = "passages",
    ) -> list[list[Hit]]:
        """See `search_many`."""
        snapshot = await self.asnapshot(filter=filter)
        return await snapshot.asearch_many(queries, k, returns=returns)

    async def afilter_hint(self, filter: FilterLike) -> str:  # noqa: A002 - as above
        """Keys, values and ids of a filter that nothing has, with the nearest ones; empty when nothing is wrong."""
        from sire_core.search.filter_hint import filter_hint

        where = parse_filter(filter)
        if where is None:
            return ""
        seen = await self.asnapshot()
        return filter_hint(where, seen.metadata(), seen.document_ids())

    def explain(
        self,
        query: str,
        k: int = 10,
        *,
        filter: FilterLike = None,  # noqa: A002 - as in search
        returns: str = "passages",
    ) -> str:
        """The hits of a question and, for each, why it was chosen, as text."""
        return _run(self.aexplain(query, k, filter=filter, returns=returns))

    async def aexplain(
        self,
        query: str,
        k: int = 10,
        *,
        filter: FilterLike = None,  # noqa: A002 - as above
        returns: str = "passages",
    ) -> str:
        """See `explain`."""
        from sire_core.search.explanation import explain_hits

        snapshot = await self.asnapshot(filter=filter)
        return explain_hits(query, await snapshot.asearch(query, k, returns=returns), snapshot.view)

    def show(
        self,
        query: str,
        k: int = 5,
        *,
        filter: FilterLike = None,  # noqa: A002 - as in search
        returns: str = "passages",
    ) -> AskedQuestion:
        """A question with its hits and the picture of how it led to them; Jupyter and marimo display it.

        Elsewhere `.save("question.html")` writes a page that works offline, `.save("question.svg")` the picture alone.
        """
        return _run(self.ashow(query, k, filter=filter, returns=returns))

    async def ashow(
        self,
        query: str,
        k: int = 5,
        *,
        filter: FilterLike = None,  # noqa: A002 - as above
        returns: str = "passages",
    ) -> AskedQuestion:
        """See `show`."""
        from sire_core.explore.asked import aask

        return await aask(await self.asnapshot(filter=filter), query, k, returns=returns)

    def snapshot(self, *, filter: FilterLike = None) -> SearchSnapshot:  # noqa: A002 - as above
        """The index as of now, for several searches that belong together; raises what `search` does."""
        return _run(self.asnapshot(filter=filter))

    async def asnapshot(self, *, filter: FilterLike = None) -> SearchSnapshot:  # noqa: A002 - as above
        """See `snapshot`."""
        from sire_core.search.snapshot import SearchSnapshot

        where = both(self._configuration.allow, parse_filter(filter))
        return SearchSnapshot(*await self._session.asnapshot(), where)

    async def _current(self, filter: FilterLike) -> SearchSnapshot:  # noqa: A002 - as above
        """A snapshot for one search, which need not hold anything."""
        from sire_core.search.snapshot import SearchSnapshot

        where = both(self._configuration.allow, parse_filter(filter))
        return SearchSnapshot(*await self._session.areader(), where)

    def stats(self) -> dict[str, Any]:
        """Counts of the recipe's pool, and what the index was built with."""
        manifest, built = self._session.built()
        allowed = self._allowed_counts() if self._configuration.allow is not None else None
        kinds = self._session.files().counts(built) if allowed is None else allowed.kinds
        return {
            "units": sum(kinds.values()),
            "kinds": kinds,
            "documents": manifest.counts.get("documents", 0) if allowed is None else allowed.documents,
            "chunks": manifest.counts.get("chunks", 0) if allowed is None else allowed.chunks,
            "recipe": built.name,
            "recipes": list(dict.fromkeys(r.name for r in manifest.recipes)),
            "embedder": manifest.embedder,
            "dimension": manifest.dimension,
            "extraction": built.extraction,
            "language_model": built.language_model,
            "failed": manifest.failed_count(built) if allowed is None else 0,
            "generation": manifest.generation,
            "vectors": "own scan" if self._session.vectors is None else self._session.vectors.description,
            **(self._session.files().figures(built) if allowed is None else {}),
        }

    def failures(self) -> list[Failure]:
        """Passages (by title) and summaries of the recipe that failed, and why; the next build tries them again."""
        return self._session.failures()

    def spent(self) -> list[tuple[str, int, int, int]]:
        """What a model was paid for: stage, answers, input and output tokens.

        Raises:
            ConfigurationError: The index was opened with `allow`.
        """
        return self._session.spent()

    def _allowed_counts(self) -> PoolCounts:
        from sire_core.search.snapshot import SearchSnapshot

        return SearchSnapshot(*self._session.reader(), self._configuration.allow).counts()

    def view(self) -> PoolView:
        """A read-only snapshot of the recipe's whole pool: units, vectors, edges. For exports and adapters.

        Raises:
            IndexMissingError: There is no index.
            ConfigurationError: The index was opened with `allow`; a view shows everything.
        """
        self._refuse_limited("a view shows everything")
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
        self._refuse_limited("a copy holds everything")
        self._session.files().save(Path(path))

    def _refuse_limited(self, reason: str) -> None:
        """Raise where readers may see a part only, and something gives all."""
        if self.allow is not None:
            raise ConfigurationError(
                f"This index was opened with allow=..., and {reason}. Use snapshot(), search() or documents(); for "
                "exports and copies open it without allow."
            )

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
        return _run(self.areembed(path, embedder))

    async def areembed(self, path: str | os.PathLike[str], embedder: Embedder | str) -> BuildReport:
        """See `reembed`."""
        from sire_core.models.embedders import resolve_embedder

        self._refuse_limited("a copy holds everything")
        return await self._session.reembed(Path(path), resolve_embedder(embedder))

    def close(self) -> None:
        """Let go of files. The next use opens them again; an index in memory is gone."""
        self._session.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.path is None:
            raise ConfigurationError(
                "An index in memory cannot be sent to another process. Give it a path, or save() it and open the copy."
            )
        return {"_configuration": self._configuration}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._configuration = state["_configuration"]
        self._session = Session(self._configuration)
        self._others = {}

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


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    from sire_core.models.sync import run_sync

    return run_sync(coroutine)


def _silent(stage: str, done: int, total: int) -> None:
    """The progress callback of those who do not want one."""
