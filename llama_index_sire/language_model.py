"""Any LlamaIndex LLM as our `LanguageModel`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM

from llama_index_sire.calls import overrides
from sire_core.errors import ConfigurationError, ModelError, SireError
from sire_core.models.answer_parsing import schema_hint
from sire_core.models.base import AnswerParts, CheckedModel, known_finish
from sire_core.models.prompt_format import render
from sire_core.models.sync import call, call_streaming
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import Completion, ModelRequest

_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count")
_OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count", "eval_count")
_OPEN_ENDS = '"]} '  # Characters that may close a JSON value that is not complete yet


@dataclass(frozen=True, slots=True)
class _Request:
    """Request to an LLM; `schema` is set when it answers by calling a function."""

    messages: list[ChatMessage]
    schema: type[Any] | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)

    @property
    def letters(self) -> int:
        return sum(len(message.content or "") for message in self.messages)


class LlamaIndexModel(CheckedModel):
    """A `StreamingModel` over a LlamaIndex LLM: its callbacks, spans, rate limits and retries keep working.

    Structured output uses function calling if the model supports it, otherwise the schema is in the prompt. Either way
    the answer is validated, and repaired once if it is invalid. The temperature is that of the LLM, because some models
    accept no other.

    Args:
        llm: The LLM.
        fingerprint: Identifies the model; by default composed of class, model name and temperature.
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

    async def send(self, request: ModelRequest) -> Completion:
        """One answered request."""
        prepared = self._request(request)
        try:
            response = await self._answered(prepared)
        except (SireError, asyncio.CancelledError):
            raise
        except Exception as error:
            raise self._failed(error) from error
        return self._completion(response, prepared)

    async def pieces(self, request: ModelRequest) -> AnswerParts:
        """One streamed request, with the LLM's `astream_chat`; an LLM that has no stream of its own gives one piece."""
        prepared = self._request(request)
        text, finish, last = "", "stop", None
        try:
            # A chat of its own beside an inherited stream: that one would ask something else.
            if overrides(self.llm, CustomLLM, "stream_chat") or not overrides(self.llm, CustomLLM, "chat"):
                async with aclosing(self._responses(prepared)) as walk:
                    async for last in walk:
                        piece = self._piece(last, text, prepared)
                        text += piece
                        finish = _finish(last) if finish == "stop" else finish  # tokens may come after the end
                        if piece:
                            yield piece
        except (SireError, asyncio.CancelledError):
            raise
        except Exception as error:
            if text or not isinstance(error, NotImplementedError):
                raise self._failed(error) from error
            last = None
        if last is None:
            answer = await self.send(request)
        else:
            answer = replace(self._completion(last, prepared), finish=finish)
            if prepared.schema is None and text:
                answer = replace(answer, text=text)  # not every integration gathers it in the message
        if answer.text.startswith(text) and answer.text != text:
            yield answer.text[len(text) :]
        yield answer

    def _request(self, request: ModelRequest) -> _Request:
        prompt, schema, room = request.prompt, request.schema, request.max_tokens
        if prompt.images:
            raise ConfigurationError(f"{self.fingerprint} is asked about images; use sire_core's OpenAIChat for them.")
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
        return _Request(messages, schema if by_function else None, limits)

    def _responses(self, request: _Request) -> AsyncGenerator[ChatResponse, None]:
        llm: Any = self.llm  # the types of its streams differ between versions
        if request.schema is None:
            sync = partial(llm.stream_chat, request.messages, **request.limits)
            native = partial(llm.astream_chat, request.messages, **request.limits)
            is_async = overrides(llm, CustomLLM, "astream_chat")  # that one calls the sync method on the loop
            return call_streaming(sync, native, is_async=is_async)
        tools, arguments = self._function(request)
        sync = partial(llm.stream_chat_with_tools, tools, **arguments)
        return call_streaming(sync, partial(llm.astream_chat_with_tools, tools, **arguments), is_async=True)

    def _piece(self, response: ChatResponse, so_far: str, request: _Request) -> str:
        """Text that a response of a stream adds."""
        if request.schema is None:
            content = response.message.content or ""
            return response.delta if response.delta is not None else content[len(so_far) :]
        try:
            text = self._arguments(response).rstrip(_OPEN_ENDS)
        except ValueError:  # an integration that reads arguments only when they are complete
            return ""
        return text[len(so_far) :] if text.startswith(so_far) else ""

    async def _answered(self, request: _Request) -> ChatResponse:
        llm: Any = self.llm
        if request.schema is None:
            is_async = overrides(llm, CustomLLM, "achat")  # that one calls the sync method on the loop
            sync, native, tools, arguments = llm.chat, llm.achat, request.messages, request.limits
        else:
            sync, native, is_async = llm.chat_with_tools, llm.achat_with_tools, True
            tools, arguments = self._function(request)
        return await call(partial(sync, **arguments), partial(native, **arguments), tools, is_async=is_async)

    def _function(self, request: _Request) -> tuple[list[Any], dict[str, Any]]:
        from llama_index.core.program.function_program import get_function_tool

        assert request.schema is not None
        arguments = {"chat_history": request.messages, "tool_required": True, **request.limits}
        return [get_function_tool(request.schema)], arguments

    def _completion(self, response: ChatResponse, request: _Request) -> Completion:
        text = response.message.content or ""
        if request.schema is not None:
            text = self._arguments(response) or text
        used = _usage(response)
        if not used[0]:
            used = (request.letters // 4, estimate_tokens(text))
        return Completion(text, None, *used, _finish(response))

    def _arguments(self, response: ChatResponse) -> str:
        """Arguments of the function call as JSON; empty without a call."""
        assert isinstance(self.llm, FunctionCallingLLM)
        calls = self.llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)
        return json.dumps(calls[0].tool_kwargs) if calls else ""

    def _failed(self, error: Exception) -> ModelError:
        return ModelError(f"{self.fingerprint} failed: {type(error).__name__}: {error}")


def _usage(response: ChatResponse) -> tuple[int, int]:
    """Tokens as the server counted them; integrations keep the numbers in one of four places."""
    raw = _mapping(response.raw)
    sources = (raw.get("usage"), raw.get("usage_metadata"), response.additional_kwargs, raw)  # Ollama counts in `raw`
    for source in sources:
        counts = _mapping(source)
        input_tokens = next((counts[key] for key in _INPUT if counts.get(key)), 0)
        if input_tokens:
            return int(input_tokens), int(next((counts[key] for key in _OUTPUT if counts.get(key)), 0))
    return 0, 0


def _finish(response: ChatResponse) -> str:
    raw = _mapping(response.raw)
    choices = raw.get("choices")
    choice = _mapping(choices[0]) if isinstance(choices, (list, tuple)) and choices else {}
    refusal = _mapping(choice.get("message")).get("refusal") or response.message.additional_kwargs.get("refusal")
    reason = choice.get("finish_reason") or raw.get("stop_reason") or raw.get("finish_reason")
    return "refusal" if refusal else known_finish(reason) or "stop"


def _mapping(value: Any) -> Mapping[str, Any]:
    """A response in whatever form a client library has it."""
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "model_dump"):
        return dict(value)
    return {}
