"""Adding documents to an index and deleting them, with LangChain's method names."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from langchain_sire.documents import from_langchain, to_langchain, with_ids
from langchain_sire.opening import remember_title_key
from sire_core.corpus.document_export import filter_fields
from sire_core.errors import ConfigurationError, IndexMissingError, RefusedUnitsError
from sire_core.filters.conditions import passes
from sire_core.models.prices import warn_of_first_cost
from sire_core.models.sync import run_sync
from sire_core.search.filter_hint import unknown_keys
from sire_core.types import BuildReport

if TYPE_CHECKING:
    from sire_core.filters import Filter, FilterLike
    from sire_core.index import Index

__all__ = ["DocumentChanges"]

_logger = logging.getLogger(__name__)


class DocumentChanges:
    """The part of a retriever that changes its index; fields are the retriever's."""

    if TYPE_CHECKING:  # pydantic would take them for fields of its own
        index: Index
        title_key: str | list[str]

        def narrowed(self, *more: FilterLike) -> Filter | None:
            """See `SireRetriever.narrowed`."""

    def add_documents(self, documents: Iterable[Document], *, ids: Sequence[str | None] | None = None) -> list[str]:
        """Add documents, or replace those with the same id, like a vector store; returns their ids.

        Args:
            documents: Not modified.
            ids: Replace the documents' own ids; a list as long as that of the documents.

        Raises:
            CorpusError: Documents contradict each other, or have metadata that is not JSON; nothing is added.
            BuildError: Too many passages failed.
        """
        return run_sync(self.aadd_documents(documents, ids=ids))

    async def aadd_documents(
        self, documents: Iterable[Document], *, ids: Sequence[str | None] | None = None
    ) -> list[str]:
        """See `add_documents`."""
        given = self._given(documents if ids is None else with_ids(documents, ids))
        await self._follow(await self.index.aupdate(given))
        return [document.id for document in given]

    def replace_all(self, documents: Iterable[Document]) -> list[str]:
        """Make the index contain exactly these documents; all others are deleted. Returns their ids."""
        return run_sync(self.areplace_all(documents))

    async def areplace_all(self, documents: Iterable[Document]) -> list[str]:
        """See `replace_all`."""
        given = self._given(documents)
        await self._follow(await self.index.abuild(given))
        return [document.id for document in given]

    def delete_documents(
        self, ids: Iterable[str] | str | None = None, *, filter: FilterLike = None, missing_ok: bool = False
    ) -> BuildReport:
        """Delete documents, by ids or by a filter, and everything derived from them.

        Args:
            ids: Ids of the documents.
            filter: A metadata filter, instead of ids: deletes every matching document that this retriever can find.
                What `allow` hides stays.
            missing_ok: Ignore unknown ids.

        Returns:
            A report of the change; `BuildReport()` if there was nothing to delete.

        Raises:
            ConfigurationError: Neither ids nor a filter, or both, or a filter on a key that no document has.
            CorpusError: An id is unknown; nothing is deleted.
        """
        return run_sync(self.adelete_documents(ids, filter=filter, missing_ok=missing_ok))

    async def adelete_documents(
        self, ids: Iterable[str] | str | None = None, *, filter: FilterLike = None, missing_ok: bool = False
    ) -> BuildReport:
        """See `delete_documents`."""
        if (ids is None) == (filter is None):
            raise ConfigurationError(
                "delete_documents takes ids or a filter, one of the two: delete_documents(['a', 'b']), or "
                "delete_documents(filter='source=manual.md')."
            )
        if ids is None:
            gone = await self._passing(filter)
        else:
            gone = [ids] if isinstance(ids, str) else list(ids)
        if not gone:
            return BuildReport()
        seen = ids is None  # then what is hidden had no part in the choice
        report = await self.index.adelete(gone, missing_ok=missing_ok or seen, visible_only=seen)
        await self._follow(report)
        return report

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Documents as they were added, in the order of the ids; unknown ids are ignored."""
        wanted = [ids] if isinstance(ids, str) else list(dict.fromkeys(ids))
        try:
            found = {document.id: document for document in self.index.documents(wanted)}
        except IndexMissingError:
            return []
        return [to_langchain(found[name]) for name in wanted if name in found]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """See `get_by_ids`."""
        return await asyncio.to_thread(self.get_by_ids, ids)

    async def _passing(self, where: FilterLike) -> list[str]:
        """Ids of the documents of which every passage passes a filter."""
        wanted = self.narrowed(where)
        assert wanted is not None
        found: list[str] = []
        seen: set[str] = set()
        for document in await asyncio.to_thread(self.index.documents):
            asked = filter_fields(document)
            seen.update(key for passage in asked for key in passage[0])
            if all(passes(wanted, asked)):
                found.append(document.id)
        if hint := unknown_keys(wanted, seen):  # everything passes a "not" on a key that nothing has
            raise ConfigurationError(f"Nothing was deleted. {hint}")
        if not found:
            _logger.warning("Nothing was deleted. %s", await self.index.afilter_hint(wanted))
        return found

    def _given(self, documents: Iterable[Document]) -> list[Any]:
        given = from_langchain(documents, self.title_key, whole=self.index.chunker is None)
        warn_of_first_cost(self.index, len(given))
        return given

    async def _follow(self, report: BuildReport) -> None:
        remember_title_key(self.index.path, self.title_key)
        if report.failures:
            with suppress(RefusedUnitsError):  # logged, and counted in `stats`: the other units are there
                await self.index.apush()  # a mirror that missed it is written again; it raises what its store raises
