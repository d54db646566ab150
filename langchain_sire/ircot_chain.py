"""`create_ircot_chain`: IRCoT over a retriever, as a Runnable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_sire.reasoner import make_reasoner
from langchain_sire.reasoning_chain import ReasoningChain
from sire_core.index import Index

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.retrievers import BaseRetriever

    from sire_core.protocols import LanguageModel

__all__ = ["create_ircot_chain"]


def create_ircot_chain(
    retriever: BaseRetriever | Index, llm: BaseChatModel | LanguageModel | None = None, **options: Any
) -> ReasoningChain:
    """A chain that thinks a sentence, searches for what it still needs, and so on; then answers with citations.

    Interleaved retrieval and chain of thought (Trivedi et al.).

    Args:
        retriever: Any of LangChain's. Of a `SireRetriever` its `k` and `filter` hold; an `Index` is taken with the
            defaults of one. Others are searched as they are, and cannot be filtered from here.
        llm: Thinks and answers; LangChain's or ours. None takes the index's own.
        **options: `k`, documents of the final context; settings of
            `sire_core.reason.IRCoTConfig` (`flavor` and others), whose `k` is called `search_k` here; and bounds of
            `sire_core.reason.ReasoningLimits`: `max_steps`, `max_calls`, `max_tokens`, `timeout`.

    Raises:
        ConfigurationError: An option is unknown or impossible.
    """
    return ReasoningChain(make_reasoner("ircot", retriever, llm, options), "IRCoT")
