"""`create_sire_answer_tool`: answers with their sources as a tool for agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_sire.chain_tool import ANSWERS, chain_tool
from langchain_sire.reasoner import make_reasoner
from langchain_sire.reasoning_chain import ReasoningChain
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool
    from pydantic import BaseModel

    from sire_core.index import Index
    from sire_core.protocols import LanguageModel

__all__ = ["create_sire_answer_tool"]


def create_sire_answer_tool(
    source: ReasoningChain | BaseRetriever | Index,
    llm: BaseChatModel | LanguageModel | None = None,
    name: str = "answer_from_documents",
    description: str = ANSWERS,
    *,
    via: str = "ircot",
    args_schema: type[BaseModel] | None = None,
    **options: Any,
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
        args_schema: Replaces the arguments `question`, `k`, `filter` and `show_steps`; it can omit some of them, and
            name the question `input` or `query`.
        **options: See `create_ircot_chain`, if the source is not a chain.

    Raises:
        ConfigurationError: The source cannot be searched, or an option is unknown or invalid.
    """
    if isinstance(source, ReasoningChain):
        if llm is not None or options:
            given = ", ".join([*(["llm"] if llm is not None else []), *options])
            raise ConfigurationError(f"The chain has its own {given}: give it to the chain.")
        chain = source
    else:
        if via not in ("single", "ircot", "self-ask"):
            raise ConfigurationError(f"via is 'ircot', 'self-ask' or 'single', not {via!r}.")
        chain = ReasoningChain(make_reasoner(via, source, llm, options), via)
    return chain_tool(chain, name, description, args_schema)
