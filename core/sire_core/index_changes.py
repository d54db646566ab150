"""`IndexChanges`: what an `Index` does to its folder."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sire_core.models.sync import run_sync
from sire_core.types import BuildReport, Document

if TYPE_CHECKING:
    from sire_core.build.estimate import Estimate
    from sire_core.index_writer import IndexWriter
    from sire_core.models.prices import Price
    from sire_core.protocols import Embedder

__all__ = ["IndexChanges"]


class IndexChanges:
    """The part of an `Index` that builds and changes it; each method has an async version with the prefix `a`."""

    _writer: IndexWriter

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

    def delete(self, doc_ids: Iterable[str], *, missing_ok: bool = False, visible_only: bool = False) -> BuildReport:
        """Remove documents and everything derived from them.

        Args:
            doc_ids: Ids of the documents.
            missing_ok: Ignore unknown ids.
            visible_only: Keep passages that `allow` hides, and treat documents that it hides as unknown.

        Raises:
            CorpusError: An id is unknown; nothing is deleted.
            IndexMissingError: There is no index, and `missing_ok` is set.
        """
        return run_sync(self.adelete(doc_ids, missing_ok=missing_ok, visible_only=visible_only))

    async def adelete(
        self, doc_ids: Iterable[str], *, missing_ok: bool = False, visible_only: bool = False
    ) -> BuildReport:
        """See `delete`."""
        return await self._writer.delete(doc_ids, missing_ok=missing_ok, visible_only=visible_only)

    def defer(self, documents: Iterable[Document] = (), *, delete: Iterable[str] = ()) -> list[str]:
        """Store changes now and index them together before the next search, whichever process searches.

        Changes are on disk when this returns, if the index has a folder. The first documents of a new folder are
        indexed at once, with the recipe and the embedder of this object.

        Args:
            documents: New documents, and those that replace others with the same id.
            delete: Ids of documents to delete; unknown ids are ignored.

        Returns:
            The ids of the documents.

        Raises:
            CorpusError: Documents contradict each other; nothing is stored.
            StorageError: The folder cannot be written.
        """
        return run_sync(self.adefer(documents, delete=delete))

    async def adefer(self, documents: Iterable[Document] = (), *, delete: Iterable[str] = ()) -> list[str]:
        """See `defer`."""
        return await self._writer.defer(documents, delete)

    def flush(self) -> None:
        """Index what `defer` stored. If this fails, nothing is lost: the next search or change tries again.

        Raises:
            StorageError: It cannot be indexed by this object; the message says how many changes wait.
            BuildError: Too many passages failed.
        """
        run_sync(self.aflush())

    async def aflush(self) -> None:
        """See `flush`."""
        await self._writer.index_pending()

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
