"""Answers in pieces: what the models that stream have in common, and a way to ask those that do not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Union

from sire_core.models.stops import StopCutter
from sire_core.models.structured import ask_checked
from sire_core.protocols import Completion, StreamingModel

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sire_core.models.structured import Ask
    from sire_core.protocols import LanguageModel, Prompt

__all__ = ["AnswerParts", "stream_answer", "stream_checked"]

AnswerParts = AsyncGenerator[Union[str, Completion], None]
"""Pieces of an answer, then the whole of it; see `StreamingModel`."""


async def stream_answer(
    model: LanguageModel,
    prompt: Prompt,
    *,
    schema: type[Any] | None = None,
    stop: Sequence[str] = (),
    max_tokens: int | None = None,
    temperature: float = 0.0,
) -> AnswerParts:
    """Ask any model; one that cannot stream gives its answer in one piece. See `StreamingModel.stream`."""
    if not isinstance(model, StreamingModel):
        answer = await model.complete(prompt, schema=schema, stop=stop, max_tokens=max_tokens, temperature=temperature)
        yield answer.text
        yield answer
        return
    parts = model.stream(prompt, schema=schema, stop=stop, max_tokens=max_tokens, temperature=temperature)
    async with aclosing(parts) as walk:
        async for part in walk:
            yield part


async def stream_checked(
    parts: AnswerParts,
    ask: Ask,
    prompt: Prompt,
    *,
    schema: type[BaseModel] | None,
    stop: Sequence[str],
    max_tokens: int | None,
) -> AnswerParts:
    """Pass pieces on, then the answer as `ask_checked` has it; one that does not fit is asked for again as a whole.

    Args:
        parts: The answer as it comes, its completion unchecked.
        ask: Asks for a repair.
        prompt: What was asked.
        schema: A pydantic model class.
        stop: Texts that end the answer; what comes after them is not passed on.
        max_tokens: Upper bound of the answer.

    Raises:
        RefusalError: The model declined.
        UnusableAnswerError: The answer is empty, or does not fit even when repaired.
    """
    cutter = StopCutter(stop)
    came: list[Completion] = []
    async with aclosing(parts) as walk:
        async for part in walk:
            if isinstance(part, Completion):
                came.append(part)
            elif piece := cutter.add(part):
                yield piece
    if rest := cutter.end():
        yield rest

    async def first_then_ask(asked: Prompt, room: int | None) -> Completion:
        return came.pop() if came else await ask(asked, room)

    yield await ask_checked(first_then_ask, prompt, schema, max_tokens)
