"""`VectorStoreMirror`: keeps a LangChain vector store up to date with an index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.vectorstores import VectorStore

from langchain_sire.callbacks import call
from langchain_sire.documents import pool_document
from sire_core.errors import ConfigurationError
from sire_core.keywords import kind_of
from sire_core.protocols import MirroredUnit
from sire_core.storage.uuids import to_uuid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["VectorStoreMirror"]


class VectorStoreMirror:
    """Writes every change of an index to a vector store: `Index(path, mirrors=[VectorStoreMirror(store)])`.

    The documents and ids are those of `pool_documents`; the store embeds them with its own embeddings. What the store
    missed after a crash or while it could not be reached is sent with the next change or by `index.push()`; a store
    that was emptied is filled again. Use an empty collection: entries of others, another
    index too, stay, and a warning says so.

    `over_vector_store` searches the store and checks filters again. If you search the store yourself, use positive
    filters (`tenant == "a"`): a derived unit has only the metadata that all its source passages share, so a negative
    filter (`tenant != "b"`) would let through a unit with passages of several tenants.

    Args:
        vector_store: A store that can insert documents with given ids and delete by id.
        name: Unique among the stores of an index, and the same in every process.
        save: Called after each change, for stores that live in memory: `lambda: store.dump(path)`.

    Raises:
        ConfigurationError: `vector_store` is not a vector store.
    """

    def __init__(
        self, vector_store: VectorStore, name: str = "langchain", *, save: Callable[[], Any] | None = None
    ) -> None:
        if not isinstance(vector_store, VectorStore):
            raise ConfigurationError(f"{kind_of(vector_store)} is no LangChain VectorStore.")
        self.vector_store = vector_store
        self._name = name
        self._save = save

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    async def put(self, units: Sequence[MirroredUnit]) -> None:
        """Insert units; what the store has under their ids goes first, since not every store replaces."""
        store = self.vector_store
        documents = [pool_document(found.unit, found.doc_ids, found.metadata) for found in units]
        ids = [to_uuid(found.unit.id) for found in units]
        there = await self._there(ids)
        if there is None:
            there = [name for name, found in zip(ids, units, strict=True) if found.replaces]
        if there:
            await call(lambda: store.delete(there), lambda: store.adelete(there))
        await call(lambda: store.add_documents(documents, ids=ids), lambda: store.aadd_documents(documents, ids=ids))

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete units; of a store that can tell, only what it has."""
        names = [to_uuid(unit) for unit in ids]
        there = await self._there(names)
        gone = names if there is None else there
        if gone:
            store = self.vector_store
            await call(lambda: store.delete(gone), lambda: store.adelete(gone))

    async def holds(self, unit: str, vector: NDArray[np.float32]) -> bool:  # noqa: ARG002 - the store is asked for the id
        """Whether the store has a unit; of a store that cannot be asked it is taken for granted."""
        there = await self._there([to_uuid(unit)])
        return there is None or bool(there)

    async def nearest(self, unit: MirroredUnit) -> list[str]:
        """The unit id of the entry that is nearest to a unit's text by the store's own embeddings."""
        store, text = self.vector_store, unit.unit.index_text
        found = await call(lambda: store.similarity_search(text, k=1), lambda: store.asimilarity_search(text, k=1))
        return [str(document.metadata.get("unit_id", "")) for document in found]

    async def flush(self) -> None:
        """Save the store, where that was asked for."""
        if self._save is not None:
            await asyncio.to_thread(self._save)

    async def _there(self, ids: Sequence[str]) -> list[str] | None:
        """Those of the ids that the store has; None when it cannot be asked."""
        store = self.vector_store
        try:
            found = await call(lambda: store.get_by_ids(list(ids)), lambda: store.aget_by_ids(list(ids)))
        except NotImplementedError:
            return None
        wanted = set(ids)
        return [name for document in found if (name := document.id or to_uuid(document.metadata["unit_id"])) in wanted]
