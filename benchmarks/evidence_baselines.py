"""Rankings by what LangChain and LlamaIndex offer for small pieces with their surroundings, over any embedder.

LangChain: `ParentDocumentRetriever` (400 characters found, 2,000 read) and pieces of 300 characters of the best 30
chunks of 1,000 by their cosines, as `EmbeddingsFilter` does (it needs langchain-community).

LlamaIndex: sentence windows (three on either side), `AutoMergingRetriever`
(nodes of 128, 512 and 2,048 tokens) and `SentenceEmbeddingOptimizer` (the better half of the sentences) over nodes of
512 tokens. See `evidence.py --embedder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document as LangChainDocument
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as LlamaDocument
from llama_index.core import QueryBundle, StorageContext, VectorStoreIndex
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
    get_leaf_nodes,
)
from llama_index.core.postprocessor import MetadataReplacementPostProcessor, SentenceEmbeddingOptimizer
from llama_index.core.retrievers import AutoMergingRetriever

from langchain_sire import SireEmbeddings
from llama_index_sire import SireEmbedding
from sire_core.types import Hit, Unit, UnitKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sire_core.types import Document

    Search = Callable[[str], list[Hit]]

FIRST, POOL = 100, 30
SOURCE = "source_document"


def as_hits(ranked: Iterable[tuple[str, str]]) -> list[Hit]:
    """Texts with their documents as hits, best first, each once."""
    once = dict.fromkeys(ranked)
    return [
        Hit(Unit(str(place), UnitKind.CHUNK, text, (str(place),)), -float(place), (document,))
        for place, (document, text) in enumerate(once)
    ]


def of_langchain(documents: Sequence[Document], embedder: str) -> dict[str, Search]:
    """Retrievers of LangChain, by the name of their row."""
    pages = [LangChainDocument(document.text, metadata={SOURCE: document.id}) for document in documents]
    embeddings = SireEmbeddings(embedder, fit_on=[page.page_content for page in pages])
    parents = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(embeddings),
        docstore=InMemoryStore(),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=0),
        parent_splitter=RecursiveCharacterTextSplitter(chunk_size=2000, chunk_overlap=0),
        search_kwargs={"k": FIRST},
    )
    parents.add_documents(pages)
    chunks = InMemoryVectorStore(embeddings)
    chunks.add_documents(RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200).split_documents(pages))
    pieces = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=0)

    def filtered(question: str) -> list[LangChainDocument]:
        found = pieces.split_documents(chunks.similarity_search(question, POOL))
        return InMemoryVectorStore.from_documents(found, embeddings).similarity_search(question, FIRST)

    def hits(found: Sequence[LangChainDocument]) -> list[Hit]:
        return as_hits((page.metadata[SOURCE], page.page_content) for page in found)

    return {
        "LangChain, parents of small chunks": lambda question: hits(parents.invoke(question)),
        "LangChain, embeddings filter": lambda question: hits(filtered(question)),
    }


def of_llama_index(documents: Sequence[Document], embedder: str) -> dict[str, Search]:
    """Retrievers of LlamaIndex with their postprocessors, by the name of their row."""
    hidden = {"excluded_embed_metadata_keys": [SOURCE], "excluded_llm_metadata_keys": [SOURCE]}
    pages = [LlamaDocument(text=document.text, metadata={SOURCE: document.id}, **hidden) for document in documents]
    embedding = SireEmbedding(embedder, fit_on=[page.text for page in pages])

    def over(nodes: Sequence[object], storage: StorageContext | None = None) -> VectorStoreIndex:
        return VectorStoreIndex(nodes, embed_model=embedding, storage_context=storage)

    windows = over(SentenceWindowNodeParser(window_size=3).get_nodes_from_documents(pages))
    window = MetadataReplacementPostProcessor(target_metadata_key="window")
    levels = HierarchicalNodeParser.from_defaults(chunk_sizes=[2048, 512, 128]).get_nodes_from_documents(pages)
    storage = StorageContext.from_defaults()
    storage.docstore.add_documents(levels)
    leaves = over(get_leaf_nodes(levels), storage).as_retriever(similarity_top_k=POOL)
    merging = AutoMergingRetriever(leaves, storage)
    nodes = over(SentenceSplitter(chunk_size=512, chunk_overlap=20).get_nodes_from_documents(pages))
    half = SentenceEmbeddingOptimizer(embed_model=embedding, percentile_cutoff=0.5)

    def windowed(question: str) -> list[Hit]:
        found = windows.as_retriever(similarity_top_k=FIRST).retrieve(question)
        return hits(window.postprocess_nodes(found, QueryBundle(question)))

    def optimized(question: str) -> list[Hit]:
        found = nodes.as_retriever(similarity_top_k=POOL).retrieve(question)
        return hits(half.postprocess_nodes(found, QueryBundle(question)))

    def hits(found: Sequence[object]) -> list[Hit]:
        return as_hits((scored.node.metadata[SOURCE], scored.node.text) for scored in found)

    return {
        "LlamaIndex, sentence windows": windowed,
        "LlamaIndex, auto-merging": lambda question: hits(merging.retrieve(question)),
        "LlamaIndex, sentences of nodes": optimized,
    }
