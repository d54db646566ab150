"""`IRCoTRetriever`: the evidence that IRCoT gathers, as a retriever like any other."""

from __future__ import annotations

from typing import ClassVar

from langchain_sire.reasoning_retriever import ReasoningRetriever

__all__ = ["IRCoTRetriever"]


class IRCoTRetriever(ReasoningRetriever):
    """Searches in several rounds, each for what the model's last thought still needs; see `create_ircot_chain`.

    Takes the place of a `SireRetriever`: `from_documents`, `load`, `k`, `filter`. Nobody is asked for a final answer.
    See `ReasoningRetriever` for `llm` and `options`.
    """

    strategy: ClassVar[str] = "ircot"
