"""`SelfAskRetriever`: the evidence that self-ask gathers, as a retriever like any other."""

from __future__ import annotations

from typing import ClassVar

from langchain_sire.reasoning_retriever import ReasoningRetriever

__all__ = ["SelfAskRetriever"]


class SelfAskRetriever(ReasoningRetriever):
    """Searches for each follow-up question that the model asks itself; see `create_self_ask_chain`.

    Takes the place of a `SireRetriever`: `from_documents`, `load`, `k`, `filter`. Nobody is asked for a final answer.
    See `ReasoningRetriever` for `llm` and `options`.
    """

    strategy: ClassVar[str] = "self-ask"
