"""`AgentServer`: turns in their order, whole and as a stream, over real HTTP."""

import json
import urllib.error
import urllib.request

import pytest

from support.agent_server import AgentServer, ToolRequest


def _ask(server, **more):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Who?"}], **more}).encode()
    request = urllib.request.Request(f"{server.base_url}/chat/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.headers["content-type"], answer.read().decode("utf-8")


def test_turns_are_played_in_their_order_and_requests_are_kept():
    with AgentServer([ToolRequest("search", {"query": "Größe"}), "Petra."]) as server:
        first, second = (json.loads(_ask(server)[1])["choices"][0] for _ in range(2))
    assert first["finish_reason"] == "tool_calls"
    call = first["message"]["tool_calls"][0]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("search", {"query": "Größe"})
    assert second == {"index": 0, "message": {"role": "assistant", "content": "Petra."}, "finish_reason": "stop"}
    assert [body["messages"][0]["content"] for body in server.requests] == ["Who?", "Who?"]


def test_several_tools_in_one_turn_have_ids_of_their_own():
    with AgentServer([[ToolRequest("a"), ToolRequest("b")]]) as server:
        calls = json.loads(_ask(server)[1])["choices"][0]["message"]["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["a", "b"]
    assert len({call["id"] for call in calls}) == 2


def test_a_stream_says_the_same():
    with AgentServer([ToolRequest("search", {"k": 2}), "Petra Quillon."]) as server:
        kind, tool = _ask(server, stream=True, stream_options={"include_usage": True})
        _, text = _ask(server, stream=True)
    assert kind == "text/event-stream"
    assert tool.endswith("data: [DONE]\n\n")
    frames, words = ([json.loads(line[6:]) for line in said.splitlines() if "{" in line] for said in (tool, text))
    assert frames[1]["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "search"
    assert frames[2]["choices"][0]["finish_reason"] == "tool_calls"
    assert frames[3]["usage"]["total_tokens"] > 0
    assert [frame["choices"][0]["delta"].get("content") for frame in words] == ["", "Petra ", "Quillon.", None]


def test_a_function_sees_the_messages_so_far():
    with AgentServer(lambda messages: f"You said {messages[-1]['content']}") as server:
        assert "You said Who?" in _ask(server)[1]


def test_more_requests_than_turns_and_other_paths_are_errors():
    with AgentServer([]) as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            _ask(server)
        assert caught.value.code == 500
        assert "IndexError" in caught.value.read().decode()
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{server.base_url}/models", timeout=10)
        assert caught.value.code == 404
        caught.value.close()
