"""What a chat model says, piece by piece."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from typing import Any, Union

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable, RunnableParallel, RunnableSequence

from langchain_sire.callbacks import inner_config
from sire_core.models.sync import iterate_in_thread, serves_sync_call

__all__ = ["chat_pieces", "streaming_part"]


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
