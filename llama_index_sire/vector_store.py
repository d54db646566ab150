"""The user's own vector store under our recipes: a mirror fills it from the pool, it ranks, we select and cite."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from llama_index.core.schema import NodeRelationship, ObjectType, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery

from llama_index_sire.calls import call, overrides
from llama_index_sire.documents import to_node
from sire_core.atomic_files import replacing
from sire_core.errors import ConfigurationError
from sire_core.models.sync import in_thread
from sire_core.protocols import FloatArray, MirroredUnit, Ranking, Recipe, View
from sire_core.recipes.registry import recipe_by_name
from sire_core.search.vectors.flat import Flat
from sire_core.search.vectors.vector_store import FrameworkMirror, FrameworkSource, VectorStoreRanker, check_store
from sire_core.types import from_uuid, to_uuid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sire_core.filters import Filter

_logger = logging.getLogger(__name__)

_BY_ID = ("delete_nodes", "adelete_nodes")


class VectorStoreSource(FrameworkSource):
    """A `VectorIndex` over a LlamaIndex vector store that a `VectorStoreMirror` fills.

    Only the store's `query` is used, with a vector of the index's embedder. Filters are not passed to the store,
    because it does not know that a derived unit matches only if all its source passages match. The core requests more
    results and filters them.

    Args:
        vector_store: The store.
    """

    def __init__(self, vector_store: BasePydanticVectorStore) -> None:
        check_store(vector_store, BasePydanticVectorStore, "LlamaIndex vector store")
        self.vector_store = vector_store

    async def top(self, query: str, vector: FloatArray, n: int, where: Filter | None = None) -> Sequence[str]:
        """Ids of the `n` units nearest to a question; see `VectorIndex`."""
        return [name for name, _ in await self.scored(query, vector, n)]

    async def scored(self, query: str, vector: FloatArray, n: int) -> Sequence[tuple[str, float]]:
        """Like `top`, with the store's scores."""
        store_query = VectorStoreQuery(query_embedding=vector.tolist(), query_str=query, similarity_top_k=n)
        store = self.vector_store
        response = await call(store.query, store.aquery, store_query)
        ids = response.ids if response.ids is not None else [node.node_id for node in response.nodes or ()]
        # A store that gives no scores still gives an order.
        scores = response.similarities or [1.0 / rank for rank in range(1, len(ids) + 1)]
        return list(zip(map(from_uuid, ids), scores, strict=True))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A `RankedSource`: the store, asked with a known vector; a filter may ask it several times."""

    source: VectorStoreSource
    vector: FloatArray

    async def rank(self, query: str, n: int, where: Filter | None = None) -> Sequence[tuple[str, float]]:
        return await self.source.scored(query, self.vector, n)


@dataclass(frozen=True, slots=True)
class _StoreRanker:
    """Ranks a pool in the order of a store that is asked with the vectors of the pool's own embedder."""

    source: VectorStoreSource

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:
        ranked_source = _Asked(self.source, await view.embed_query(query))
        return await VectorStoreRanker(ranked_source).rank(query, n, view, where)


def over_vector_store(recipe: Recipe | str, vector_store: BasePydanticVectorStore) -> Recipe:
    """A recipe that searches the user's vector store.

    A recipe that ranks by vectors alone uses the store's order and scores. Every other recipe (graphs, words, chains)
    uses the store to find its starting points and their scores; other units are scored with the vectors in the index
    folder, because stores cannot return the scores of given entries. `Index.stats()["vectors"]` says which applies.

    Args:
        recipe: A name or a `Recipe`.
        vector_store: Filled by a `VectorStoreMirror` of the index.

    Raises:
        ConfigurationError: `vector_store` is not a vector store.
    """
    source = VectorStoreSource(vector_store)
    built = recipe_by_name(recipe) if isinstance(recipe, str) else recipe
    if isinstance(built.ranker, Flat):
        return replace(built, ranker=_StoreRanker(source), vectors=source)
    return replace(built, vectors=source)


class VectorStoreMirror(FrameworkMirror):
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
        check_store(vector_store, BasePydanticVectorStore, "LlamaIndex vector store")
        super().__init__(name)
        self.vector_store = vector_store
        self._file = None if persist_path is None else Path(persist_path)
        self._by_id = any(overrides(vector_store, BasePydanticVectorStore, way) for way in _BY_ID)

    async def put(self, units: Sequence[MirroredUnit]) -> None:
        """Add units; what the store has under their ids goes first, since not every store replaces."""
        replaced = [unit.unit.id for unit in units if unit.replaces]
        if replaced:
            try:
                await self.drop(replaced)
            except Exception as error:  # noqa: BLE001 - stores make their collection when they first add; else adding fails, too
                _logger.warning("The vector store %r could not delete %d nodes: %s", self._name, len(replaced), error)
        store, nodes = self.vector_store, [self._node(unit) for unit in units]
        added = await self._add(nodes, lambda put: call(store.add, store.async_add, put))
        if added and not {node.node_id for node in nodes} & set(added):
            raise ConfigurationError(
                f"{type(store).__name__} gives its entries ids of its own ({added[0]!r}, ...), so that nothing that it "
                "finds can be told. Use a store that keeps node ids."
            )

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete units."""
        store, names = self.vector_store, [to_uuid(unit) for unit in ids]
        if self._by_id:
            await call(store.delete_nodes, store.adelete_nodes, names)
            return
        for name in names:
            await call(store.delete, store.adelete, name)

    async def holds(self, unit: str, vector: NDArray[np.float32]) -> bool:
        """True if the store finds anything near a unit that was put."""
        return bool(await self._nearest(vector))

    async def nearest(self, unit: MirroredUnit) -> list[str]:
        """The unit id of the node that is nearest to a unit's vector."""
        return [from_uuid(name) for name in await self._nearest(unit.vector)]

    async def _nearest(self, vector: NDArray[np.float32]) -> list[str]:
        """The id of what the store has nearest to a vector; nothing of an empty one."""
        store, store_query = self.vector_store, VectorStoreQuery(query_embedding=vector.tolist(), similarity_top_k=1)
        response = await call(store.query, store.aquery, store_query)
        return list(response.ids or [node.node_id for node in response.nodes or ()])

    async def flush(self) -> None:
        """Write the file, atomically, where there is one."""
        if self._file is not None:
            await in_thread(self._persist, self._file)

    def _persist(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as partial:
            self.vector_store.persist(str(partial))

    def _node(self, mirrored: MirroredUnit) -> TextNode:
        node = to_node(mirrored.unit, mirrored.doc_ids, mirrored.metadata)
        if not self._by_id:
            node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(
                node_id=node.node_id, node_type=ObjectType.TEXT
            )
        node.embedding = mirrored.vector.tolist()
        return node
