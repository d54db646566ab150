"""`SireRetriever`: an index as a LangChain retriever."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from pydantic import ConfigDict, Field, PrivateAttr, field_validator, model_validator

from langchain_sire.callbacks import child_runs
from langchain_sire.documents import from_langchain, from_texts, hit_to_langchain
from langchain_sire.opening import SPELLINGS, open_index
from sire_core.errors import ConfigurationError, IndexMissingError, SireError
from sire_core.filter_ids import passes
from sire_core.filters import Filter, both, parse_filter
from sire_core.index import Index
from sire_core.keywords import named
from sire_core.models.sync import run_sync
from sire_core.search.filter_hint import unknown_keys
from sire_core.search.passages import check_returns
from sire_core.storage.side_files import read_checked, write_checked
from sire_core.types import Passage

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from typing_extensions import Self

    from sire_core.protocols import Embedder, LanguageModel, Recipe
    from sire_core.types import BuildReport, Hit

__all__ = ["FilterLike", "SireRetriever"]

_logger = logging.getLogger(__name__)

FilterLike = Union[dict[str, Any], str, Filter, None]
"""A mapping (`{"year": {"gt": 1990}}`), a text (`year>1990`) or a `sire_core.filters` object."""

_SEARCH = ("k", "filter", "returns", "recipe")
"""What one call may set, and `search_kwargs` for all calls."""

_OF_STORES = ("search_type", "score_threshold", "fetch_k", "lambda_mult")
"""What `VectorStore.as_retriever` takes."""

_SETTINGS = "langchain.json"
_FIELDS = ("k", "filter", "returns", "search_kwargs", "title_key", "tags", "metadata")


class SireRetriever(BaseRetriever):
    """Retrieves from an index with any recipe, sync and async, with citations.

    What comes back are the documents that were put in, with their ids and metadata, and in `metadata["sire"]` what we
    say of them; see `hit_to_langchain`. `invoke` and `ainvoke` take `k`, `filter`, `returns` and `recipe` for one call.

    Attributes:
        index: The index that is searched.
        k: How many documents come back; fewer only when fewer pass the filter. Also `top_k`.
        filter: On document metadata; holds for every call. A filter given to one call narrows it further.
        returns: "passages" gives documents that were put in; "units" also summaries, aggregates and reports as they
            are, whose metadata are what their passages agree on.
        search_kwargs: `k`, `filter`, `returns` and `recipe`, as `as_retriever` of a vector store takes them.
        title_key: Metadata key that holds the title of documents that are added.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: Index
    k: int = Field(default=4, gt=0)
    filter: Any = None
    returns: str = "passages"
    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    title_key: str = "title"

    _params: LangSmithRetrieverParams | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        """Refuse a keyword that is none, with the nearest one that is."""
        if isinstance(values, Mapping):
            _refuse_store_searches(values)
        return named(cls.__name__, values, cls.model_fields, SPELLINGS) if isinstance(values, Mapping) else values

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
        _refuse_store_searches(value)
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
        **options: Any,
    ) -> Self:
        """Add documents to an index, which may be new, and return a retriever over it.

        Documents are indexed as they are, one passage each, as every vector store of LangChain does: split them before,
        or pass `chunker="sentences"`. In a folder that holds an index they are added, those with a known id replace
        what is there, and nothing else changes; `replace_all` makes an index hold exactly some documents.

        Args:
            documents: Left untouched. Without an id of its own a document gets one from its content.
            embedding: LangChain's or ours (also `embedder`, `embeddings`); None takes what the folder was built with,
                else the zero-download default.
            llm: LangChain's or ours; None extracts and summarizes without a model.
            recipe: A name or a `Recipe`; None means the folder's latest, else the default.
            path: Folder of the index; None keeps it in memory.
            **options: `vector_store` (or a `VectorStoreMirror` of it), which follows the index and is searched; fields
                of the class (`k`, `filter`, `search_kwargs`, `title_key`, ...), `show_progress=True` for bars, and
                arguments of `Index`: `chunker`, `seed`, `workers`, `limits` and others.

        Raises:
            CorpusError: Documents contradict each other, or hold metadata that is not JSON.
            BuildError: Too many passages failed.
            TypeError: An argument is unknown.
        """
        given = {"embedding": embedding, "llm": llm, "recipe": recipe, "path": path, **options}
        retriever = cls._over("from_documents", given)
        retriever.add_documents(documents)
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
        **options: Any,
    ) -> Self:
        """See `from_documents`."""
        given = {"embedding": embedding, "llm": llm, "recipe": recipe, "path": path, **options}
        retriever = cls._over("afrom_documents", given)
        await retriever.aadd_documents(documents)
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
        """Add texts; `metadatas` and `ids` are parallel lists. The rest as in `from_documents`."""
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
        """Open a folder that `save`, `from_documents(path=...)` or the command line wrote.

        Args:
            path: The folder.
            embedding: What the index was built with; not needed for the default and for named embedders.
            llm: For recipes that ask a model while they search, and for later additions.
            recipe: Which recipe of the folder; None takes the latest.
            **options: As in `from_documents`; `k` is what was saved when left out.

        Raises:
            IndexMissingError: There is no index.
            EmbedderMismatchError: It was built with another embedder.
            ConfigurationError: It does not hold the recipe.
        """
        from sire_core.pipeline.mirroring import catch_up

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
        index, fields = open_index(f"{cls.__name__}.{called}", given, _FIELDS)
        return cls(index=index, **{**_saved_settings(index.path), **fields})

    # --- changing documents -----------------------------------------------------------------------------------------

    def add_documents(self, documents: Iterable[Document]) -> list[str]:
        """Add documents, or replace those with the same id, as vector stores do; returns their ids.

        Raises:
            CorpusError: Documents contradict each other, or hold metadata that is not JSON; nothing is added.
            BuildError: Too many passages failed.
        """
        return run_sync(self.aadd_documents(documents))

    async def aadd_documents(self, documents: Iterable[Document]) -> list[str]:
        """See `add_documents`."""
        given = self._given(documents)
        await self._follow(await self.index.aupdate(given))
        return [document.id for document in given]

    def replace_all(self, documents: Iterable[Document]) -> list[str]:
        """Make the index hold exactly these documents: every other one is deleted. Returns their ids."""
        return run_sync(self.areplace_all(documents))

    async def areplace_all(self, documents: Iterable[Document]) -> list[str]:
        """See `replace_all`."""
        given = self._given(documents)
        await self._follow(await self.index.abuild(given))
        return [document.id for document in given]

    def delete_documents(
        self,
        ids: Iterable[str] | str | None = None,
        *,
        filter: FilterLike = None,  # noqa: A002 - the word of every search
        missing_ok: bool = False,
    ) -> None:
        """Delete documents and everything derived from them: some ids, or what passes a filter.

        Args:
            ids: Which documents.
            filter: In the place of ids, on metadata: of what this retriever may find, whatever passes is deleted.
            missing_ok: Leave out unknown ids.

        Raises:
            ConfigurationError: Neither ids nor a filter, or both, or a filter on a key that no document has.
            CorpusError: An id is unknown; nothing is deleted.
        """
        run_sync(self.adelete_documents(ids, filter=filter, missing_ok=missing_ok))

    async def adelete_documents(
        self,
        ids: Iterable[str] | str | None = None,
        *,
        filter: FilterLike = None,  # noqa: A002 - as above
        missing_ok: bool = False,
    ) -> None:
        """See `delete_documents`."""
        if (ids is None) == (filter is None):
            raise ConfigurationError(
                "delete_documents takes ids or a filter, one of the two: delete_documents(['a', 'b']), or "
                "delete_documents(filter='source=manual.md')."
            )
        if ids is None:
            gone = await self._passing(filter)
        else:
            gone = [ids] if isinstance(ids, str) else list(ids)
            if missing_ok:
                gone = [document.id for document in await asyncio.to_thread(self.index.documents, gone)]
        if gone:
            await self._follow(await self.index.adelete(gone))

    async def _passing(self, where: FilterLike) -> list[str]:
        """Ids of the documents of which every passage passes a filter."""
        wanted = self.narrowed(where)
        assert wanted is not None
        found = []
        for document in await asyncio.to_thread(self.index.documents):
            own = [(piece.metadata, piece.id) if isinstance(piece, Passage) else ({}, "") for piece in document.chunks]
            asked = (({**document.metadata, **metadata}, document.id, name) for metadata, name in own or [({}, "")])
            if all(passes(wanted, asked)):
                found.append(document.id)
        if not found:
            seen = {key for metadata in (await self.index.asnapshot()).metadata() for key in metadata}
            if hint := unknown_keys(wanted, seen):
                raise ConfigurationError(f"Nothing was deleted. {hint}")
            _logger.warning("Nothing was deleted. %s", await self.index.afilter_hint(wanted))
        return found

    def _given(self, documents: Iterable[Document]) -> list[Any]:
        return from_langchain(documents, self.title_key, whole=self.index.chunker is None)

    async def _follow(self, report: BuildReport) -> None:
        if report.failures:
            await self.index.apush()  # a mirror that missed it is written again; it raises what its store raises

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
        called = {key: value for key, value in options.items() if value is not None}
        own = named(f"{type(self).__name__}.invoke", called, _SEARCH, SPELLINGS)
        where = self.narrowed(own.get("filter"))
        return {"k": self.k, "returns": self.returns, **general, **own, "filter": where}

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


def _refuse_store_searches(given: Mapping[str, Any]) -> None:
    """Say where the kinds of search are that vector stores have."""
    asked = next((name for name in _OF_STORES if name in given), None)
    if asked is not None:
        raise TypeError(
            f"SireRetriever has no {asked}. The vector store has it, over the same index: SireVectorStore(path=...)"
            f".as_retriever(search_type=..., search_kwargs=...)."
        )


def _save_settings(retriever: SireRetriever, place: Path | None) -> None:
    if place is not None:
        write_checked(place / _SETTINGS, {"k": retriever.asked({})["k"]})


def _saved_settings(place: Path | None) -> dict[str, Any]:
    try:
        return {} if place is None else dict(read_checked(place / _SETTINGS))
    except FileNotFoundError:  # a new folder, or one that the core wrote
        return {}
