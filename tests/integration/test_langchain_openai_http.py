"""`langchain-openai` over real HTTP against the scripted server: the whole index is built with it."""

import asyncio

import httpx
import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from langchain_sire import LangChainChat, SireRetriever
from sire_core.data import demo_documents
from support.scripted_server import ScriptedServer

KEY = "sk-scripted"
CLIENTS = {}


@pytest.fixture
def server():
    with ScriptedServer() as running:
        yield running


@pytest.fixture(autouse=True)
async def http():
    """Connections of the test's loop; langchain-openai's own are never closed."""
    async with httpx.AsyncClient() as native:
        with httpx.Client() as sync:
            CLIENTS.update(http_client=sync, http_async_client=native)
            yield
    CLIENTS.clear()


def _chat(server, **more):
    return ChatOpenAI(model="gpt-4o-mini", base_url=server.base_url, api_key=KEY, max_retries=0, **(CLIENTS | more))


def _embeddings(server, **more):
    more = CLIENTS | more
    # Our server counts no tokens the way tiktoken would, and a download of its tables is no business of a test.
    return OpenAIEmbeddings(
        model="text-embedding-3-small", base_url=server.base_url, api_key=KEY, check_embedding_ctx_length=False, **more
    )


def _documents(count=6):
    return [(d.text, {"title": d.title}, d.id) for d in demo_documents()[:count]]


def _build(server, documents, **more):
    texts, metadatas, ids = (list(part) for part in zip(*documents, strict=True))
    return SireRetriever.from_texts(
        texts, _embeddings(server), metadatas, ids=ids, llm=LangChainChat(_chat(server)), recipe="sirerag", k=5, **more
    )


def test_an_index_is_built_and_searched_with_chat_openai_and_openai_embeddings(server):
    retriever = _build(server, _documents())
    found = retriever.invoke("Who commanded the Northern Wren?")
    assert len(found) == 5
    stats = retriever.index.stats()
    assert stats["embedder"] == "langchain:OpenAIEmbeddings:text-embedding-3-small"
    assert stats["language_model"] == "langchain:ChatOpenAI:gpt-4o-mini"
    assert {"chunk", "aggregate"} <= set(stats["kinds"])
    assert stats["failed"] == 0
    extractions = [entry for entry in server.log if "passage" in entry.call.fields]
    assert len(extractions) == 6
    assert all(entry.format == "json_schema" for entry in extractions)
    assert server.embedded


def test_trap_sync_calls_leave_no_connection_behind_that_another_loop_would_use(server):
    retriever = _build(server, _documents(3))
    expected = retriever.invoke("Who commanded the ship?")

    async def on_the_users_loop():
        found = await retriever.ainvoke("Who commanded the ship?")
        await CLIENTS["http_async_client"].aclose()
        return found

    assert asyncio.run(on_the_users_loop()) == expected
    assert retriever.invoke("Who commanded the ship?") == expected
