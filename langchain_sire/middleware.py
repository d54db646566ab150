"""`SireMiddleware`: evidence in the context of LangChain's agents; needs the package `langchain`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Union

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState
    from langchain.agents.middleware.types import ModelRequest
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "langchain":
        raise
    raise ImportError('SireMiddleware needs LangChain\'s agents: pip install "langchain>=1"') from error
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from typing_extensions import NotRequired

from langchain_sire.retriever import SireRetriever
from langchain_sire.tool import cited_as
from sire_core.documents.document_names import check_cite_key
from sire_core.errors import ConfigurationError
from sire_core.serve.outputs import quoted_passages

Rewrite = Union[BaseChatModel, Callable[[Sequence[AnyMessage]], str], None]

_REWRITE = (
    "Rewrite the last message of the user as one question that can be understood without the others. Answer with the "
    "question alone."
)
_TURNS = 6  # So many of the last messages are shown to the model that rewrites


class SireState(AgentState[Any]):
    """State of an agent with evidence.

    Attributes:
        sire_query: What was searched for, for the last message of the user.
        sire_documents: The passages that the model is shown, best first.
    """

    sire_query: NotRequired[str]
    sire_documents: NotRequired[list[Document]]


class SireMiddleware(AgentMiddleware[SireState, Any, Any]):
    """Searches once for every message of the user, and shows the model the passages that were found.

    The passages stand at the end of the system message of every model call of the turn, as quotations with names to
    cite, and not in the messages: summaries and checkpoints of the conversation do not grow. The state has
    `sire_query` and `sire_documents`; the search is a child run in traces.

    Args:
        retriever: A `SireRetriever`, whose `k` and `filter` apply.
        max_tokens: Bound of the passages, estimated.
        rewrite: Makes a question of a conversation: a chat model, or a function of the messages. None searches for the
            last message of the user as it is. A model is only asked where earlier messages of the user exist.
        cite_key: See `create_sire_tool`.

    Raises:
        ConfigurationError: An argument is of another type or below one.
    """

    state_schema = SireState

    def __init__(
        self, retriever: SireRetriever, *, max_tokens: int = 2000, rewrite: Rewrite = None, cite_key: str = ""
    ) -> None:
        super().__init__()
        if not isinstance(retriever, SireRetriever):
            raise ConfigurationError(f"Expected a SireRetriever, got {type(retriever).__name__}.")
        if max_tokens < 1:
            raise ConfigurationError(f"max_tokens must be at least 1, not {max_tokens}.")
        if not (rewrite is None or callable(rewrite) or isinstance(rewrite, BaseChatModel)):
            raise ConfigurationError(f"rewrite is a chat model or a function, not {type(rewrite).__name__}.")
        self._retriever = retriever
        self._max_tokens = max_tokens
        self._rewrite = rewrite
        self._cite_key = check_cite_key(cite_key)

    def before_agent(self, state: SireState, runtime: Any) -> dict[str, Any] | None:
        """Search for the last message of the user."""
        messages = state["messages"]
        query = self._query(messages)
        if query is None:
            assert isinstance(self._rewrite, BaseChatModel)
            query = str(self._rewrite.invoke(_rewriting(messages)).text)
        return self._found(query, self._retriever.invoke(query) if query.strip() else [])

    async def abefore_agent(self, state: SireState, runtime: Any) -> dict[str, Any] | None:
        """See `before_agent`."""
        messages = state["messages"]
        query = self._query(messages)
        if query is None:
            assert isinstance(self._rewrite, BaseChatModel)
            query = str((await self._rewrite.ainvoke(_rewriting(messages))).text)
        return self._found(query, await self._retriever.ainvoke(query) if query.strip() else [])

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """Call the model with the passages in its system message."""
        return handler(self._with_passages(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """See `wrap_model_call`."""
        return await handler(self._with_passages(request))

    def _query(self, messages: Sequence[AnyMessage]) -> str | None:
        questions = [str(message.text) for message in messages if isinstance(message, HumanMessage)]
        if isinstance(self._rewrite, BaseChatModel):
            return None if len(questions) > 1 else (questions or [""])[-1]
        return (questions or [""])[-1] if self._rewrite is None else self._rewrite(messages)

    def _found(self, query: str, documents: list[Document]) -> dict[str, Any]:
        count = quoted_passages(self._named(documents), self._max_tokens)[1]
        return {"sire_query": query, "sire_documents": documents[:count]}

    def _with_passages(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        documents: list[Document] = request.state.get("sire_documents") or []  # type: ignore[assignment]  # of `SireState`
        block, _ = quoted_passages(self._named(documents), self._max_tokens)
        if not block:
            return request
        before = request.system_message
        if before is None or isinstance(before.content, str):
            text = "" if before is None else f"{before.content}\n\n"
            return request.override(system_message=SystemMessage(f"{text}{block}"))
        return request.override(system_message=SystemMessage([*before.content, {"type": "text", "text": block}]))

    def _named(self, documents: Sequence[Document]) -> list[tuple[str, str]]:
        return [(cited_as(document, self._cite_key), document.page_content) for document in documents]


def _rewriting(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    talk = [message for message in messages if str(message.text).strip() and message.type in ("human", "ai")][-_TURNS:]
    lines = "\n".join(f"{message.type}: {message.text}" for message in talk)
    return [SystemMessage(_REWRITE), HumanMessage(lines)]
