"""`langchain-openai` over real HTTP against the scripted server: the whole index is built with it."""

import asyncio

import httpx
import pytest
from langchain_core.callbacks import UsageMetadataCallbackHandler, get_usage_metadata_callback
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from langchain_sire import LangChainChat, LangChainEmbedder, SireRetriever
from sire_core.data import demo_documents
from sire_core.errors import BuildError, ModelError, RefusalError
from sire_core.protocols import Prompt
from support.faults import always, at_calls
from support.scripted_server import ScriptedServer

KEY = "sk-scripted"
CLIENTS = {}
ANSWER = '{"name": "Petra Quillon", "born": "1911"}'


class Answer(BaseModel):
    name: str
    born: str


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


async def test_built_and_searched_async_on_the_users_loop(server):
    texts, metadatas, ids = (list(part) for part in zip(*_documents(4), strict=True))
    retriever = await SireRetriever.afrom_texts(
        texts, _embeddings(server), metadatas, ids=ids, llm=_chat(server), recipe="sirerag", k=3
    )
    native = await retriever.ainvoke("Who commanded the Northern Wren?")
    assert retriever.invoke("Who commanded the Northern Wren?") == native


def test_trap_sync_calls_leave_no_connection_behind_that_another_loop_would_use(server):
    retriever = _build(server, _documents(3))
    expected = retriever.invoke("Who commanded the ship?")

    async def on_the_users_loop():
        found = await retriever.ainvoke("Who commanded the ship?")
        await CLIENTS["http_async_client"].aclose()
        return found

    assert asyncio.run(on_the_users_loop()) == expected
    assert retriever.invoke("Who commanded the ship?") == expected


def test_a_second_build_pays_nothing(server, tmp_path):
    _build(server, _documents(4), path=tmp_path / "i").index.close()
    asked, embedded = server.received, len(server.embedded)
    _build(server, _documents(4), path=tmp_path / "i")
    assert (server.received, len(server.embedded)) == (asked, embedded)


def test_usage_callbacks_see_every_call_of_a_build(server):
    with get_usage_metadata_callback() as usage:
        _build(server, _documents(4))
    told = sum(entry["total_tokens"] for entry in usage.usage_metadata.values())
    assert told > 0
    seen = UsageMetadataCallbackHandler()
    bridge = LangChainChat(_chat(server, callbacks=[seen]))
    texts = [text for text, _, _ in _documents(4)]
    SireRetriever.from_texts(texts, _embeddings(server), llm=bridge)
    total = bridge.meter.report().total
    assert total.calls > 4
    assert sum(e["total_tokens"] for e in seen.usage_metadata.values()) == total.input_tokens + total.output_tokens


@pytest.mark.parametrize("fault", ["fenced", "trailing_comma", "wrong_schema", "garbage", "half_answer"])
async def test_flawed_answers_are_read_or_repaired(fault):
    with ScriptedServer(faults=at_calls({1: fault})) as server:
        done = await LangChainChat(_chat(server)).complete(
            Prompt("Who is it?", "Petra Quillon."), schema=Answer, max_tokens=200
        )
        assert isinstance(done.parsed, Answer)
        assert server.received <= 2


@pytest.mark.parametrize("fault", ["refusal", "content_filter"])
async def test_trap_refusals_over_http_are_not_repeated(fault):
    with ScriptedServer(faults=always(fault)) as server:
        with pytest.raises(RefusalError):
            await LangChainChat(_chat(server)).complete(Prompt("Who is it?", "Petra."), schema=Answer)
        with pytest.raises(RefusalError):
            await LangChainChat(_chat(server)).complete(Prompt("Who is it?", "Petra."))
        assert server.received == 2


@pytest.mark.parametrize("formats", [("json_object",), ()])
async def test_a_server_without_json_schema_is_asked_in_words(formats):
    with ScriptedServer(lambda _: ANSWER, formats=formats) as server:
        bridge = LangChainChat(_chat(server))
        for _ in range(2):
            done = await bridge.complete(Prompt("Who is it?", "Petra Quillon."), schema=Answer)
            assert isinstance(done.parsed, Answer)
        assert [(entry.status, entry.format) for entry in server.log] == [(400, "json_schema"), (200, ""), (200, "")]


async def test_server_errors_are_model_errors(server):
    server.faults = always("server_error")
    with pytest.raises(ModelError, match=r"500.*scripted server error"):
        await LangChainChat(_chat(server)).complete(Prompt("Who?", "Petra."))


def test_a_build_over_a_broken_server_stops_with_advice_and_resumes(tmp_path):
    with ScriptedServer(faults=always("server_error", when=lambda call: "Brack" in call.data)) as server:
        with pytest.raises(BuildError, match="build again"):
            _build(server, _documents(6), path=tmp_path / "i")
        server.faults = at_calls({})
        asked = server.received
        retriever = _build(server, _documents(6), path=tmp_path / "i")
        repeated = [entry for entry in server.log[asked:] if "passage" in entry.call.fields]
        assert 0 < len(repeated) < 6
        assert retriever.index.stats()["failed"] == 0


async def test_embeddings_are_batched(server):
    embedder = LangChainEmbedder(_embeddings(server), batch_size=4)
    vectors = await embedder.embed([f"text {n}" for n in range(10)])
    assert vectors.shape == (10, 64)
    assert sorted(len(texts) for texts in server.embedded) == [2, 4, 4]


async def test_asked_dimensions_are_part_of_the_fingerprint(server):
    embedder = LangChainEmbedder(_embeddings(server, dimensions=32))
    assert (await embedder.embed(["x"], "query")).shape == (1, 32)
    assert embedder.fingerprint == "langchain:OpenAIEmbeddings:text-embedding-3-small:32"
