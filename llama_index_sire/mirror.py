"""`VectorStoreMirror`: keeps a LlamaIndex vector store up to date with an index."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import NodeRelationship, ObjectType, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery

from llama_index_sire.calls import awaits, call, overrides
from llama_index_sire.nodes import to_node
from sire_core.errors import ConfigurationError
from sire_core.keywords import kind_of
from sire_core.protocols import MirroredUnit
from sire_core.storage.uuids import from_uuid, to_uuid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["VectorStoreMirror"]

_logger = logging.getLogger(__name__)


class VectorStoreMirror:
    """Writes every change of an index to a vector store: `Index(path, mirrors=[VectorStoreMirror(store)])`.

    The nodes contain the vectors of the index, so nothing is embedded twice. What the store missed after a crash or
    while it could not be reached is sent with the next change or by `index.push()`; a store that was emptied is filled
    again.

    A node has only the metadata that all its documents share, so a filter of the store (`tenant == "a"`) does not match
    a summary with passages of several tenants. The SOURCE of a passage is its document. The SOURCE of a derived node is
    the node itself, as it is for all nodes in stores that cannot delete by node id (`delete_nodes`).

    Args:
        vector_store: Your store. Use an empty one: entries of others, another index too, stay, and a warning says so.
        name: Unique among the stores of an index, and the same in every process.
        persist_path: File to which the store is written after each change, for stores in memory, such as
            `SimpleVectorStore`; load it with the store's `from_persist_path`.

    Raises:
        ConfigurationError: `vector_store` is not a vector store.
    """

    def __init__(
        self,
        vector_store: BasePydanticVectorStore,
        name: str = "llama-index",
        *,
        persist_path: str | os.PathLike[str] | None = None,
    ) -> None:
        if not isinstance(vector_store, BasePydanticVectorStore):
            raise ConfigurationError(f"{kind_of(vector_store)} is no LlamaIndex vector store.")
        self.vector_store = vector_store
        self._name = name
        self._file = None if persist_path is None else Path(persist_path)
        self._by_id = any(overrides(vector_store, BasePydanticVectorStore, way) for way in _BY_ID)

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    async def put(self, units: Sequence[MirroredUnit]) -> None:
        """Add units; what the store has under their ids goes first, since not every store replaces."""
        replaced = [found.unit.id for found in units if found.replaces]
        if replaced:
            try:
                await self.drop(replaced)
            except Exception as error:  # noqa: BLE001 - stores make their collection when they first add; else adding fails, too
                _logger.warning("The vector store %r could not delete %d nodes: %s", self._name, len(replaced), error)
        store, nodes = self.vector_store, [self._node(found) for found in units]
        added = await call(store.add, store.async_add, nodes, is_async=awaits(store.async_add))
        if added and not {node.node_id for node in nodes} & set(added):
            raise ConfigurationError(
                f"{type(store).__name__} gives its entries ids of its own ({added[0]!r}, ...), so that nothing that it "
                "finds can be told. Use a store that keeps node ids."
            )

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete units."""
        store, names = self.vector_store, [to_uuid(unit) for unit in ids]
        if self._by_id:
            await call(store.delete_nodes, store.adelete_nodes, names, is_async=awaits(store.adelete_nodes))
            return
        for name in names:
            await call(store.delete, store.adelete, name, is_async=awaits(store.adelete))

    async def holds(self, unit: str, vector: NDArray[np.float32]) -> bool:  # noqa: ARG002 - stores cannot all be asked for ids
        """Whether the store finds anything near a unit that was put."""
        return bool(await self._nearest(vector))

    async def nearest(self, unit: MirroredUnit) -> list[str]:
        """The unit id of the node that is nearest to a unit's vector."""
        return [from_uuid(name) for name in await self._nearest(unit.vector)]

    async def _nearest(self, vector: NDArray[np.float32]) -> list[str]:
        """The id of what the store has nearest to a vector; nothing of an empty one."""
        store, asked = self.vector_store, VectorStoreQuery(query_embedding=vector.tolist(), similarity_top_k=1)
        found = await call(store.query, store.aquery, asked, is_async=awaits(store.aquery))
        return list(found.ids or [node.node_id for node in found.nodes or ()])

    async def flush(self) -> None:
        """Write the file, atomically, where there is one."""
        if self._file is not None:
            await asyncio.to_thread(self._persist, self._file)

    def _persist(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{file.name}.partial")
        self.vector_store.persist(str(partial))
        partial.replace(file)

    def _node(self, found: MirroredUnit) -> TextNode:
        node = to_node(found.unit, found.doc_ids, found.metadata)
        if not self._by_id:
            node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(
                node_id=node.node_id, node_type=ObjectType.TEXT
            )
        node.embedding = found.vector.tolist()
        return node


_BY_ID: tuple[Any, ...] = ("delete_nodes", "adelete_nodes")
