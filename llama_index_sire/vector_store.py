"""The user's own vector store under our recipes: it holds the pool and ranks it, we select and cite."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery

from llama_index_sire.calls import awaits, call
from llama_index_sire.mirror import VectorStoreMirror
from sire_core.errors import ConfigurationError
from sire_core.index import Index
from sire_core.manifest import Manifest
from sire_core.recipes.base import recipe_by_name
from sire_core.search.source import Sourced
from sire_core.storage.folder import Folder
from sire_core.storage.uuids import from_uuid

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, Ranking, View
    from sire_core.recipes.base import Recipe

__all__ = ["VectorStoreSource", "open_index", "over_vector_store"]


class VectorStoreSource:
    """A `RankedSource` over a LlamaIndex vector store that holds the pool of an index, as `VectorStoreMirror` keeps it.

    Only `query` is asked of the store. Filters are not passed on: stores do not know that a derived unit passes only
    when all its passages pass. The core asks for more and leaves out what does not.

    Args:
        vector_store: The store.
        embed_query: Makes the vector of a question as those of the index were made, for example
            `index.view().embed_query`.
    """

    def __init__(
        self, vector_store: BasePydanticVectorStore, embed_query: Callable[[str], Awaitable[FloatArray]]
    ) -> None:
        self.vector_store = vector_store
        self._embed_query = embed_query

    async def rank(self, query: str, n: int, where: Filter | None = None) -> Sequence[tuple[str, float]]:  # noqa: ARG002 - see the class
        """The best `n` (unit id, score) pairs; see `RankedSource`."""
        vector = await self._embed_query(query)
        asked = VectorStoreQuery(query_embedding=vector.tolist(), query_str=query, similarity_top_k=n)
        store = self.vector_store
        found = await call(store.query, store.aquery, asked, is_async=awaits(store.aquery))
        ids = found.ids if found.ids is not None else [node.node_id for node in found.nodes or ()]
        # A store that gives no scores still gives an order.
        scores = found.similarities or [1.0 / place for place in range(1, len(ids) + 1)]
        return list(zip(map(from_uuid, ids), scores, strict=True))


@dataclass(frozen=True, slots=True)
class _StoreRanker:
    """Ranks a pool by a store that is asked with the vectors of the pool's own embedder."""

    vector_store: BasePydanticVectorStore

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:
        """See `Ranker.rank`."""
        vector = await view.embed_query(query)

        async def known(_: str) -> FloatArray:  # a filter may ask the store several times
            return vector

        return await Sourced(VectorStoreSource(self.vector_store, known)).rank(query, n, view, where)


def over_vector_store(recipe: Recipe | str, vector_store: BasePydanticVectorStore) -> Recipe:
    """A recipe whose pool is ranked by the user's vector store; what it builds and selects stays as it is.

    Args:
        recipe: A name or a `Recipe`.
        vector_store: Filled by a `VectorStoreMirror` of the index.

    Raises:
        ConfigurationError: This is no vector store.
    """
    if not isinstance(vector_store, BasePydanticVectorStore):
        raise ConfigurationError(f"{type(vector_store).__name__} is no LlamaIndex vector store.")
    built = recipe_by_name(recipe) if isinstance(recipe, str) else recipe
    return replace(built, ranker=_StoreRanker(vector_store))


def open_index(
    place: str | os.PathLike[str] | None,
    recipe: Recipe | str | None,
    vector_store: BasePydanticVectorStore | VectorStoreMirror | None,
    **options: Any,
) -> Index:
    """An index; where the user has a vector store, ranked by it and followed by it.

    Args:
        place: The index folder; None for memory.
        recipe: A recipe or its name; None means the folder's latest.
        vector_store: The user's store, or a mirror of it.
        **options: Further arguments of `Index`; its `mirrors` follow, too.
    """
    if vector_store is None:
        return Index(place, recipe=recipe, **options)
    mirror = vector_store if isinstance(vector_store, VectorStoreMirror) else VectorStoreMirror(vector_store)
    if recipe is None and place is not None:
        built = Manifest.from_json(Folder(place).read_manifest()).find(None)
        recipe = recipe_by_name(built.name, **built.config)
    options["mirrors"] = (mirror, *options.get("mirrors", ()))
    return Index(place, recipe=over_vector_store(recipe or "sirerag", mirror.vector_store), **options)
