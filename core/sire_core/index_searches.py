"""`IndexSearches`: what an `Index` is asked."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from sire_core.errors import SnapshotExpiredError
from sire_core.filters import FilterLike, parse_filter
from sire_core.models.sync import run_sync
from sire_core.types import Hit

if TYPE_CHECKING:
    from sire_core.explore.asked import AskedQuestion
    from sire_core.filters import Filter
    from sire_core.index_writer import IndexWriter
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.session import Session

__all__ = ["IndexSearches"]

T = TypeVar("T")

_TRIES = 5
_logger = logging.getLogger(__name__)


class IndexSearches:
    """The part of an `Index` that searches it; each method has an async version with the prefix `a`."""

    _session: Session
    _writer: IndexWriter

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
        hits = await self._asked(
            self._session.current, where, lambda snapshot: snapshot.asearch(query, k, returns=returns)
        )
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
        where = parse_filter(filter)
        return await self._asked(
            self._session.snapshot, where, lambda snapshot: snapshot.asearch_many(queries, k, returns=returns)
        )

    async def _asked(
        self,
        read: Callable[[Filter | None], Awaitable[SearchSnapshot]],
        where: Filter | None,
        ask: Callable[[SearchSnapshot], Awaitable[T]],
    ) -> T:
        """Ask the state that is read; if a commit comes in between, one that no commit changes any more."""
        await self._writer.index_pending(for_search=True)
        with suppress(SnapshotExpiredError):
            return await ask(await read(where))
        for _ in range(_TRIES):  # of files that cannot be locked (a read-only mount), nothing can be held
            with suppress(SnapshotExpiredError):
                return await ask(await self._session.settled(where))
        return await ask(await self._session.settled(where))

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

        async def explained(snapshot: SearchSnapshot) -> str:
            return explain_hits(query, await snapshot.asearch(query, k, returns=returns), snapshot)

        return await self._asked(self._session.snapshot, parse_filter(filter), explained)

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

        return await self._asked(
            self._session.snapshot,
            parse_filter(filter),
            lambda snapshot: aask(snapshot, query, k, returns=returns),
        )

    def snapshot(self, *, filter: FilterLike = None) -> SearchSnapshot:
        """The current state of the index, for several searches on the same state. Raises what `search` raises."""
        return run_sync(self.asnapshot(filter=filter))

    async def asnapshot(self, *, filter: FilterLike = None) -> SearchSnapshot:
        """See `snapshot`."""
        await self._writer.index_pending(for_search=True)
        return await self._session.snapshot(parse_filter(filter))
