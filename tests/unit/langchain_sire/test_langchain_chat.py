"""LangChain chat models as a `LanguageModel`."""

import threading

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_scripted_chat import GOOD, PROMPT, Answer, Native, WithTools, calls_tool, model, says

from langchain_sire import LangChainChat
from langchain_sire.chat import as_language_model
from sire_core.errors import ConfigurationError, ModelError, RefusalError
from sire_core.models.sync import run_sync
from sire_core.models.usage_meter import UsageMeter
from sire_core.protocols import Prompt


async def test_instructions_and_fenced_data_are_two_messages():
    chat = model("Petra.")
    assert (await LangChainChat(chat).complete(PROMPT)).text == "Petra."
    system, user = chat.log[0]["messages"]
    assert isinstance(system, SystemMessage)
    assert isinstance(user, HumanMessage)
    assert system.content.startswith("Who was it?")
    assert "Petra" not in system.content
    assert user.content.count("</data>") == 1
    await LangChainChat(chat).complete(Prompt("Only words."))
    assert [type(m) for m in chat.log[1]["messages"]] == [HumanMessage]


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


async def test_stop_texts_end_the_answer_even_where_the_model_ignores_them():
    chat = model("Thought one. Observation: two")
    assert (await LangChainChat(chat).complete(PROMPT, stop=["Observation:"])).text == "Thought one. "
    assert chat.log[0]["stop"] == ["Observation:"]


async def test_errors_of_the_model_become_ours_with_their_cause():
    with pytest.raises(ModelError, match="ValueError: quota") as caught:
        await LangChainChat(model(ValueError("quota"))).complete(PROMPT)
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(ModelError, match="NotImplementedError"):
        await LangChainChat(model(NotImplementedError())).complete(PROMPT)
    with pytest.raises(ModelError, match="answered nothing"):
        await LangChainChat(model(" ")).complete(PROMPT)


async def test_trap_tokens_are_counted_with_include_raw_too():
    used = {"input_tokens": 30, "output_tokens": 4, "total_tokens": 34}
    tool_call = calls_tool({"name": "Petra", "year": 1911})
    tool_call.usage_metadata = used
    bridge = LangChainChat(model(tool_call, kind=WithTools))
    done = await bridge.complete(PROMPT, schema=Answer)
    assert (done.input_tokens, done.output_tokens) == (30, 4)
    total = bridge.meter.report().total
    assert (total.calls, total.input_tokens, total.output_tokens) == (1, 30, 4)


async def test_tokens_are_estimated_where_the_model_does_not_tell():
    done = await LangChainChat(model("Petra wrote it.")).complete(PROMPT)
    assert done.input_tokens > 20
    assert 2 < done.output_tokens < 8


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
    ours = LangChainChat(model("x"))
    assert as_language_model(ours) is ours
    assert as_language_model(None) is None
    assert isinstance(as_language_model(model("x")), LangChainChat)


async def test_trap_models_without_structured_output_get_the_schema_in_the_prompt():
    chat = model(f"Sure:\n```json\n{GOOD}\n```")
    bridge = LangChainChat(chat)
    with pytest.raises(NotImplementedError):
        chat.with_structured_output(Answer)
    done = await bridge.complete(PROMPT, schema=Answer)
    assert done.parsed == Answer(name="Petra", year=1911)
    assert "JSON schema" in chat.log[0]["messages"][0].content
    await bridge.complete(PROMPT, schema=Answer)
    assert len(chat.log) == 2


async def test_an_answer_that_does_not_fit_is_repaired_once():
    chat = model('{"name": "Petra"}', GOOD)
    done = await LangChainChat(chat).complete(PROMPT, schema=Answer)
    assert done.parsed.year == 1911
    assert "year: Field required" in chat.log[1]["messages"][0].content
    assert "PREVIOUS ANSWER" in chat.log[1]["messages"][1].content
    with pytest.raises(ModelError, match="even after a repair"):
        await LangChainChat(model("no", "no")).complete(PROMPT, schema=Answer)


async def test_structured_output_is_asked_for_with_include_raw():
    chat = model(calls_tool({"name": "Petra", "year": 1911}), kind=WithTools)
    done = await LangChainChat(chat).complete(PROMPT, schema=Answer)
    assert done.parsed == Answer(name="Petra", year=1911)
    assert chat.log[0]["tools"]
    assert "JSON schema" not in chat.log[0]["messages"][0].content


async def test_a_tool_call_that_does_not_fit_is_repaired_from_its_arguments():
    chat = model(calls_tool({"name": "Petra"}), calls_tool({"name": "Petra", "year": 1911}), kind=WithTools)
    done = await LangChainChat(chat).complete(PROMPT, schema=Answer)
    assert done.parsed.year == 1911
    assert '{"name": "Petra"}' in chat.log[1]["messages"][1].content


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
