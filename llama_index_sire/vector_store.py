"""The user's own vector store under our recipes: it holds the pool and ranks it, we select and cite."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery

from llama_index_sire.calls import awaits, call
from llama_index_sire.changes import NodeChange, PoolSnapshot, node_change, read_pool
from llama_index_sire.ledger import Ledger
from sire_core.index import Index
from sire_core.manifest import Manifest
from sire_core.recipes.base import recipe_by_name
from sire_core.search.source import Sourced
from sire_core.storage.folder import Folder

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.recipes.base import Recipe
    from sire_core.types import BuildReport

__all__ = ["StoreMirror", "VectorStoreSource", "open_index", "over_vector_store"]


class VectorStoreSource:
    """A `RankedSource` over a LlamaIndex vector store that holds the pool of an index.

    Only `add`, `delete(ref_doc_id)` and `query` are asked of the store. Filters are not passed on: stores do not know
    that a derived unit passes only when all its passages pass. The core asks for more and leaves out what does not.

    Args:
        vector_store: The store.
    """

    def __init__(self, vector_store: BasePydanticVectorStore) -> None:
        self.vector_store = vector_store
        self._index: Index | None = None

    def serve(self, index: Index) -> None:
        """Embed questions as this index does."""
        self._index = index

    async def rank(self, query: str, n: int, where: Filter | None = None) -> Sequence[tuple[str, float]]:  # noqa: ARG002 - see the class
        """The best `n` (unit id, score) pairs; see `RankedSource`."""
        assert self._index is not None
        vector = await self._index.view().embed_query(query)
        asked = VectorStoreQuery(query_embedding=vector.tolist(), query_str=query, similarity_top_k=n)
        store = self.vector_store
        found = await call(store.query, store.aquery, asked, is_async=awaits(store.aquery))
        ids = found.ids if found.ids is not None else [node.node_id for node in found.nodes or ()]
        # A store that gives no scores still gives an order.
        scores = found.similarities or [1.0 / place for place in range(1, len(ids) + 1)]
        return list(zip(ids, scores, strict=True))


def over_vector_store(recipe: Recipe | str, source: VectorStoreSource) -> Recipe:
    """A recipe whose pool is ranked by the user's vector store; what it builds and selects stays as it is."""
    built = recipe_by_name(recipe) if isinstance(recipe, str) else recipe
    return replace(built, ranker=Sourced(source))


def open_index(
    place: str | os.PathLike[str] | None,
    recipe: Recipe | str | None,
    vector_store: BasePydanticVectorStore | None,
    **options: Any,
) -> tuple[Index, StoreMirror | None]:
    """An index, ranked by the user's vector store where there is one, and what keeps the store in step.

    Args:
        place: The index folder; None for memory.
        recipe: A recipe or its name; None means the folder's latest.
        vector_store: The user's store.
        **options: Further arguments of `Index`.
    """
    if vector_store is None:
        return Index(place, recipe=recipe, **options), None
    if recipe is None and place is not None:
        built = Manifest.from_json(Folder(place).read_manifest()).find(None)
        recipe = recipe_by_name(built.name, **built.config)
    source = VectorStoreSource(vector_store)
    index = Index(place, recipe=over_vector_store(recipe or "sirerag", source), **options)
    source.serve(index)
    return index, StoreMirror(index, vector_store)


class StoreMirror:
    """Keeps a vector store in step with an index, vectors included, so that nothing is embedded twice.

    What the store holds is written down beside the index. A store that may have missed a change, because a process
    died or the store could not be reached, is filled anew by the next change.

    Args:
        index: The index.
        vector_store: The store.
    """

    def __init__(self, index: Index, vector_store: BasePydanticVectorStore) -> None:
        self._index = index
        self._store = vector_store
        self._ledger = Ledger(index.path)

    async def follow(self, change: Callable[[], Awaitable[BuildReport]]) -> BuildReport:
        """Change the index, then the store."""
        # A large pool takes a while to read: that leaves the loop.
        before = await asyncio.to_thread(read_pool, self._index)
        in_step = self._ledger.generation() == before.generation
        report = await change()
        after = await asyncio.to_thread(read_pool, self._index)
        if not in_step or before.generation != after.generation:
            held = list(dict.fromkeys((*self._ledger.read(), *after.derived)))
            self._ledger.write(held)
            everything = () if in_step else tuple(dict.fromkeys((*before.documents, *after.documents)))
            known = before if in_step else PoolSnapshot(documents=everything)
            await self._write(
                await asyncio.to_thread(node_change, known, after, everything, held, again=not in_step, embed=True)
            )
            self._ledger.write(after.derived, after.generation)
        return report

    async def _write(self, change: NodeChange) -> None:
        store = self._store
        for name in change.drop:
            await call(store.delete, store.adelete, name, is_async=awaits(store.adelete))
        if change.nodes:
            await call(store.add, store.async_add, list(change.nodes), is_async=awaits(store.async_add))
