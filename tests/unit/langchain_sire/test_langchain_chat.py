"""LangChain chat models and embeddings in the places of ours."""

import asyncio
import threading

import numpy as np
import pytest
from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_core import documents as langchain_documents
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.stores import InMemoryByteStore

from langchain_sire import LangChainChat, LangChainEmbedder, SireRetriever
from sire_core.errors import ConfigurationError, EmbedderMismatchError, ModelError, RefusalError
from sire_core.protocols import Prompt
from support.langchain_chat import GOOD, PROMPT, Answer, Native, WithTools, calls_tool, model, says


async def test_images_travel_as_content_parts():
    chat = model("A cat.")
    await LangChainChat(chat).complete(Prompt("What is it?", "Look.", images=(b"\x89PNGabc",)))
    text, image = chat.log[0]["messages"][1].content
    assert text["type"] == "text"
    assert image["image_url"]["url"].startswith("data:image/png;base64,")


async def test_a_bound_of_the_users_own_stays():
    chat = model("Petra.", max_tokens=7)
    await LangChainChat(chat).complete(PROMPT, max_tokens=50)
    assert chat.log[0]["room"] == 7
    free = model("Petra.")
    await LangChainChat(free, bound_answers=False).complete(PROMPT, max_tokens=50)
    assert free.log[0]["room"] is None
    assert free.max_tokens is None


async def test_trap_tokens_are_counted_with_include_raw_too():
    used = {"input_tokens": 30, "output_tokens": 4, "total_tokens": 34}
    tool_call = calls_tool({"name": "Petra", "year": 1911})
    tool_call.usage_metadata = used
    bridge = LangChainChat(model(tool_call, kind=WithTools))
    done = await bridge.complete(PROMPT, schema=Answer)
    assert (done.input_tokens, done.output_tokens) == (30, 4)
    total = bridge.meter.report().total
    assert (total.calls, total.input_tokens, total.output_tokens) == (1, 30, 4)


async def test_an_async_call_uses_the_classs_async_method_on_the_callers_loop():
    chat = model("x", kind=Native)
    await LangChainChat(chat).complete(PROMPT)
    assert chat.log[0]["thread"] is threading.current_thread()
    plain = model("x")
    await LangChainChat(plain).complete(PROMPT)
    assert plain.log[0]["thread"] is not threading.current_thread()


def test_fingerprint_is_class_model_and_name():
    assert LangChainChat(model("x")).fingerprint == "langchain:Scripted:m-1"
    assert LangChainChat(model("x"), name="prod").fingerprint == "langchain:Scripted:m-1:prod"
    assert LangChainChat(FakeListChatModel(responses=["x"])).fingerprint == "langchain:FakeListChatModel"

    class Local(FakeListChatModel):
        model_path: str = ""
        temperature: float | None = None
        seed: int | None = None

    local = Local(responses=["x"], model_path="llama.gguf", temperature=0.0, seed=7)
    assert LangChainChat(local).fingerprint == "langchain:Local:llama.gguf:temperature=0:seed=7"
    assert "m-1" in repr(LangChainChat(model("x")))


def test_only_chat_models_are_taken():
    with pytest.raises(ConfigurationError, match="dict is no LangChain chat model"):
        LangChainChat({})


async def test_a_tool_call_that_is_no_json_is_read_tolerantly():
    broken = AIMessage(
        "", invalid_tool_calls=[{"name": "Answer", "args": '{"name": "Petra", "year": 1911,}', "id": "1", "error": "x"}]
    )
    done = await LangChainChat(model(broken, kind=WithTools)).complete(PROMPT, schema=Answer)
    assert done.parsed.year == 1911


class BadRequest(Exception):
    status_code = 400


async def test_a_server_that_refuses_the_schema_is_asked_in_words_from_then_on():
    chat = model(BadRequest("tools are not supported"), GOOD, GOOD, kind=WithTools)
    bridge = LangChainChat(chat)
    assert (await bridge.complete(PROMPT, schema=Answer)).parsed.year == 1911
    assert (await bridge.complete(PROMPT, schema=Answer)).parsed.year == 1911
    assert ["tools" in entry for entry in chat.log] == [True, False, False]


async def test_a_refused_request_that_fails_in_words_too_stays_an_error_and_is_not_learnt():
    chat = model(BadRequest("too long"), BadRequest("too long"), calls_tool({"name": "P", "year": 1}), kind=WithTools)
    bridge = LangChainChat(chat)
    with pytest.raises(ModelError, match="too long"):
        await bridge.complete(PROMPT, schema=Answer)
    assert (await bridge.complete(PROMPT, schema=Answer)).parsed.year == 1
    assert "tools" in chat.log[2]


@pytest.mark.parametrize(
    "message",
    [
        says("", additional_kwargs={"refusal": "No."}),
        says("No.", response_metadata={"finish_reason": "content_filter"}),
        says("No.", response_metadata={"stop_reason": "refusal"}),
        type("OpenAIRefusalError", (Exception,), {})("No."),
    ],
)
@pytest.mark.parametrize("schema", [None, Answer])
async def test_trap_refusals_are_not_retried(message, schema):
    chat = model(message)
    with pytest.raises(RefusalError, match="No"):
        await LangChainChat(chat).complete(PROMPT, schema=schema)
    assert len(chat.log) == 1


