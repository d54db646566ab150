"""`SireRetriever`: an index as a LangChain retriever."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from pydantic import ConfigDict, Field, PrivateAttr, field_validator, model_validator

from langchain_sire.callbacks import child_runs
from langchain_sire.document_changes import DocumentChanges
from langchain_sire.documents import from_texts, hit_to_langchain
from langchain_sire.opening import SPELLINGS, open_index, read_settings, refuse_store_searches, write_settings
from sire_core.arguments import named
from sire_core.errors import IndexMissingError, SireError
from sire_core.filters import Filter, FilterLike, both, parse_filter
from sire_core.index import Index
from sire_core.models.sync import run_sync
from sire_core.search.passages import check_returns

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from typing_extensions import Self

    from sire_core.protocols import Embedder, LanguageModel, Recipe
    from sire_core.types import Hit

__all__ = ["SireRetriever"]

_SEARCH = ("k", "filter", "returns", "recipe")
"""What one call may set, and `search_kwargs` for all calls."""


class SireRetriever(DocumentChanges, BaseRetriever):
    """A LangChain retriever over an index, with any recipe, sync and async.

    Documents come back as they were added, with their ids and metadata; `metadata["sire"]` adds scores and paths, see
    `hit_to_langchain`. `invoke` and `ainvoke` take `k`, `filter`, `returns` and `recipe` for one call.

    Attributes:
        index: The index.
        k: Number of documents; fewer are returned only if fewer match the filter. Also `top_k`.
        filter: A filter on document metadata for every call. The filter of a call can only narrow it.
        returns: "passages" returns the added documents; "units" also summaries, aggregates and reports, with the
            metadata that all their source passages share.
        search_kwargs: `k`, `filter`, `returns` and `recipe`, as in `as_retriever` of a vector store.
        title_key: Metadata key with the title of added documents, or a list of keys with its headings, outermost first,
            as in `headers_to_split_on` of a splitter. Saved in the folder, and read from there if it is not given.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: Index
    k: int = Field(default=4, gt=0)
    filter: Any = None
    returns: str = "passages"
    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    title_key: str | list[str] = "title"

    _params: LangSmithRetrieverParams | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        """Refuse a keyword that is none, with the nearest one that is; read titles as the folder's documents were."""
        if not isinstance(values, Mapping):
            return values
        refuse_store_searches(values)
        known = named(cls.__name__, values, cls.model_fields, SPELLINGS)
        saved = read_settings(known["index"].path) if isinstance(known.get("index"), Index) else {}
        return {"title_key": saved["title_key"], **known} if "title_key" in saved else known

    @field_validator("filter")
    @classmethod
    def _readable(cls, value: FilterLike) -> FilterLike:
        parse_filter(value)
        return value

    @field_validator("returns")
    @classmethod
    def _possible(cls, value: str) -> str:
        check_returns(value)
        return value

    @field_validator("search_kwargs")
    @classmethod
    def _searchable(cls, value: dict[str, Any]) -> dict[str, Any]:
        refuse_store_searches(value)
        return named("search_kwargs", value, _SEARCH, SPELLINGS)

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
        ids: Sequence[str | None] | None = None,
        **options: Any,
    ) -> Self:
        """Add documents to a new or existing index, and return a retriever over it.

        Each document is one passage, as in every LangChain vector store: split documents first, or pass
        `chunker="sentences"`. In an existing index, documents are added, or replaced if their id is known, and nothing
        else changes; see also `replace_all`.

        Args:
            documents: Not modified. A document without an id gets one computed from its content.
            embedding: LangChain `Embeddings` or an `Embedder` (also as `embedder` or `embeddings`); None means what the
                folder was built with, or the default, which needs no download.
            llm: A LangChain chat model or a `LanguageModel`; None extracts and summarizes without a model.
            recipe: A name or a `Recipe`; None means the recipe saved with the retriever, or the folder's latest, or the
                default.
            path: Folder of the index; None keeps it in memory.
            ids: Replace the documents' own ids.
            **options: Settings of the recipe (`ranker="hybrid"`, or all in `recipe_settings={...}`), `vector_store` (or
                a `VectorStoreMirror` of it), which is kept up to date and searched; fields of the class (`k`, `filter`,
                `search_kwargs`, `title_key`, ...), `show_progress=True` for progress bars, and arguments of `Index`:
                `chunker`, `seed`, `workers`, `limits` and others.

        Raises:
            CorpusError: Documents contradict each other, or have metadata that is not JSON.
            BuildError: Too many passages failed.
            TypeError: An argument is unknown.
        """
        given = {"embedding": embedding, "llm": llm, "recipe": recipe, "path": path, **options}
        retriever = cls._over("from_documents", given)
        retriever.add_documents(documents, ids=ids)
        _save_settings(retriever, retriever.index.path)
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
        ids: Sequence[str | None] | None = None,
        **options: Any,
    ) -> Self:
        """See `from_documents`."""
        given = {"embedding": embedding, "llm": llm, "recipe": recipe, "path": path, **options}
        retriever = cls._over("afrom_documents", given)
        await retriever.aadd_documents(documents, ids=ids)
        _save_settings(retriever, retriever.index.path)
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
        """Add texts; `metadatas` and `ids` are parallel lists. Otherwise like `from_documents`."""
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
        """Write a copy of the index into a new folder. An index with a `path` is already saved.

        Raises:
            StorageError: The folder is not empty.
        """
        self.index.save(path)
        _save_settings(self, Path(path))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        embedding: Embeddings | Embedder | str | None = None,
        *,
        llm: BaseChatModel | LanguageModel | None = None,
        recipe: Recipe | str | None = None,
        **options: Any,
    ) -> Self:
        """Open a folder written by `save`, `from_documents(path=...)` or the command line.

        Args:
            path: The folder.
            embedding: The embedder that the index was built with; not needed for the default and for named embedders.
            llm: For recipes that call a model during a search, and for adding documents later.
            recipe: A recipe of the folder; None means the one saved with the retriever, or the latest.
            **options: As in `from_documents`; the default of `k` is the saved value.

        Raises:
            IndexMissingError: There is no index.
            EmbedderMismatchError: It was built with another embedder.
            ConfigurationError: It does not have this recipe.
        """
        from sire_core.build.mirroring import catch_up

        given = {"embedding": embedding, "llm": llm, "recipe": recipe, "path": path, **options}
        retriever = cls._over("load", given)
        try:
            retriever.index.snapshot()
        except IndexMissingError as error:
            raise IndexMissingError(
                f"There is no index in {path}. Make one: {cls.__name__}.from_documents(documents, path={str(path)!r})."
            ) from error
        catch_up(retriever.index.push)
        return retriever

    @classmethod
    def _over(cls, called: str, given: Mapping[str, Any]) -> Self:
        own = [name for name in cls.model_fields if name not in ("index", "llm")]  # an index has its model as `llm`
        index, fields = open_index(f"{cls.__name__}.{called}", given, own)
        saved = {name: value for name, value in read_settings(index.path).items() if name == "k"}
        return cls(index=index, **{**saved, **fields})

    # --- retrieving -------------------------------------------------------------------------------------------------

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        with child_runs(run_manager.get_child()):
            hits = run_sync(self._hits(query, options))
        return [hit_to_langchain(hit) for hit in hits]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        with child_runs(run_manager.get_child()):
            hits = await self._hits(query, options)
        return [hit_to_langchain(hit) for hit in hits]

    async def _hits(self, query: str, options: Mapping[str, Any]) -> list[Hit]:
        """Search as a call, `search_kwargs` and the fields say, in this order."""
        asked = self.asked(options)
        index = self.searched(asked)
        return await index.asearch(query, asked["k"], filter=asked["filter"], returns=asked["returns"])

    def searched(self, asked: Mapping[str, Any]) -> Index:
        """The index, with the recipe that was asked for."""
        return self.index.using(asked["recipe"]) if asked.get("recipe") else self.index

    def asked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """`k`, `filter`, `returns` and perhaps `recipe` of a call with these options, `search_kwargs` and fields."""
        general = named("search_kwargs", self.search_kwargs, _SEARCH, SPELLINGS)
        own = self.called(options)
        where = self.narrowed(own.get("filter"))
        return {"k": self.k, "returns": self.returns, **general, **own, "filter": where}

    def called(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """What a call itself says, under our names; None says nothing."""
        given = {key: value for key, value in options.items() if value is not None}
        return named(f"{type(self).__name__}.invoke", given, _SEARCH, SPELLINGS)

    def narrowed(self, *more: FilterLike) -> Filter | None:
        """The retriever's filters and others: a call, for example of an agent, must not widen what it may see."""
        own = named("search_kwargs", self.search_kwargs, _SEARCH, SPELLINGS)
        return reduce(both, map(parse_filter, (self.filter, own.get("filter"), *more)))

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


def _save_settings(retriever: SireRetriever, place: Path | None) -> None:
    if place is not None:
        asked = retriever.asked({})
        recipe = retriever.searched(asked).recipe_name
        titles = {} if retriever.title_key == "title" else {"title_key": retriever.title_key}
        write_settings(place, {"k": asked["k"], **({"recipe": recipe} if recipe else {}), **titles})
