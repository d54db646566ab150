"""`SireRetriever`: an index as a LangChain retriever."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex
from langchain_core.retrievers import LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict, Field, PrivateAttr, ValidationError, field_validator, model_validator
from typing_extensions import Self, Unpack

from langchain_sire.chat import child_runs
from langchain_sire.documents import (
    Documents,
    Ids,
    Metadatas,
    evidence_text,
    evidence_to_langchain,
    from_langchain,
    from_texts,
    hit_to_langchain,
    to_langchain,
    with_ids,
)
from langchain_sire.embeddings import EmbeddingLike
from langchain_sire.opening import SETTINGS, SPELLINGS, open_index, plain_error, read_search
from langchain_sire.options import (
    AddOptions,
    CallOptions,
    LoadOptions,
    RetrieverFields,
    SearchKwargs,
    StoreSearchOptions,
)
from langchain_sire.search_types import (
    FETCH_K,
    LAMBDA_MULT,
    SEARCH_TYPE_OPTIONS,
    check_search_type,
    diverse,
    scored_by_cosine,
)
from sire_core.arguments import lists_options, named
from sire_core.changes.app_settings import reading_settings, search_settings
from sire_core.changes.file_titles import FileTitles
from sire_core.changes.mirroring import catch_up, push_missed
from sire_core.documents.stored_corpus import filter_fields
from sire_core.documents.titles import file_of
from sire_core.documents.validation import id_list
from sire_core.errors import ConfigurationError, IndexMissingError, NoSpaceError, SireError
from sire_core.filters import Filter, FilterLike, both, parse_filter
from sire_core.filters.conditions import passes
from sire_core.index import Index, warn_of_first_cost, warn_of_no_documents
from sire_core.models.embedders import check_length, model_name
from sire_core.models.sync import run_sync
from sire_core.search.context import ContextOptions, check_options, context_text
from sire_core.search.search_options import check_search_options
from sire_core.search.snapshot import unknown_keys
from sire_core.search.validity import Day
from sire_core.text.pluralize import some
from sire_core.types import BuildReport, Hit

_logger = logging.getLogger(__name__)

SEARCH = ("k", *StoreSearchOptions.__annotations__)  # Search options of one call of a vector store
_RETRIEVER_SEARCH = tuple(CallOptions.__annotations__)
"""Search options of one call, and of `search_kwargs` for all calls."""

_SEARCH_KWARGS = tuple(SearchKwargs.__annotations__)
_READING = frozenset(("title_key", "chunker"))  # Settings of reading documents


class SireRetriever(DocumentIndex):
    """A LangChain retriever over an index, with any recipe, sync and async, and a `DocumentIndex` for `index()`.

    Use `SireVectorStore` where a chain accepts only a vector store. Documents come back as they were added, with their
    ids and metadata; `metadata["sire"]` adds scores and paths, see `hit_to_langchain`. `invoke` and `ainvoke` take `k`,
    `filter`, `returns`, `recipe`, `as_of` and `max_tokens` for one call. Options are typed keywords, see `options`.

    With `max_tokens` the documents are parts of the best 30 passages that answer the question: the page contents,
    joined by empty lines, have at most so many tokens (words and punctuation marks), and `k` has no effect. Each
    document keeps its id and metadata; `metadata["sire"]["spans"]` says which characters of the passage it quotes.

    `add_documents`, `delete_documents` and `replace_all` index at once. `upsert` and `delete`, which LangChain's
    `index()` calls with batches, store changes first (on disk, if the index has a folder), as trees and aggregates
    depend on the whole corpus; the next search of any object in any process indexes them, or `flush`, or the end of
    `with retriever.bulk():`. The first documents of a new folder are indexed at once.

    Attributes:
        index: The index.
        k: Number of documents; fewer are returned only if fewer match the filter. Also `top_k`.
        filter: A filter on document metadata for every call. The filter of a call can only narrow it.
        returns: "passages" returns the added documents; "units" also summaries, aggregates and reports, with the
            metadata that all their source passages share.
        as_of: A day such as "2026-01-31", see `Index.search`.
        max_tokens: Tokens of all page contents together; None returns `k` whole documents.
        context_options: A reranker of blocks, or another way to count tokens; see `ContextOptions`.
        search_type: As in `as_retriever` of a vector store: `similarity`, the recipe's order; `mmr`, those of the
            recipe's best that are unlike one another; `similarity_score_threshold`, only documents with at least this
            cosine similarity to the question, which is their score then. `max_tokens` needs `similarity`.
        search_kwargs: `k`, `filter`, `returns`, `recipe`, `as_of` and `max_tokens`; `fetch_k` and `lambda_mult` with
            `mmr`; `score_threshold` with `similarity_score_threshold`.
        title_key: Metadata key with the title of added documents, or a list of keys with its headings, outermost first,
            as in `headers_to_split_on` of a splitter. Saved in the folder, and read from there if it is not given.

    Options given to the class are stored in the folder of the index with the documents that this object adds.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: Index
    k: int = 4
    filter: Any = None
    returns: str = "passages"
    as_of: Day = None
    search_type: str = "similarity"
    max_tokens: int | None = None
    context_options: Any = ContextOptions()
    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    title_key: str | list[str] = "title"

    has_search_types: ClassVar[bool] = True

    _params: LangSmithRetrieverParams | None = PrivateAttr(default=None)
    _is_writer: bool = PrivateAttr(default=False)
    _to_store: frozenset[str] = PrivateAttr()  # Names of settings that the folder gets with the next change
    _file_titles: FileTitles = PrivateAttr()

    if TYPE_CHECKING:  # the methods of pydantic and LangChain take keywords of any name and type

        def __init__(self, *, index: Index, **fields: Unpack[RetrieverFields]) -> None:
            """Make a retriever; `ConfigurationError` for a field that no search can use."""

        def invoke(  # type: ignore[override]
            self, input: str, config: RunnableConfig | None = None, **options: Unpack[CallOptions]
        ) -> list[Document]:
            """The documents for a question."""

        async def ainvoke(  # type: ignore[override]
            self, input: str, config: RunnableConfig | None = None, **options: Unpack[CallOptions]
        ) -> list[Document]:
            """See `invoke`."""

    else:

        def __init__(self, **fields: Any) -> None:
            try:
                super().__init__(**fields)
            except ValidationError as error:
                raise plain_error(type(self).__name__, error) from error

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        """Refuse a keyword that is none, with the nearest one that is; read titles as the folder's documents were."""
        if not isinstance(values, Mapping):
            return values
        for word in ("path", "folder", "persist_directory", "persist_dir"):
            if word in values and "index" not in values:
                called = cls.__name__
                raise TypeError(f"{called}() has no argument {word!r}; use {called}.load({values[word]!r}).")
        fields = named(cls.__name__, values, cls.model_fields, SPELLINGS)
        saved = SETTINGS.read(fields["index"].path) if isinstance(fields.get("index"), Index) else {}
        return {"title_key": saved["title_key"], **fields} if "title_key" in saved else fields

    _check_context_options = field_validator("context_options")(check_options)

    @field_validator("search_kwargs")
    @classmethod
    def _searchable(cls, value: dict[str, Any]) -> dict[str, Any]:
        return named("search_kwargs", value, _SEARCH_KWARGS, SPELLINGS)

    @model_validator(mode="after")
    def _possible_search(self) -> Self:
        check_search_type(self.search_type, {"max_tokens": self.max_tokens, **self.search_kwargs})
        self.check_search({})
        return self

    def check_search(self, options: Mapping[str, Any]) -> None:
        """Refuse options that no search can use, and a recipe that the index does not hold."""
        search = self.asked(options)
        self.searched(search)
        check_search_options(**{name: value for name, value in search.items() if name != "recipe"})

    def model_post_init(self, context: Any, /) -> None:
        """Titles of files are followed by this object alone."""
        super().model_post_init(context)
        self._to_store = self._given_names - {"title_key"}
        self._file_titles = FileTitles(self.title_key, self.index)

    # --- making -----------------------------------------------------------------------------------------------------

    @classmethod
    @lists_options(AddOptions)
    def from_documents(
        cls, documents: Documents, embedding: EmbeddingLike = None, **options: Unpack[AddOptions]
    ) -> Self:
        """Add documents to a new or existing index, and return a retriever over it.

        Each document is one passage, as in every LangChain vector store: split documents first, or pass
        `chunker="sentences"`. In an existing index, documents are added, or replaced if their id is known, and nothing
        else changes; see also `replace_all`.

        Args:
            documents: Not modified; also those of `sire_core.files.readers.read_documents`. A document without an id
                gets one computed from its content.
            embedding: LangChain `Embeddings` or an `Embedder` (also as `embedder` or `embeddings`); None means what the
                folder was built with, or the default, which needs no download.
            **options: `ids` and `replace_source` (see `add_documents`), `path` (the index folder; without it, the index
                is in memory), `recipe` (a name or a `Recipe`; by default that of the folder's first build, see
                `Index.set_default_recipe`, or `sire`), `llm` (a LangChain chat model or a `LanguageModel`; without one,
                no model is called), settings of the recipe (`ranker="hybrid"`, `rerank="colbert:NAME"`, or all in
                `recipe_settings={...}`), `vector_store` (or a `VectorStoreMirror` of it), which is kept up to date and
                searched; fields of the class (`k`, `filter`, `search_kwargs`, `title_key`, ...), `show_progress=True`
                for progress bars, and arguments of `Index`: `chunker`, `seed`, `workers`, `limits` and others.

        Raises:
            CorpusError: Documents contradict each other, or have metadata that is not JSON.
            BuildError: Too many passages failed.
            TypeError: An argument is unknown.
        """
        retriever, how = cls._to_add("from_documents", {"embedding": embedding, **options})
        names = retriever.add_documents(documents, **how)
        return retriever._after_adding("from_documents", names)  # noqa: SLF001 - its own

    @classmethod
    @lists_options(AddOptions)
    async def afrom_documents(
        cls, documents: Documents, embedding: EmbeddingLike = None, **options: Unpack[AddOptions]
    ) -> Self:
        """See `from_documents`."""
        retriever, how = cls._to_add("afrom_documents", {"embedding": embedding, **options})
        names = await retriever.aadd_documents(documents, **how)
        return retriever._after_adding("afrom_documents", names)  # noqa: SLF001 - its own

    @classmethod
    def _to_add(cls, method: str, arguments: dict[str, Any]) -> tuple[Self, dict[str, Any]]:
        """A retriever, and options of `add_documents`."""
        how: dict[str, Any] = {name: arguments.pop(name) for name in ("ids", "replace_source") if name in arguments}
        return cls._over(f"{cls.__name__}.{method}", arguments), how

    def _after_adding(self, method: str, ids: Sequence[str]) -> Self:
        if not ids:
            warn_of_no_documents(self.index, f"{type(self).__name__}.{method}", "add_documents")
        return self

    @classmethod
    @lists_options(AddOptions)
    def from_texts(
        cls,
        texts: Iterable[str],
        embedding: EmbeddingLike = None,
        metadatas: Metadatas = None,
        **options: Unpack[AddOptions],
    ) -> Self:
        """Add texts; `metadatas` and `ids` are parallel lists. Otherwise like `from_documents`."""
        return cls.from_documents(from_texts(texts, metadatas, options.pop("ids", None)), embedding, **options)

    @classmethod
    @lists_options(AddOptions)
    async def afrom_texts(
        cls,
        texts: Iterable[str],
        embedding: EmbeddingLike = None,
        metadatas: Metadatas = None,
        **options: Unpack[AddOptions],
    ) -> Self:
        """See `from_texts`."""
        return await cls.afrom_documents(from_texts(texts, metadatas, options.pop("ids", None)), embedding, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the index into a new folder. An index with a `path` is already saved.

        Raises:
            StorageError: The folder is not empty.
        """
        self.index.save(path)
        self._save_settings(Path(path), self._given_names | _READING)

    def _save_settings(self, folder: Path | None, names: Collection[str]) -> None:
        """Store the options of a search that were given, and how documents are read."""
        if folder is None:
            return
        search = self.asked({})
        plain = {name: search[name] for name in ("k", "returns", "max_tokens")}
        plain |= {name: value for name, value in self.search_options().items() if name in SEARCH_TYPE_OPTIONS}
        options = search_settings(search["filter"], search["as_of"], search_type=self.search_type, **plain)
        reading = reading_settings(self.title_key, self.index.chunker)
        SETTINGS.update(folder, {**options, **reading}, names, otherwise=reading)

    @classmethod
    @lists_options(LoadOptions)
    def load(
        cls, path: str | os.PathLike[str], embedding: EmbeddingLike = None, **options: Unpack[LoadOptions]
    ) -> Self:
        """Open a folder written by `save`, `from_documents(path=...)` or the command line.

        Args:
            path: The folder.
            embedding: The embedder that the index was built with; not needed for the default and for named embedders.
            **options: As in `from_documents`: `llm` for recipes that call a model during a search, and for adding
                documents later; `recipe`, another one of the folder. Defaults of `k`, `filter`, `returns`, `as_of`,
                `max_tokens`, `search_type` with its `search_kwargs`, `title_key` and `chunker` are the values that
                `from_documents` or `save` stored (of `max_tokens` and `search_type`, if neither is given);
                `filter=None`, `as_of=None` and `max_tokens=None` drop them. What is given here is not stored.

        Raises:
            IndexMissingError: There is no index.
            EmbedderMismatchError: It was built with another embedder.
            ConfigurationError: It does not have this recipe.
        """
        retriever = cls._over(f"{cls.__name__}.load", {"embedding": embedding, "path": path, **options})
        try:
            check_length(retriever.index.snapshot().view, "langchain:")
        except IndexMissingError as error:
            advice = f"Make one: {cls.__name__}.from_documents(documents, path='{{folder}}')."
            raise IndexMissingError.of(path, advice) from error
        retriever._to_store = frozenset()  # noqa: SLF001 - its own
        catch_up(retriever.index.push)
        return retriever

    @classmethod
    @lists_options(LoadOptions)
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        embedding: EmbeddingLike = None,
        **options: Unpack[LoadOptions],
    ) -> Self:
        """A retriever over a new or existing folder, or in memory, to add documents to.

        Args:
            path: The folder; None keeps everything in memory.
            embedding: As in `from_documents`.
            **options: As in `from_documents`, for example `chunker="sentences"` to split whole documents. The folder
                stores them with the first documents that are added; those that it stores already are defaults here.
        """
        arguments = {"embedding": embedding, "path": path, **options}
        return cls._over(f"{cls.__name__}.open", arguments, is_writer=True)

    @classmethod
    def _over(cls, called: str, arguments: Mapping[str, Any], *, is_writer: bool = False) -> Self:
        # An index has its model as `llm`.
        field_names = [name for name in cls.model_fields if name not in ("index", "llm")]
        index, fields = open_index(called, arguments, field_names)
        stored = read_search(index.path, arguments)
        if not cls.has_search_types:
            stored = {name: value for name, value in stored.items() if name not in ("search_type", "search_kwargs")}
        retriever = cls(index=index, **{**fields, **stored})
        retriever._is_writer = is_writer
        retriever._to_store |= {*_READING, *(SPELLINGS.get(word, word) for word in arguments)}
        return retriever

    # --- retrieving -------------------------------------------------------------------------------------------------

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        with child_runs(run_manager.get_child()):
            return run_sync(self._found_documents(query, options))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        with child_runs(run_manager.get_child()):
            return await self._found_documents(query, options)

    async def _found_documents(self, query: str, options: Mapping[str, Any]) -> list[Document]:
        """Whole documents, or with `max_tokens` the evidence that fits."""
        search = self.asked(options)
        if search["max_tokens"] is not None:
            check_search_type(self.search_type, {**self.search_options(), "max_tokens": search["max_tokens"]})
        else:
            return [hit_to_langchain(hit) for hit in await self._hits(query, options)]
        index = self.searched(search)
        await self.prepare_search()
        try:
            how = {name: search[name] for name in ("filter", "returns", "as_of")}
            context = await index.acontext(query, search["max_tokens"], options=self.evidence_options, **how)
        except IndexMissingError:
            if not self._is_writer:
                raise
            return []  # nothing was added yet
        return [evidence_to_langchain(one) for one in context.evidence]

    @property
    def evidence_options(self) -> ContextOptions:
        """`context_options`; unless they write the payload themselves, page contents are joined by empty lines."""
        options: ContextOptions = self.context_options
        if options.write is not context_text:
            return options
        return replace(options, write=evidence_text, head=lambda _: "")

    async def _hits(self, query: str, options: Mapping[str, Any]) -> list[Hit]:
        """Hits of `search_type`, with the options of a call, of `search_kwargs` and the fields, in this order."""
        search, kwargs = self.asked(options), self.search_options()
        index, k = self.searched(search), search["k"]
        if self.search_type == "mmr":
            hits = await self._ranked(query, {**search, "k": max(k, kwargs.get("fetch_k", FETCH_K))})
            return await diverse(index, query, hits, k, kwargs.get("lambda_mult", LAMBDA_MULT))
        hits = await self._ranked(query, search)
        if self.search_type == "similarity":
            return hits
        return [h for h in await scored_by_cosine(index, query, hits) if h.score >= kwargs["score_threshold"]]

    async def ranked(self, query: str, options: Mapping[str, Any]) -> list[Hit]:
        """Hits in the recipe's order, whatever the `search_type`."""
        return await self._ranked(query, self.asked(options))

    async def _ranked(self, query: str, search: Mapping[str, Any]) -> list[Hit]:
        index = self.searched(search)
        await self.prepare_search()
        try:
            how = {name: search[name] for name in ("filter", "returns", "as_of")}
            return await index.asearch(query, search["k"], **how)
        except IndexMissingError:
            if not self._is_writer:
                raise
            return []  # nothing was added yet

    async def prepare_search(self) -> bool:
        """Index what this object was given, with its own settings; returns whether the index may still be empty."""
        if self._is_writer:
            with suppress(NoSpaceError):  # the search leaves out what waits, and says so
                await self.aflush()
        return self._is_writer

    def searched(self, search: Mapping[str, Any]) -> Index:
        """The index, with the recipe that was asked for."""
        return self.index.using(search["recipe"]) if search.get("recipe") else self.index

    def asked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options of a search: options of a call, then of `search_kwargs`, then the fields."""
        general = {name: value for name, value in self.search_options().items() if name in _RETRIEVER_SEARCH}
        of_call = self.called(options)
        narrowed = self.narrowed(of_call.get("filter"))
        fields = {name: getattr(self, name) for name in ("k", "returns", "as_of", "max_tokens")}
        return {**fields, **general, **of_call, "filter": narrowed}

    def search_options(self) -> dict[str, Any]:
        """`search_kwargs`, which may have been changed, under our names."""
        return named("search_kwargs", self.search_kwargs, _SEARCH_KWARGS, SPELLINGS)

    @property
    def has_k(self) -> bool:
        """True if a number of documents was given, here or in `search_kwargs`."""
        return "k" in self._given_names

    @property
    def _given_names(self) -> frozenset[str]:
        return frozenset((*self.model_fields_set, *self.search_options()))

    @lists_options(RetrieverFields)
    def as_retriever(self, **fields: Unpack[RetrieverFields]) -> Self:
        """This retriever with other fields: `k`, `returns`, `search_kwargs` and others; a filter can only narrow it."""
        given_fields = named(f"{type(self).__name__}.as_retriever", fields, type(self).model_fields, SPELLINGS)
        mine = {name: getattr(self, name) for name in self.model_fields_set}
        retriever = type(self)(**{**mine, **given_fields, "filter": self.narrowed(given_fields.get("filter"))})
        retriever._is_writer, retriever._to_store = self._is_writer, frozenset()  # noqa: SLF001 - its own
        return retriever

    def called(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options of a call, under our names; None is no option."""
        values = {key: value for key, value in options.items() if value is not None}
        return named(f"{type(self).__name__}.invoke", values, _RETRIEVER_SEARCH, SPELLINGS)

    def narrowed(self, *more: FilterLike) -> Filter | None:
        """The retriever's filters and others: a call, for example of an agent, must not widen what it may see."""
        return reduce(both, map(parse_filter, (self.filter, self.search_options().get("filter"), *more)))

    # --- changing ---------------------------------------------------------------------------------------------------

    def add_documents(self, documents: Documents, *, ids: Ids = None, replace_source: bool = False) -> list[str]:
        """Add documents, or replace those with the same id, like a vector store; returns their ids.

        Args:
            documents: Not modified.
            ids: Replace the documents' own ids; a list as long as that of the documents.
            replace_source: Delete all other documents of the same sources (`source`, else `file_path` in the metadata):
                for files that were split again, whose new chunks may be fewer or have other ids.

        Raises:
            CorpusError: Documents contradict each other, or have metadata that is not JSON; nothing is added.
            BuildError: Too many passages failed.
        """
        return run_sync(self.aadd_documents(documents, ids=ids, replace_source=replace_source))

    async def aadd_documents(self, documents: Documents, *, ids: Ids = None, replace_source: bool = False) -> list[str]:
        """See `add_documents`."""
        documents = documents if ids is None else with_ids(documents, ids)
        converted, names = self._given(documents, "source" if replace_source else "")
        await self._follow(await self.index.aupdate(converted, delete=self._file_titles.dropped))
        return names

    def add_texts(self, texts: Iterable[str], metadatas: Metadatas = None, *, ids: Ids = None) -> list[str]:
        """Add texts; `metadatas` and `ids` are parallel lists. Otherwise like `add_documents`."""
        return self.add_documents(from_texts(texts, metadatas, ids))

    async def aadd_texts(self, texts: Iterable[str], metadatas: Metadatas = None, *, ids: Ids = None) -> list[str]:
        """See `add_texts`."""
        return await self.aadd_documents(from_texts(texts, metadatas, ids))

    def replace_all(self, documents: Documents) -> list[str]:
        """Make the index contain exactly these documents; all others are deleted. Returns their ids."""
        return run_sync(self.areplace_all(documents))

    async def areplace_all(self, documents: Documents) -> list[str]:
        """See `replace_all`."""
        converted, names = self._given(documents, "all")
        await self._follow(await self.index.abuild(converted))
        return names

    def delete_documents(
        self, ids: Iterable[str] | str | None = None, *, filter: FilterLike = None, missing_ok: bool = False
    ) -> BuildReport:
        """Delete documents, by ids or by a filter, and everything derived from them.

        Args:
            ids: Ids of the documents.
            filter: A metadata filter, instead of ids: deletes every matching document that this retriever can find.
                What `allow` hides stays.
            missing_ok: Ignore unknown ids.

        Returns:
            A report of the change; `BuildReport()` if there was nothing to delete.

        Raises:
            ConfigurationError: Neither ids nor a filter, or both, or a filter on a key that no document has.
            CorpusError: An id is unknown; nothing is deleted.
        """
        return run_sync(self.adelete_documents(ids, filter=filter, missing_ok=missing_ok))

    async def adelete_documents(
        self, ids: Iterable[str] | str | None = None, *, filter: FilterLike = None, missing_ok: bool = False
    ) -> BuildReport:
        """See `delete_documents`."""
        if (ids is None) == (filter is None):
            raise ConfigurationError(
                "delete_documents takes ids or a filter, one of the two: delete_documents(['a', 'b']), or "
                "delete_documents(filter='source=manual.md')."
            )
        if ids is None:
            removed_ids = await self._passing(filter)
        else:
            removed_ids = id_list(ids)
        if not removed_ids:
            return BuildReport()
        seen = ids is None  # then what is hidden had no part in the choice
        retitled = self._file_titles.delete(removed_ids)
        report = await self.index.adelete(removed_ids, missing_ok=missing_ok or seen)
        if retitled:
            await self.index.aupdate(retitled)
        await self._follow(report)
        return report

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Documents as they were added, in the order of the ids; unknown ids are ignored."""
        wanted = list(dict.fromkeys(id_list(ids)))
        try:
            by_id = {document.id: document for document in self.index.documents(wanted)}
        except IndexMissingError:
            return []
        return [to_langchain(by_id[name]) for name in wanted if name in by_id]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """See `get_by_ids`."""
        return await asyncio.to_thread(self.get_by_ids, ids)

    async def _passing(self, filter: FilterLike) -> list[str]:
        wanted = self.narrowed(filter)
        assert wanted is not None
        passing_ids: list[str] = []
        seen: set[str] = set()
        for document in await asyncio.to_thread(self.index.documents):
            fields = filter_fields(document)
            seen.update(key for passage in fields for key in passage[0])
            if all(passes(wanted, fields)):
                passing_ids.append(document.id)
        if hint := unknown_keys(wanted, seen):  # everything passes a "not" on a key that nothing has
            raise ConfigurationError(f"Nothing was deleted. {hint}")
        if not passing_ids:
            _logger.warning("Nothing was deleted. %s", await self.index.afilter_hint(wanted))
        return passing_ids

    def _given(self, documents: Documents, replacing: Literal["source", "all", ""] = "") -> tuple[list[Any], list[str]]:
        """Documents to put, with those that change with them; and the ids of those that were given."""
        converted = from_langchain(documents, self.title_key, whole=self.index.chunker is None)
        warn_of_first_cost(self.index, len(converted))
        names = [document.id for document in converted]
        without = [document.id for document in converted if not file_of(document.metadata)]
        if replacing == "source" and without:
            raise ConfigurationError(f"replace_source needs metadata['source'], which {some(without)} has not.")
        return self._file_titles.put(converted, replacing=replacing), names

    async def _follow(self, report: BuildReport) -> None:
        self._file_titles.done()
        self._file_titles.warn_of_old_parts()
        self._save_settings(self.index.path, self._to_store)
        await push_missed(self.index.apush, report)

    def upsert(self, items: Documents, /, *, replace_source: bool = False, **kwargs: Any) -> UpsertResponse:
        """Add documents, or replace those with the same id. Without an id, one is computed from the content.

        `replace_source=True` is that of `add_documents`.

        Raises:
            CorpusError: Metadata that is not JSON, or one id with two contents; nothing is added.
        """
        converted, names = self._given(items, "source" if replace_source else "")
        self.index.defer(converted, delete=self._file_titles.dropped)
        self._file_titles.done()
        self._is_writer = True
        self._save_settings(self.index.path, self._to_store)
        return UpsertResponse(succeeded=names, failed=[])

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> DeleteResponse:
        """Delete documents and everything derived from them. Unknown ids are ignored.

        With `allow`, only the visible passages are deleted, and at once.

        Raises:
            ValueError: No ids were given.
        """
        if ids is None:
            raise ValueError("Name the ids to delete; delete([]) deletes nothing.")
        self._is_writer = True
        removed_ids = [str(document.id) for document in self.get_by_ids(ids)]
        retitled = self._file_titles.delete(removed_ids)
        self.index.defer(retitled, delete=removed_ids)
        self._file_titles.done()
        return DeleteResponse(num_deleted=len(removed_ids), num_failed=0, succeeded=removed_ids, failed=[])

    def flush(self) -> None:
        """Index pending changes. If this fails, nothing is lost: the next search or flush tries again.

        Raises:
            BuildError: Too many passages failed.
            IndexLockedError: Another process is writing.
        """
        run_sync(self.aflush())

    async def aflush(self) -> None:
        """See `flush`."""
        await self.index.aflush()
        self._file_titles.warn_of_old_parts()

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """All changes within the block are indexed together at its end."""
        yield
        self.flush()

    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Documents by id, including pending ones; unknown ids are ignored."""
        return self.get_by_ids(ids)

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        if self._params is None:
            params = super()._get_ls_params(**kwargs)
            params["ls_vector_store_provider"] = "sire"
            try:
                embedder = str(self.index.stats()["embedder"])
            except SireError:  # nothing was built yet: ask again next time
                return params
            provider, _, model = model_name(embedder).rpartition(":")
            self._params = {**params, "ls_embedding_provider": provider or "sire", "ls_embedding_model": model}
        return self._params
