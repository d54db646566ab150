"""Structured answers of LangChain chat models: native, in words, repaired, refused."""

import pytest
from langchain_core.messages import AIMessage
from langchain_scripted_chat import GOOD, PROMPT, Answer, WithTools, calls_tool, model, says

from langchain_sire import LangChainChat
from sire_core.errors import ModelError, RefusalError


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
