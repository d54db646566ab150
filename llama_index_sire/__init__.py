"""LlamaIndex components over `sire_core`: retrieval, reasoning, parsing, tools, models.

Nothing here knows an algorithm; everything converts between LlamaIndex's types and the core's.
"""

from __future__ import annotations

try:
    import llama_index.core  # noqa: F401 - only to see whether it is there
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "llama_index":
        raise
    raise ImportError('llama_index_sire needs LlamaIndex: pip install "sire-rag[llama-index]"') from error

from llama_index_sire.documents import to_documents
from llama_index_sire.embedding import LlamaIndexEmbedder
from llama_index_sire.evidence import EvidencePostprocessor
from llama_index_sire.filters import to_filter
from llama_index_sire.language_model import LlamaIndexModel
from llama_index_sire.node_parser import SireNodeParser
from llama_index_sire.query_engines import (
    AnswerEvent,
    AnswerPieceEvent,
    IntermediateAnswerEvent,
    IRCoTQueryEngine,
    ReasoningWorkflow,
    RetrievedEvent,
    SelfAskQueryEngine,
    SingleQueryEngine,
    SubQuestionEvent,
    ThoughtEvent,
)
from llama_index_sire.reader import SireReader
from llama_index_sire.rerank import SireRerank
from llama_index_sire.retriever import ConversationRetriever, SireRetriever
from llama_index_sire.sire_embedding import SireEmbedding
from llama_index_sire.tool import SireMemoryBlock, create_sire_answer_tool, create_sire_tool
from llama_index_sire.vector_store import VectorStoreMirror, VectorStoreSource, over_vector_store

__all__ = [
    "AnswerEvent",
    "AnswerPieceEvent",
    "ConversationRetriever",
    "EvidencePostprocessor",
    "IRCoTQueryEngine",
    "IntermediateAnswerEvent",
    "LlamaIndexEmbedder",
    "LlamaIndexModel",
    "ReasoningWorkflow",
    "RetrievedEvent",
    "SelfAskQueryEngine",
    "SingleQueryEngine",
    "SireEmbedding",
    "SireMemoryBlock",
    "SireNodeParser",
    "SireReader",
    "SireRerank",
    "SireRetriever",
    "SubQuestionEvent",
    "ThoughtEvent",
    "VectorStoreMirror",
    "VectorStoreSource",
    "create_sire_answer_tool",
    "create_sire_tool",
    "over_vector_store",
    "to_documents",
    "to_filter",
]
