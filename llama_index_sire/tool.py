"""Tools for agents: `create_sire_tool` searches, `create_sire_answer_tool` answers with sources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.tools import FunctionTool

from llama_index_sire.events import add_step, empty_response
from llama_index_sire.query_engines import IRCoTQueryEngine, ReasoningQueryEngine, SelfAskQueryEngine, SingleQueryEngine
from llama_index_sire.retriever import SireRetriever
from sire_core.errors import ConfigurationError, NoAnswerError
from sire_core.index import Index
from sire_core.models.sync import run_sync
from sire_core.reason import Answer, ReasoningStep
from sire_core.serve.arguments import AnswerArguments, SearchArguments, read_arguments
from sire_core.serve.outputs import answer_text

if TYPE_CHECKING:
    from llama_index_sire.opening import LLMLike

__all__ = ["cite", "create_sire_answer_tool", "create_sire_tool"]


def create_sire_tool(
    source: SireRetriever | Index,
    name: str = "search_documents",
    description: str = "Finds passages that answer a question, with the documents they come from in brackets.",
) -> FunctionTool:
    """Create a search tool for agents over a retriever or an index.

    The model reads `[doc_id] text` blocks; the nodes are in `raw_output`. The question reaches the retriever as the
    model wrote it (`RetrieverTool` of LlamaIndex passes on "input is ..."). Invalid arguments raise a `QueryError` with
    a message that an agent can act on.

    Args:
        source: A `SireRetriever`, whose `similarity_top_k` and `filters` apply (a call's filter can only narrow it), or
            an `Index`.
        name: Name of the tool.
        description: Tells the model when to call it.

    Raises:
        ConfigurationError: It is neither.
    """
    retriever = SireRetriever(source) if isinstance(source, Index) else source
    if not isinstance(retriever, SireRetriever):
        raise ConfigurationError(f"{type(source).__name__} is neither a SireRetriever nor an Index.")

    def asked(given: Mapping[str, Any]) -> tuple[str, SireRetriever]:
        """The question, and the retriever as one call wants it; shared state is not touched."""
        arguments = read_arguments(SearchArguments, given)
        return arguments.query, retriever.narrowed(arguments.k, arguments.filter)

    def search(**given: Any) -> list[NodeWithScore]:
        query, narrowed = asked(given)
        return narrowed.retrieve(query)

    async def asearch(**given: Any) -> list[NodeWithScore]:
        query, narrowed = asked(given)
        return await narrowed.aretrieve(query)

    async def acite(nodes: Sequence[NodeWithScore]) -> str:
        return cite(nodes)

    return FunctionTool.from_defaults(
        fn=search,
        async_fn=asearch,
        name=name,
        description=description,
        fn_schema=SearchArguments,
        callback=cite,
        async_callback=acite,
    )


def cite(nodes: Sequence[NodeWithScore]) -> str:
    """Retrieved nodes as text for a model, each with the ids of its documents: `[doc_id] text`."""
    blocks = []
    for found in nodes:
        documents = json.loads(found.node.metadata.get("sire_doc_ids", "[]")) or [found.node.node_id]
        blocks.append(f"[{', '.join(documents)}] {found.node.get_content(MetadataMode.NONE)}")
    return "\n\n".join(blocks) or "Nothing was found."


_ENGINES: Mapping[str, type[ReasoningQueryEngine[Any]]] = {
    "single": SingleQueryEngine,
    "ircot": IRCoTQueryEngine,
    "self-ask": SelfAskQueryEngine,
}


def create_sire_answer_tool(
    source: ReasoningQueryEngine[Any] | BaseRetriever | Index,
    llm: LLMLike = None,
    name: str = "answer_from_documents",
    description: str = (
        "Answers a question from the documents, in few words, with the ids of the documents it cites in brackets, and "
        "says whether the evidence is sufficient. For questions that need several documents, too."
    ),
    *,
    via: str = "ircot",
    **options: Any,
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
        **options: `config` and `limits` of the engine, if the source is not an engine.

    Raises:
        ConfigurationError: The source cannot be searched, or there is no such strategy.
    """
    if isinstance(source, ReasoningQueryEngine):
        if llm is not None or options:
            given = ", ".join([*(["llm"] if llm is not None else []), *options])
            raise ConfigurationError(f"The engine has its own {given}: give it to the engine.")
        engine = source
    else:
        if via not in _ENGINES:
            raise ConfigurationError(f"via is 'ircot', 'self-ask' or 'single', not {via!r}.")
        engine = _ENGINES[via](source, llm=llm, **options)
    answerer = _Answerer(engine)
    return FunctionTool.from_defaults(
        fn=answerer.answer,
        async_fn=answerer.aanswer,
        name=name,
        description=description,
        fn_schema=AnswerArguments,
        callback=_text,
        async_callback=_atext,
    )


class _ToolResponse(Response):
    """The engine's response as an agent reads it."""

    text: str = ""

    def __str__(self) -> str:
        return self.text


class _Answerer:
    """The tool's functions."""

    def __init__(self, engine: ReasoningQueryEngine[Any]) -> None:
        self._engine = engine

    def answer(self, **given: Any) -> Response:
        """Answer, from sync code."""
        return run_sync(self.aanswer(**given))

    async def aanswer(self, **given: Any) -> Response:
        """Answer."""
        asked = read_arguments(AnswerArguments, given)
        steps: list[ReasoningStep] = []
        gathered = empty_response()
        walk = self._engine.steps(QueryBundle(asked.question), k=asked.k, filters=asked.filter)
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
        response.text = answer_text(answer, rest if asked.show_steps else ())
        return response


def _text(response: Response) -> str:
    return str(response)


async def _atext(response: Response) -> str:
    return str(response)
