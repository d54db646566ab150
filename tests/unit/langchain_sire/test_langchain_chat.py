"""LangChain chat models as a `LanguageModel`."""

import threading

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage

from langchain_sire import LangChainChat
from sire_core.errors import ConfigurationError, ModelError, RefusalError
from sire_core.models.sync import run_sync
from sire_core.models.usage_meter import UsageMeter
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


async def test_every_request_counts_repairs_included_on_every_meter():
    outer = UsageMeter()
    bridge = LangChainChat(model("no", GOOD)).metered(outer, "extract")
    await bridge.complete(PROMPT, schema=Answer)
    assert outer.report().stages["extract"].calls == 2
    assert bridge.meter.report().total.calls == 2


def test_trap_a_sync_call_never_uses_the_async_connections_of_another_loop():
    chat = model("x", kind=Native)
    run_sync(LangChainChat(chat).complete(PROMPT))
    assert chat.log[0]["thread"].name.startswith("sire-worker")


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
