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
    """A chain that alternates reasoning and searching, then answers with citations (IRCoT).

    Interleaved retrieval and chain of thought (Trivedi et al.).

    Args:
        retriever: Any LangChain retriever. The `k` and `filter` of a `SireRetriever` apply; an `Index` is used with the
            defaults of a `SireRetriever`. Other retrievers are used as they are, and calls cannot filter them.
        llm: Reasons and answers: a LangChain chat model or a `LanguageModel`. None uses that of the index.
        **options: `k`, the number of documents in the final context; settings of `sire_core.reason.IRCoTConfig`
            (`flavor` and others), whose `k` is called `search_k` here; and limits of
            `sire_core.reason.ReasoningLimits`: `max_steps`, `max_calls`, `max_tokens`, `timeout`.

    Raises:
        ConfigurationError: An option is unknown or invalid.
    """
    return ReasoningChain(make_reasoner("ircot", retriever, llm, options), "IRCoT")
