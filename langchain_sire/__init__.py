"""LangChain components: a retriever, models, and what goes around them. See `SireRetriever`."""

from __future__ import annotations

try:
    import langchain_core  # noqa: F401 - only to say in one sentence what is missing
except ModuleNotFoundError as error:
    if error.name != "langchain_core":
        raise
    raise ImportError('langchain_sire needs LangChain: pip install "sire-rag[langchain]"') from error

from langchain_sire.chat import LangChainChat
from langchain_sire.embeddings import LangChainEmbedder
from langchain_sire.retriever import SireRetriever

__all__ = ["LangChainChat", "LangChainEmbedder", "SireRetriever"]
