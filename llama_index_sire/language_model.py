"""Any LlamaIndex LLM as our `LanguageModel`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM

from llama_index_sire.calls import call, overrides
from sire_core.errors import ConfigurationError, ModelError, RefusalError, SireError
from sire_core.models.prompt_format import render
from sire_core.models.structured import ask_structured, schema_hint
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import Completion, Prompt

__all__ = ["LlamaIndexModel"]

_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count")
_OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count", "eval_count")
_REFUSED = ("refusal", "content_filter", "SAFETY")
_CUT = ("length", "max_tokens", "MAX_TOKENS")


class LlamaIndexModel:
    """A `LanguageModel` over a LlamaIndex LLM: its callbacks, spans, rate limits and retries keep working.

    Models that call functions answer a schema by calling one; others see it in the prompt. Either way the answer goes
    through the parse ladder: validated, repaired once. The temperature is the LLM's own: some models refuse another.

    Args:
        llm: The LLM.
        fingerprint: Names the model; None makes one of class, model name and temperature.
    """

    def __init__(self, llm: LLM, fingerprint: str | None = None) -> None:
        self.llm = llm
        self._fingerprint = fingerprint

    @property
    def fingerprint(self) -> str:
        """`llama-index:CLASS:MODEL`, and the temperature where it has one."""
        if self._fingerprint:
            return self._fingerprint
        temperature = getattr(self.llm, "temperature", None)
        name = f"llama-index:{type(self.llm).__name__}:{self.llm.metadata.model_name}"
        return name if temperature is None else f"{name}(temperature={temperature:g})"

    async def complete(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float = 0.0,  # noqa: ARG002 - the LLM's own setting holds, see the class
    ) -> Completion:
        """Answer a prompt; see `LanguageModel.complete`."""
        if prompt.images:
            raise ConfigurationError(f"{self.fingerprint} is asked about images; use sire_core's OpenAIChat for them.")

        async def ask(asked: Prompt, room: int | None) -> Completion:
            return await self._ask(asked, schema, room)

        if schema is not None:
            return await ask_structured(ask, prompt, schema, max_tokens)
        answer = await ask(prompt, max_tokens)
        if answer.finish == "refusal":
            raise RefusalError(f"the model declined to answer: {answer.text[:200]!r}")
        if not answer.text.strip():
            raise ModelError("the model answered nothing; it is not stored and the next build asks again")
        ends = [at for at in (answer.text.find(text) for text in stop if text) if at >= 0]
        return replace(answer, text=answer.text[: min(ends)]) if ends else answer

    async def _ask(self, prompt: Prompt, schema: type[Any] | None, room: int | None) -> Completion:
        calls_functions = isinstance(self.llm, FunctionCallingLLM) and self.llm.metadata.is_function_calling_model
        by_function = schema is not None and calls_functions
        hint = "" if schema is None or by_function else schema_hint(schema)
        rendered = render(prompt, suffix=hint)
        messages = [ChatMessage(role=MessageRole.SYSTEM, content=rendered.system)]
        if rendered.user:
            messages.append(ChatMessage(role=MessageRole.USER, content=rendered.user))
        else:
            messages[0].role = MessageRole.USER
        # Only where the LLM knows the setting: integrations pass what they do not know on to servers that refuse it.
        limits = {"max_tokens": room} if room and "max_tokens" in type(self.llm).model_fields else {}
        try:
            response = await (self._call(messages, schema, limits) if by_function else self._chat(messages, limits))
        except (SireError, asyncio.CancelledError):
            raise
        except Exception as error:
            raise ModelError(f"{self.fingerprint} failed: {type(error).__name__}: {error}") from error
        return self._completion(response, by_function, len(rendered.system) + len(rendered.user))

    async def _chat(self, messages: list[ChatMessage], limits: Mapping[str, Any]) -> ChatResponse:
        llm = self.llm
        is_async = overrides(llm, CustomLLM, "achat")  # that one calls the sync method on the loop
        return await call(partial(llm.chat, **limits), partial(llm.achat, **limits), messages, is_async=is_async)

    async def _call(
        self, messages: list[ChatMessage], schema: type[Any] | None, limits: Mapping[str, Any]
    ) -> ChatResponse:
        from llama_index.core.program.function_program import get_function_tool

        llm = self.llm
        assert isinstance(llm, FunctionCallingLLM)
        assert schema is not None
        asked: dict[str, Any] = {"chat_history": messages, "tool_required": True, **limits}
        sync, native = partial(llm.chat_with_tools, **asked), partial(llm.achat_with_tools, **asked)
        return await call(sync, native, [get_function_tool(schema)], is_async=True)

    def _completion(self, response: ChatResponse, by_function: bool, prompt_letters: int) -> Completion:
        text = response.message.content or ""
        if by_function and isinstance(self.llm, FunctionCallingLLM):
            calls = self.llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)
            text = json.dumps(calls[0].tool_kwargs) if calls else text
        used = _usage(response)
        if not used[0]:
            used = (prompt_letters // 4, estimate_tokens(text))
        return Completion(text, None, *used, _finish(response))


def _usage(response: ChatResponse) -> tuple[int, int]:
    """Tokens as the server counted them; integrations keep the numbers in one of four places."""
    raw = _mapping(response.raw)
    places = (raw.get("usage"), raw.get("usage_metadata"), response.additional_kwargs, raw)  # Ollama counts in `raw`
    for place in places:
        counts = _mapping(place)
        given = next((counts[key] for key in _INPUT if counts.get(key)), 0)
        if given:
            return int(given), int(next((counts[key] for key in _OUTPUT if counts.get(key)), 0))
    return 0, 0


def _finish(response: ChatResponse) -> str:
    raw = _mapping(response.raw)
    choices = raw.get("choices")
    choice = _mapping(choices[0]) if isinstance(choices, (list, tuple)) and choices else {}
    refusal = _mapping(choice.get("message")).get("refusal") or response.message.additional_kwargs.get("refusal")
    reason = str(choice.get("finish_reason") or raw.get("stop_reason") or raw.get("finish_reason") or "stop")
    if refusal or reason in _REFUSED:
        return "refusal"
    return "length" if reason in _CUT else "stop"


def _mapping(value: Any) -> Mapping[str, Any]:
    """A response in whatever form a client library has it."""
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "model_dump"):
        return dict(value)
    return {}
