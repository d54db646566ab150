"""Servers as people run them, over real HTTP: every answer is right, or one error in the server's own words."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import time
import zlib
from base64 import b64encode
from contextlib import suppress
from dataclasses import replace

import pytest
from pydantic import BaseModel

from sire_core import UsageLimits
from sire_core.errors import ConfigurationError, LimitExceededError, ModelError, RefusalError
from sire_core.models.caching import CachedModel
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.embedder import OpenAIEmbedder
from sire_core.models.openai.faults import RetryPolicy
from sire_core.protocols import Prompt
from sire_core.storage.call_cache import CallStore
from support.http_server import HttpRequest, HttpResponse, LoopbackServer

# What a body says is read alike over both clients; how it travels is tried over both.
pytestmark = [pytest.mark.usefixtures("transport"), pytest.mark.quick(transport=["default"])]
over_both = pytest.mark.quick(transport=["default", "httpx"])

RETRY = RetryPolicy(max_retries=2, base=0.001, cap=0.002, seed=0)
PROMPT = Prompt("Say it.", "Alma lives in Drava.")
KEY = "sk-proj-4f9aQ7secretsecret"


class Town(BaseModel):
    town: str


class Server:
    """Answers each request by a function of its body, and keeps what was asked."""

    def __init__(self, answer) -> None:
        self.answer = answer
        self.bodies: list[dict] = []
        self.requests: list[HttpRequest] = []

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        self.bodies.append(json.loads(request.body or b"{}"))
        self.requests.append(request)
        found = self.answer(self.bodies[-1])
        return found if isinstance(found, HttpResponse) else HttpResponse(body=json.dumps(found).encode())


def whole(text: str | None = "Drava", finish: str | None = "stop", message=None, **more) -> dict:
    said = {"role": "assistant", "content": text, **(message or {})}
    return {"choices": [{"index": 0, "message": said, "finish_reason": finish}], **more}


def stream(*parts, finish: str | None = "stop", last=None) -> HttpResponse:
    async def events():
        for part in parts:
            delta = {"content": part} if isinstance(part, str) else part
            yield f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n".encode()
        end = last or {"choices": [{"delta": {}, "finish_reason": finish}]}
        yield f"data: {json.dumps(end)}\n\n".encode()
        yield b"data: [DONE]\n\n"

    return HttpResponse(parts=events())


def refused(status: int, body, content_type: str = "application/json") -> HttpResponse:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return HttpResponse(status, content, {"content-type": content_type})


def client(running: LoopbackServer, **settings) -> OpenAIChat:
    url = f"http://127.0.0.1:{running.port}/v1"
    return OpenAIChat("m", **{"base_url": url, "retry": RETRY, "timeout": 20.0, **settings})


async def ask(server: Server, schema=None, **settings):
    with LoopbackServer(server) as running:
        async with client(running, **settings) as model:
            return await model.complete(PROMPT, schema=schema, max_tokens=100)


async def ask_twice(server: Server) -> list:
    with LoopbackServer(server) as running:
        async with client(running) as model:
            return [await model.complete(PROMPT, schema=Town) for _ in range(2)]


async def streamed(server: Server, **settings) -> str:
    with LoopbackServer(server) as running:
        async with client(running, **settings) as model:
            return "".join([part async for part in model.stream(PROMPT) if isinstance(part, str)])


FORMS = {
    "openai": {"error": {"message": "REASON", "type": "invalid_request_error", "code": None}},
    "error as text": {"error": "REASON"},
    "detail": {"detail": "REASON"},
    "fastapi list": {"detail": [{"loc": ["body", "messages", 0], "msg": "REASON", "type": "value_error"}]},
    "message": {"object": "error", "message": "REASON", "code": 40303},
    "nested": {"error": {"error": {"message": "REASON"}}},
    "detail object": {"detail": {"error": {"msg": "REASON"}}},
    "list": [{"error": {"message": "REASON", "status": "INVALID_ARGUMENT"}}],
    "errors": {"errors": [{"message": "REASON"}]},
    "json in text": {"error": {"message": '{"detail": "REASON"}'}},
    "label and message": {"statusCode": 400, "message": "REASON", "error": "Bad Request"},
    "error_description": {"error": "invalid_request", "error_description": "REASON"},
    "error is true": {"error": True, "Message": "REASON"},
    "names of its own": {"base_resp": {"status_code": 1004, "status_msg": "REASON"}},
    "plain": "REASON",
    "html": "<html><head><style>p {}</style></head><body><h1>REASON</h1>\n<hr>nginx</body></html>",
}


@pytest.mark.parametrize("form", FORMS)
async def test_the_reason_is_in_the_error(form):
    body = json.loads(json.dumps(FORMS[form]).replace("REASON", "the beam width of 7 is odd"))
    for status in (400, 422, 403, 418):
        with pytest.raises(ModelError, match="the beam width of 7 is odd") as caught:
            await ask(Server(lambda _, status=status: refused(status, body)))
        assert f"HTTP {status}" in str(caught.value)
        assert "<h1>" not in str(caught.value)
    with pytest.raises(ModelError, match=r"failed 3 times.*the beam width of 7 is odd"):
        await ask(Server(lambda _: refused(503, body)))


UNSUPPORTED = "guided decoding with a json schema is not available in this build"


@pytest.mark.parametrize(
    ("form", "status"),
    [*((form, 409) for form in FORMS), *(("openai", status) for status in (400, 405, 415, 422, 424, 500, 501))],
)
async def test_stepping_down_from_any_form_of_error(form, status):
    body = json.loads(json.dumps(FORMS[form]).replace("REASON", UNSUPPORTED))

    def answer(request):
        wanted = request.get("response_format", {}).get("type")
        return refused(status, body) if wanted == "json_schema" else whole('{"town": "Drava"}')

    server = Server(answer)
    assert [answer.parsed for answer in await ask_twice(server)] == [Town(town="Drava")] * 2
    asked = [body.get("response_format", {}).get("type") for body in server.bodies]
    assert asked == ["json_schema", "json_object", "json_object"]
    assert ["JSON object only" in str(body["messages"]) for body in server.bodies] == [False, True, True]


@pytest.mark.parametrize("message", ["", "the backend is unavailable", "structured output is not supported"])
async def test_a_schema_that_is_refused_with_503_is_given_up(message):
    no = refused(503, {"error": {"message": message}} if message else "")
    server = Server(lambda body: no if "response_format" in body else whole('{"town": "D"}'))
    assert [answer.parsed for answer in await ask_twice(server)] == [Town(town="D")] * 2
    assert "response_format" not in server.bodies[-1]


async def test_a_server_that_is_only_busy_keeps_its_schema():
    server = Server(lambda _: refused(503, "") if len(server.bodies) in (2, 3) else whole('{"town": "D"}'))
    assert [answer.parsed for answer in await ask_twice(server)] == [Town(town="D")] * 2
    assert server.bodies[-1]["response_format"]["type"] == "json_schema"


NO_SYSTEM = [
    (400, "System role not supported"),
    (500, "Jinja Exception: System role not supported"),
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    (422, "Only user and assistant roles are supported!"),
    (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
    (500, "Only user, assistant and tool roles are supported"),
]


@pytest.mark.parametrize(("status", "message"), NO_SYSTEM)
async def test_instructions_go_into_the_user_s_message_where_there_is_no_role_for_them(status, message):
    def answer(body):
        has_system = any(said["role"] == "system" for said in body["messages"])
        return refused(status, {"error": {"message": message}}) if has_system else whole('{"town": "D"}')

    server = Server(answer)
    await ask_twice(server)
    assert len(server.bodies) == 3  # seen once, and remembered
    (only,) = server.bodies[-1]["messages"]
    assert only["role"] == "user"
    assert only["content"].startswith("Say it.")
    assert "Alma lives in Drava." in only["content"]
    assert server.bodies[-1]["response_format"]["type"] == "json_schema", "the schema was not what was refused"


@pytest.mark.parametrize("body", ["", "Bad Request", "<html>502 Bad Gateway</html>", "Internal Server Error"])
@pytest.mark.parametrize("status", [400, 422, 500])
async def test_stepping_down_where_the_server_says_nothing(status, body):
    server = Server(lambda request: refused(status, body) if "response_format" in request else whole('{"town": "D"}'))
    assert (await ask(server, Town)).parsed == Town(town="D")


async def test_what_has_worked_is_not_given_up_for_a_bare_refusal():
    with LoopbackServer(
        server := Server(lambda _: whole('{"town": "D"}') if len(server.bodies) != 2 else refused(400, ""))
    ) as running:
        async with client(running) as model:
            await model.complete(PROMPT, schema=Town)
            with pytest.raises(ModelError, match="HTTP 400"):
                await model.complete(PROMPT, schema=Town)
            await model.complete(PROMPT, schema=Town)
    assert {body["response_format"]["type"] for body in server.bodies} == {"json_schema"}


@pytest.mark.parametrize(
    ("status", "words", "advice"),
    [
        (401, "Incorrect API key provided", "check OPENAI_API_KEY"),
        (403, "not allowed", "check OPENAI_API_KEY"),
        (404, "The model `m` does not exist", "check the model's name and base_url"),
        (400, "This model's maximum context length is 4096 tokens; reduce max_tokens", "does not fit the model"),
        (400, "the request exceeds the available context size (n_ctx)", "does not fit the model"),
        (422, "Input validation error: input length 9000 is longer than 4096", "does not fit the model"),
    ],
)
async def test_reasons_are_told_apart(status, words, advice):
    server = Server(lambda _: refused(status, {"detail": words}))
    with pytest.raises(ModelError, match=advice) as caught:
        await ask(server, Town)
    assert words[:20] in str(caught.value)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("temperature", "Unsupported value: 'temperature' does not support 0 with this model."),
        ("max_tokens", "Unsupported parameter: 'max_tokens' is not supported, use 'max_completion_tokens'"),
        ("max_tokens", "max_tokens is too large: 100. This model supports at most 64 completion tokens"),
    ],
)
async def test_parameters_that_a_server_refuses_in_its_own_form(name, words):
    def answer(request):
        too_long = (request.get("max_tokens") or 0) > 64
        is_bad = too_long if "at most" in words else name in request
        return refused(422, {"detail": [{"loc": ["body", name], "msg": words}]}) if is_bad else whole()

    server = Server(answer)
    assert (await ask(server)).text == "Drava"
    assert len(server.bodies) == 2
    assert server.bodies[1].get("max_completion_tokens") == (100 if "max_completion_tokens" in words else None)


@pytest.mark.parametrize("extra", [{"temperature": 7}, {"max_tokens": 10**6}])
async def test_what_a_user_sets_is_not_left_out(extra):
    server = Server(lambda request: refused(400, {"error": {"message": f"unsupported value of {next(iter(extra))}"}}))
    with pytest.raises(ModelError, match="unsupported value of"):
        await ask(server, extra_body=extra)
    assert len(server.bodies) == 1


BROKEN = {
    "error": whole("Dra", "error"),
    "abort": whole("Dra", "abort"),
    "cancelled": whole("Dra", "cancelled"),
    "insufficient_system_resource": whole("Dra", "insufficient_system_resource"),
    "unknown word": whole("Dra", "engine_died"),
    "error beside": whole("Dra", "stop", error={"message": "upstream gave up", "code": 502}),
    "error in the choice": {
        "choices": [{"message": {"content": "Dra"}, "finish_reason": "stop", "error": {"message": "upstream gave up"}}]
    },
    "null choices": {"choices": None, "error": {"message": "upstream gave up"}},
    "no choices": {"error": "upstream gave up"},
    "null choices without a word": {"choices": None},
    "choices that are none": {"choices": []},
    "null choices and words of its own": {"choices": None, "base_resp": {"status_msg": "upstream gave up"}},
    "text": "upstream gave up",
    "a list": [{"detail": "upstream gave up"}],
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_broken_answer_is_asked_for_again_and_never_kept(kind):
    server = Server(lambda _: BROKEN[kind] if len(server.bodies) == 1 else whole("Drava"))
    assert (await ask(server)).text == "Drava"
    assert len(server.bodies) == 2
    store = CallStore()
    with LoopbackServer(forever := Server(lambda _: BROKEN[kind])) as running:
        async with client(running) as model:
            with pytest.raises(ModelError, match=r"upstream gave up|broke off|no message"):
                await CachedModel(model, store).complete(PROMPT)
    assert len(forever.bodies) == 3
    assert store.spent() == []


ENDS = {
    "error": {"choices": [], "error": {"message": "upstream gave up", "code": 502}},
    "error in choice": {"choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "upstream gave up"}}]},
    "error as text": {"error": "upstream gave up"},
    "finish": {"choices": [{"delta": {}, "finish_reason": "abort"}]},
    "an object that is an error": {"object": "error", "message": "upstream gave up", "code": 503},
    "detail": {"detail": [{"msg": "upstream gave up"}]},
}


async def test_a_stream_without_an_end_is_not_passed_for_an_answer():
    event = b'data: {"choices": [{"delta": {"content": "Dra"}}]}\n\n'
    with pytest.raises(ModelError, match="broke off after 3 characters"):
        await streamed(Server(lambda _: HttpResponse(headers={"content-type": "text/event-stream"}, body=event)))


@over_both
@pytest.mark.parametrize("kind", ENDS)
async def test_streams_that_break_off(kind):
    def answer(_):
        return stream(*["Dra"][len(server.bodies) - 1 :], last=ENDS[kind])

    server = Server(answer)
    with pytest.raises(ModelError, match=r"broke off after 3 characters.*(upstream gave up|abort|error occurred)"):
        await streamed(server)
    with pytest.raises(ModelError, match="failed 3 times"):  # before the first word it is asked again
        await streamed(server)
    assert len(server.bodies) == 4


@pytest.mark.parametrize("finish", ["length", "max_tokens", "model_length", "MAX_TOKENS"])
async def test_cut_off_answers_are_known_as_such(finish):
    server = Server(lambda body: whole("Alma lives in Drava. She", finish))
    with LoopbackServer(server) as running:
        async with client(running) as model:
            answer = await model.complete(PROMPT, max_tokens=100)
    assert answer.text == "Alma lives in Drava."
    assert [body["max_tokens"] for body in server.bodies] == [100, 200]


@pytest.mark.parametrize("finish", ["stop", "eos", "eos_token", "end_turn", "stop_sequence", "STOP", None])
async def test_good_endings(finish):
    assert (await ask(Server(lambda _: whole("Drava", finish)))).text == "Drava"


@pytest.mark.parametrize("finish", ["content_filter", "safety", "RECITATION", "content-filter"])
async def test_filtered_answers_are_refusals(finish):
    store = CallStore()
    with LoopbackServer(Server(lambda _: whole("", finish))) as running:
        async with client(running) as model:
            with pytest.raises(RefusalError):
                await CachedModel(model, store).complete(PROMPT)
    assert store.spent() == []


THOUGHTS = 'The town is Drava. {"town": "Drava"}'


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((name, THOUGHTS) for name in ("reasoning_content", "reasoning", "thinking")),
        ("reasoning_details", [{"type": "reasoning.text", "text": THOUGHTS}]),
    ],
)
async def test_an_answer_that_is_only_thoughts_says_where_it_is(field, value):
    thoughts = {field: value}
    server = Server(lambda body: stream(thoughts) if body.get("stream") else whole(None, message=thoughts))
    for how in (ask, streamed):
        with pytest.raises(ModelError, match=f"`{field}`.*enable_thinking"):
            await how(server)
    with pytest.raises(ModelError, match=f"`{field}`"):
        await ask(server, Town)
    with pytest.raises(ModelError, match="only thought, up to its length limit"):
        await ask(Server(lambda _: whole("", "length", message=thoughts)))
    assert (await ask(Server(lambda _: whole("Drava", message=thoughts)))).text == "Drava"


@pytest.mark.parametrize(
    "before",
    [
        "<think>Perhaps {}</think>",
        "Perhaps {}</think>",
        "<seed:think>Perhaps {}</seed:think>",
        "\u25c1think\u25b7Perhaps {}\u25c1/think\u25b7",
        "<thought>Perhaps {}</thought>",
        "<|channel|>analysis<|message|>Perhaps {}<|end|><|start|>assistant<|channel|>final<|message|>",
    ],
)
async def test_thoughts_before_an_answer_are_no_part_of_it(before):
    said = before.replace("{}", '{"town": "Arle"}')
    assert (await ask(Server(lambda _: whole(f"{said}In <reasoning> Drava.")))).text == "In <reasoning> Drava."
    assert (await ask(Server(lambda _: whole(f'{said}{{"town": "Drava"}}')), Town)).parsed == Town(town="Drava")


USAGES = [
    *("text", 5, [1], {}, {"prompt_tokens": "12"}, {"prompt_tokens": {"total": 3}}, {"prompt_tokens": -5_000_000}),
    *({"prompt_tokens": 1e999, "completion_tokens": 1}, {"prompt_tokens": 40, "completion_tokens": -(10**9)}),
    *({"prompt_tokens": True, "completion_tokens": None}, {"prompt_tokens": 0, "completion_tokens": 0}),
    *({"prompt_tokens": 10**30, "completion_tokens": 10**30}, {"prompt_tokens": 12.5}, {"prompt_tokens": 1}),
]


@pytest.mark.parametrize("usage", USAGES, ids=str)
async def test_a_limit_holds_whatever_a_server_says_of_usage(usage):
    server = Server(lambda body: whole("Drava. " * 20, usage=usage))
    long = Prompt("Say it.", "Alma lives in Drava. " * 40)
    with LoopbackServer(server) as running:
        async with client(running, limits=UsageLimits(max_tokens=3_000), concurrency=2) as model:
            with suppress(LimitExceededError):
                for _ in range(100):
                    await model.complete(long, max_tokens=100)
            assert 3 <= len(server.bodies) <= 40
            used = model.meter.report().total
            assert 0 < used.input_tokens + used.output_tokens <= 3_000


def packed(text: bytes, how: str) -> HttpResponse:
    body = {"gzip": gzip.compress, "deflate": zlib.compress}.get(how, bytes)(text)
    return HttpResponse(200, body, {"content-encoding": how})


@over_both
@pytest.mark.parametrize("how", ["gzip", "deflate"])
async def test_what_is_unpacked_is_bounded(how, monkeypatch):
    assert (await ask(Server(lambda _: packed(json.dumps(whole()).encode(), how)))).text == "Drava"
    bomb = packed(json.dumps(whole("a" * 40_000_000)).encode(), how)
    assert len(bomb.body) < 100_000
    server = Server(lambda _: bomb)
    with pytest.raises(ModelError, match="longer than"):
        await ask(server)
    assert len(server.bodies) == 1
    monkeypatch.setattr("sire_core.models.openai.embedder._MAX_BYTES", 1_000_000)
    with LoopbackServer(server) as running:
        embedder = OpenAIEmbedder("m", base_url=f"http://127.0.0.1:{running.port}/v1", retry=RETRY)
        with pytest.raises(ModelError, match="longer than"):
            await embedder.embed(["text"])
        await embedder.aclose()
    assert len(server.bodies) == 2


@pytest.mark.parametrize("how", ["br", "zstd", "gzip, gzip", "x-unknown"])
async def test_what_cannot_be_unpacked_up_to_a_bound_is_refused(how):
    server = Server(lambda _: packed(json.dumps(whole()).encode(), how))
    with pytest.raises(ModelError, match="packed as"):
        await ask(server)
    assert len(server.bodies) == 1
    assert server.requests[0].headers["accept-encoding"] == "gzip, deflate"


@over_both
async def test_half_of_a_packed_body_is_asked_for_again():
    whole_body = gzip.compress(json.dumps(whole()).encode())

    def answer(_):
        cut = whole_body[: len(whole_body) // 2] if len(server.bodies) == 1 else whole_body
        return HttpResponse(200, cut, {"content-encoding": "gzip"})

    server = Server(answer)
    assert (await ask(server)).text == "Drava"


ECHOES = [f"Your key {KEY} is fine: Drava", f"Authorization: Bearer {KEY}", "Bearer eyJhbGciOi.J9abcdefghijk", KEY]


def holds_key(text: str) -> bool:
    return KEY in text or KEY[3:] in text or "eyJhbGciOi.J9abcdefghijk" in text


@pytest.mark.parametrize("echo", ECHOES)
async def test_a_key_that_is_sent_back_is_not_stored_logged_or_shown(echo, caplog, tmp_path):
    caplog.set_level(logging.DEBUG, logger="sire_core")
    pieces = [echo[at : at + 3] for at in range(0, len(echo), 3)]
    server = Server(lambda body: stream(*pieces) if body.get("stream") else whole(echo))
    assert not holds_key(await streamed(server, api_key=KEY))
    store = CallStore(tmp_path / "calls.sqlite")
    with LoopbackServer(server) as running:
        async with client(running, api_key=KEY) as model:
            answer = await CachedModel(model, store, "s").complete(PROMPT)
    assert not holds_key(answer.text)
    assert "[key removed]" in answer.text
    store.close()
    assert not holds_key((tmp_path / "calls.sqlite").read_bytes().decode("latin-1"))
    for status, body in ((400, {"detail": echo}), (401, echo), (503, {"error": {"message": echo}}), (422, [echo])):
        with pytest.raises(ModelError) as caught:
            await ask(Server(lambda _, status=status, body=body: refused(status, body)), api_key=KEY)
        said = [str(caught.value), repr(caught.value)]
        cause = caught.value.__cause__
        while cause is not None:
            said.append(str(cause))
            cause = cause.__cause__
        assert not any(map(holds_key, said))
    with pytest.raises(ModelError) as caught:
        await ask(Server(lambda _: {"error": {"message": echo, "code": 400}}), api_key=KEY)
    assert not holds_key(str(caught.value))
    assert not holds_key(caplog.text)


@pytest.mark.parametrize("key", ["ollama", "lm-studio", "unused", "EMPTY", None])
async def test_words_that_stand_for_a_key_are_words(key):
    text = "ollama and lm-studio are unused here, EMPTY too; the ask-me-anything-about-sk form, Bearer of news."
    server = Server(lambda body: stream(text) if body.get("stream") else whole(text))
    assert (await ask(server, api_key=key)).text == text
    assert await streamed(server, api_key=key) == text


@pytest.mark.parametrize(("credentials", "header"), [("eve:s%2Fcret%40", "eve:s/cret@"), ("eve", "eve:")])
@pytest.mark.parametrize("way", ["argument", "environment", "client_options"])
async def test_a_user_and_password_in_the_address_reach_the_server(monkeypatch, credentials, header, way):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-server")
    server = Server(lambda _: whole())
    with LoopbackServer(server) as running:
        address = f"http://{credentials}@127.0.0.1:{running.port}/v1"
        if way == "environment":
            monkeypatch.setenv("OPENAI_BASE_URL", address)
        arguments = {"argument": {"base_url": address}, "client_options": {"client_options": {"base_url": address}}}
        async with OpenAIChat("m", **arguments.get(way, {})) as model:
            await model.complete(PROMPT)
    assert server.requests[0].headers["authorization"] == f"Basic {b64encode(header.encode()).decode()}"


async def test_an_address_that_is_none_or_has_two_keys_is_refused_at_once():
    for address in ("127.0.0.1:9/v1", "htp://x/v1", "http://", "http://[::1:80/v1", "http://eve:hid/den@x/v1"):
        with pytest.raises(ConfigurationError, match="is no http address") as refused:
            OpenAIChat("m", base_url=address)
        assert "hid" not in str(refused.value)
    with pytest.raises(ConfigurationError, match="leave api_key out"):
        OpenAIChat("m", base_url="http://eve:secret@127.0.0.1/v1", api_key=KEY)
    async with OpenAIChat("m", base_url="http://eve:secret@127.0.0.1:1/v1") as model:
        with pytest.raises(ModelError, match="the connection was refused") as unreachable:
            await model.complete(PROMPT)
    assert "secret" not in str(unreachable.value)


@over_both
async def test_redirects_compare_the_port_and_send_no_credentials():
    other = Server(lambda _: whole())
    with LoopbackServer(other) as elsewhere:
        for location in (
            f"http://127.0.0.1:{elsewhere.port}/v1/chat/completions",
            f"https://127.0.0.1:{elsewhere.port}/v1/chat/completions",
            f"http://user:secret@127.0.0.1:{elsewhere.port}/v1",
            f"http://localhost:{elsewhere.port}/v1/chat/completions",
        ):
            for status in (301, 302, 307, 308):
                server = Server(lambda _, s=status, location=location: HttpResponse(s, b"", {"location": location}))
                with pytest.raises(
                    ModelError, match=rf"redirects to https?://(127\.0\.0\.1|localhost):{elsewhere.port}"
                ):
                    await ask(server, api_key=KEY)
    assert other.requests == []
    moved = HttpResponse(status=307, headers={"location": "/v2/chat/completions"})
    server = Server(lambda _: moved if server.requests[-1].path.startswith("/v1/chat") else whole())
    assert (await ask(server)).text == "Drava"

    def same(body):
        if len(server.bodies) == 1:
            return HttpResponse(307, b"", {"location": f"http://eve:hidden@127.0.0.1:{port[0]}/v1/chat/completions"})
        return whole()

    port: list[int] = []
    server = Server(same)
    with LoopbackServer(server) as running:
        port.append(running.port)
        async with client(running, api_key=KEY) as model:
            with suppress(ModelError):
                await model.complete(PROMPT)
    assert not any("ZXZl" in request.headers.get("authorization", "") for request in server.requests)


async def drip(part: bytes, pause: float, times: int = 10_000):
    for _ in range(times):
        yield part
        await asyncio.sleep(pause)


@over_both
@pytest.mark.parametrize("how", [ask, streamed])
async def test_a_server_that_sends_a_byte_now_and_then_is_left_at_the_deadline(how):
    server = Server(lambda _: HttpResponse(headers={"content-type": "application/json"}, parts=drip(b" ", 0.05)))
    started = time.monotonic()
    with pytest.raises(ModelError, match="not complete after"):
        await how(server, deadline=0.6)
    assert time.monotonic() - started < 10
    assert len(server.bodies) == 1  # the next answer would drip as well


async def test_an_endless_stream_of_events_ends_at_the_deadline():
    server = Server(lambda _: HttpResponse(parts=drip(b": still here\n\n", 0.02)))
    with pytest.raises(ModelError, match="not complete after"):
        await streamed(server, deadline=0.6)


@over_both
@pytest.mark.parametrize("how", [ask, streamed])
async def test_a_body_without_end_is_refused(how, monkeypatch):
    monkeypatch.setattr("sire_core.models.openai.client._MAX_BYTES", 100_000)
    server = Server(lambda _: HttpResponse(headers={"content-type": "application/json"}, parts=drip(b"1" * 5000, 0)))
    with pytest.raises(ModelError, match="longer than 100,000 bytes"):
        await how(server)
    assert len(server.bodies) == 1


NESTED = b'{"choices": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"


@pytest.mark.parametrize(
    "body",
    [NESTED, b'{"choices": ' + b"1" * 10_000 + b"}", b"\xff\xfe{}", b'{"choices": 5}', b'{"choices": [5]}', b"[]"],
)
@pytest.mark.parametrize("how", [ask, streamed])
async def test_answers_that_no_parser_takes_are_one_clear_error(how, body):
    with pytest.raises(ModelError):
        await how(Server(lambda _: HttpResponse(body=body)))


@pytest.mark.parametrize("nested", [NESTED, b'{"choices": [5]}', b'{"choices": [{"delta": 5}]}', b'{"choices": 5}'])
async def test_events_that_no_parser_takes_are_one_clear_error(nested):
    with pytest.raises(ModelError):
        await streamed(Server(lambda _: HttpResponse(parts=drip(b"data: " + nested + b"\n\n", 0, 2))))


@over_both
async def test_a_slow_model_is_asked_for_a_stream_and_its_answer_is_kept():
    """Three tokens a second take longer than one waits for news, but there is always news."""

    async def slowly():
        for piece in ("Alma ", "lives ", "in ", "Drava"):
            await asyncio.sleep(0.15)
            yield f"data: {json.dumps({'choices': [{'delta': {'content': piece}}]})}\n\n".encode()
        yield b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'

    async def silence():
        await asyncio.sleep(5)
        yield b"{}"

    server = Server(lambda body: HttpResponse(parts=slowly() if body.get("stream") else silence()))
    with LoopbackServer(server) as running:
        async with client(running, timeout=0.4, retry=replace(RETRY, max_retries=1)) as model:
            for _ in range(2):
                assert (await model.complete(PROMPT)).text == "Alma lives in Drava"
    assert [bool(body.get("stream")) for body in server.bodies] == [False, True, True]
