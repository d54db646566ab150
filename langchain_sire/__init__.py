"""LangChain components over `sire_core`: retrievers, chains, transformer, vector stores, tool, models.

Nothing here knows an algorithm; everything converts between LangChain's types and the core's. See `SireRetriever`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import langchain_core  # noqa: F401 - only to say in one sentence what is missing
except ModuleNotFoundError as error:
    if error.name != "langchain_core":
        raise
    raise ImportError('langchain_sire needs LangChain: pip install "sire-rag[langchain]"') from error

from langchain_sire.chat import LangChainChat
from langchain_sire.compressor import EvidenceCompressor
from langchain_sire.embeddings import LangChainEmbedder
from langchain_sire.loader import SireLoader, SireParser
from langchain_sire.reasoning import (
    IRCoTRetriever,
    ReasoningChain,
    SelfAskRetriever,
    create_ircot_chain,
    create_self_ask_chain,
    question_of,
)
from langchain_sire.reasoning_graph import ReasoningState, create_ircot_graph, create_self_ask_graph
from langchain_sire.retriever import SireRetriever
from langchain_sire.self_query import SireTranslator
from langchain_sire.sire_embeddings import SireEmbeddings
from langchain_sire.sire_vector_store import SireVectorStore
from langchain_sire.tool import create_sire_answer_tool, create_sire_tool
from langchain_sire.transformer import SireDocumentTransformer, pool_documents
from langchain_sire.vector_store import VectorStoreMirror, VectorStoreSource, over_vector_store

if TYPE_CHECKING:
    from langchain_sire.files_backend import SireBackend as SireBackend
    from langchain_sire.middleware import SireMiddleware as SireMiddleware

__all__ = [
    "EvidenceCompressor",
    "IRCoTRetriever",
    "LangChainChat",
    "LangChainEmbedder",
    "ReasoningChain",
    "ReasoningState",
    "SelfAskRetriever",
    "SireBackend",
    "SireDocumentTransformer",
    "SireEmbeddings",
    "SireLoader",
    "SireMiddleware",
    "SireParser",
    "SireRetriever",
    "SireTranslator",
    "SireVectorStore",
    "VectorStoreMirror",
    "VectorStoreSource",
    "create_ircot_chain",
    "create_ircot_graph",
    "create_self_ask_chain",
    "create_self_ask_graph",
    "create_sire_answer_tool",
    "create_sire_tool",
    "over_vector_store",
    "pool_documents",
    "question_of",
]


def __getattr__(name: str) -> Any:
    if name == "SireMiddleware":  # needs `langchain`, which nothing else does
        from langchain_sire.middleware import SireMiddleware

        return SireMiddleware
    if name == "SireBackend":  # needs `deepagents`
        from langchain_sire.files_backend import SireBackend

        return SireBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
