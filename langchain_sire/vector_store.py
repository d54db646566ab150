"""The user's own vector store under our recipes: a mirror fills it from the pool, it ranks, we select and cite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_sire.documents import pool_document
from sire_core.errors import ConfigurationError
from sire_core.filters.conditions import asks_for_fields
from sire_core.models.sync import call, in_thread
from sire_core.protocols import FloatArray, MirroredUnit, Recipe
from sire_core.recipes.registry import recipe_by_name
from sire_core.search.vectors.flat import Flat
from sire_core.search.vectors.vector_store import FrameworkMirror, FrameworkSource, VectorStoreRanker, check_store
from sire_core.types import from_uuid, to_uuid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sire_core.filters import Filter


class VectorStoreSource(FrameworkSource):
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
        check_store(vector_store, VectorStore, "LangChain VectorStore")
        self.vector_store = vector_store
        self._distances = distances
        self._arguments = dict(search_kwargs or {})
        self._native_filter = native_filter
        if native_filter is not None and "filter" in self._arguments:
            raise ConfigurationError("Give native_filter or a filter in search_kwargs, not both.")

    async def top(self, query: str, vector: FloatArray, n: int, where: Filter | None = None) -> Sequence[str]:
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
            scored = await call(
                lambda: store.similarity_search_with_score(query, **arguments),
                lambda: store.asimilarity_search_with_score(query, **arguments),
            )
        except NotImplementedError:
            plain = await call(
                lambda: store.similarity_search(query, **arguments),
                lambda: store.asimilarity_search(query, **arguments),
            )
            return [(document, 1.0 / rank) for rank, document in enumerate(plain, 1)]
        scores = [float(score) for _, score in scored]
        grow = self._distances
        if grow is None:  # none of one result, or of equal ones, is wrong either way
            grow = bool(scores) and scores[0] < scores[-1]
        return [(document, -score if grow else score) for (document, _), score in zip(scored, scores, strict=True)]


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
    uses the store to find its starting points and their scores; other units are scored with the vectors in the index
    folder, because stores cannot return the scores of given entries. `Index.stats()["vectors"]` says which applies. A
    `VectorStoreMirror` of the index fills the store.

    Args:
        recipe: A name or a `Recipe`.
        vector_store: See `VectorStoreSource`.
        distances: See `VectorStoreSource`.
        search_kwargs: See `VectorStoreSource`. As they may hide something, `flat` then finds only what the store has,
            and nothing that waits for it.
        native_filter: See `VectorStoreSource`.

    Raises:
        ConfigurationError: `search_kwargs` has a filter that the recipe would not respect.
    """
    search_kwargs = search_kwargs or {}
    source = VectorStoreSource(
        vector_store, distances=distances, search_kwargs=search_kwargs, native_filter=native_filter
    )
    built = recipe_by_name(recipe) if isinstance(recipe, str) else recipe
    if isinstance(built.ranker, Flat):
        return replace(built, ranker=VectorStoreRanker(source, not search_kwargs), vectors=source)
    if "filter" in search_kwargs:
        raise ConfigurationError(
            f"{built.name} also finds what the store does not list, so that a filter in search_kwargs would not hold. "
            "Give the filter to the retriever (filter=...), which every recipe keeps to."
        )
    return replace(built, vectors=source)


def _unit_id(document: Document) -> str:
    return str(document.metadata.get("unit_id") or from_uuid(document.id or ""))


class VectorStoreMirror(FrameworkMirror):
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
        check_store(vector_store, VectorStore, "LangChain VectorStore")
        super().__init__(name)
        self.vector_store = vector_store
        self._save = save

    async def put(self, units: Sequence[MirroredUnit]) -> None:
        """Insert units; what the store has under their ids goes first, since not every store replaces."""
        store = self.vector_store
        documents = [pool_document(unit.unit, unit.doc_ids, unit.metadata) for unit in units]
        ids = [to_uuid(unit.unit.id) for unit in units]
        there = await self._there(ids)
        if there is None:
            there = [name for name, unit in zip(ids, units, strict=True) if unit.replaces]
        if there:
            await call(lambda: store.delete(there), lambda: store.adelete(there))
        await self._add(
            documents,
            lambda put: call(lambda: store.add_documents(put, ids=ids), lambda: store.aadd_documents(put, ids=ids)),
        )

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete units; of a store that can tell, only what it has."""
        names = [to_uuid(unit) for unit in ids]
        there = await self._there(names)
        removed = names if there is None else there
        if removed:
            store = self.vector_store
            await call(lambda: store.delete(removed), lambda: store.adelete(removed))

    async def holds(self, unit: str, vector: NDArray[np.float32]) -> bool:
        """True if the store has a unit; of a store that cannot be asked it is taken for granted."""
        there = await self._there([to_uuid(unit)])
        return there is None or bool(there)

    async def nearest(self, unit: MirroredUnit) -> list[str]:
        """The unit id of the entry that is nearest to a unit's text by the store's own embeddings."""
        store, text = self.vector_store, unit.unit.index_text
        documents = await call(lambda: store.similarity_search(text, k=1), lambda: store.asimilarity_search(text, k=1))
        return [str(document.metadata.get("unit_id", "")) for document in documents]

    async def flush(self) -> None:
        """Save the store, where that was asked for."""
        if self._save is not None:
            await in_thread(self._save)

    async def _there(self, ids: Sequence[str]) -> list[str] | None:
        """Ids that the store has, of those given; None when it cannot be asked."""
        store = self.vector_store
        try:
            documents = await call(lambda: store.get_by_ids(list(ids)), lambda: store.aget_by_ids(list(ids)))
        except NotImplementedError:
            return None
        wanted = set(ids)
        return [
            name for document in documents if (name := document.id or to_uuid(document.metadata["unit_id"])) in wanted
        ]
