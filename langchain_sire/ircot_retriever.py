"""`IRCoTRetriever`: IRCoT as a retriever."""

from __future__ import annotations

from typing import ClassVar

from langchain_sire.reasoning_retriever import ReasoningRetriever

__all__ = ["IRCoTRetriever"]


class IRCoTRetriever(ReasoningRetriever):
    """A retriever that searches in several rounds with IRCoT; see `create_ircot_chain`.

    Use it like a `SireRetriever`: `from_documents`, `load`, `k`, `filter`. It makes no call for a final answer. See
    `ReasoningRetriever` for `llm` and `options`.
    """

    strategy: ClassVar[str] = "ircot"
