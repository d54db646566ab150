"""Calls that mypy (`make lint`) and pyright must refuse: a line that they accept has an unused `type: ignore`.

Nothing here runs.
"""

from __future__ import annotations

from langchain_core.documents import Document as LangChainDocument
from langchain_core.language_models import FakeListChatModel
from llama_index.core import Document as LlamaDocument

import langchain_sire as lc
import llama_index_sire as li
from sire_core import Index
from sire_core.recipes import flat, raptor, sire


def core(index: Index) -> None:
    Index("folder", recpe="sire")  # type: ignore[call-arg]
    Index("folder", workers="four")  # type: ignore[arg-type]
    index.search("q", returns=["units"])  # type: ignore[arg-type]
    index.search("q", filters="a=1")  # type: ignore[call-arg]
    sire(round=3)  # type: ignore[call-arg]
    sire(rounds="three")  # type: ignore[arg-type]
    flat(ranker="hybird")  # type: ignore[arg-type]
    raptor(preset="paper")  # type: ignore[arg-type]


def langchain(documents: list[LangChainDocument], index: Index) -> None:
    model = FakeListChatModel(responses=[])
    lc.SireRetriever(index=index, k="five")  # type: ignore[arg-type]
    lc.SireRetriever(index=index, pth="x")  # type: ignore[call-arg]
    lc.SireRetriever(index="folder")  # type: ignore[arg-type]
    lc.SireRetriever(index=index, search_type="best")  # type: ignore[arg-type]
    lc.SireRetriever(index=index, search_kwargs={"n": 3})  # type: ignore[typeddict-unknown-key]
    lc.SireRetriever(index=index, search_kwargs={"fetch_k": "ten"})  # type: ignore[typeddict-item]
    retriever = lc.SireRetriever.from_documents(documents, k="five")  # type: ignore[arg-type]
    lc.SireRetriever.from_documents(documents, pth="x")  # type: ignore[call-arg]
    lc.SireRetriever.from_documents(documents, ranker="best")  # type: ignore[arg-type]
    lc.SireRetriever.from_documents(documents, llm="gpt-4o-mini")  # type: ignore[arg-type]
    lc.SireRetriever.from_texts(["text"], chunk_size=3)  # type: ignore[call-arg]
    lc.SireRetriever.load(documents)  # type: ignore[arg-type]
    lc.SireRetriever.load("folder", returns="chunks")  # type: ignore[arg-type]
    lc.SireRetriever.open("folder", chunker=300)  # type: ignore[arg-type]
    retriever.invoke("q", n=3)  # type: ignore[call-arg]
    retriever.invoke("q", k="3")  # type: ignore[arg-type]
    retriever.as_retriever(limit=3)  # type: ignore[call-arg]
    lc.IRCoTRetriever(index=index, option={})  # type: ignore[call-arg]
    lc.SireVectorStore(persist="folder")  # type: ignore[call-arg]
    store = lc.SireVectorStore.from_texts(["text"], provenance="yes")  # type: ignore[arg-type]
    store.similarity_search("q", filters="a=1")  # type: ignore[call-arg]
    lc.create_ircot_chain(retriever, model, step=3)  # type: ignore[call-arg]
    lc.create_ircot_chain(retriever, model, flavor="fast")  # type: ignore[arg-type]
    lc.create_self_ask_chain(retriever, model, mode="one")  # type: ignore[arg-type]
    lc.create_ircot_graph(retriever, model, flavour="original")  # type: ignore[call-arg]
    lc.create_sire_answer_tool(retriever, model, max_step=2)  # type: ignore[call-arg]
    lc.SireDocumentTransformer("raptor", deph=2)  # type: ignore[call-arg]


def llama_index(documents: list[LlamaDocument], index: Index) -> None:
    li.SireRetriever(index, top_k=3)  # type: ignore[call-arg]
    li.SireRetriever(index, scores="cosine")  # type: ignore[arg-type]
    retriever = li.SireRetriever.from_documents(documents, similarity_top_k="5")  # type: ignore[arg-type]
    li.SireRetriever.from_documents(documents, persist="x")  # type: ignore[call-arg]
    li.SireRetriever.from_documents(documents, ranker="best")  # type: ignore[arg-type]
    li.SireRetriever.from_persist_dir("x", embed_model=3)  # type: ignore[arg-type]
    li.SireRetriever.from_persist_dir("x", worker=3)  # type: ignore[call-arg]
    li.SireRetriever.from_texts(["text"], filters=3)  # type: ignore[arg-type]
    retriever.as_retriever(similarity_topk=3)  # type: ignore[call-arg]
    retriever.as_query_engine(stream=True)  # type: ignore[call-arg]
    retriever.as_chat_engine("context", sytem_prompt="x")  # type: ignore[call-arg]
    li.create_sire_answer_tool(retriever, limit={})  # type: ignore[call-arg]
    li.SireRerank(topn=3)  # type: ignore[call-arg]
    li.IRCoTQueryEngine(retriever, on_model_error="ignore")  # type: ignore[arg-type]
