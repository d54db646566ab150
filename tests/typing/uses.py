"""Calls that mypy and pyright must accept, with each kind of option; nothing here runs."""

from __future__ import annotations

from langchain_core.documents import Document as LangChainDocument
from langchain_core.language_models import FakeListChatModel
from llama_index.core import Document as LlamaDocument

import langchain_sire as lc
import llama_index_sire as li
from sire_core import Document, Index, UsageLimits
from sire_core.reason import IRCoTConfig
from sire_core.recipes import sire, sirerag


def core(documents: list[Document]) -> list[str]:
    index = Index("folder", recipe=sire(rounds=3, rerank="colbert:name"), limits={"max_calls": 3}, chunker=None)
    index.build(documents)
    return [hit.unit.text for hit in index.search("q", k=3, filter={"year": 2020}, returns="units", as_of="2026-01-31")]


def langchain(documents: list[LangChainDocument]) -> list[LangChainDocument]:
    model = FakeListChatModel(responses=[])
    retriever = lc.SireRetriever.from_documents(
        documents, "semantic", path="folder", recipe="flat", ranker="hybrid", k=3, search_type="mmr",
        search_kwargs={"fetch_k": 30, "filter": "year > 2019"}, chunker="sentences", limits=UsageLimits(max_calls=3),
    )  # fmt: skip
    store = lc.SireVectorStore.from_documents(documents, path="folder", provenance=True)
    lc.create_ircot_chain(store.as_retriever(), model, flavor="original", search_k=6, max_calls=4)
    lc.SireDocumentTransformer("raptor", depth=2, embedding="semantic")
    return lc.SireRetriever(index=retriever.index, tags=["a"]).as_retriever(k=5).invoke("q", k=2, recipe="sire")


def llama_index(documents: list[LlamaDocument]) -> str:
    retriever = li.SireRetriever.from_documents(
        documents, persist_dir="folder", recipe=sirerag(depth=2), similarity_top_k=5, scores="similarity", workers=2
    )
    li.create_sire_answer_tool(retriever, config=IRCoTConfig(steps=2), limits={"max_calls": 4})
    engine = retriever.as_query_engine(similarity_top_k=3, streaming=True, response_mode="compact", doc_ids=["a"])
    retriever.as_chat_engine("context", system_prompt="Be brief.", filters="year > 2019")
    return str(engine.query("q"))
