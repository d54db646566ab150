"""Tools for agents: `create_sire_tool` searches, `create_sire_answer_tool` answers with sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from langchain_core.callbacks import Callbacks  # needed at run time: LangChain reads the annotations of functions
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel
from typing_extensions import Unpack

from langchain_sire.chat import LLMLike
from langchain_sire.documents import KEY, evidence_to_langchain, hit_to_langchain
from langchain_sire.reasoning import ReasoningChain, make_reasoner
from langchain_sire.retriever import SireRetriever
from langchain_sire.sire_vector_store import SireVectorStore
from sire_core.arguments import check_choice, lists_options
from sire_core.documents.document_names import check_cite_key, citation, cited_names
from sire_core.errors import ConfigurationError, NoAnswerError, QueryError
from sire_core.filters import parse_filter
from sire_core.index import Index
from sire_core.models.sync import run_sync
from sire_core.reason import STRATEGIES, Answer, ReasoningStep
from sire_core.reason.options import AnyReasonerOptions
from sire_core.search.context import Evidence, context_text
from sire_core.search.validity import superseded_mark
from sire_core.serve.outputs import answer_text
from sire_core.serve.tools import (
    ANSWERS,
    SEARCHES,
    AnswerArguments,
    ToolArguments,
    explain_filter,
    explain_mistakes,
    search_arguments,
)


def create_sire_tool(
    source: SireRetriever | SireVectorStore | Index,
    name: str = "search_documents",
    description: str = SEARCHES,
    *,
    cite_key: str = "",
) -> BaseTool:
    """Create a search tool for agents over a retriever or an index.

    The model reads `[document] text` blocks; the documents themselves are the artifact. The arguments name the metadata
    keys that the index has when the tool is made. Invalid arguments, and filters that nothing can pass, are reported to
    the model, which can correct them; all other errors are raised.

    Args:
        source: A `SireRetriever`, whose `k` and `filter` apply (a call's filter can only narrow it), a
            `SireVectorStore` or an `Index`.
        name: Name of the tool.
        description: Tells the model when to call it.
        cite_key: Metadata key or template (`"{source}, page {page}"`) by which passages are cited; by default readable
            ids, else the source, file name or title.

    Raises:
        ConfigurationError: It is none of these.
    """
    if isinstance(source, SireVectorStore):
        source = source.documents
    retriever = SireRetriever(index=source) if isinstance(source, Index) else source
    if not isinstance(retriever, SireRetriever):
        other = (
            " For other retrievers LangChain has create_retriever_tool." if isinstance(source, BaseRetriever) else ""
        )
        raise ConfigurationError(f"{type(source).__name__} is no SireRetriever, SireVectorStore or Index.{other}")

    searcher = _Searcher(retriever, check_cite_key(cite_key))
    return _Tool(
        name=name,
        description=description,
        func=searcher.search,
        coroutine=searcher.asearch,
        args_schema=search_arguments(retriever.index, retriever.narrowed()),
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=explain_mistakes,
    )


class _Tool(StructuredTool):
    """Reads other usual names of arguments; before 1.6 langchain-core dropped what a schema had renamed."""

    def run(self, tool_input: str | dict[str, Any], *args: Any, **options: Any) -> Any:
        return super().run(self._in_our_words(tool_input), *args, **options)

    async def arun(self, tool_input: str | dict[str, Any], *args: Any, **options: Any) -> Any:
        return await super().arun(self._in_our_words(tool_input), *args, **options)

    def _in_our_words(self, tool_input: Any) -> Any:
        schema = self.args_schema
        if isinstance(schema, type) and issubclass(schema, ToolArguments):
            return schema.in_our_words(tool_input)
        return tool_input


class _Searcher:
    """The tool's functions."""

    def __init__(self, retriever: SireRetriever, cite_key: str) -> None:
        self._retriever = retriever
        self._cite_key = cite_key

    def search(self, query: str, callbacks: Callbacks = None, **options: Any) -> tuple[str, list[Document]]:
        with _tool_errors():
            documents = self._for(options).invoke(query, {"callbacks": callbacks}, **options)
            return self._told(documents, "" if documents else run_sync(self._hint(options.get("filter"))))

    async def asearch(self, query: str, callbacks: Callbacks = None, **options: Any) -> tuple[str, list[Document]]:
        with _tool_errors():
            documents = await self._for(options).ainvoke(query, {"callbacks": callbacks}, **options)
            return self._told(documents, "" if documents else await self._hint(options.get("filter")))

    def _for(self, options: Mapping[str, Any]) -> SireRetriever:
        """The retriever; with `max_tokens` one whose budget holds for what the tool writes."""
        how, retriever = self._retriever.context_options, self._retriever
        if retriever.asked(options)["max_tokens"] is None or how.write is not context_text:
            return retriever
        how = replace(how, write=self._written, head=lambda hit: cite([hit_to_langchain(hit)], self._cite_key))
        return retriever.as_retriever(context_options=how)

    def _written(self, evidence: Sequence[Evidence]) -> str:
        return cite(list(map(evidence_to_langchain, evidence)), self._cite_key)

    async def _hint(self, filter: Any) -> str:
        return await explain_filter(self._retriever.index, self._retriever.narrowed(), parse_filter(filter))

    def _told(self, documents: list[Document], hint: str) -> tuple[str, list[Document]]:
        return f"{cite(documents, self._cite_key)} {hint}".rstrip(), documents


def cite(documents: list[Document], cite_key: str = "") -> str:
    """Retrieved documents as text for a model, each with the names of its documents; see `cited_names`."""
    marks = [superseded_mark(document.metadata.get(KEY, {}).get("path", ())) for document in documents]
    blocks = [f"[{cited_as(d, cite_key)}] {mark}{d.page_content}" for d, mark in zip(documents, marks, strict=True)]
    return "\n\n".join(blocks) or "Nothing was found."


def cited_as(document: Document, cite_key: str = "") -> str:
    """The name by which a retrieved document is cited."""
    about = document.metadata.get(KEY, {})
    ids = about.get("doc_ids") or [str(document.id)]
    title = str(document.metadata.get("title", ""))
    return citation(cited_names(ids, document.metadata, about.get("differing", {}), title, cite_key))


@lists_options(AnyReasonerOptions)
def create_sire_answer_tool(
    source: ReasoningChain | BaseRetriever | Index,
    llm: LLMLike = None,
    name: str = "answer_from_documents",
    description: str = ANSWERS,
    *,
    via: str = "ircot",
    args_schema: type[BaseModel] | None = None,
    cite_key: str = "",
    **options: Unpack[AnyReasonerOptions],
) -> BaseTool:
    """Create a tool for agents that answers questions.

    The model reads a short answer that cites documents as `[doc_id]`, the sources with their titles, whether the
    evidence is sufficient and, with `show_steps`, the steps. The artifact is what the chain's `invoke` returns. Invalid
    arguments are reported to the model, which can correct them; all other errors are raised.

    Args:
        source: A chain (`create_ircot_chain`, `create_self_ask_chain`), any retriever, or an index.
        llm: Reasons and answers: a LangChain chat model or a `LanguageModel`. None uses that of the index. Not allowed
            with a chain, which has its own.
        name: Name of the tool.
        description: Tells the model when to call it.
        via: `ircot`, `self-ask` or `single` (one search, one call), if the source is not a chain.
        args_schema: Replaces the arguments `query`, `k`, `filter`, `as_of` and `show_steps`; it can omit some of them,
            and name the query `input` or `question`.
        cite_key: See `create_sire_tool`.
        **options: See `create_ircot_chain`, if the source is not a chain.

    Raises:
        ConfigurationError: The source cannot be searched, or an option is unknown or invalid.
    """
    if isinstance(source, ReasoningChain):
        if llm is not None or options:
            names = ", ".join([*(["llm"] if llm is not None else []), *options])
            raise ConfigurationError(f"The chain has its own {names}: give it to the chain.")
        chain = source
    else:
        check_choice("via", via, tuple(STRATEGIES))
        chain = ReasoningChain(make_reasoner(via, source, llm, options), via)
    argument_names = {"question", "input", "query", "k", "filter", "as_of", "show_steps"}
    if args_schema is not None and (unknown := sorted(set(args_schema.model_fields) - argument_names)):
        raise ConfigurationError(f"The tool takes {', '.join(sorted(argument_names))}, not {', '.join(unknown)}.")
    answerer = _Answerer(chain, check_cite_key(cite_key))
    return _Tool(
        name=name,
        description=description,
        func=answerer.answer,
        coroutine=answerer.aanswer,
        args_schema=args_schema or AnswerArguments,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=explain_mistakes,
    )


class _Answerer:
    """The tool's functions."""

    def __init__(self, chain: Runnable[Any, Any], cite_key: str) -> None:
        self._chain = chain
        self._cite_key = cite_key

    def answer(self, callbacks: Callbacks = None, **arguments: Any) -> tuple[str, dict[str, Any]]:
        steps: list[ReasoningStep] = []
        with _reported(steps, arguments, self._cite_key):
            result = self._chain.invoke(_chain_input(arguments), {"callbacks": callbacks}, recorded=steps)
        return _text(steps, arguments, self._cite_key), result

    async def aanswer(self, callbacks: Callbacks = None, **arguments: Any) -> tuple[str, dict[str, Any]]:
        steps: list[ReasoningStep] = []
        with _reported(steps, arguments, self._cite_key):
            result = await self._chain.ainvoke(_chain_input(arguments), {"callbacks": callbacks}, recorded=steps)
        return _text(steps, arguments, self._cite_key), result


@contextmanager
def _reported(steps: Sequence[ReasoningStep], arguments: Mapping[str, Any], cite_key: str) -> Iterator[None]:
    """Report what the model can put right, and what was found where there is no answer; other errors are raised."""
    with _tool_errors():
        try:
            yield
        except NoAnswerError as error:
            raise ToolException(
                _text([*steps, error.answer or Answer("", "model_failed")], arguments, cite_key)
            ) from error


@contextmanager
def _tool_errors() -> Iterator[None]:
    """Report what the model can put right; other errors are raised."""
    try:
        yield
    except (ConfigurationError, QueryError) as error:
        raise ToolException(str(error)) from error


def _chain_input(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if key != "show_steps"}


def _text(steps: Sequence[ReasoningStep], arguments: Mapping[str, Any], cite_key: str) -> str:
    *rest, answer = steps
    assert isinstance(answer, Answer)
    return answer_text(answer, rest if arguments.get("show_steps") else (), cite_key)
