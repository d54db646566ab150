"""`create_ircot_chain`: IRCoT over a retriever, as a Runnable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_sire.reasoner import make_reasoner
from langchain_sire.reasoning_chain import ReasoningChain
from langchain_sire.retriever import SireRetriever
from sire_core.index import Index

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from sire_core.protocols import LanguageModel

__all__ = ["create_ircot_chain"]


def create_ircot_chain(
    retriever: SireRetriever | Index, llm: BaseChatModel | LanguageModel | None = None, **options: Any
) -> ReasoningChain:
    """A chain that thinks a sentence, searches for what it still needs, and so on; then answers with citations.

    Interleaved retrieval and chain of thought (Trivedi et al.; ALGORITHMS 7).

    Args:
        retriever: Its `k` and `filter` hold; an `Index` is taken with the defaults of `SireRetriever`.
        llm: Thinks and answers; LangChain's or ours. None takes the index's own.
        **options: `k`, documents of the final context; settings of
            `sire_core.reason.IRCoTConfig` (`flavor` and others), whose `k` is called `search_k` here; and bounds of
            `sire_core.reason.ReasoningLimits`: `max_steps`, `max_calls`, `max_tokens`, `timeout`.

    Raises:
        ConfigurationError: An option is unknown or impossible.
    """
    return ReasoningChain(make_reasoner("ircot", retriever, llm, options), "IRCoT")
