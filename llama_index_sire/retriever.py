"""`SireRetriever`: an index as a LlamaIndex retriever; and `ConversationRetriever` for follow-up questions."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle, TransformComponent
from llama_index.core.settings import Settings
from llama_index.core.storage.docstore.types import RefDocInfo
from llama_index_instrumentation import get_dispatcher

from llama_index_sire.documents import (
    as_nodes,
    cut,
    documents_of_texts,
    evidence_content,
    evidence_head,
    evidence_node,
    fingerprint,
    passage_node,
    to_scored_node,
    with_ids,
)
from llama_index_sire.embedding import known_query
from llama_index_sire.filters import FilterLike, both_filters, passage_ids, to_filter, within
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
    TextsOptions,
    ViewOptions,
)
from sire_core.arguments import check_choice, explains_keywords, lists_options, named, parameters
from sire_core.changes.app_settings import reading_settings, search_settings
from sire_core.changes.file_titles import FileTitles
from sire_core.changes.mirroring import catch_up, push_missed
from sire_core.documents.chunker import stored_chunker
from sire_core.errors import ConfigurationError, IndexMissingError, KnownDocumentError, StorageError
from sire_core.filters import Condition, FilterGroup
from sire_core.index import Index, warn_of_first_cost
from sire_core.models.embedders import check_length
from sire_core.models.sync import run_sync
from sire_core.search.context import ContextOptions, check_options, context_text
from sire_core.search.history import standalone_question
from sire_core.search.search_options import SearchOptions, check_count, check_search_options
from sire_core.search.validity import Day
from sire_core.storage.index_files import read_manifest
from sire_core.types import Document, to_uuid

if TYPE_CHECKING:
    from llama_index.core.chat_engine.types import BaseChatEngine
    from typing_extensions import Unpack

    from sire_core.documents.chunker import SentenceChunker
    from sire_core.types import BuildReport, Hit


SCORES = ("recipe", "similarity")
"""Meanings of the scores of nodes."""

Nodes = BaseNode | Document | Iterable[BaseNode | Document]

_CHAT_ENGINES = {
    "condense_plus_context": "CondensePlusContextChatEngine",
    "best": "CondensePlusContextChatEngine",
    "context": "ContextChatEngine",
    "condense_question": "CondenseQuestionChatEngine",
}
"""Classes of LlamaIndex by mode."""

dispatcher = get_dispatcher(__name__)

_log = logging.getLogger(__name__)


class SireRetriever(BaseRetriever):
    """A LlamaIndex retriever over an index; use it instead of `index.as_retriever()`.

    Nodes come back as they were added, with their classes, ids, metadata, character offsets and relationships; whole
    documents are split by the index. The sources of a node are in `metadata["sire_doc_ids"]` and
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
            punctuation marks). `similarity_top_k` has no effect then; ids and metadata are those of the whole nodes,
            character offsets and `metadata["sire_spans"]` those of the quotes. None returns whole nodes.
        context_options: With `max_tokens`, a reranker of blocks, or another way to count tokens; see `ContextOptions`.
        recipe: Name of a recipe in the index; None uses that of the index.
        title_key: Metadata key with the title of added documents, or a list of keys with its headings, outermost first.
            None means the one saved in the folder of the index, else "title".
        transformations: Split added documents, such as `[SentenceSplitter()]`; None leaves that to the index.
        callback_manager: Default: `Settings.callback_manager`.
        object_map: For recursive retrieval: the objects of `IndexNode`s by `index_id`, such as another retriever.
        objects: The same as `IndexNode`s with their objects, instead of `object_map`.
        verbose: Print the objects that recursive retrieval uses.

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
        self._persisted: dict[str, object] = {}
        self._file_titles = FileTitles(self.title_key, index)
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
            **options: `ids` (replace those of the documents or nodes), `persist_dir` (the index folder; without it, the
                index is in memory), `recipe` (a name or a `Recipe`; by default that of the folder, see
                `Index.set_default_recipe`, or `sire`), `llm` (also `extraction_llm`, see `resolve_llm`; without one, no
                model is called), settings of the recipe (`ranker="hybrid"`, `rerank="colbert:NAME"`, or all in
                `recipe_settings={...}`), `embed_model` (see `resolve_embed_model`), `vector_store` (your store, or a
                `VectorStoreMirror` of it, which is kept up to date and searched), `show_progress=True` for progress
                bars, arguments of the class (`similarity_top_k`, `filters`, `transformations`, ...) and of
                `sire_core.Index`: `chunker`, `seed`, `workers`, `limits` and others. All are typed, see `options`.

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
    @lists_options(TextsOptions)
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str] | None = None,
        **options: Unpack[TextsOptions],
    ) -> SireRetriever:
        """Add texts as documents; `metadatas` and `ids` are parallel lists. Otherwise like `from_documents`."""
        return cls.from_documents(documents_of_texts(texts, metadatas, ids), ids=None, **options)

    @classmethod
    @lists_options(TextsOptions)
    async def afrom_texts(
        cls,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str] | None = None,
        **options: Unpack[TextsOptions],
    ) -> SireRetriever:
        """See `from_texts`."""
        return await cls.afrom_documents(documents_of_texts(texts, metadatas, ids), ids=None, **options)

    @classmethod
    async def _afrom_documents(cls, called: str, documents: Nodes, options: DocumentsOptions) -> SireRetriever:
        own_options: dict[str, Any] = {**options}
        ids = own_options.pop("ids", None)
        settings, fields = read_arguments(f"{cls.__name__}.{called}", own_options)
        index = open_index(**settings)
        retriever = cls(index, **{**SETTINGS.search_options(index.path, fields), **fields})
        await retriever.arefresh(documents, ids=ids)
        if retriever.index.path is not None:
            retriever._save_settings(retriever.index.path)
        return retriever

    @classmethod
    @lists_options(OpenOptions)
    def from_persist_dir(cls, persist_dir: str | os.PathLike[str], **options: Unpack[OpenOptions]) -> SireRetriever:
        """Open a folder written by `persist` or `from_documents(persist_dir=...)`.

        Args:
            persist_dir: The index folder.
            **options: As in `from_documents`. Defaults of `similarity_top_k`, `filters`, `returns`, `scores`, `as_of`,
                `title_key` and `chunker` are the values that `from_documents` or `persist` stored.
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
        catch_up(retriever.index.push)
        return retriever

    def persist(self, persist_dir: str | os.PathLike[str]) -> None:
        """Write the index and the retriever's settings into a folder; a later call replaces this copy.

        Raises:
            StorageError: The folder contains another index, or the copy was changed in the meantime.
        """
        folder = Path(persist_dir)
        if self.index.path is None or self.index.path.resolve() != folder.resolve():
            name = str(folder.resolve())
            if name in self._persisted:
                self._replace_copy(folder.resolve(), self._persisted[name])
            else:
                self.index.save(folder)
            self._persisted[name] = _state(folder)
        self._save_settings(folder)

    def _replace_copy(self, folder: Path, state: object) -> None:
        from tempfile import TemporaryDirectory

        from sire_core.storage.folder import replace_folder

        if _state(folder) != state:
            raise StorageError(f"{folder} was changed since it was written here. Name a new folder.")
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
            self.index.save(Path(temporary, "new"))
            replace_folder(folder, Path(temporary, "new"), Path(temporary, "old"))

    def _save_settings(self, folder: Path) -> None:
        cut_by = fingerprint(self.transformations)
        if cut_by is None:
            cut_by = SETTINGS.read(self.index.path or folder).get("transformations")
        search = search_settings(to_filter(self.filters), self.returns, self.as_of, key="filters")
        search |= {
            "similarity_top_k": self.similarity_top_k,
            "scores": self.scores if self.scores != "recipe" else None,
        }
        self._write(folder, search, cut_by, self.title_key)

    def _write(
        self, folder: Path, search: Mapping[str, Any], cut_by: Sequence[str] | None, title_key: str | Sequence[str]
    ) -> None:
        reading = reading_settings(title_key, self._chunker())
        SETTINGS.write(folder, {**search, "transformations": list(cut_by or ()), **reading})

    def _chunker(self) -> SentenceChunker | None:
        """Chunker of added documents, if it is not that of the folder."""
        chunker = self.index.chunker
        return None if chunker == stored_chunker(read_manifest(self.index.path).chunker) else chunker

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
        hits = await snapshot.asearch(query, k, returns=self.returns)
        if not hits:
            return []
        question, vectors = await snapshot.vectors(query, hits)
        return [replace(hit, score=float(vector @ question)) for hit, vector in zip(hits, vectors, strict=True)]

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
        return SireRetriever(
            self.index, **{**mine, **fields, "similarity_top_k": k, "filters": both_filters(self.filters, filters)}
        )

    @lists_options(ViewOptions)
    def as_retriever(self, **options: Unpack[ViewOptions]) -> SireRetriever:
        """This retriever with other settings: `similarity_top_k`, `recipe`, `returns`, `scores`; filters narrow it."""
        _, fields = read_arguments("SireRetriever.as_retriever", options, fields_only=True)
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

    # --- changing ---------------------------------------------------------------------------------------------------

    def insert(self, documents: Nodes, *, ids: Sequence[str] | None = None) -> BuildReport:
        """Add documents; unchanged documents are skipped. `ids` replace their own ids, of nodes those of the nodes.

        Raises:
            KnownDocumentError: A document with the same id and a different text exists; use `refresh_ref_docs`.
        """
        return run_sync(self.ainsert(documents, ids=ids))

    async def ainsert(self, documents: Nodes, *, ids: Sequence[str] | None = None) -> BuildReport:
        """See `insert`."""
        converted, same = self._given(documents, ids)
        try:
            return await self._follow(lambda: self.index.aadd(converted), len(same))
        except KnownDocumentError as error:
            names = ", ".join(error.ids[:10])
            raise KnownDocumentError(
                f"In the index already with another text: {names}. To replace a document call update_ref_doc(document) "
                "or refresh_ref_docs(documents), with all of its nodes where it was given in nodes. To keep both give "
                "the new one another id.",
                error.ids,
            ) from error

    insert_nodes = insert
    ainsert_nodes = ainsert

    def refresh(self, documents: Nodes, *, ids: Sequence[str] | None = None) -> BuildReport:
        """Add new documents and replace changed ones; unchanged documents are skipped. `ids` as in `insert`."""
        return run_sync(self.arefresh(documents, ids=ids))

    async def arefresh(self, documents: Nodes, *, ids: Sequence[str] | None = None) -> BuildReport:
        """See `refresh`."""
        converted, same = self._given(documents, ids)
        return await self._follow(lambda: self.index.aupdate(converted), len(same))

    update_ref_doc = refresh
    aupdate_ref_doc = arefresh

    def refresh_ref_docs(self, documents: Sequence[BaseNode | Document]) -> list[bool]:
        """Like `refresh`, as in LlamaIndex: returns for each document whether it was new or changed."""
        return run_sync(self.arefresh_ref_docs(documents))

    async def arefresh_ref_docs(self, documents: Sequence[BaseNode | Document]) -> list[bool]:
        """See `refresh_ref_docs`."""
        names = [d.id if isinstance(d, Document) else d.ref_doc_id or d.node_id for d in documents]
        before = self._stored(names)
        await self.arefresh(documents)
        after = self._stored(names)
        return [before.get(name) != after.get(name) for name in names]

    def _stored(self, names: Collection[str] | None) -> dict[str, Document]:
        try:
            return {document.id: document for document in self.index.documents(names)}
        except StorageError:  # nothing was built yet
            return {}

    def replace_all(self, documents: Nodes) -> BuildReport:
        """Make the index contain exactly these documents; all others are deleted."""
        return run_sync(self.areplace_all(documents))

    async def areplace_all(self, documents: Nodes) -> BuildReport:
        """See `replace_all`."""
        converted, same = self._given(documents, everything=True)
        return await self._follow(lambda: self.index.abuild(converted, keep=same))

    def delete(self, ref_doc_ids: str | Iterable[str]) -> BuildReport:
        """Remove documents and everything derived from them.

        Raises:
            CorpusError: An id is unknown; nothing is deleted.
        """
        return run_sync(self.adelete(ref_doc_ids))

    async def adelete(self, ref_doc_ids: str | Iterable[str]) -> BuildReport:
        """See `delete`."""
        removed_ids = [ref_doc_ids] if isinstance(ref_doc_ids, str) else list(ref_doc_ids)
        retitled = self._file_titles.delete(removed_ids)
        return await self._follow(lambda: self.index.adelete(removed_ids), retitled=retitled)

    def delete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False) -> None:
        """Like `delete`, as in LlamaIndex: an unknown id is only logged, and what `allow` hides stays."""
        run_sync(self.adelete_ref_doc(ref_doc_id))

    async def adelete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False) -> None:
        """See `delete_ref_doc`."""
        if await asyncio.to_thread(self._stored, [ref_doc_id]):
            retitled = self._file_titles.delete([ref_doc_id])
            await self._follow(lambda: self.index.adelete(ref_doc_id, missing_ok=True), retitled=retitled)
        else:
            _log.warning("ref_doc_id %s not found, nothing deleted.", ref_doc_id)

    def delete_nodes(self, node_ids: Collection[str], delete_from_docstore: bool = False) -> None:
        """Remove single nodes and everything derived from them; a document without any remaining node is removed, too.

        Unknown ids are logged.

        Raises:
            CorpusError: A node was split from a whole document by the index, so an update of the document would restore
                it.
        """
        run_sync(self.adelete_nodes(node_ids))

    async def adelete_nodes(self, node_ids: Collection[str], delete_from_docstore: bool = False) -> None:
        """See `delete_nodes`."""
        wanted = dict.fromkeys([node_ids] if isinstance(node_ids, str) else node_ids)
        there = {node for nodes in (await self._nodes()).values() for node in nodes}
        for node in wanted:
            if node not in there:
                _log.warning("node_id %s not found, nothing deleted.", node)
        if ids := passage_ids(node for node in wanted if node in there):
            await self._follow(lambda: self.index.adelete_passages(ids))

    def get_by_ids(self, ids: str | Sequence[str]) -> list[BaseNode]:
        """Nodes by their ids, or those of their documents, in this order; unknown ids and hidden nodes are ignored."""
        return run_sync(self.aget_by_ids(ids))

    async def aget_by_ids(self, ids: str | Sequence[str]) -> list[BaseNode]:
        """See `get_by_ids`."""
        wanted = [ids] if isinstance(ids, str) else list(ids)
        either = FilterGroup(
            "or", (Condition("ref_doc_id", "in", wanted), Condition("passage_id", "in", passage_ids(wanted)))
        )
        try:
            snapshot = await self.searched().asnapshot(filter=both_filters(self.filters, either))
        except IndexMissingError:  # nothing was built yet
            return []
        by_id: dict[str, list[BaseNode]] = {}
        view, rows = snapshot.view, snapshot.view.passing_chunks(snapshot.where)
        for row in np.flatnonzero(rows).tolist():
            node = passage_node(*view.pool.unit(row), view.shared_metadata(row))
            for name in dict.fromkeys((node.node_id, node.ref_doc_id or node.node_id)):
                by_id.setdefault(name, []).append(node)
        return [node for name in dict.fromkeys(wanted) for node in by_id.get(name, ())]

    @property
    def ref_doc_info(self) -> dict[str, RefDocInfo]:
        """Node ids and metadata of every document, by document id, as in LlamaIndex."""
        nodes = run_sync(self._nodes())
        return {
            name: RefDocInfo(node_ids=nodes.get(name, []), metadata=dict(document.metadata))
            for name, document in self._stored(None).items()
        }

    async def _nodes(self) -> dict[str, list[str]]:
        by_document: dict[str, list[str]] = {}
        try:
            snapshot = await self.index.asnapshot()
        except IndexMissingError:  # nothing was built yet
            return by_document
        ours = {chunk_id.decode() for chunk_id in snapshot.view.pool.chunk_ids.tolist()}
        for document, name in snapshot.passage_ids():
            by_document.setdefault(document, []).append(to_uuid(name) if name in ours else name)
        return by_document

    def _given(
        self, documents: Nodes, ids: Sequence[str] | None = None, *, everything: bool = False
    ) -> tuple[list[Document], list[str]]:
        listed = [documents] if isinstance(documents, (BaseNode, Document)) else documents
        nodes = [node for document in listed for node in as_nodes(document)]
        nodes = nodes if ids is None else with_ids(nodes, ids)
        warn_of_first_cost(self.index, len(nodes))
        converted, same = cut(
            nodes,
            self.index,
            self.title_key,
            self.transformations,
            saved=SETTINGS.read(self.index.path).get("transformations"),
            stored=self._stored,
            everything=everything,
        )
        titled = self._file_titles.put(converted, same if everything else None)
        put = {document.id for document in titled}
        return titled, [name for name in same if name not in put]

    async def _follow(
        self, change: Callable[[], Awaitable[BuildReport]], same: int = 0, retitled: Sequence[Document] = ()
    ) -> BuildReport:
        """Make a change, and what follows; so many documents more were given and are the same."""
        report = await change()
        if retitled:
            await self.index.aupdate(retitled)
        self._file_titles.done()
        report = replace(report, unchanged=report.unchanged + same)
        if self.index.path is not None:
            self._remember(self.index.path)
        await push_missed(self.index.apush, report)
        return report

    def _remember(self, folder: Path) -> None:
        """Save how documents are cut, and the key of their titles where the folder has none.

        The file also says that documents are an app's, see `Folder.framework`.
        """
        saved, mine = SETTINGS.read(folder), fingerprint(self.transformations)
        before, title_key = saved.get("transformations", []), saved.get("title_key", self.title_key)
        cut_by = before if mine is None else mine
        search = {"similarity_top_k": self.similarity_top_k, **saved}
        self._write(folder, search, cut_by, title_key)


def _state(folder: Path) -> object:
    """State of an index; differs after every change, also after one that only waits there."""
    with Index(folder) as copy:
        stats = copy.stats()
        return stats["generation"], stats.get("pending", 0)


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
