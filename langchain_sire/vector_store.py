"""The user's own vector store under our recipes: it holds the pool and ranks it, we select and cite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_sire.callbacks import call
from sire_core.errors import ConfigurationError
from sire_core.filters.conditions import asks_for_fields
from sire_core.keywords import kind_of
from sire_core.recipes.base import recipe_by_name
from sire_core.search.vectors.flat import Flat
from sire_core.search.vectors.vector_store import VectorStoreRanker
from sire_core.storage.uuids import from_uuid

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import FloatArray, Recipe

__all__ = ["VectorStoreSource", "over_vector_store"]


class VectorStoreSource:
    """A `RankedSource` over a LangChain `VectorStore` that holds the documents of `pool_documents`.

    Args:
        vector_store: Only `similarity_search_with_score` is asked of it, or `similarity_search` where it has no scores.
        distances: Whether the store's scores are distances, smaller being better; FAISS, Chroma and PGVector count so.
            None looks: stores give what is nearest first.
        search_kwargs: Passed to every search untouched, for example a filter in the store's own language.
        native_filter: Translates our filter into the store's `filter` argument. Without it the store is asked for more
            than needed and what does not pass is left out here; results are the same.
    """

    def __init__(
        self,
        vector_store: VectorStore,
        *,
        distances: bool | None = None,
        search_kwargs: Mapping[str, Any] | None = None,
        native_filter: Callable[[Filter], Any] | None = None,
    ) -> None:
        if not isinstance(vector_store, VectorStore):
            raise ConfigurationError(f"{kind_of(vector_store)} is no LangChain VectorStore.")
        self.vector_store = vector_store
        self._distances = distances
        self._arguments = dict(search_kwargs or {})
        self._native_filter = native_filter
        if native_filter is not None and "filter" in self._arguments:
            raise ConfigurationError("Give native_filter or a filter in search_kwargs, not both.")

    @property
    def description(self) -> str:
        """What `Index.stats` says of it."""
        return f"{type(self.vector_store).__name__} of the user; scores of what it does not list from 8-bit copies"

    async def top(
        self,
        query: str,
        vector: FloatArray,  # noqa: ARG002 - the store embeds the question
        n: int,
        where: Filter | None = None,
    ) -> Sequence[str]:
        """Ids of the `n` units nearest to a question; see `VectorIndex`."""
        return [name for name, _ in await self.rank(query, n, where)]

    async def rank(self, query: str, n: int, where: Filter | None = None) -> Sequence[tuple[str, float]]:
        """The best `n` (unit id, score) pairs, larger scores being better; see `RankedSource`."""
        arguments = {**self._arguments, "k": n}
        if where is not None and self._native_filter is not None and not asks_for_fields(where):
            arguments["filter"] = self._native_filter(where)
        return [(_unit_id(document), score) for document, score in await self._search(query, arguments)]

    async def _search(self, query: str, arguments: Mapping[str, Any]) -> list[tuple[Document, float]]:
        store = self.vector_store
        try:
            found = await call(
                lambda: store.similarity_search_with_score(query, **arguments),
                lambda: store.asimilarity_search_with_score(query, **arguments),
            )
        except NotImplementedError:
            plain = await call(
                lambda: store.similarity_search(query, **arguments),
                lambda: store.asimilarity_search(query, **arguments),
            )
            return [(document, 1.0 / place) for place, document in enumerate(plain, 1)]
        scores = [float(score) for _, score in found]
        grow = self._distances
        if grow is None:  # none of one result, or of equal ones, is wrong either way
            grow = bool(scores) and scores[0] < scores[-1]
        return [(document, -score if grow else score) for (document, _), score in zip(found, scores, strict=True)]


def over_vector_store(
    recipe: Recipe | str,
    vector_store: VectorStore,
    *,
    distances: bool | None = None,
    search_kwargs: Mapping[str, Any] | None = None,
    native_filter: Callable[[Filter], Any] | None = None,
) -> Recipe:
    """A recipe that searches the user's vector store.

    A recipe that ranks by vectors alone uses the store's order and scores. Every other recipe (graphs, words, chains)
    uses the store to find its starting points and their scores; other units are scored with 8-bit vectors in the index
    folder, because stores cannot return the scores of given entries. `Index.stats()["vectors"]` says which applies. A
    `VectorStoreMirror` of the index fills the store.

    Args:
        recipe: A name or a `Recipe`.
        vector_store: See `VectorStoreSource`.
        distances: Whether the store's scores are distances; None detects it.
        search_kwargs: Passed to every search unchanged. As they may hide something, `flat` then finds only what the
            store has, and nothing that waits for it.
        native_filter: Translates a filter of the core into the store's `filter` argument.

    Raises:
        ConfigurationError: `search_kwargs` has a filter that the recipe would not respect.
    """
    source = VectorStoreSource(
        vector_store, distances=distances, search_kwargs=search_kwargs, native_filter=native_filter
    )
    built = recipe_by_name(recipe) if isinstance(recipe, str) else recipe
    if isinstance(built.ranker, Flat):
        return replace(built, ranker=VectorStoreRanker(source, not search_kwargs), vectors=source)
    if "filter" in (search_kwargs or {}):
        raise ConfigurationError(
            f"{built.name} also finds what the store does not list, so that a filter in search_kwargs would not hold. "
            "Give the filter to the retriever (filter=...), which every recipe keeps to."
        )
    return replace(built, vectors=source)


def _unit_id(document: Document) -> str:
    return str(document.metadata.get("unit_id") or from_uuid(document.id or ""))
