"""The user's own vector store as the vector index of a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery

from llama_index_sire.calls import awaits, call
from sire_core.errors import ConfigurationError
from sire_core.keywords import kind_of
from sire_core.recipes.base import recipe_by_name
from sire_core.search.vectors.flat import Flat
from sire_core.search.vectors.vector_store import VectorStoreRanker
from sire_core.storage.uuids import from_uuid

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, Ranking, Recipe, View

__all__ = ["VectorStoreSource", "over_vector_store"]


class VectorStoreSource:
    """A `VectorIndex` over a LlamaIndex vector store that a `VectorStoreMirror` fills.

    Only the store's `query` is used, with a vector of the index's embedder. Filters are not passed to the store,
    because it does not know that a derived unit matches only if all its source passages match. The core requests more
    results and filters them.

    Args:
        vector_store: The store.
    """

    def __init__(self, vector_store: BasePydanticVectorStore) -> None:
        if not isinstance(vector_store, BasePydanticVectorStore):
            raise ConfigurationError(f"{kind_of(vector_store)} is no LlamaIndex vector store.")
        self.vector_store = vector_store

    @property
    def description(self) -> str:
        """What `Index.stats` says of it."""
        return f"{type(self.vector_store).__name__} of the user; scores of what it does not list from 8-bit copies"

    async def top(
        self,
        query: str,
        vector: FloatArray,
        n: int,
        where: Filter | None = None,  # noqa: ARG002 - see the class
    ) -> Sequence[str]:
        """Ids of the `n` units nearest to a question; see `VectorIndex`."""
        return [name for name, _ in await self.scored(query, vector, n)]

    async def scored(self, query: str, vector: FloatArray, n: int) -> Sequence[tuple[str, float]]:
        """The same with the store's scores."""
        asked = VectorStoreQuery(query_embedding=vector.tolist(), query_str=query, similarity_top_k=n)
        store = self.vector_store
        found = await call(store.query, store.aquery, asked, is_async=awaits(store.aquery))
        ids = found.ids if found.ids is not None else [node.node_id for node in found.nodes or ()]
        # A store that gives no scores still gives an order.
        scores = found.similarities or [1.0 / place for place in range(1, len(ids) + 1)]
        return list(zip(map(from_uuid, ids), scores, strict=True))


class _Asked:
    """A `RankedSource`: the store, asked with a known vector; a filter may ask it several times."""

    def __init__(self, source: VectorStoreSource, vector: FloatArray) -> None:
        self._source = source
        self._vector = vector

    async def rank(self, query: str, n: int, where: Filter | None = None) -> Sequence[tuple[str, float]]:  # noqa: ARG002 - the caller filters
        return await self._source.scored(query, self._vector, n)


class _StoreRanker:
    """Ranks a pool in the order of a store that is asked with the vectors of the pool's own embedder."""

    def __init__(self, source: VectorStoreSource) -> None:
        self._source = source

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:
        """See `Ranker.rank`."""
        asked = _Asked(self._source, await view.embed_query(query))
        return await VectorStoreRanker(asked).rank(query, n, view, where)


def over_vector_store(recipe: Recipe | str, vector_store: BasePydanticVectorStore) -> Recipe:
    """A recipe that searches the user's vector store.

    A recipe that ranks by vectors alone uses the store's order and scores. Every other recipe (graphs, words, chains)
    uses the store to find its starting points and their scores; other units are scored with 8-bit vectors in the index
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
