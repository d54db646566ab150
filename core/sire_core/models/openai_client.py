"""Chat models behind any OpenAI-compatible endpoint."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError, ModelError, RefusalError
from sire_core.models.limits import UsageLimits, UsageMeter
from sire_core.models.openai_features import FORMATS, Features
from sire_core.models.openai_transport import BadRequest, Charge, OpenAITransport
from sire_core.models.prompt_format import render
from sire_core.models.retry import RetryPolicy
from sire_core.models.structured import UnusableAnswerError, ask_structured, schema_hint
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import Completion, Prompt
from sire_core.types import digest

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["OpenAIChat"]

# Reserved for an answer whose length is not bounded.
_UNBOUNDED_ANSWER = 4096
_IMAGE_TOKENS = 800
_IMAGE_TYPES = ((b"\x89PNG", "png"), (b"\xff\xd8", "jpeg"), (b"GIF8", "gif"), (b"RIFF", "webp"))


class OpenAIChat:
    """A `LanguageModel` over the official `openai` package: OpenAI, Azure, vLLM, llama.cpp, Ollama and others.

    Structured output is used where the server has it: `json_schema`, else `json_object`, else the schema stands in the
    prompt; what the server refuses is remembered and not tried again. Requests are repeated on rate limits, server
    errors, time-outs and broken connections; the number under way adapts to the server. May be used from several event
    loops; `aclose` (or `async with`) closes the connections.

    The fingerprint is the model's name, `revision` and `extra_body`. The address is left out on purpose: moving to
    another server of the same model keeps every paid answer. Where one name stands for changing models (llama.cpp
    answers to any name), tell them apart by `revision`.

    Args:
        model: The model's name, with Azure the deployment's.
        base_url: Address of the server; None for OpenAI's own.
        api_key: None takes `OPENAI_API_KEY`.
        timeout: Seconds for a request.
        max_retries: Repetitions of a failed request.
        retry: The whole back-off policy; overrides `max_retries`.
        limits: Bounds of calls and tokens, counted on `meter`.
        concurrency: Most requests under way at once.
        structured: `auto`, `json_schema`, `json_object` or `none`.
        vision: Whether prompts may carry images.
        extra_body: More fields of every request (`top_p`, `seed`, `reasoning_effort` …).
        revision: Free text; part of the fingerprint.
        client_options: More arguments of the official client; `azure_endpoint` and `api_version` for Azure.

    Raises:
        ConfigurationError: The `openai` package is missing, or a setting makes no sense.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 6,
        retry: RetryPolicy | None = None,
        limits: UsageLimits | None = None,
        concurrency: int = 8,
        structured: str = "auto",
        vision: bool = False,
        extra_body: Mapping[str, Any] | None = None,
        revision: str = "",
        client_options: Mapping[str, Any] | None = None,
    ) -> None:
        if not model:
            raise ConfigurationError("name the model, for instance OpenAIChat('gpt-4o-mini')")
        self.model = model
        self.vision = vision
        self.concurrency = concurrency
        self.meter = UsageMeter(limits)
        self._extra = dict(extra_body or {})
        self._revision = revision
        self._features = Features.of(structured)
        self._charge = Charge(((self.meter, ""),))
        self._transport = OpenAITransport(
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            retry=retry or RetryPolicy(max_retries=max_retries),
            concurrency=concurrency,
            client_options=client_options,
            usage=_used,
        )

    def __repr__(self) -> str:
        return f"OpenAIChat({self.model!r})"

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
        twin = copy.copy(self)
        twin._charge = Charge((*self._charge.meters, (meter, stage)))  # noqa: SLF001 - a copy of ourselves
        return twin

    async def complete(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> Completion:
        """Answer a prompt; see `LanguageModel.complete`."""
        if prompt.images and not self.vision:
            raise ConfigurationError(f"{self!r} got images; pass vision=True if the model can see")

        async def ask(asked: Prompt, room: int | None) -> Completion:
            return await self._ask(asked, schema, list(stop), room, temperature)

        if schema is not None:
            return await ask_structured(ask, prompt, schema, max_tokens)
        answer = await ask(prompt, max_tokens)
        if answer.finish == "refusal":
            raise RefusalError(f"the model declined to answer: {answer.text[:200]!r}")
        if not answer.text.strip():
            raise UnusableAnswerError("the model answered nothing; it is not stored and the next build asks again")
        return answer

    async def _ask(
        self, prompt: Prompt, schema: type[Any] | None, stop: list[str], room: int | None, temperature: float
    ) -> Completion:
        """One answered request, in the strongest form that the server accepts."""
        while True:
            native = schema is not None and FORMATS[self._features.format] == "json_schema"
            rendered = render(prompt, suffix="" if schema is None or native else schema_hint(schema))
            body = {
                "model": self.model,
                "messages": _messages(rendered.system, rendered.user, prompt.images),
                **self._features.body(schema, stop, room, temperature),
                **self._extra,
            }
            size = _instruction_tokens(rendered.system) + estimate_tokens(rendered.user)
            size += _IMAGE_TOKENS * len(prompt.images)
            try:
                answer = await self._transport.post(
                    "/chat/completions", body, (size, room or _UNBOUNDED_ANSWER), self._charge
                )
            except BadRequest as error:
                if self._features.step_down(body, str(error)):
                    continue
                raise ModelError(f"the model server refused the request: {error}") from error
            return _cut(_completion(answer, size), stop)

    async def aclose(self) -> None:
        """Close the connections. The model may be used again afterwards."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


@lru_cache(maxsize=128)
def _instruction_tokens(text: str) -> int:
    """Instructions are the same for thousands of calls."""
    return estimate_tokens(text)


def _messages(system: str, user: str, images: Sequence[bytes]) -> list[dict[str, Any]]:
    if not user and not images:
        return [{"role": "user", "content": system}]
    content: Any = user
    if images:
        content = [{"type": "image_url", "image_url": {"url": _data_url(image)}} for image in images]
        if user:
            content.insert(0, {"type": "text", "text": user})
    return [{"role": "system", "content": system}, {"role": "user", "content": content}]


def _data_url(image: bytes) -> str:
    kind = next((name for magic, name in _IMAGE_TYPES if image.startswith(magic)), "png")
    return f"data:image/{kind};base64,{base64.b64encode(image).decode('ascii')}"


def _completion(answer: Mapping[str, Any], prompt_tokens: int) -> Completion:
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        refusal, text = message.get("refusal"), message.get("content")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ModelError("the response has no message; is base_url an OpenAI-compatible address?") from error
    if isinstance(text, list):  # some servers answer in parts
        text = "".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
    text = text if isinstance(text, str) else ""
    used = _used(answer, prompt_tokens)
    finish = str(choice.get("finish_reason") or "stop")
    if refusal or finish in ("content_filter", "refusal"):
        return Completion(str(refusal or text or finish), None, *used, "refusal")
    return Completion(text, None, *used, "length" if finish == "length" else "stop")


def _used(answer: Mapping[str, Any], prompt_tokens: int) -> tuple[int, int]:
    """Tokens as the server counts them, else estimated."""
    usage = answer.get("usage")
    if isinstance(usage, dict) and usage.get("prompt_tokens"):
        return int(usage["prompt_tokens"]), int(usage.get("completion_tokens") or 0)
    try:
        text = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        text = None
    return prompt_tokens, estimate_tokens(text) if isinstance(text, str) else 0


def _cut(answer: Completion, stop: Sequence[str]) -> Completion:
    """End the text at the first stop text, for servers that ignore or refuse `stop`."""
    ends = [at for at in (answer.text.find(text) for text in stop if text) if at >= 0]
    return replace(answer, text=answer.text[: min(ends)]) if ends else answer
