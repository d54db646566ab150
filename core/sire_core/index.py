"""`Index`: documents in, cited evidence out."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union

from sire_core.filters import Filter, parse_filter
from sire_core.search.pinned import PinnedSearch, check_query
from sire_core.session import Configuration, Session
from sire_core.types import BuildReport, Document, Hit

if TYPE_CHECKING:
    from sire_core.corpus.chunker import SentenceChunker
    from sire_core.models.limits import UsageLimits
    from sire_core.models.prices import Price
    from sire_core.pipeline.estimate import Estimate
    from sire_core.protocols import Embedder, Extractor, LanguageModel, Mirror, Progress
    from sire_core.recipes.base import Recipe
    from sire_core.search.view import PoolView

__all__ = ["Index"]

T = TypeVar("T")
FilterLike = Union[Filter, Mapping[str, Any], str, None]


class Index:
    """One corpus, indexed by one or more recipes, in a folder or in memory.

    Constructing does no I/O and calls no model. Every method has an async twin with an `a` in front; the sync ones run
    it on a loop of the package's own, so they work in notebooks and servers too.

    Args:
        path: The folder; None keeps the index in memory.
        recipe: A `Recipe` or a name; None means the folder's latest, and `sirerag` for a first build.
        language_model: Extracts and summarises; None uses the model-free ways.
        embedder: An `Embedder` or what `resolve_embedder` reads (`st:NAME_OR_FOLDER`, `openai:MODEL`, ...); None means
            what the folder was built with, and the zero-download default for a first build.
        extractor: Makes extraction records; None picks by `language_model`.
        chunker: Cuts documents; None takes each document as one passage. By default sentence-respecting chunks.
        seed: Seed of every random choice.
        workers: Model calls in flight at once.
        max_failure_ratio: Share of failed passages above which a build stops.
        progress: Called as `progress(stage, done, total)`.
        limits: Most calls and tokens that one build may spend on models.
        extraction: `joint` asks once per passage; `native` uses the papers' own separate prompts.
        mirrors: Vector stores of yours that follow every change; see `sire_core.protocols.Mirror`.
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
        progress: Progress | None = None,
        limits: UsageLimits | None = None,
        extraction: str = "joint",
        mirrors: Sequence[Mirror] = (),
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
            progress=progress or _silent,
            limits=limits,
            extraction=extraction,
            mirrors=tuple(mirrors),
        )
        self._session = Session(self._configuration)

    @property
    def path(self) -> Path | None:
        """The folder; None in memory."""
        return self._configuration.path

    @property
    def language_model(self) -> LanguageModel | None:
        """The model that the index was given; None without one."""
        return self._configuration.language_model

    def build(self, documents: Iterable[Document]) -> BuildReport:
        """Make the index hold exactly these documents. Resumes what an interrupted build has paid for.

        Args:
            documents: With unique ids.

        Raises:
            CorpusError: Contradicting documents, for example one id with two texts.
            BuildError: Too many passages failed; what succeeded is kept.
            EmbedderMismatchError: The folder was built with another embedder.
            IndexLockedError: Another process is writing to the folder.
        """
        return _run(self.abuild(documents))

    async def abuild(self, documents: Iterable[Document]) -> BuildReport:
        """See `build`."""
        from sire_core.corpus.changes import plan_build
        from sire_core.corpus.validation import check_documents

        given, chunker = check_documents(documents), self._configuration.chunker_object()
        return await self._session.apply(lambda stored: plan_build(stored, given, chunker))

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

    def delete(self, doc_ids: Iterable[str]) -> BuildReport:
        """Remove documents and everything derived from them.

        Raises:
            CorpusError: An id is unknown; nothing is deleted.
        """
        return _run(self.adelete(doc_ids))

    async def adelete(self, doc_ids: Iterable[str]) -> BuildReport:
        """See `delete`."""
        from sire_core.corpus.changes import plan_delete

        wanted = [doc_ids] if isinstance(doc_ids, str) else list(doc_ids)
        return await self._session.apply(lambda stored: plan_delete(stored, wanted))

    def purge(self) -> None:
        """Overwrite on disk all that deleted and replaced documents left, then `push`, so that no mirror keeps it.

        Raises:
            IndexLockedError: Somebody else reads or writes; try again later.
        """
        _run(self.apurge())

    async def apurge(self) -> None:
        """See `purge`."""
        await self._session.purge()

    def push(self, *, anew: bool = False) -> dict[str, int]:
        """Tell the mirrors what they missed, after a crash or when they could not be reached; units told, by name.

        Every change does this, too. A mirror that is new, or each of them when it is done `anew`, is told everything.

        Raises:
            IndexLockedError: Another process is writing to the folder.
            Exception: Whatever a vector store raises; nothing is lost.
        """
        return _run(self.apush(anew=anew))

    async def apush(self, *, anew: bool = False) -> dict[str, int]:
        """See `push`."""
        return await self._session.push(anew=anew)

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

    def search(self, query: str, k: int = 10, *, filter: FilterLike = None) -> list[Hit]:  # noqa: A002 - the word users look for
        """Find evidence for a question.

        Args:
            query: The question.
            k: How many units; fewer come back only when fewer pass the filter.
            filter: On chunk metadata; see `parse_filter`. A derived unit passes only if all its chunks pass.

        Raises:
            QueryError: Empty question or k below one.
            ConfigurationError: The filter cannot be read, or the recipe was not built here.
            IndexMissingError: There is no index.
            EmbedderMismatchError: Another embedder than the one it was built with.
        """
        return _run(self.asearch(query, k, filter=filter))

    async def asearch(self, query: str, k: int = 10, *, filter: FilterLike = None) -> list[Hit]:  # noqa: A002 - as above
        """See `search`."""
        check_query(query, k)
        return await (await self.apin(filter=filter)).search(query, k)

    def explain(self, query: str, k: int = 10, *, filter: FilterLike = None) -> str:  # noqa: A002 - as in search
        """The hits of a question and, for each, why it was chosen, as text."""
        return _run(self.aexplain(query, k, filter=filter))

    async def aexplain(self, query: str, k: int = 10, *, filter: FilterLike = None) -> str:  # noqa: A002 - as above
        """See `explain`."""
        from sire_core.search.explanation import explain_hits

        pinned = await self.apin(filter=filter)
        return explain_hits(query, await pinned.search(query, k), pinned.view)

    async def apin(self, *, filter: FilterLike = None) -> PinnedSearch:  # noqa: A002 - as above
        """The index as of now, for several searches that belong together (see `reason`); raises what `search` does."""
        where = parse_filter(filter)
        return PinnedSearch(*await self._session.areader(), where)

    def stats(self) -> dict[str, Any]:
        """Counts of the recipe's pool, and what the index was built with."""
        manifest, built = self._session.built()
        kinds = self._session.files().counts(built)
        return {
            "units": sum(kinds.values()),
            "kinds": kinds,
            "documents": manifest.counts.get("documents", 0),
            "chunks": manifest.counts.get("chunks", 0),
            "recipe": built.name,
            "recipes": list(dict.fromkeys(r.name for r in manifest.recipes)),
            "embedder": manifest.embedder,
            "dimension": manifest.dimension,
            "extraction": built.extraction,
            "language_model": built.language_model,
            "failed": len(manifest.failed.get(built.extraction, ())),
            "generation": manifest.generation,
            **self._session.files().figures(built),
        }

    def view(self) -> PoolView:
        """A read-only snapshot of the recipe's whole pool: units, vectors, edges. For exports and adapters.

        Raises:
            IndexMissingError: There is no index.
        """
        return self._session.reader()[0]

    def documents(self, doc_ids: Iterable[str] | None = None) -> list[Document]:
        """Documents as they were indexed, in corpus order, cut into their passages (`Document.chunks`).

        Args:
            doc_ids: Which; None reads all. Unknown ids are left out.

        Raises:
            IndexMissingError: There is no index.
        """
        return self._session.documents(None if doc_ids is None else set(doc_ids))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the index into a new folder, for example of one that was built in memory.

        Raises:
            StorageError: The folder holds something already.
        """
        self._session.files().save(Path(path))

    def close(self) -> None:
        """Let go of files. The next use opens them again; an index in memory is gone."""
        self._session.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    from sire_core.models.sync import run_sync

    return run_sync(coroutine)


def _silent(stage: str, done: int, total: int) -> None:
    """The progress callback of those who do not want one."""
