"""`SireVectorStore`: an index where LangChain asks for a vector store."""
# LangChain's methods take keywords of any name; ours are typed.
# mypy: disable-error-code="override"

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union, get_args

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from typing_extensions import Self, Unpack

from langchain_sire.documents import Documents, Ids, from_texts, hit_to_langchain, listed, with_ids
from langchain_sire.embeddings import EmbeddingLike, LangChainEmbedder
from langchain_sire.opening import SPELLINGS
from langchain_sire.options import OpenOptions, SearchType, StoreOptions, StoreSearchOptions
from langchain_sire.retriever import SEARCH, SireRetriever
from langchain_sire.search_types import FETCH_K, LAMBDA_MULT, SEARCH_TYPE_OPTIONS, diverse, scored_by_cosine
from sire_core.arguments import check_choice, lists_options, named
from sire_core.errors import ConfigurationError, IndexMissingError
from sire_core.index import Index, warn_of_no_documents
from sire_core.models.sync import run_sync
from sire_core.search.search_options import check_returns
from sire_core.types import Hit

Rows = Union[list[dict[Any, Any]], None]


class SireVectorStore(VectorStore):
    """A vector store that searches with a recipe, for chains and retrievers that accept only a vector store.

    Documents come back as they were added, so `ParentDocumentRetriever`, `MultiVectorRetriever` and similar classes
    work; with `provenance=True` they have `metadata["sire"]`, as those of `SireRetriever`. Scores are those of the
    recipe. A relevance score, as used by `similarity_score_threshold`, is the cosine similarity between a document and
    the question, at least 0; it is `metadata["sire"]["score"]` then. Searches take `filter`, `returns`, `as_of` and
    `recipe`, as `SireRetriever` does.

    Args:
        embedding: LangChain `Embeddings` or an `Embedder`; None means what the folder was built with, or the default,
            which needs no download.
        documents: An existing document index, instead of all other arguments but `provenance`.
        provenance: Return documents with `metadata["sire"]`: scores, source ids and the path of each.
        **options: As in `SireRetriever.from_documents`: `path`, `recipe`, `llm`, `chunker` and others.

    Raises:
        TypeError: An argument is unknown, or was given together with `documents`.
    """

    @lists_options(OpenOptions)
    def __init__(
        self,
        embedding: EmbeddingLike = None,
        *,
        documents: SireRetriever | None = None,
        provenance: bool = False,
        **options: Unpack[OpenOptions],
    ) -> None:
        arguments = {"embedding": embedding, **options}
        if documents is not None and any(value is not None for value in arguments.values()):
            raise TypeError("SireVectorStore() takes documents, or the settings of an index, not both.")
        self._embedding: Any = embedding
        if documents is None:
            documents = SireRetriever._over("SireVectorStore", arguments, is_writer=True)  # noqa: SLF001 - `open`
        self.documents = documents
        self._plain = not provenance

    @property
    def embeddings(self) -> Embeddings | None:
        """The given LangChain embeddings; None if an embedder of the core is used."""
        return self._embedding.embeddings if isinstance(self._embedding, LangChainEmbedder) else self._embedding

    @classmethod
    @lists_options(StoreOptions)
    def from_documents(
        cls, documents: Documents, embedding: EmbeddingLike = None, **kwargs: Unpack[StoreOptions]
    ) -> Self:
        """A store with these documents, added to those in `path`; further arguments are those of the class."""
        arguments: dict[str, Any] = {**kwargs}
        how = {name: arguments.pop(name) for name in ("ids", "replace_source") if name in arguments}
        store = cls(embedding, **arguments)
        if not store.add_documents(documents, **how):
            warn_of_no_documents(store.documents.index, f"{cls.__name__}.from_documents", "add_documents")
        return store

    @classmethod
    @lists_options(StoreOptions)
    async def afrom_documents(
        cls, documents: Documents, embedding: EmbeddingLike = None, **kwargs: Unpack[StoreOptions]
    ) -> Self:
        """See `from_documents`."""
        return await asyncio.to_thread(cls.from_documents, documents, embedding, **kwargs)

    @classmethod
    @lists_options(StoreOptions)
    def from_texts(
        cls,
        texts: list[str],
        embedding: EmbeddingLike = None,
        metadatas: Rows = None,
        **kwargs: Unpack[StoreOptions],
    ) -> Self:
        """A store with these texts, added to those in `path`; further arguments are those of the class."""
        return cls.from_documents(from_texts(texts, metadatas, kwargs.pop("ids", None)), embedding, **kwargs)

    @classmethod
    @lists_options(StoreOptions)
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: EmbeddingLike = None,
        metadatas: Rows = None,
        **kwargs: Unpack[StoreOptions],
    ) -> Self:
        """See `from_texts`."""
        return await super().afrom_texts(texts, embedding, metadatas, **kwargs)  # type: ignore[arg-type, no-any-return]

    def add_texts(self, texts: Iterable[str], metadatas: Rows = None, *, ids: Ids = None, **kwargs: Any) -> list[str]:
        """Add texts, or replace those with the same id. They are indexed before the next search. Returns their ids."""
        return self.add_documents(from_texts(texts, metadatas, ids), **kwargs)

    def add_documents(
        self, documents: Documents, *, ids: Ids = None, replace_source: bool = False, batch_size: int | None = None
    ) -> list[str]:
        """Add documents, or replace those with the same id; `ids` names them. Without an id each gets a random one.

        `replace_source` is that of `SireRetriever.add_documents`; `batch_size`, which `index()` gives, has no effect.
        """
        originals = listed(documents)
        names = [document.id for document in originals] if ids is None else ids
        named_documents = with_ids(originals, [name or uuid.uuid4().hex for name in names])
        return self.documents.upsert(named_documents, replace_source=replace_source)["succeeded"]

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents and everything derived from them; unknown ids are ignored.

        Raises:
            ValueError: No ids were given.
        """
        self.documents.delete(ids, **kwargs)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Documents as they were added; unknown ids are ignored."""
        return self.documents.get(ids)

    def similarity_search(self, query: str, k: int = 4, **kwargs: Unpack[StoreSearchOptions]) -> list[Document]:
        """The best documents for a question, in the recipe's order."""
        return run_sync(self.asimilarity_search(query, k, **kwargs))

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Unpack[StoreSearchOptions]) -> list[Document]:
        """See `similarity_search`."""
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Unpack[StoreSearchOptions]
    ) -> list[tuple[Document, float]]:
        """The best documents with the recipe's scores; larger is better."""
        return run_sync(self.asimilarity_search_with_score(query, k, **kwargs))

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Unpack[StoreSearchOptions]
    ) -> list[tuple[Document, float]]:
        """See `similarity_search_with_score`."""
        hits = await self._hits(query, k, kwargs)
        return [(self._document(hit), float(hit.score)) for hit in hits]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Unpack[StoreSearchOptions]
    ) -> list[Document]:
        """The passages nearest to a vector of the index's embedder; takes `filter`, `as_of` and `recipe`.

        Raises:
            ConfigurationError: `returns` is "units"; units can be searched only with a question.
        """
        return run_sync(self.asimilarity_search_by_vector(embedding, k, **kwargs))

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Unpack[StoreSearchOptions]
    ) -> list[Document]:
        """See `similarity_search_by_vector`."""
        options = named("SireVectorStore.similarity_search_by_vector", kwargs, SEARCH, SPELLINGS)
        search = self.documents.asked({**options, "k": k})
        check_returns(search["returns"])
        if search["returns"] == "units":
            raise ConfigurationError(
                'similarity_search_by_vector finds passages: leave out returns="units" or pass returns="passages". '
                "similarity_search finds units by a question."
            )
        await self.documents.prepare_search()
        try:
            pinned = await self.documents.searched(search).asnapshot(filter=search["filter"], as_of=search["as_of"])
        except IndexMissingError:
            return []
        hits = await pinned.nearest(np.asarray(embedding, dtype=np.float32), search["k"])
        return [self._document(hit) for hit in hits]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return run_sync(self._asimilarity_search_with_relevance_scores(query, k, **kwargs))

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        hits = await self._hits(query, k, kwargs)
        hits = await scored_by_cosine(self._searched(kwargs), query, hits)
        return [(self._document(hit), float(hit.score)) for hit in hits]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = FETCH_K,
        lambda_mult: float = LAMBDA_MULT,
        **kwargs: Unpack[StoreSearchOptions],
    ) -> list[Document]:
        """The `k` of the recipe's best `fetch_k` documents that are similar to the question and diverse."""
        return run_sync(self.amax_marginal_relevance_search(query, k, fetch_k, lambda_mult, **kwargs))

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = FETCH_K,
        lambda_mult: float = LAMBDA_MULT,
        **kwargs: Unpack[StoreSearchOptions],
    ) -> list[Document]:
        """See `max_marginal_relevance_search`."""
        hits = await self._hits(query, max(k, fetch_k), kwargs)
        return [self._document(hit) for hit in await diverse(self._searched(kwargs), query, hits, k, lambda_mult)]

    def as_retriever(self, **kwargs: Any) -> VectorStoreRetriever:
        """A retriever of LangChain over this store; what no search can use is refused here."""
        made = super().as_retriever(**kwargs)
        check_choice("search_type", made.search_type, get_args(SearchType))
        names = [*SEARCH, *SEARCH_TYPE_OPTIONS]
        options = named("search_kwargs", made.search_kwargs, names, SPELLINGS)
        self.documents.check_search({key: value for key, value in options.items() if key in SEARCH})
        return made

    async def _hits(self, query: str, k: int, options: Mapping[str, Any]) -> list[Hit]:
        search_options = named("SireVectorStore.similarity_search", options, SEARCH, SPELLINGS)
        return await self.documents.ranked(query, {**search_options, "k": k})

    def _document(self, hit: Hit) -> Document:
        return hit_to_langchain(hit, plain=self._plain)

    def _searched(self, options: Mapping[str, Any]) -> Index:
        return self.documents.searched(self.documents.asked(options))
