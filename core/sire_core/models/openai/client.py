"""Chat models behind any OpenAI-compatible endpoint."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pydantic import BaseModel
from typing_extensions import Unpack

from sire_core.arguments import explains_keywords, lists_options
from sire_core.errors import ConfigurationError, ModelError, UnusableAnswerError
from sire_core.models.answer_parsing import schema_hint, schema_name, strict_json_schema
from sire_core.models.base import AnswerParts, CheckedModel
from sire_core.models.openai.endpoint import OpenAIEndpoint, RequestForm, ServerOptions
from sire_core.models.openai.faults import (
    CONTEXT_WORDS,
    FORM_WORDS,
    SYSTEM_WORDS,
    is_timeout,
    status_of,
    words_of,
    words_or_all,
)
from sire_core.models.openai.responses import ResponseBounds, finish_of, joined, thoughts_of
from sire_core.models.prompt_format import render
from sire_core.models.usage import credible_tokens, estimate_tokens
from sire_core.models.usage_meter import UsageMeter
from sire_core.protocols import Completion, ModelRequest
from sire_core.settings import refuse_untrusted
from sire_core.telemetry import TraceSpan, start
from sire_core.types import digest

_MAX_BYTES = 16 * 2**20
_IMAGE_TOKENS = 800
_IMAGE_TYPES = ((b"\x89PNG", "png"), (b"\xff\xd8", "jpeg"), (b"GIF8", "gif"), (b"RIFF", "webp"))

FORMATS = ("json_schema", "json_object", "none")  # Forms of structured output, strongest first

_UNKNOWN_WORDS = re.compile(r"unsupported|unrecognized|unknown|not support|extra", re.IGNORECASE)
_SILENT_REFUSALS = frozenset({400, 415, 422, 500, 501, 503})
_AT_MOST = re.compile(r"(?:at most|maximum(?: value)?(?: of| is|:)?|<=|less than or equal to|up to)\D{0,12}(\d{1,7})")
_TOKEN_WORDS = re.compile(r"max_tokens|max_completion_tokens", re.IGNORECASE)


@dataclass(slots=True)
class Features:
    """Features of a server, learnt from its refusals.

    Shared by every copy of a client. Only ever steps down, so that concurrent calls agree.
    """

    format: int = 0  # Index into `FORMATS`
    fixed: bool = False  # Whether the user chose the format; then it is not changed
    # Name of the answer's length limit; newer models want `max_completion_tokens`
    token_key: str = "max_tokens"  # noqa: S105 - tokens of text
    # What the server refuses (`temperature`, `stop`, `stream_options`, `stream`, messages of the role `system`)
    left_out: set[str] = field(default_factory=set)
    slow: bool = False  # Whether a whole answer took longer than one waits without news; then answers are streamed
    confirmed: int = -1  # Index of the weakest format that the server has answered; -1 for none
    most_tokens: int | None = None  # Longest answer that the server takes; None where it has not said

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """The part of a request that depends on what the server supports."""
        body: dict[str, Any] = {}
        if "temperature" not in self.left_out:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            body[self.token_key] = min(request.max_tokens, self.most_tokens or request.max_tokens)
        if request.stop and "stop" not in self.left_out:
            body["stop"] = list(request.stop)
        schema: type[BaseModel] | None = request.schema
        if schema is not None and FORMATS[self.format] == "json_schema":
            form = {"name": schema_name(schema), "strict": True, "schema": strict_json_schema(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif schema is not None and FORMATS[self.format] == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def streaming(self) -> dict[str, Any]:
        """Fields that ask for a stream of events that ends with the usage; empty if the server refuses them."""
        wanted: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
        if "stream" in self.left_out:
            return {}
        return {name: value for name, value in wanted.items() if name not in self.left_out}

    def step_down(self, body: dict[str, Any], message: str, status: int) -> bool:
        """Learn from the refusal of a request; whether to send it again in another form."""
        if CONTEXT_WORDS.search(message):
            return False
        if ("max_tokens" in body or "max_completion_tokens" in body) and _TOKEN_WORDS.search(message):
            return self._other_token_key(body, message)
        if refused := _refused(body, message):
            self.left_out.add(refused)
            return True
        used = body.get("response_format", {}).get("type")
        if used is None or self.fixed:
            return False
        # Many say nothing that can be understood; what has worked before is not given up for that.
        guessed = status in _SILENT_REFUSALS and self.confirmed < FORMATS.index(used)
        if not guessed and not FORM_WORDS.search(message):
            return False
        self.format = max(self.format, FORMATS.index(used) + 1)
        return True

    def _other_token_key(self, body: dict[str, Any], message: str) -> bool:
        used, other = "max_tokens", "max_completion_tokens"
        if other in body:
            used, other = other, used
        if self.token_key == other:  # another call learnt it meanwhile
            return True
        if other in message or _UNKNOWN_WORDS.search(message):
            self.token_key = other
            return True
        limit = _AT_MOST.search(message)
        if limit is None or not 0 < int(limit[1]) < body[used]:
            return False
        self.most_tokens = int(limit[1])
        return True

    def confirm(self, body: dict[str, Any]) -> None:
        """Remember that a request in this form was answered."""
        used = body.get("response_format", {}).get("type")
        if used is not None:
            self.confirmed = max(self.confirmed, FORMATS.index(used))


def _refused(body: dict[str, Any], message: str) -> str:
    """The part of a request that a message refuses and that may be left out; empty if there is none."""
    if SYSTEM_WORDS.search(message) and any(each["role"] == "system" for each in body.get("messages", ())):
        return "system"
    for name in ("temperature", "stop", "stream_options", "stream"):
        if name in body and re.search(rf"\b{name}(?:ing)?\b", message):  # "streaming is not supported"
            return name
    return ""


class OpenAIChat(OpenAIEndpoint, CheckedModel):
    """A `StreamingModel` over the official `openai` package: OpenAI, Azure, vLLM, llama.cpp, Ollama and others.

    Structured output is used if the server supports it: `json_schema`, else `json_object`, else the schema is in the
    prompt; what the server refuses is not tried again. Requests are retried after rate limits, server errors, time-outs
    and broken connections; the number of concurrent requests adapts to the server. It can be used from several event
    loops; `aclose` (or `async with`) closes the connections.

    The fingerprint is the model's name, `revision` and `extra_body`. It does not include the address, so stored answers
    remain valid after a move to another server of the same model. If one name can stand for different models (llama.cpp
    accepts any name), distinguish them by `revision`.

    Args:
        model: Name of the model; for Azure, of the deployment.
        timeout: Seconds without new data from the server. If a whole answer takes longer, later requests stream, so
            slow servers work, too.
        deadline: Maximum seconds for a whole answer.
        structured: `auto`, `json_schema`, `json_object` or `none`.
        vision: Whether prompts may contain images.
        extra_body: Additional fields of every request (`top_p`, `seed`, `reasoning_effort` …). They are included
            unchanged in pickles of the model, so use `OPENAI_API_KEY` for a key, never this argument.
        revision: Free text; part of the fingerprint.
        **server: See `ServerOptions`: `base_url`, `api_key`, `max_retries`, `retry`, `limits`, `concurrency` and
            `client_options`.

    Raises:
        ConfigurationError: The `openai` package is missing, or a setting is invalid.
    """

    @explains_keywords()
    @lists_options(ServerOptions)
    def __init__(
        self,
        model: str,
        *,
        timeout: float = 60.0,
        deadline: float = 900.0,
        structured: str = "auto",
        vision: bool = False,
        extra_body: Mapping[str, Any] | None = None,
        revision: str = "",
        **server: Unpack[ServerOptions],
    ) -> None:
        super().__init__(model, timeout=timeout, bounds=ResponseBounds(deadline, _MAX_BYTES), **server)
        self.vision = vision
        self._extra = dict(extra_body or {})
        self._revision = revision
        if structured not in ("auto", *FORMATS):
            raise ConfigurationError(f"structured must be auto, {', '.join(FORMATS)}, not {structured!r}")
        self._features = Features() if structured == "auto" else Features(FORMATS.index(structured), fixed=True)

    @property
    def fingerprint(self) -> str:
        """The model and the settings that change its answers; not its address."""
        parts = ["openai", self.model]
        if self._revision:
            parts.append(self._revision)
        if self._extra:
            parts.append(digest(json.dumps(self._extra, sort_keys=True, default=str), size=6))
        return ":".join(parts)

    def metered(self, meter: UsageMeter, stage: str = "") -> OpenAIChat:
        """A copy that also counts every request on `meter`; connections and what was learnt are shared."""
        twin = copy(self)
        twin._meters = (*self._meters, (meter, stage))  # noqa: SLF001 - a copy of ourselves
        return twin

    async def send(self, request: ModelRequest) -> Completion:
        """Send one request in the strongest form that the server accepts."""
        form = _ChatForm(self, self._features, self._extra, request, pass_on=False)
        with self._span(request, stream=form.streams) as span, span.current():
            return form.completion(await self.post(form), span)

    async def pieces(self, request: ModelRequest) -> AnswerParts:
        """Send one streamed request. A server that cannot stream gives one piece."""
        form = _ChatForm(self, self._features, self._extra, request, pass_on=True)
        begun = False
        with self._span(request, stream=form.streams) as span:
            async with aclosing(self.post_stream(form)) as parts:
                async for part in parts:
                    if isinstance(part, str):
                        begun = True
                        yield part
                        continue
                    completion = form.completion(part, span)
                    if not begun:
                        yield completion.text
                    yield completion

    def _span(self, request: ModelRequest, *, stream: bool = False) -> TraceSpan:
        attributes = {
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": self.model,
            "gen_ai.request.max_tokens": request.max_tokens,
            "gen_ai.request.temperature": request.temperature,
            "gen_ai.request.stream": stream or None,
        }
        return start("chat", self.model, attributes, remote=True)


class _ChatForm(RequestForm):
    """A request for an answer; `pass_on` where it is wanted in pieces."""

    path = "/chat/completions"

    def __init__(
        self, model: OpenAIChat, features: Features, extra: Mapping[str, Any], request: ModelRequest, *, pass_on: bool
    ) -> None:
        if request.prompt.images and not model.vision:
            raise ConfigurationError(f"{model!r} got images; pass vision=True if the model can see")
        self._model, self._features, self._extra = model.model, features, extra
        self._request = request
        self._pass_on = pass_on

    @property
    def streams(self) -> bool:
        """True if a stream is asked for. Of a slow server always: while pieces come, it is at work."""
        return (self._pass_on or self._features.slow) and bool(self._features.streaming())

    def prepare(self) -> None:
        prompt, schema = self._request.prompt, self._request.schema
        native = schema is not None and FORMATS[self._features.format] == "json_schema"
        rendered = render(prompt, suffix="" if schema is None or native else schema_hint(schema))
        self.body = {
            "model": self._model,
            "messages": _messages(
                rendered.system, rendered.user, prompt.images, has_system="system" not in self._features.left_out
            ),
            **self._features.body(self._request),
            **self._extra,
            **(self._features.streaming() if self.streams else {}),
        }
        tokens = _instruction_tokens(rendered.system) + estimate_tokens(rendered.user)
        self.size = tokens + _IMAGE_TOKENS * len(prompt.images), self._request.max_tokens

    def adapts(self, fault: Exception, *, is_refused: bool) -> bool:
        self._features.slow |= is_timeout(fault)
        ours = {name: value for name, value in self.body.items() if name not in self._extra}  # the user's stay
        return is_refused and self._features.step_down(ours, words_of(fault), status_of(fault))

    def used(self, answer: Mapping[str, Any]) -> tuple[int, int]:
        usage, text = answer.get("usage"), ""
        counts = usage if isinstance(usage, dict) else {}
        with suppress(KeyError, IndexError, TypeError):
            text = joined(answer["choices"][0]["message"]["content"])
        read = credible_tokens(counts.get("prompt_tokens"), self.size[0])
        return read, credible_tokens(counts.get("completion_tokens"), estimate_tokens(text), bounded=False)

    def completion(self, answer: Mapping[str, Any], span: TraceSpan) -> Completion:
        """Read an answer, and remember that the server took the form of its request."""
        completion = _completion(answer, self.used(answer))
        self._features.confirm(self.body)
        tokens = completion.input_tokens, completion.output_tokens
        span.set(dict(zip(("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"), tokens, strict=True)))
        return completion


@lru_cache(maxsize=128)
def _instruction_tokens(text: str) -> int:
    """Instructions are the same for thousands of calls."""
    return estimate_tokens(text)


def _messages(system: str, user: str, images: Sequence[bytes], *, has_system: bool) -> list[dict[str, Any]]:
    """The messages of a prompt; without a role for instructions they stand before what the user says."""
    if not has_system and user:
        system, user = "", f"{system}\n\n{user}"
    elif not has_system and images:
        system, user = "", system
    if not user and not images:
        return [{"role": "user", "content": system}]
    content: Any = user
    if images:
        content = [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in images]
        if user:
            content.insert(0, {"type": "text", "text": user})
    instructions = [{"role": "system", "content": system}] if system else []
    return [*instructions, {"role": "user", "content": content}]


def data_url(image: bytes) -> str:
    """An image as the address of itself."""
    kind = next((name for magic, name in _IMAGE_TYPES if image.startswith(magic)), "png")
    return f"data:image/{kind};base64,{base64.b64encode(image).decode('ascii')}"


_ONLY_THOUGHTS = (
    "the answer is empty: the server put all that the model wrote into `{}`. Start the server with the reasoning "
    "parser of this model (or with none), or switch thinking off: extra_body={{'chat_template_kwargs': "
    "{{'enable_thinking': False}}}} or extra_body={{'reasoning_effort': 'low'}}"
)


def _completion(answer: Mapping[str, Any], used: tuple[int, int]) -> Completion:
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        refusal, text = message.get("refusal"), message.get("content")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        words = words_or_all(answer)
        raise ModelError(f"the response has no message: {words} (is base_url an OpenAI-compatible address?)") from error
    text = joined(text)
    finish = finish_of(choice)
    if refusal or finish == "refusal":
        return Completion(str(refusal or text or choice.get("finish_reason")), None, *used, "refusal")
    if not text.strip() and (thoughts := thoughts_of(message)):
        if finish == "length":
            text = "<think>"  # all that there was room for
        else:
            raise UnusableAnswerError(_ONLY_THOUGHTS.format(thoughts))
    return Completion(text, None, *used, "length" if finish == "length" else "stop")


def named_model(setting: str, name: str) -> OpenAIChat:
    """The model that a setting names, with one set of connections."""
    refuse_untrusted(setting, name)
    return _chat_model(name)


@lru_cache(maxsize=8)
def _chat_model(name: str) -> OpenAIChat:
    model, _, address = name.partition("@http")
    return OpenAIChat(model, base_url=f"http{address}" if address else None)
