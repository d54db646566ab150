"""`create_sire_tool`: search as a tool for agents."""

from __future__ import annotations

from typing import Any

# Needed at run time: LangChain reads the annotations of the tool's functions.
from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from langchain_sire.documents import KEY
from langchain_sire.retriever import SireRetriever
from sire_core.errors import ConfigurationError, QueryError
from sire_core.index import Index
from sire_core.serve.arguments import SearchArguments, explain_mistakes

__all__ = ["cite", "create_sire_tool"]


def create_sire_tool(
    source: SireRetriever | Index,
    name: str = "search_documents",
    description: str = "Finds passages that answer a question, with the documents they come from in brackets.",
) -> BaseTool:
    """Create a search tool for agents over a retriever or an index.

    The model reads `[doc_id] text` blocks; the documents themselves are the artifact. Invalid arguments are reported to
    the model, which can correct them; all other errors are raised.

    Args:
        source: A `SireRetriever`, whose `k` and `filter` apply (a call's filter can only narrow it), or an `Index`.
        name: Name of the tool.
        description: Tells the model when to call it.

    Raises:
        ConfigurationError: It is neither.
    """
    retriever = SireRetriever(index=source) if isinstance(source, Index) else source
    if not isinstance(retriever, SireRetriever):
        other = (
            " For other retrievers LangChain has create_retriever_tool." if isinstance(source, BaseRetriever) else ""
        )
        raise ConfigurationError(f"{type(source).__name__} is neither a SireRetriever nor an Index.{other}")

    searcher = _Searcher(retriever)
    return StructuredTool(
        name=name,
        description=description,
        func=searcher.search,
        coroutine=searcher.asearch,
        args_schema=SearchArguments,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=explain_mistakes,
    )


class _Searcher:
    """The tool's functions."""

    def __init__(self, retriever: SireRetriever) -> None:
        self._retriever = retriever

    def search(
        self, query: str, k: int | None = None, filter: Any = None, callbacks: Callbacks = None
    ) -> tuple[str, list[Document]]:
        """Search, from sync code."""
        try:
            found = self._retriever.invoke(query, {"callbacks": callbacks}, k=k, filter=filter)
        except (ConfigurationError, QueryError) as error:
            raise ToolException(str(error)) from error
        return cite(found), found

    async def asearch(
        self, query: str, k: int | None = None, filter: Any = None, callbacks: Callbacks = None
    ) -> tuple[str, list[Document]]:
        """Search."""
        try:
            found = await self._retriever.ainvoke(query, {"callbacks": callbacks}, k=k, filter=filter)
        except (ConfigurationError, QueryError) as error:
            raise ToolException(str(error)) from error
        return cite(found), found


def cite(documents: list[Document]) -> str:
    """Retrieved documents as text for a model, each with the ids of its documents: `[doc_id] text`."""
    blocks = [
        f"[{', '.join(d.metadata.get(KEY, {}).get('doc_ids') or [str(d.id)])}] {d.page_content}" for d in documents
    ]
    return "\n\n".join(blocks) or "Nothing was found."
