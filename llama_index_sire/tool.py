"""For agents: tools that search and that answer with sources, and `SireMemoryBlock`, evidence in their memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.base.response.schema import Response
from llama_index.core.bridge.pydantic import ConfigDict, Field, field_validator
from llama_index.core.memory.memory import BaseMemoryBlock
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.tools import FunctionTool
from typing_extensions import Unpack

from llama_index_sire.documents import doc_ids_of, evidence_node, to_scored_node
from llama_index_sire.filters import to_filter
from llama_index_sire.opening import LLMLike
from llama_index_sire.options import EngineOptions
from llama_index_sire.query_engines import (
    IRCoTQueryEngine,
    ReasoningQueryEngine,
    SelfAskQueryEngine,
    SingleQueryEngine,
    add_step,
    empty_response,
)
from llama_index_sire.retriever import SireRetriever
from sire_core.arguments import check_choice, lists_options, named
from sire_core.documents.document_names import check_cite_key, citation, cited_names
from sire_core.errors import ConfigurationError, NoAnswerError
from sire_core.index import Index
from sire_core.models.sync import run_sync
from sire_core.reason import Answer, ReasoningStep
from sire_core.search.context import ContextOptions, Evidence, context_text
from sire_core.search.history import standalone_question
from sire_core.search.validity import superseded_mark
from sire_core.serve.outputs import answer_text, quoted_passages
from sire_core.serve.tools import (
    ANSWERS,
    SEARCHES,
    AnswerArguments,
    SearchArguments,
    explain_filter,
    read_arguments,
    search_arguments,
)


def create_sire_tool(
    source: SireRetriever | Index,
    name: str = "search_documents",
    description: str = SEARCHES,
    *,
    cite_key: str = "",
) -> FunctionTool:
    """Create a search tool for agents over a retriever or an index.

    The model reads `[document] text` blocks; the nodes are in `raw_output`. The arguments name the metadata keys that
    the index has when the tool is made, and a filter that nothing can pass is explained to the model. The question
    reaches the retriever as the model wrote it (`RetrieverTool` of LlamaIndex passes on "input is ..."). Invalid
    arguments raise a `QueryError` with a message that an agent can act on.

    Args:
        source: A `SireRetriever`, whose `similarity_top_k` and `filters` apply (a call's filter can only narrow it), or
            an `Index`.
        name: Name of the tool.
        description: Tells the model when to call it.
        cite_key: Metadata key or template (`"{file_name}, page {page_label}"`) by which passages are cited; by default
            readable ids, else the source, file name or title.

    Raises:
        ConfigurationError: It is neither.
    """
    retriever = SireRetriever(source) if isinstance(source, Index) else source
    if not isinstance(retriever, SireRetriever):
        raise ConfigurationError(f"{type(source).__name__} is neither a SireRetriever nor an Index.")

    searcher = _Searcher(retriever, check_cite_key(cite_key))
    return FunctionTool.from_defaults(
        fn=searcher.search,
        async_fn=searcher.asearch,
        name=name,
        description=description,
        fn_schema=search_arguments(retriever.index, to_filter(retriever.filters)),
        callback=partial(cite, cite_key=check_cite_key(cite_key)),
    )


class _Searcher:
    """The tool's functions."""

    def __init__(self, retriever: SireRetriever, cite_key: str) -> None:
        self._retriever = retriever
        self._cite_key = cite_key

    def search(self, query: str = "", **arguments: Any) -> list[NodeWithScore]:
        read = read_arguments(SearchArguments, {"query": query, **arguments} if query else arguments)
        nodes = self._for(read).retrieve(read.query)
        return nodes or _Nothing(run_sync(self._hint(read.filter)))

    async def asearch(self, query: str = "", **arguments: Any) -> list[NodeWithScore]:
        read = read_arguments(SearchArguments, {"query": query, **arguments} if query else arguments)
        nodes = await self._for(read).aretrieve(read.query)
        return nodes or _Nothing(await self._hint(read.filter))

    def _for(self, query: SearchArguments) -> SireRetriever:
        """The retriever as a call wants it; with `max_tokens` its budget holds for what the tool writes."""
        max_tokens = query.max_tokens or self._retriever.max_tokens
        how = self._retriever.context_options or ContextOptions()
        if max_tokens is None or how.write is not context_text:
            return self._retriever.narrowed(query.k, query.filter, query.as_of)
        how = replace(how, write=self._written, head=lambda hit: cite([to_scored_node(hit)], self._cite_key))
        budget = {"max_tokens": max_tokens, "context_options": how}
        return self._retriever.narrowed(query.k, query.filter, query.as_of, **budget)

    def _written(self, evidence: Sequence[Evidence]) -> str:
        return cite(list(map(evidence_node, evidence)), self._cite_key)

    async def _hint(self, filters: Any) -> str:
        return await explain_filter(self._retriever.index, to_filter(self._retriever.filters), to_filter(filters))


class _Nothing(list[NodeWithScore]):
    """No nodes, and a hint why."""

    def __init__(self, hint: str) -> None:
        super().__init__()
        self.hint = hint


def cite(nodes: Sequence[NodeWithScore], cite_key: str = "") -> str:
    """Retrieved nodes as text for a model, each with the names of its documents; see `cited_names`."""
    marks = [superseded_mark(node.node.metadata.get("sire_path", ())) for node in nodes]
    blocks = [
        f"[{cited_as(node, cite_key)}] {mark}{node.node.get_content(MetadataMode.NONE)}"
        for node, mark in zip(nodes, marks, strict=True)
    ]
    return "\n\n".join(blocks) or f"Nothing was found. {getattr(nodes, 'hint', '')}".rstrip()


def cited_as(node: NodeWithScore, cite_key: str = "") -> str:
    """The name by which a retrieved node is cited."""
    metadata, ids = node.node.metadata, doc_ids_of(node.node)
    title = str(dict(metadata).get("title", ""))
    return citation(cited_names(ids, metadata, metadata.get("sire_differing", {}), title, cite_key))


_ENGINES: Mapping[str, type[ReasoningQueryEngine[Any]]] = {
    "single": SingleQueryEngine,
    "ircot": IRCoTQueryEngine,
    "self-ask": SelfAskQueryEngine,
}


@lists_options(EngineOptions)
def create_sire_answer_tool(
    source: ReasoningQueryEngine[Any] | BaseRetriever | Index,
    llm: LLMLike = None,
    name: str = "answer_from_documents",
    description: str = ANSWERS,
    *,
    via: str = "ircot",
    cite_key: str = "",
    **options: Unpack[EngineOptions],
) -> FunctionTool:
    """Create a tool for agents that answers questions.

    The model reads a short answer that cites documents as `[doc_id]`, the sources with their titles, whether the
    evidence is sufficient and, with `show_steps`, the steps. `raw_output` is the response of the engine. Invalid
    arguments raise a `QueryError` with a message that an agent can act on.

    Args:
        source: An engine (`IRCoTQueryEngine`, `SelfAskQueryEngine`), any retriever, or an index.
        llm: See `ReasoningQueryEngine`. Not allowed with an engine, which has its own.
        name: Name of the tool.
        description: Tells the model when to call it.
        via: `ircot`, `self-ask` or `single` (one search, one call), if the source is not an engine.
        cite_key: See `create_sire_tool`.
        **options: `config`, `k` and `limits` of the engine, if the source is not an engine.

    Raises:
        ConfigurationError: The source cannot be searched, or there is no such strategy.
    """
    if isinstance(source, ReasoningQueryEngine):
        if llm is not None or options:
            names = ", ".join([*(["llm"] if llm is not None else []), *options])
            raise ConfigurationError(f"The engine has its own {names}: give it to the engine.")
        engine = source
    else:
        check_choice("via", via, tuple(_ENGINES))
        options_of_engine = named("create_sire_answer_tool", options, EngineOptions.__annotations__)
        engine = _ENGINES[via](source, llm=llm, **options_of_engine)
    answerer = _Answerer(engine, check_cite_key(cite_key))
    return FunctionTool.from_defaults(
        fn=answerer.answer,
        async_fn=answerer.aanswer,
        name=name,
        description=description,
        fn_schema=AnswerArguments,
        callback=str,
    )


class _ToolResponse(Response):
    """The engine's response as an agent reads it."""

    text: str = ""

    def __str__(self) -> str:
        return self.text


class _Answerer:
    """The tool's functions."""

    def __init__(self, engine: ReasoningQueryEngine[Any], cite_key: str) -> None:
        self._engine = engine
        self._cite_key = cite_key

    def answer(self, query: str = "", **arguments: Any) -> Response:
        return run_sync(self.aanswer(query, **arguments))

    async def aanswer(self, query: str = "", **arguments: Any) -> Response:
        read = read_arguments(AnswerArguments, {"query": query, **arguments} if query else arguments)
        steps: list[ReasoningStep] = []
        gathered = empty_response()
        walk = self._engine.steps(QueryBundle(read.query), k=read.k, filters=read.filter, as_of=read.as_of)
        try:
            async with aclosing(walk):
                async for step in walk:
                    steps.append(step)
                    add_step(step, gathered)
        except NoAnswerError as error:  # the agent reads what was found, and why there is no more
            steps.append(error.answer or Answer("", "model_failed"))
            add_step(steps[-1], gathered)
        *rest, answer = steps
        assert isinstance(answer, Answer)
        response = _ToolResponse(gathered.response, gathered.source_nodes, gathered.metadata)
        response.text = answer_text(answer, rest if read.show_steps else (), self._cite_key)
        return response


class SireMemoryBlock(BaseMemoryBlock[str]):
    """A memory block with the passages that answer the last message of the user.

    `Memory.from_defaults(memory_blocks=[SireMemoryBlock(retriever=retriever)])` shows them to any agent with a memory,
    as quotations with names to cite. They are searched for anew for every call and never stored in the history.

    Attributes:
        retriever: A `SireRetriever`, whose `similarity_top_k` and `filters` apply.
        max_tokens: Bound of the passages, estimated.
        cite_key: See `create_sire_tool`.
        name: Name of the block in the prompt.

    Raises:
        ValueError: An argument is something else.
    """

    model_config = ConfigDict(extra="forbid")

    name: str = "documents"
    description: str | None = "Passages of the indexed documents."
    accept_short_term_memory: bool = False
    retriever: Any
    max_tokens: int = Field(default=2000, ge=1)
    cite_key: str = ""

    @field_validator("retriever")
    @classmethod
    def _ours(cls, value: Any) -> Any:
        if not isinstance(value, SireRetriever):
            raise ConfigurationError(f"Expected a SireRetriever, got {type(value).__name__}.")
        return value

    @field_validator("cite_key")
    @classmethod
    def _readable(cls, value: str) -> str:
        return check_cite_key(value)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        questions = [
            message.content for message in messages or () if message.role == MessageRole.USER and message.content
        ]
        if not questions or not questions[-1].strip():
            return ""
        nodes = await self.retriever.aretrieve(standalone_question(questions[-1], questions[:-1]))
        passages = [(cited_as(each, self.cite_key), each.node.get_content()) for each in nodes]
        return quoted_passages(passages, self.max_tokens)[0]

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Keep nothing: messages are not documents."""
