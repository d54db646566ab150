"""The servers that people run, scripted from their public documentation: each builds and answers a small corpus.

A row is what one server does in its own way: the forms of structured output and the parameters it refuses, what it says
beside an answer, how a stream looks, and its errors in its own form.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from sire_core import Document, Index
from sire_core.errors import ModelError
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.embedder import OpenAIEmbedder
from sire_core.models.openai.faults import RetryPolicy
from sire_core.protocols import Prompt
from sire_core.testing.doubles import default_script
from support.chat_frames import json_response
from support.command import run
from support.http_server import HttpRequest, HttpResponse
from support.scripted_server import ScriptedServer

RETRY = RetryPolicy(max_retries=3, base=0.001, cap=0.002, seed=0)
LONG = 6_000  # Most characters of a text that a server takes


def said(message: str, kind: str | None = "invalid_request_error", code: Any = None, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


@dataclass(frozen=True)
class Row:
    """One server. Errors are a status and a body; a body that is text is sent as it is.

    Attributes:
        key: For a wrong key.
        model: For an unknown model.
        long: For a prompt over the context; `embeds` for a text to embed, where it differs.
        busy: Answers to the first requests, in the place of good ones.
        forms: Forms of structured output that are known, and the error for others; `{form}` is what was asked for.
        refuses: Parameters that are refused, and how.
        message: More fields of the message, and `choice` of the choice, `top` of the answer.
        before: What comes before the text of a message.
        finish: Why a good answer ends.
        lines: What a stream begins with.
        done: Whether a stream ends with `[DONE]`.
        floats: Whether embeddings come as numbers, whatever is asked for.
    """

    key: tuple[int, Any]
    model: tuple[int, Any]
    long: tuple[int, Any]
    embeds: tuple[int, Any] | None = None
    busy: Sequence[tuple[int, Any]] = ()
    forms: Sequence[str] = ("json_schema", "json_object")
    bad_form: tuple[int, Any] = (400, said("unknown response_format"))
    refuses: Mapping[str, tuple[int, Any]] = field(default_factory=dict)
    message: Mapping[str, Any] = field(default_factory=dict)
    choice: Mapping[str, Any] = field(default_factory=dict)
    top: Mapping[str, Any] = field(default_factory=dict)
    before: str = ""
    finish: str = "stop"
    lines: Sequence[str] = ()
    done: bool = True
    floats: bool = False


def broken(finish: str | None, text: str | None = "Hal", **more: Any) -> tuple[int, Any]:
    message = {"role": "assistant", "content": text}
    return 200, {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}


def vllm(message: str, kind: str = "BadRequestError", code: int = 400) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


CONTEXT = (
    "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens. Please reduce the length"
)
EMPTY_CHUNK = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": [{}]}
SERVERS = {
    "openai": Row(
        key=(401, said("Incorrect API key provided: sk-no.", code="invalid_api_key")),
        model=(404, said("The model `m` does not exist or you do not have access to it.", code="model_not_found")),
        long=(400, said(CONTEXT, code="context_length_exceeded")),
        busy=[(429, said("Rate limit reached for m on tokens per min.", "tokens", "rate_limit_exceeded"))],
        refuses={
            "max_tokens": (400, said("Unsupported parameter: 'max_tokens' is not supported with this model.")),
            "temperature": (400, said("Unsupported value: 'temperature' does not support 0 with this model.")),
        },
        message={"refusal": None, "annotations": []},
        choice={"logprobs": None},
    ),
    "azure": Row(
        key=(401, {"statusCode": 401, "message": "Unauthorized. Access token is missing, invalid or expired."}),
        model=(404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}}),
        long=(400, said(CONTEXT, code="context_length_exceeded", status=400)),
        busy=[(429, {"error": {"code": "429", "message": "Requests have exceeded call rate limit. Retry after 1 s."}})],
        bad_form=(
            400,
            said("response_format value as json_schema is enabled only for api versions 2024-08-01-preview"),
        ),
        forms=["json_object"],
        choice={"content_filter_results": {"hate": {"filtered": False, "severity": "safe"}}},
        top={"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]},
        lines=[f"data: {json.dumps(EMPTY_CHUNK)}\n\n"],
    ),
    "vllm": Row(
        key=(401, {"error": "Unauthorized"}),
        model=(404, vllm("The model `m` does not exist.", "NotFoundError", 404)),
        long=(400, vllm(CONTEXT)),
        busy=[broken("abort"), (503, "Service Unavailable")],
        message={"reasoning_content": None, "tool_calls": [], "function_call": None},
        choice={"stop_reason": None, "token_ids": None},
        top={"prompt_logprobs": None, "kv_transfer_params": None},
    ),
    "llama.cpp": Row(
        key=(401, {"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}}),
        model=(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}),
        long=(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing",
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 4390,
                    "n_ctx": 4096,
                }
            },
        ),
        embeds=(500, said("input is too large to process. increase the physical batch size", "server_error", 500)),
        busy=[(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})] * 2,
        top={"timings": {"prompt_n": 1, "predicted_per_second": 9.5}, "system_fingerprint": "b6432"},
        lines=['data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}\n\n'],
    ),
    "llama-cpp-python": Row(
        key=(401, {"detail": "Invalid API key"}),
        model=(404, {"detail": "Not Found"}),
        long=(500, said("Requested tokens (5136) exceed context window of 4096", "internal_server_error")),
        busy=[(500, said("llama_decode returned -1", "internal_server_error"))],
        forms=["json_object"],
        bad_form=(
            422,
            {"detail": [{"type": "literal_error", "loc": ["body", "response_format", "type"], "msg": "not {form}"}]},
        ),
        choice={"logprobs": None},
        floats=True,
    ),
    "ollama": Row(
        key=(403, ""),
        model=(404, said('model "m" not found, try pulling it first', "not_found_error")),
        long=(400, said("the input length exceeds the context length", "api_error")),
        busy=[(503, said("server busy, please try again. maximum pending requests exceeded", "api_error"))],
        message={"reasoning": "The user wants JSON."},
        top={"system_fingerprint": "fp_ollama"},
        floats=True,
    ),
    "lm studio": Row(
        key=(401, {"error": "Unauthorized: the API token is not valid"}),
        model=(404, {"error": "No models loaded. Please load a model in the developer page."}),
        long=(400, {"error": "the model is loaded with context length of only 4096 tokens, which is not enough"}),
        busy=[(200, {"error": "The model has crashed without additional information. (Exit code: 6)"})],
        forms=["json_schema", "text"],
        bad_form=(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}),
        top={"stats": {}, "system_fingerprint": "m"},
        floats=True,
    ),
    "litellm": Row(
        key=(401, said("Authentication Error, LiteLLM Virtual Key expected.", "auth_error", "401")),
        model=(400, said("/chat/completions: Invalid model name passed in model=m. Call `/v1/models`", None, "400")),
        long=(400, said(f"litellm.ContextWindowExceededError: OpenAIException - {CONTEXT}", None, "400")),
        busy=[(429, said("litellm.RateLimitError: No deployments available. Try again in 0 seconds", None, "429"))],
        refuses={
            "temperature": (400, said("litellm.UnsupportedParamsError: m does not support parameters: ['temperature']"))
        },
        message={"provider_specific_fields": {"refusal": None}, "tool_calls": None, "function_call": None},
    ),
    "openrouter": Row(
        key=(401, {"error": {"message": "No auth credentials found", "code": 401}, "user_id": "u"}),
        model=(400, {"error": {"message": "m is not a valid model ID", "code": 400}}),
        long=(200, {"error": {"message": CONTEXT, "code": 400, "metadata": {"provider_name": "X", "raw": "{}"}}}),
        busy=[
            (200, {"error": {"message": "Provider returned error", "code": 502, "metadata": {"provider_name": "X"}}}),
            broken("error", native_finish_reason="error"),
            (200, {"choices": None, "error": {"message": "upstream gave up", "code": 502}}),
        ],
        message={"refusal": None, "reasoning": None},
        choice={"native_finish_reason": "completed", "logprobs": None},
        lines=[": OPENROUTER PROCESSING\n\n"] * 3,
    ),
    "tgi": Row(
        key=(401, {"error": "Invalid credentials in Authorization header"}),
        model=(404, ""),
        long=(
            422,
            {
                "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000 "
                "`inputs` tokens and 100 `max_new_tokens`",
                "error_type": "validation",
            },
        ),
        embeds=(
            413,
            {"error": "Input validation error: `inputs` must have less than 512 tokens. Given: 1699", "type": "V"},
        ),
        busy=[(429, {"error": "Model is overloaded", "error_type": "overloaded"})],
        forms=[],
        bad_form=(
            422,
            "Failed to deserialize the JSON body: response_format: unknown variant `{form}`, expected regex",
        ),
        refuses={"temperature": (422, {"error": "Input validation error: `temperature` must be strictly positive"})},
        finish="eos_token",
        done=False,
    ),
    "deepseek": Row(
        key=(401, said("Authentication Fails, Your api key: ****no is invalid", "authentication_error")),
        model=(400, said("Model Not Exist")),
        long=(400, said(CONTEXT)),
        busy=[broken("insufficient_system_resource")] * 2,
        forms=["json_object"],
        bad_form=(400, said("This response_format type is unavailable now")),
        message={"reasoning_content": "First I look at the passage."},
        top={"usage": {"prompt_tokens": 3, "completion_tokens": 5, "prompt_cache_hit_tokens": 0}},
        lines=[": keep-alive\n\n", 'data: {"choices":[{"delta":{"reasoning_content":"Hm.","content":null}}]}\n\n'],
    ),
    "sglang, thinking": Row(
        key=(401, {"error": "Unauthorized"}),
        model=(404, vllm("Model m not found", "NotFoundError", 404)),
        long=(400, vllm("The input (9000 tokens) is longer than the model's context length (4096 tokens).")),
        busy=[broken("abort", "<think>Hm.")],
        before="<think>\nThe passage says so.\n</think>\n\n",
        choice={"matched_stop": 151645},
    ),
}


class Dialect(ScriptedServer):
    """A server in the manner of a row."""

    def __init__(self, row: Row, wrong: tuple[int, Any] | None = None) -> None:
        super().__init__(script)
        self.row, self.wrong, self.left_to_fail = row, wrong, list(row.busy)

    async def _handle(self, request: HttpRequest) -> HttpResponse:
        body = json.loads(request.body or b"{}")
        found = self.wrong or self._error(request.path, body)
        if found is not None:
            text = found[1] if isinstance(found[1], str) else json.dumps(found[1])
            kind = "text/plain" if isinstance(found[1], str) else "application/json"
            asked = str((body.get("response_format") or {}).get("type"))
            return HttpResponse(found[0], text.replace("{form}", asked).encode(), {"content-type": kind})
        if request.path.endswith("/embeddings") and self.row.floats:
            body.pop("encoding_format", None)
        request = HttpRequest(request.method, request.path, json.dumps(body).encode(), request.headers)
        response = await super()._handle(request)
        if response.parts is not None:
            return HttpResponse(parts=self._stream_of(response.parts))
        return json_response(self._answer_of(json.loads(response.body))) if "messages" in body else response

    def _error(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any] | None:
        row = self.row
        if path.endswith("/embeddings"):
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            return (row.embeds or row.long) if max(map(len, texts)) > LONG else None
        for name, error in row.refuses.items():
            if name in body and (name != "temperature" or body[name] == 0):
                return error
        form = body.get("response_format")
        if form is not None and form["type"] not in row.forms:
            return row.bad_form
        if len(str(body["messages"][-1]["content"])) > LONG:
            return row.long
        return self.left_to_fail.pop(0) if self.left_to_fail else None

    def _answer_of(self, answer: dict[str, Any]) -> dict[str, Any]:
        (choice,) = answer["choices"]
        choice["message"]["content"] = self.row.before + (choice["message"]["content"] or "")
        choice["message"] |= self.row.message
        return (
            answer | {"choices": [choice | self.row.choice | {"finish_reason": self.row.finish}]} | dict(self.row.top)
        )

    async def _stream_of(self, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        for line in self.row.lines:
            yield line.encode()
        if self.row.before:
            yield f"data: {json.dumps({'choices': [{'delta': {'content': self.row.before}}]})}\n\n".encode()
        async for part in parts:
            if self.row.done or b"[DONE]" not in part:
                yield part.replace(b'"finish_reason": "stop"', f'"finish_reason": "{self.row.finish}"'.encode())


def script(call: Any) -> str:
    if "citations" in call.instructions:
        return json.dumps({"answer": "Drava", "citations": [1], "sufficient": True})
    return default_script(call)


DOCUMENTS = [
    *(
        Document(f"d{n}", f"Alma {n} lives in Drava. Alma {n} founded the mill of {town}.", f"Alma {n}")
        for n, town in enumerate(["Arle", "Brinn", "Corvo", "Delme"])
    ),
    Document("long", "The mill stands on a hill. " * 300, "Long"),
]


IDS = {(document.id,) for document in DOCUMENTS}


def words_of(error: tuple[int, Any]) -> str:
    """What a server says in an error, in short."""
    body = error[1]
    while isinstance(body, dict):
        body = body.get("error") or body.get("message") or body.get("detail")
    return str(body)[:30]


@pytest.mark.parametrize("name", SERVERS)
def test_every_server_builds_and_answers(tmp_path, monkeypatch, name):
    row = SERVERS[name]
    with Dialect(row) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        model, embedder = OpenAIChat("m", retry=RETRY, timeout=10.0), OpenAIEmbedder("m", retry=RETRY)
        with Index(
            tmp_path / "ix", recipe="sire", language_model=model, embedder=embedder, chunker=None, max_failure_ratio=0.5
        ) as index:
            (failure,) = index.build(DOCUMENTS).failures
            assert failure.where == "long#0"  # whose vector is of its beginning
            assert words_of(row.long) in failure.reason
            assert "does not fit the model" in failure.reason
            assert server.left_to_fail == []
            assert {hit.doc_ids for hit in index.search("Alma and the mill", 9)} == IDS
        asked = run("ask", tmp_path / "ix", "Where does Alma 2 live?", "-k", 3, "--llm", "m")
    assert "Answer: Drava" in asked.output
    assert "think" not in asked.output


async def complete(server: Dialect) -> None:
    async with OpenAIChat("m", base_url=server.base_url, retry=RETRY) as model:
        await model.complete(Prompt("Say it.", "Alma lives in Drava."))


async def embed(server: Dialect) -> None:
    async with OpenAIEmbedder("m", base_url=server.base_url, retry=RETRY) as embedder:
        await embedder.embed(["text"])


@pytest.mark.parametrize("what", ["key", "model"])
@pytest.mark.parametrize("name", SERVERS)
async def test_every_server_is_quoted(name, what):
    error = getattr(SERVERS[name], what)
    with Dialect(SERVERS[name], wrong=error) as server:
        for ask in (complete, embed):
            with pytest.raises(ModelError) as caught:
                await ask(server)
            message = str(caught.value)
            assert f"HTTP {error[0]}" in message
            assert words_of(error) in message
            assert what == "model" or "OPENAI_API_KEY" in message


@pytest.mark.parametrize("name", SERVERS)
async def test_every_server_streams(name):
    """Half answers are errors as soon as a word was passed on; see test_model_servers."""
    row = SERVERS[name]
    with Dialect(replace(row, busy=[slip for slip in row.busy if slip[0] != 200])) as server:
        server.script = lambda _: "The mill is in Drava."
        async with OpenAIChat("m", base_url=server.base_url, retry=RETRY) as model:
            parts = [part async for part in model.stream(Prompt("Say it.", "Alma lives in Drava."))]
    assert "".join(part for part in parts if isinstance(part, str)) == f"{row.before}The mill is in Drava."
    assert parts[-1].text == "The mill is in Drava."
    assert server.left_to_fail == []
