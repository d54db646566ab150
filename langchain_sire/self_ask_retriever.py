"""`SelfAskRetriever`: self-ask as a retriever."""

from __future__ import annotations

from typing import ClassVar

from langchain_sire.reasoning_retriever import ReasoningRetriever

__all__ = ["SelfAskRetriever"]


class SelfAskRetriever(ReasoningRetriever):
    """A retriever that searches for each follow-up question of the model; see `create_self_ask_chain`.

    Use it like a `SireRetriever`: `from_documents`, `load`, `k`, `filter`. It makes no call for a final answer. See
    `ReasoningRetriever` for `llm` and `options`.
    """

    strategy: ClassVar[str] = "self-ask"
