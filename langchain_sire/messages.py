"""Prompts as LangChain messages, and what chat models answer: piece by piece, and as a `Completion`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Union

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableParallel, RunnableSequence

from langchain_sire.callbacks import inner_config
from sire_core.errors import ModelError
from sire_core.models.base import cut_at
from sire_core.models.openai.client import data_url
from sire_core.models.prompt_format import RenderedPrompt
from sire_core.models.sync import iterate_in_thread, serves_sync_call
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import Completion

__all__ = ["chat_pieces", "of_error", "of_message", "of_structured", "streaming_part", "to_messages"]


_LENGTH_ENDS = frozenset({"length", "max_tokens", "MAX_TOKENS"})
_REFUSAL_ENDS = frozenset({"content_filter", "refusal", "SAFETY"})


def to_messages(rendered: RenderedPrompt, images: Sequence[bytes] = ()) -> list[BaseMessage]:
    """Our words as the system message, the data block and images as the user's."""
    if not rendered.user and not images:
        return [HumanMessage(rendered.system)]
    if not images:
        return [SystemMessage(rendered.system), HumanMessage(rendered.user)]
    content: list[str | dict[str, Any]] = [{"type": "text", "text": rendered.user}] if rendered.user else []
    content += [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in images]
    return [SystemMessage(rendered.system), HumanMessage(content)]


def of_message(message: Any, stop: Sequence[str], prompt_tokens: int) -> Completion:
    """A plain answer. The text ends at the first stop text, for models that ignore `stop`."""
    if not isinstance(message, AIMessage):
        raise ModelError(f"the chat model answered a {type(message).__name__}, not an AIMessage")
    return _completion(message, cut_at(str(message.text), stop), prompt_tokens)


def of_structured(answer: Any, prompt_tokens: int) -> Completion:
    """What `with_structured_output(include_raw=True)` answers: raw message, parsed value, parsing error.

    The parsed value is not used: LangChain's parser closes a value that was cut off, and what is missing would be lost
    without a word. Our own ladder reads the raw text.
    """
    if not isinstance(answer, Mapping) or not isinstance(answer.get("raw"), AIMessage):
        raise ModelError("the chat model's structured output has no raw message; is include_raw supported?")
    raw: AIMessage = answer["raw"]
    completion = _completion(raw, _arguments(raw) or str(raw.text), prompt_tokens)
    if "refusal" in type(answer.get("parsing_error")).__name__.lower():
        return replace(completion, text=str(answer["parsing_error"]), finish="refusal")
    return completion


def of_error(error: Exception, prompt_tokens: int) -> Completion:
    """Some clients raise where others answer: refusals and cut-off answers. Everything else is a `ModelError`.

    Raises:
        ModelError: The call failed.
    """
    kind = type(error).__name__.lower()
    if "refusal" in kind or "contentfilter" in kind:
        return Completion(str(error), None, prompt_tokens, 0, "refusal")
    if "lengthfinish" in kind:
        return Completion("", None, prompt_tokens, 0, "length")
    raise ModelError(f"the chat model failed: {type(error).__name__}: {error}"[:500]) from error


def _completion(message: AIMessage, text: str, prompt_tokens: int) -> Completion:
    used = message.usage_metadata
    tokens = (used["input_tokens"], used["output_tokens"]) if used else (prompt_tokens, estimate_tokens(text))
    refusal = message.additional_kwargs.get("refusal")
    end = str(message.response_metadata.get("finish_reason") or message.response_metadata.get("stop_reason") or "")
    if refusal or end in _REFUSAL_ENDS:
        return Completion(str(refusal or text or end), None, *tokens, "refusal")
    return Completion(text, None, *tokens, "length" if end in _LENGTH_ENDS else "stop")


def _arguments(message: AIMessage) -> str:
    """The arguments of a tool call, which is how many models give structured output."""
    if isinstance(message, AIMessageChunk) and message.tool_call_chunks:
        # As they came: in `tool_calls` LangChain has closed what was cut off.
        return str(message.tool_call_chunks[0]["args"] or "")
    if message.tool_calls:
        return json.dumps(message.tool_calls[0]["args"], ensure_ascii=False)
    if message.invalid_tool_calls:
        return str(message.invalid_tool_calls[0]["args"] or "")
    return ""


def streaming_part(chain: Runnable[Any, Any]) -> Runnable[Any, Any] | None:
    """What streams of a chat model, or of its `with_structured_output(include_raw=True)`; None if that is not known.

    The structured chain itself gives its raw message when it is complete: its parser waits for the whole.
    """
    if isinstance(chain, BaseChatModel):
        return chain
    first = chain.first if isinstance(chain, RunnableSequence) else None
    return first.steps__.get("raw") if isinstance(first, RunnableParallel) else None


async def chat_pieces(
    chat: Runnable[Any, Any], messages: list[BaseMessage], arguments: dict[str, Any]
) -> AsyncGenerator[Union[str, AIMessage], None]:
    """Ask a chat model the way its caller came; see `langchain_sire.callbacks.call`.

    Args:
        chat: A chat model, perhaps with bound arguments.
        messages: What is asked.
        arguments: More arguments of the call.

    Yields:
        Pieces of text, or of the arguments of the tool call in its place, then the whole message.
    """
    config = inner_config()

    def sync() -> Generator[Any, None, None]:
        yield from chat.stream(messages, config, **arguments)

    parts = iterate_in_thread(sync) if serves_sync_call() else _native(chat, messages, config, arguments)
    whole: Any = None
    async with aclosing(parts) as walk:
        async for part in walk:
            whole = part if whole is None else whole + part
            if piece := _text(part):
                yield piece
    yield whole


async def _native(
    chat: Runnable[Any, Any], messages: list[BaseMessage], config: Any, arguments: dict[str, Any]
) -> AsyncGenerator[Any, None]:
    chunks = chat.astream(messages, config, **arguments)
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


def _text(part: Any) -> str:
    """The text of a chunk; a model that cannot stream gives a message."""
    if not isinstance(part, AIMessage):
        return ""
    calls = part.tool_call_chunks if isinstance(part, AIMessageChunk) else ()
    return str(part.text) + "".join(call.get("args") or "" for call in calls)
