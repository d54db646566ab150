"""`SireRetriever`: an index as a LangChain retriever."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from pydantic import ConfigDict, Field, PrivateAttr, field_validator

from langchain_sire.callbacks import child_runs
from langchain_sire.chat import as_language_model
from langchain_sire.documents import from_langchain, from_texts, hit_to_langchain
from langchain_sire.embeddings import as_embedder
from sire_core.errors import SireError
from sire_core.filters import Filter, Group, parse_filter
from sire_core.index import Index

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from typing_extensions import Self

    from sire_core.protocols import Embedder, LanguageModel
    from sire_core.recipes.base import Recipe

__all__ = ["FilterLike", "SireRetriever", "make_index"]

FilterLike = Union[dict[str, Any], str, Filter, None]
"""A mapping (`{"year": {"gt": 1990}}`), a text (`year>1990`) or a `sire_core.filters` object."""


class SireRetriever(BaseRetriever):
    """Retrieves from an index with any recipe, sync and async, with citations.

    Documents come back with the unit's id and, in their metadata, `score`, `kind`, `doc_ids` and `chunk_ids`; see
    `hit_to_langchain`. `invoke` and `ainvoke` take `k` and `filter` for one call.

    Attributes:
        index: The index that is searched.
        k: How many documents come back; fewer only when fewer pass the filter.
        filter: On document metadata; holds for every call. A filter given to one call narrows it further.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: Index
    k: int = Field(default=4, gt=0)
    filter: Any = None

    _params: LangSmithRetrieverParams | None = PrivateAttr(default=None)

    @field_validator("filter")
    @classmethod
    def _readable(cls, value: FilterLike) -> FilterLike:
        parse_filter(value)
        return value

    # --- making -----------------------------------------------------------------------------------------------------

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        embedding: Embeddings | Embedder | str | None = None,
        *,
        llm: BaseChatModel | LanguageModel | None = None,
        recipe: Recipe | str | None = None,
        path: str | os.PathLike[str] | None = None,
        k: int = 4,
        filter: FilterLike = None,  # noqa: A002 - the word users look for
        **options: Any,
    ) -> Self:
        """Index documents and return a retriever over them.

        Args:
            documents: Left untouched. Without an id of its own a document gets one from its content.
            embedding: LangChain's or ours; None takes the zero-download default.
            llm: LangChain's or ours; None extracts and summarizes without a model.
            recipe: A name or a `Recipe`; None means `sirerag`.
            path: Folder of the index; None keeps it in memory.
            k: See the class.
            filter: See the class.
            **options: More arguments of `Index`: `chunker`, `seed`, `workers`, `progress` and others.

        Raises:
            CorpusError: Documents contradict each other, or hold metadata that is not JSON.
            BuildError: Too many passages failed.
        """
        retriever = cls(index=make_index(path, embedding, llm, recipe, options), k=k, filter=filter)
        report = retriever.index.build(from_langchain(documents))
        if report.failures:
            retriever.index.push()  # a mirror that missed it is told again; it raises what its store raises
        return retriever

    @classmethod
    async def afrom_documents(
        cls,
        documents: Iterable[Document],
        embedding: Embeddings | Embedder | str | None = None,
        *,
        llm: BaseChatModel | LanguageModel | None = None,
        recipe: Recipe | str | None = None,
        path: str | os.PathLike[str] | None = None,
        k: int = 4,
        filter: FilterLike = None,  # noqa: A002 - as above
        **options: Any,
    ) -> Self:
        """See `from_documents`."""
        retriever = cls(index=make_index(path, embedding, llm, recipe, options), k=k, filter=filter)
        report = await retriever.index.abuild(from_langchain(documents))
        if report.failures:
            await retriever.index.apush()  # as above
        return retriever

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        embedding: Embeddings | Embedder | str | None = None,
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **options: Any,
    ) -> Self:
        """Index texts; `metadatas` and `ids` are parallel lists. The rest as in `from_documents`."""
        return cls.from_documents(from_texts(texts, metadatas, ids), embedding, **options)

    @classmethod
    async def afrom_texts(
        cls,
        texts: Iterable[str],
        embedding: Embeddings | Embedder | str | None = None,
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **options: Any,
    ) -> Self:
        """See `from_texts`."""
        return await cls.afrom_documents(from_texts(texts, metadatas, ids), embedding, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the index into a new folder. An index with a `path` is saved already.

        Raises:
            StorageError: The folder holds an index.
        """
        self.index.save(path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        embedding: Embeddings | Embedder | str | None = None,
        *,
        llm: BaseChatModel | LanguageModel | None = None,
        recipe: Recipe | str | None = None,
        k: int = 4,
        filter: FilterLike = None,  # noqa: A002 - as above
        **options: Any,
    ) -> Self:
        """Open a folder that `save`, `from_documents(path=...)` or the command line wrote.

        Args:
            path: The folder.
            embedding: What the index was built with; not needed for the default and for named embedders.
            llm: For recipes that ask a model while they search, and for later additions.
            recipe: Which recipe of the folder; None takes the latest.
            k: See the class.
            filter: See the class.
            **options: More arguments of `Index`.

        Raises:
            IndexMissingError: There is no index.
            EmbedderMismatchError: It was built with another embedder.
            ConfigurationError: It does not hold the recipe.
        """
        from sire_core.pipeline.mirroring import catch_up

        retriever = cls(index=make_index(path, embedding, llm, recipe, options), k=k, filter=filter)
        retriever.index.view()
        catch_up(retriever.index.push)
        return retriever

    # --- retrieving -------------------------------------------------------------------------------------------------

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: FilterLike = None,  # noqa: A002 - as above
    ) -> list[Document]:
        with child_runs(run_manager.get_child()):
            hits = self.index.search(query, self.k if k is None else k, filter=self.narrowed(filter))
        return [hit_to_langchain(hit) for hit in hits]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: FilterLike = None,  # noqa: A002 - as above
    ) -> list[Document]:
        with child_runs(run_manager.get_child()):
            hits = await self.index.asearch(query, self.k if k is None else k, filter=self.narrowed(filter))
        return [hit_to_langchain(hit) for hit in hits]

    def narrowed(self, more: FilterLike) -> Filter | None:
        """The retriever's filter and a call's: a call, for example of an agent, must not widen what it may see."""
        parts = tuple(part for part in (parse_filter(self.filter), parse_filter(more)) if part is not None)
        return Group("and", parts) if len(parts) > 1 else (parts[0] if parts else None)

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        """What a trace says of this retriever."""
        if self._params is None:
            params = super()._get_ls_params(**kwargs)
            params["ls_vector_store_provider"] = "sire"
            try:
                embedder = str(self.index.stats()["embedder"])
            except SireError:  # nothing was built yet: ask again next time
                return params
            provider, _, model = embedder.partition(":")
            self._params = {**params, "ls_embedding_provider": provider, "ls_embedding_model": model or embedder}
        return self._params


def make_index(
    path: str | os.PathLike[str] | None,
    embedding: Embeddings | Embedder | str | None,
    llm: BaseChatModel | LanguageModel | None,
    recipe: Recipe | str | None,
    options: Mapping[str, Any],
) -> Index:
    """An index with LangChain's models in the places of ours."""
    return Index(
        path,
        recipe=recipe,
        embedder=as_embedder(embedding),
        language_model=as_language_model(llm),
        **options,
    )
