"""Retrievers of LangChain and LlamaIndex as they are made by default, over the same vectors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx

__all__ = [
    "LangChainBM25",
    "LangChainFaiss",
    "LangChainGraph",
    "LangChainInMemory",
    "LlamaIndexBM25",
    "LlamaIndexDefault",
    "LlamaIndexPropertyGraph",
]

_NAMES = re.compile(r"\b[A-Z][\w'-]*(?:\s+(?:of|the|de|von|and)?\s*[A-Z][\w'-]*)*")


def _text(passage: dict[str, Any]) -> str:
    return f"{passage['title']}\n{passage['text']}"


class _LangChain:
    """What the LangChain peers share."""

    def __init__(self, folder: Path, embed: Any, url: str) -> None:
        from langchain_core.embeddings import Embeddings

        class Ours(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return embed(texts).tolist()

            def embed_query(self, text: str) -> list[float]:
                return embed([text])[0].tolist()

        self.folder, self.embeddings = folder, Ours()
        folder.mkdir(parents=True, exist_ok=True)

    def documents(self, passages: list[dict[str, Any]]) -> list[Any]:
        """Documents with the id in their metadata."""
        from langchain_core.documents import Document

        return [Document(_text(p), metadata={"id": p["id"], "title": p["title"]}, id=p["id"]) for p in passages]

    def search(self, question: str, k: int) -> list[str]:
        """Ids."""
        return [found.metadata["id"] for found in self.find(question, k)]


class LangChainBM25(_LangChain):
    """`BM25Retriever`: in memory, nothing can be added."""

    def build(self, passages: list[dict[str, Any]]) -> None:
        """Index."""
        from langchain_community.retrievers import BM25Retriever

        self.passages = passages
        self.retriever = BM25Retriever.from_documents(self.documents(passages))

    def add(self, passages: list[dict[str, Any]]) -> None:
        """Build again: it has no other way."""
        self.build([*self.passages, *passages])

    def find(self, question: str, k: int) -> list[Any]:
        """Search."""
        self.retriever.k = k
        return self.retriever.invoke(question)


class LangChainInMemory(_LangChain):
    """`InMemoryVectorStore`, dumped to a file."""

    def build(self, passages: list[dict[str, Any]]) -> None:
        """Index."""
        from langchain_core.vectorstores import InMemoryVectorStore

        self.store = InMemoryVectorStore(self.embeddings)
        self.add(passages)

    def add(self, passages: list[dict[str, Any]]) -> None:
        """Add and dump."""
        self.store.add_documents(self.documents(passages))
        self.store.dump(str(self.folder / "store.json"))

    def find(self, question: str, k: int) -> list[Any]:
        """Search."""
        return self.store.similarity_search(question, k)


class LangChainFaiss(_LangChain):
    """`FAISS` with its default, exact index, saved to a folder."""

    def build(self, passages: list[dict[str, Any]]) -> None:
        """Index."""
        from langchain_community.vectorstores import FAISS

        self.store = FAISS.from_documents(self.documents(passages), self.embeddings)
        self.store.save_local(str(self.folder))

    def add(self, passages: list[dict[str, Any]]) -> None:
        """Add and save."""
        self.store.add_documents(self.documents(passages))
        self.store.save_local(str(self.folder))

    def find(self, question: str, k: int) -> list[Any]:
        """Search."""
        return self.store.similarity_search(question, k)


class LangChainGraph(LangChainInMemory):
    """`GraphRetriever` over the in-memory store: from names in a text to the passages titled by them."""

    def documents(self, passages: list[dict[str, Any]]) -> list[Any]:
        """Documents that say which names they hold."""
        made = super().documents(passages)
        for document in made:
            document.metadata["names"] = sorted(set(_NAMES.findall(document.page_content)))
        return made

    def find(self, question: str, k: int) -> list[Any]:
        """Search, with the default strategy."""
        from langchain_graph_retriever import GraphRetriever

        return GraphRetriever(store=self.store, edges=[("names", "title")], k=k).invoke(question)


class _LlamaIndex:
    """What the LlamaIndex peers share."""

    def __init__(self, folder: Path, embed: Any, url: str) -> None:
        from llama_index.core.embeddings import BaseEmbedding

        class Ours(BaseEmbedding):
            def _get_query_embedding(self, query: str) -> list[float]:
                return embed([query])[0].tolist()

            async def _aget_query_embedding(self, query: str) -> list[float]:
                return self._get_query_embedding(query)

            def _get_text_embedding(self, text: str) -> list[float]:
                return self._get_query_embedding(text)

            def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
                return embed(texts).tolist()

            async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
                return self._get_text_embeddings(texts)

        self.folder, self.url, self.embed_model = folder, url, Ours()
        folder.mkdir(parents=True, exist_ok=True)

    def nodes(self, passages: list[dict[str, Any]]) -> list[Any]:
        """Nodes whose ids are those of the passages."""
        from llama_index.core.schema import TextNode

        return [TextNode(text=_text(p), id_=p["id"]) for p in passages]

    def search(self, question: str, k: int) -> list[str]:
        """Ids."""
        found = [hit.node.ref_doc_id or hit.node.node_id for hit in self.retriever(k).retrieve(question)]
        return list(dict.fromkeys(found))[:k]


class LlamaIndexDefault(_LlamaIndex):
    """`VectorStoreIndex` over its default store, persisted."""

    def build(self, passages: list[dict[str, Any]]) -> None:
        """Index."""
        from llama_index.core import VectorStoreIndex

        self.index = VectorStoreIndex(self.nodes(passages), embed_model=self.embed_model)
        self.index.storage_context.persist(str(self.folder))

    def add(self, passages: list[dict[str, Any]]) -> None:
        """Insert and persist."""
        self.index.insert_nodes(self.nodes(passages))
        self.index.storage_context.persist(str(self.folder))

    def retriever(self, k: int) -> Any:
        """Its retriever."""
        return self.index.as_retriever(similarity_top_k=k)


class LlamaIndexBM25(_LlamaIndex):
    """`BM25Retriever`, persisted; nothing can be added."""

    def build(self, passages: list[dict[str, Any]]) -> None:
        """Index."""
        from llama_index.retrievers.bm25 import BM25Retriever

        self.passages = passages
        self.made = BM25Retriever.from_defaults(nodes=self.nodes(passages), similarity_top_k=5)
        self.made.persist(str(self.folder))

    def add(self, passages: list[dict[str, Any]]) -> None:
        """Build again: it has no other way."""
        self.build([*self.passages, *passages])

    def retriever(self, k: int) -> Any:
        """Itself."""
        return self.made


class LlamaIndexPropertyGraph(_LlamaIndex):
    """`PropertyGraphIndex` with its default extractors and retrievers, persisted."""

    def build(self, passages: list[dict[str, Any]]) -> None:
        """Index."""
        from llama_index.core import PropertyGraphIndex

        self.index = PropertyGraphIndex(self.nodes(passages), llm=self.llm(), embed_model=self.embed_model)
        self.index.storage_context.persist(str(self.folder))

    def llm(self) -> Any:
        """A model over HTTP."""
        from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
        from llama_index.core.llms.callbacks import llm_completion_callback

        client = httpx.Client(base_url=self.url, timeout=60)

        class Model(CustomLLM):
            @property
            def metadata(self) -> LLMMetadata:
                return LLMMetadata(model_name="scripted")

            @llm_completion_callback()
            def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
                body = {"model": "scripted", "messages": [{"role": "user", "content": prompt}]}
                answer = client.post("/chat/completions", json=body).json()
                return CompletionResponse(text=answer["choices"][0]["message"]["content"])

            @llm_completion_callback()
            def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
                yield self.complete(prompt)

        return Model()

    def add(self, passages: list[dict[str, Any]]) -> None:
        """Insert and persist."""
        self.index.insert_nodes(self.nodes(passages))
        self.index.storage_context.persist(str(self.folder))

    def retriever(self, k: int) -> Any:
        """Its default retrievers."""
        return self.index.as_retriever(similarity_top_k=k)