async def test_an_answer_that_was_cut_off_is_asked_for_again_with_twice_the_room():
    chat = model(
        type("LengthFinishReasonError", (Exception,), {})("cut"),
        says('{"name": "Pe', response_metadata={"finish_reason": "length"}),
    )
    with pytest.raises(ModelError, match="cut off at its length limit"):
        await LangChainChat(chat).complete(PROMPT, schema=Answer, max_tokens=50)
    assert [entry["room"] for entry in chat.log] == [50, 100]


class Letters(Embeddings):
    """Vectors of letter counts, with async methods of its own."""

    model = "letters-1"

    def embed_documents(self, texts):
        return [[float(text.count(letter)) + 0.1 for letter in "abcdefgh"] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts):
        return self.embed_documents(texts)


async def test_concurrency_bounds_all_calls_together():
    class Watched(Letters):
        active = most = 0

        async def aembed_documents(self, texts):
            self.active += 1
            self.most = max(self.most, self.active)
            await asyncio.sleep(0.005)
            self.active -= 1
            return self.embed_documents(texts)

    model = Watched()
    embedder = LangChainEmbedder(model, batch_size=1, concurrency=3)
    await asyncio.gather(*(embedder.embed(["a"] * 5) for _ in range(4)))
    assert model.most == 3


async def test_the_first_error_calls_off_the_rest():
    class Failing(Letters):
        calls = 0

        async def aembed_documents(self, texts):
            self.calls += 1
            await asyncio.sleep(0.005)
            raise RuntimeError("quota")

    model = Failing()
    with pytest.raises(ModelError, match="quota"):
        await LangChainEmbedder(model, batch_size=1, concurrency=2).embed(["a"] * 50)
    assert model.calls < 10


@pytest.mark.parametrize(
    ("attributes", "name", "expected"),
    [
        ({}, "", "langchain:Letters:letters-1"),
        ({}, "prod", "langchain:Letters:letters-1:prod"),
        ({"model": None, "model_name": "m2"}, "", "langchain:Letters:m2"),
        ({"model": "m3", "dimensions": 256}, "", "langchain:Letters:m3:256"),
        ({"model": object()}, "mine", "langchain:Letters:mine"),
    ],
)
def test_fingerprint(attributes, name, expected):
    model = Letters()
    for key, value in attributes.items():
        setattr(model, key, value)
    assert LangChainEmbedder(model, name=name).fingerprint == expected
    assert expected in repr(LangChainEmbedder(model, name=name))


def test_a_deployment_that_was_given_is_part_of_the_fingerprint():
    openai = pytest.importorskip("langchain_openai")
    plain = openai.OpenAIEmbeddings(model="text-embedding-3-small", api_key="none")
    assert LangChainEmbedder(plain).fingerprint == "langchain:OpenAIEmbeddings:text-embedding-3-small"
    azure = [
        LangChainEmbedder(
            openai.AzureOpenAIEmbeddings(
                azure_endpoint="https://x.invalid", azure_deployment=name, api_key="none", api_version="2024-02-01"
            )
        ).fingerprint
        for name in ("small", "large")
    ]
    assert azure[0] != azure[1]


async def test_nothing_and_nonsense():
    embedder = LangChainEmbedder(Letters())
    with pytest.raises(ConfigurationError, match="document or query"):
        await embedder.embed(["a"], "passage")
    with pytest.raises(ConfigurationError, match="str is no LangChain"):
        LangChainEmbedder("openai")
    with pytest.raises(ConfigurationError, match="at least 1"):
        LangChainEmbedder(Letters(), batch_size=0)


def test_embeddings_behind_langchains_cache_are_told_apart(tmp_path):
    def cached(size, seed):
        class Nameless(Embeddings):
            """Has no model name, as people's own classes have none."""

            def embed_documents(self, texts):
                return np.random.default_rng([seed, len(texts)]).normal(size=(len(texts), size)).tolist()

            def embed_query(self, text):
                return np.random.default_rng([seed, len(text)]).normal(size=size).tolist()

        return CacheBackedEmbeddings.from_bytes_store(
            Nameless(), InMemoryByteStore(), namespace="same", key_encoder="blake2b"
        )

    names = [LangChainEmbedder(cached(size, seed)).fingerprint for size, seed in ((8, 1), (8, 1), (8, 2), (16, 1))]
    assert names[0] == names[1]
    assert len(set(names)) == 3
    texts = [langchain_documents.Document("One.", id="a"), langchain_documents.Document("Two.", id="b")]
    SireRetriever.from_documents(texts, cached(8, 1), path=tmp_path, recipe="flat").index.close()
    assert len(SireRetriever.load(tmp_path, cached(8, 1)).invoke("one")) == 2
    with pytest.raises(EmbedderMismatchError):
        SireRetriever.load(tmp_path, cached(8, 2)).invoke("one")
