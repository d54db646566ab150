"""`SireRetriever`: an index as a LlamaIndex retriever; and `ConversationRetriever` for follow-up questions."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, TransformComponent
from llama_index.core.settings import Settings
from llama_index_instrumentation import get_dispatcher
from typing_extensions import Unpack

from llama_index_sire.documents import (
    documents_of_texts,
    evidence_content,
    evidence_head,
    evidence_node,
    to_scored_node,
)
from llama_index_sire.embedding import known_query
from llama_index_sire.filters import FilterLike, both_filters, to_filter, within
from llama_index_sire.index_documents import READING, IndexDocuments, Nodes
from llama_index_sire.language_model import LlamaIndexModel
from llama_index_sire.opening import (
    FIELDS,
    SEARCH_FIELDS,
    SETTINGS,
    SPELLINGS,
    open_index,
    read_arguments,
)
from llama_index_sire.options import (
    ChatEngineOptions,
    DocumentsOptions,
    OpenOptions,
    QueryEngineOptions,
    ViewOptions,
)
from sire_core.arguments import check_choice, explains_keywords, lists_options, named, parameters
from sire_core.changes.app_settings import search_settings
from sire_core.changes.mirroring import catch_up
from sire_core.errors import ConfigurationError, IndexMissingError
from sire_core.index import Index, warn_of_no_documents
from sire_core.models.embedders import check_length
from sire_core.models.sync import run_sync
from sire_core.search.context import ContextOptions, check_options, context_text
from sire_core.search.history import standalone_question
from sire_core.search.search_options import SearchOptions, check_count, check_search_options
from sire_core.search.validity import Day
from sire_core.types import Hit

SCORES = ("recipe", "similarity")  # Meanings of the scores of nodes

_CHAT_ENGINES = {
    "condense_plus_context": "CondensePlusContextChatEngine",
    "best": "CondensePlusContextChatEngine",
    "context": "ContextChatEngine",
    "condense_question": "CondenseQuestionChatEngine",
}
"""Classes of LlamaIndex by mode."""

dispatcher = get_dispatcher(__name__)

_log = logging.getLogger(__name__)


class SireRetriever(IndexDocuments, BaseRetriever):
    """A LlamaIndex retriever over an index; use it instead of `index.as_retriever()`.

    Nodes come back as they were added, with their classes, ids, metadata, character offsets and relationships; whole
    documents are split by the index. `insert`, `refresh`, `delete`, `persist` and their kin are described at
    `IndexDocuments`. The sources of a node are in `metadata["sire_doc_ids"]` and
    `metadata["sire_chunk_ids"]` (lists). Scores are positive (zero and below become 0.000001, because LlamaIndex
    reads a score of 0.0 as 1.0) and in descending order, except with `scores="similarity"`.

    Args:
        index: An index of the core; see `from_documents` and `from_persist_dir`.
        similarity_top_k: Number of nodes.
        filters: `MetadataFilters` or a filter of the core, on the metadata and the ids (`ref_doc_id`, `doc_id`,
            `node_id`) of nodes. A derived node matches only if all its source passages match.
        doc_ids: Return only nodes of these documents.
        node_ids: Return only these nodes.
        returns: "passages", or "units": also summaries, aggregates and reports, with the metadata that all their source
            passages share.
        scores: "recipe": those of the recipe, without a fixed scale; "similarity": cosine similarities to the question
            from 0 to 1, for cut-offs such as `SimilarityPostprocessor`; the order stays that of the recipe.
        as_of: A day such as "2026-01-31": leaves out nodes of a later date, see `Index.search`.
        max_tokens: Return the parts of the best 30 passages that answer the question: their contents with metadata, as
            LlamaIndex writes them for a model, joined by empty lines, have at most so many tokens (words and
            punctuation marks). Values of more than eight tokens (paths, addresses), but titles, are among the
            `excluded_llm_metadata_keys` of these nodes. `similarity_top_k` has no effect then; ids and metadata are
            those of the whole nodes, character offsets and `metadata["sire_spans"]` those of the quotes. None returns
            whole nodes.
        context_options: With `max_tokens`, a reranker of blocks, or another way to count tokens; see `ContextOptions`.
        recipe: Name of a recipe in the index; None uses that of the index.
        title_key: Metadata key with the title of added documents, or a list of keys with its headings, outermost first.
            None means the one saved in the folder of the index, else "title".
        transformations: Split added documents, such as `[SentenceSplitter()]`; None leaves that to the index.
        callback_manager: Default: `Settings.callback_manager`.
        object_map: For recursive retrieval: the objects of `IndexNode`s by `index_id`, such as another retriever.
        objects: The same as `IndexNode`s with their objects, instead of `object_map`.
        verbose: Print the objects that recursive retrieval uses.

    Options given to the class are stored in the folder of the index with the documents that this object adds.

    Raises:
        ConfigurationError: `index` is not an index, `similarity_top_k` is below one, or a filter cannot be translated.
    """

    @explains_keywords(SPELLINGS)
    def __init__(
        self,
        index: Index,
        *,
        similarity_top_k: int = 10,
        filters: FilterLike = None,
        doc_ids: Collection[str] | None = None,
        node_ids: Collection[str] | None = None,
        returns: Literal["passages", "units"] = "passages",
        scores: Literal["recipe", "similarity"] = "recipe",
        as_of: Day = None,
        max_tokens: int | None = None,
        context_options: ContextOptions | None = None,
        recipe: str | None = None,
        title_key: str | Sequence[str] | None = None,
        transformations: Sequence[TransformComponent] | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        if not callable(getattr(index, "search", None)):
            raise ConfigurationError(
                f"index is an Index, not {type(index).__name__}; from_documents makes one, from_persist_dir opens one."
            )
        filters = within(filters, doc_ids, node_ids)
        # What no search can use is refused here, not by the first one.
        check_count("similarity_top_k", similarity_top_k, ConfigurationError)
        search: SearchOptions = {"filter": to_filter(filters), "returns": returns, "as_of": as_of}
        check_search_options(**search, max_tokens=max_tokens)
        check_choice("scores", scores, SCORES)
        if not all(isinstance(each, TransformComponent) for each in transformations or ()):
            raise ConfigurationError(
                f"transformations is a list such as [SentenceSplitter()], not {transformations!r:.100}."
            )
        if max_tokens is not None:
            check_options(context_options or ContextOptions())
            if scores == "similarity":
                raise ConfigurationError("scores='similarity' is for whole nodes: leave max_tokens out.")
        elif context_options is not None:
            raise ConfigurationError("context_options has no effect without max_tokens.")
        self.max_tokens = max_tokens
        self.context_options = context_options
        self.index = index
        self.similarity_top_k = similarity_top_k
        self.filters = filters
        self.returns = returns
        self.scores = scores
        self.as_of = as_of
        self.recipe = recipe
        self.searched()
        saved: str | Sequence[str] = SETTINGS.read(index.path).get("title_key", "title")
        self.title_key = saved if title_key is None else title_key
        self.transformations = transformations
        self._to_store = [name for name, value in self._search_settings().items() if value is not None]
        self._open_documents()
        super().__init__(
            callback_manager=callback_manager or Settings.callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )

    # --- making one -------------------------------------------------------------------------------------------------

    @classmethod
    @lists_options(DocumentsOptions)
    def from_documents(cls, documents: Nodes, **options: Unpack[DocumentsOptions]) -> SireRetriever:
        """Add documents to a new or existing index, and return a retriever over it.

        In an existing index, documents are added, or replaced if their id is known, and nothing else changes; see also
        `replace_all`.

        Args:
            documents: Documents, also those of `sire_core.files.readers.read_documents`, or nodes from a splitter,
                which are not split again.
            **options: `ids` (replace those of the documents or nodes), `replace_source` (see `refresh`), `persist_dir`
                (the index folder; without it, the index is in memory), `recipe` (a name or a `Recipe`; by default that
                of the folder, see `Index.set_default_recipe`, or `sire`), `llm` (also `extraction_llm`, see
                `resolve_llm`; without one, no model is called), settings of the recipe (`ranker="hybrid"`,
                `rerank="colbert:NAME"`, or all in `recipe_settings={...}`), `embed_model` (see `resolve_embed_model`),
                `vector_store` (your store, or a `VectorStoreMirror` of it, which is kept up to date and searched),
                `show_progress=True` for progress bars, arguments of the class (`similarity_top_k`, `filters`,
                `transformations`, ...) and of `sire_core.Index`: `chunker`, `seed`, `workers`, `limits` and others. All
                are typed, see `options`.

        Raises:
            CorpusError: Documents contradict each other, or have metadata that is not JSON.
            BuildError: Too many passages failed.
            TypeError: An argument is unknown.
        """
        return run_sync(cls._afrom_documents("from_documents", documents, options))

    @classmethod
    @lists_options(DocumentsOptions)
    async def afrom_documents(cls, documents: Nodes, **options: Unpack[DocumentsOptions]) -> SireRetriever:
        """See `from_documents`."""
        return await cls._afrom_documents("afrom_documents", documents, options)

    @classmethod
    @lists_options(DocumentsOptions)
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        **options: Unpack[DocumentsOptions],
    ) -> SireRetriever:
        """Add texts as documents; `metadatas` and `ids` are parallel lists. Otherwise like `from_documents`."""
        return cls.from_documents(documents_of_texts(texts, metadatas, options.pop("ids", None)), **options)

    @classmethod
    @lists_options(DocumentsOptions)
    async def afrom_texts(
        cls,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        **options: Unpack[DocumentsOptions],
    ) -> SireRetriever:
        """See `from_texts`."""
        return await cls.afrom_documents(documents_of_texts(texts, metadatas, options.pop("ids", None)), **options)

    @classmethod
    async def _afrom_documents(cls, called: str, documents: Nodes, options: DocumentsOptions) -> SireRetriever:
        own_options: dict[str, Any] = {**options}
        how = {name: own_options.pop(name) for name in ("ids", "replace_source") if name in own_options}
        settings, fields = read_arguments(f"{cls.__name__}.{called}", own_options)
        index = open_index(**settings)
        retriever = cls(index, **{**SETTINGS.search_options(index.path, fields), **fields})
        retriever._to_store = (*fields, *retriever._to_store, *READING)
        report = await retriever.arefresh(documents, **how)
        if not (report.added or report.updated or report.unchanged):
            warn_of_no_documents(index, f"{cls.__name__}.{called}", "insert")
        return retriever

    @classmethod
    @lists_options(OpenOptions)
    def from_persist_dir(cls, persist_dir: str | os.PathLike[str], **options: Unpack[OpenOptions]) -> SireRetriever:
        """Open a folder written by `persist` or `from_documents(persist_dir=...)`.

        Args:
            persist_dir: The index folder.
            **options: As in `from_documents`. Defaults of `similarity_top_k`, `filters`, `returns`, `scores`, `as_of`,
                `max_tokens`, `title_key` and `chunker` are the values that `from_documents` or `persist` stored (of
                `scores` and `max_tokens`, if neither is given).
                What is given here is not stored.
                `embed_model` is needed unless the index was built with the core's default embedder, or it is set in
                `Settings`.

        Raises:
            IndexMissingError: There is no index.
            EmbedderMismatchError: The index was built with another embedding model.
            TypeError: An argument is unknown.
        """
        try:
            with Index(persist_dir) as index:
                index.stats()
        except IndexMissingError as error:
            advice = f"Make one: {cls.__name__}.from_documents(documents, persist_dir='{{folder}}')."
            raise IndexMissingError.of(persist_dir, advice) from error
        settings, fields = read_arguments(f"{cls.__name__}.from_persist_dir", {**options, "persist_dir": persist_dir})
        retriever = cls(open_index(**settings), **{**SETTINGS.search_options(persist_dir, fields), **fields})
        # Another embedder or recipe is said here, not by the first search.
        check_length(retriever.searched().snapshot().view, "llama-index:")
        retriever._to_store = ()
        catch_up(retriever.index.push)
        return retriever

    def _search_settings(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in ("similarity_top_k", "returns", "scores", "max_tokens")}
        return search_settings(to_filter(self.filters), self.as_of, key="filters", **plain)

    # --- retrieving -------------------------------------------------------------------------------------------------

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with known_query(query_bundle):
            return run_sync(self._found_nodes(query_bundle.query_str))

    # The base class gives a span to abstract methods only, and runs the sync method on the loop.
    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with known_query(query_bundle):
            return await self._found_nodes(query_bundle.query_str)

    async def _found_nodes(self, query: str) -> list[NodeWithScore]:
        """Whole nodes, or with `max_tokens` the evidence that fits."""
        if self.max_tokens is None:
            return [to_scored_node(hit) for hit in await self._hits(query)]
        options = self.context_options or ContextOptions()
        if options.write is context_text:
            options = replace(options, write=evidence_content, head=evidence_head)
        search: SearchOptions = {"filter": to_filter(self.filters), "returns": self.returns, "as_of": self.as_of}
        context = await self.searched().acontext(query, self.max_tokens, options=options, **search)
        return [evidence_node(one) for one in context.evidence]

    async def _hits(self, query: str) -> list[Hit]:
        k, filter, index = self.similarity_top_k, to_filter(self.filters), self.searched()
        if self.scores == "recipe":
            return await index.asearch(query, k, filter=filter, returns=self.returns, as_of=self.as_of)
        snapshot = await index.asnapshot(filter=filter, as_of=self.as_of)
        snapshot = replace(snapshot, view=await snapshot.view.asking([query]))  # embedded once
        return await snapshot.scored_by_cosine(query, await snapshot.asearch(query, k, returns=self.returns))

    def searched(self) -> Index:
        """The index, with the recipe of this retriever."""
        return self.index if self.recipe is None else self.index.using(self.recipe)

    def narrowed(
        self, similarity_top_k: int | None, filters: FilterLike, as_of: Day = None, **fields: Any
    ) -> SireRetriever:
        """This retriever with another number of nodes or day; a filter can only narrow what it returns."""
        fields = fields if as_of is None else {**fields, "as_of": as_of}
        mine = {name: getattr(self, name) for name in (*FIELDS, "recipe") if hasattr(self, name)}
        mine["verbose"] = self._verbose
        k = self.similarity_top_k if similarity_top_k is None else similarity_top_k
        retriever = SireRetriever(
            self.index, **{**mine, **fields, "similarity_top_k": k, "filters": both_filters(self.filters, filters)}
        )
        retriever._to_store = ()
        return retriever

    @lists_options(ViewOptions)
    def as_retriever(self, **options: Unpack[ViewOptions]) -> SireRetriever:
        """This retriever with other settings: `similarity_top_k`, `recipe`, `returns`, `scores`; filters narrow it."""
        fields = named("SireRetriever.as_retriever", options, (*FIELDS, "recipe"), SPELLINGS)
        return self.narrowed(fields.pop("similarity_top_k", None), fields.pop("filters", None), **fields)

    # --- engines ----------------------------------------------------------------------------------------------------

    @lists_options(QueryEngineOptions)
    def as_query_engine(
        self, *, similarity_top_k: int | None = None, **kwargs: Unpack[QueryEngineOptions]
    ) -> RetrieverQueryEngine:
        """A query engine over this retriever.

        Args:
            similarity_top_k: How many nodes; None takes the retriever's.
            **kwargs: `filters`, `doc_ids` and `node_ids`, which narrow the retriever's, `recipe`, `returns`, `scores`,
                and arguments of `RetrieverQueryEngine.from_args`. Without an `llm`, the model of the index answers, if
                it is a LlamaIndex LLM.

        Raises:
            TypeError: An argument is unknown, or was given twice.
        """
        make = RetrieverQueryEngine.from_args
        retriever, arguments = self._parted("as_query_engine", similarity_top_k, kwargs, parameters(make))
        return make(retriever, **arguments)

    @lists_options(ChatEngineOptions)
    def as_chat_engine(
        self,
        chat_mode: str = "condense_plus_context",
        *,
        similarity_top_k: int | None = None,
        **kwargs: Unpack[ChatEngineOptions],
    ) -> BaseChatEngine:
        """A chat engine over this retriever.

        Args:
            chat_mode: `condense_plus_context` (also `best`), `context` or `condense_question`. `context`, and the first
                one with `skip_condense=True`, search for a follow-up question with the names and words of earlier
                turns that it refers to; the others let the model rewrite it.
            similarity_top_k: How many nodes; None takes the retriever's.
            **kwargs: `filters` and the like, as in `as_query_engine`, and arguments of the engine's `from_defaults`:
                `llm`, `memory`, `system_prompt` and others; of `condense_question` those of its query engine, too.

        Raises:
            ConfigurationError: There is no such mode.
            TypeError: An argument is unknown in this mode, or was given twice.
        """
        from llama_index.core import chat_engine

        mode = str(getattr(chat_mode, "value", chat_mode))
        if mode not in _CHAT_ENGINES:
            raise ConfigurationError(
                "chat_mode is 'condense_plus_context', 'context' or 'condense_question', not "
                f"{chat_mode!r}. For agents there is create_sire_tool."
            )
        make = getattr(chat_engine, _CHAT_ENGINES[mode]).from_defaults
        chats, queries = parameters(make), parameters(RetrieverQueryEngine.from_args)
        over_queries = "query_engine" in chats
        retriever, arguments = self._parted(
            "as_chat_engine", similarity_top_k, kwargs, (*chats, *queries) if over_queries else chats
        )
        if mode == "context" or arguments.get("skip_condense"):
            turns, llm = list(arguments.pop("chat_history", None) or ()), arguments.get("llm") or Settings.llm
            memory = arguments.setdefault("memory", ChatMemoryBuffer.from_defaults(turns, llm))
            return cast("BaseChatEngine", make(retriever=ConversationRetriever(retriever, memory), **arguments))
        if not over_queries:
            return cast("BaseChatEngine", make(retriever=retriever, **arguments))
        engine = RetrieverQueryEngine.from_args(retriever, **{k: v for k, v in arguments.items() if k in queries})
        return cast("BaseChatEngine", make(query_engine=engine, **{k: v for k, v in arguments.items() if k in chats}))

    def _parted(
        self, called: str, similarity_top_k: int | None, options: Mapping[str, Any], of_engine: Sequence[str]
    ) -> tuple[SireRetriever, dict[str, Any]]:
        """This retriever as some options say, and those of the engine; the engines themselves drop what is unknown."""
        of_engine = [name for name in of_engine if name not in ("retriever", "query_engine")]
        if similarity_top_k is not None:
            options = {"similarity_top_k": similarity_top_k, **options}
        named_arguments = named(called, options, ("similarity_top_k", "verbose", *SEARCH_FIELDS, *of_engine), SPELLINGS)
        engine_arguments = {name: named_arguments.pop(name) for name in of_engine if name in named_arguments}
        model = self.index.language_model
        if isinstance(model, LlamaIndexModel):
            engine_arguments.setdefault("llm", model.llm)
        return (self.as_retriever(**named_arguments) if named_arguments else self), engine_arguments


class ConversationRetriever(BaseRetriever):
    """Searches for a follow-up question with the names and words that it refers to, without a model.

    For chat engines that search for the last message as it is:
    `ContextChatEngine.from_defaults(ConversationRetriever(retriever, memory), memory=memory, llm=llm)`.

    Args:
        retriever: Any retriever of LlamaIndex.
        memory: The memory of the chat engine.
    """

    def __init__(self, retriever: BaseRetriever, memory: BaseMemory) -> None:
        self._searched, self._memory = retriever, memory
        super().__init__(callback_manager=retriever.callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._searched.retrieve(standalone_question(query_bundle.query_str, self._memory.get_all()))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        history = await self._memory.aget_all()
        return await self._searched.aretrieve(standalone_question(query_bundle.query_str, history))
