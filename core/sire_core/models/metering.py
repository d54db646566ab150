"""Counting the calls of any model, whether it counts them itself or not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from sire_core.models.limits import Meterable, UsageMeter
from sire_core.models.streaming import stream_answer
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import Completion

if TYPE_CHECKING:
    from sire_core.models.streaming import AnswerParts
    from sire_core.protocols import LanguageModel, Prompt

__all__ = ["MeteredModel", "with_meter"]

_UNBOUNDED_ANSWER = 4096


class MeteredModel:
    """Counts the calls of a model that does not count its own requests. See `with_meter`."""

    def __init__(self, model: LanguageModel, meter: UsageMeter, stage: str = "") -> None:
        self._model = model
        self._meter = meter
        self._stage = stage

    @property
    def fingerprint(self) -> str:
        """The wrapped model's."""
        return self._model.fingerprint

    @property
    def concurrency(self) -> int:
        """How many calls the wrapped model takes at once."""
        return int(getattr(self._model, "concurrency", 8))

    async def complete(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> Completion:
        """Answer a prompt, if the limits allow; see `LanguageModel.complete`."""
        size = estimate_tokens(prompt.instructions) + estimate_tokens(prompt.data)
        reservation = await self._meter.reserve(size + (max_tokens or _UNBOUNDED_ANSWER), self._stage)
        used = (0, 0)
        try:
            answer = await self._model.complete(
                prompt, schema=schema, stop=stop, max_tokens=max_tokens, temperature=temperature
            )
            used = (answer.input_tokens or size, answer.output_tokens or estimate_tokens(answer.text))
        finally:
            self._meter.settle(reservation, *used)
        return answer

    async def stream(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> AnswerParts:
        """Answer a prompt in pieces, if the limits allow; see `StreamingModel.stream`."""
        size = estimate_tokens(prompt.instructions) + estimate_tokens(prompt.data)
        reservation = await self._meter.reserve(size + (max_tokens or _UNBOUNDED_ANSWER), self._stage)
        parts = stream_answer(
            self._model, prompt, schema=schema, stop=stop, max_tokens=max_tokens, temperature=temperature
        )
        came: list[str] = []
        used: tuple[int, int] | None = None
        try:
            async with aclosing(parts) as walk:
                async for part in walk:
                    if isinstance(part, str):
                        came.append(part)
                    else:
                        used = (part.input_tokens or size, part.output_tokens or estimate_tokens(part.text))
                    yield part
        finally:
            # What was written before it broke off is paid for.
            broken = (size, estimate_tokens("".join(came))) if came else (0, 0)
            self._meter.settle(reservation, *(used or broken))

    async def aclose(self) -> None:
        """Close the wrapped model's connections, where it has any."""
        close = getattr(self._model, "aclose", None)
        if close is not None:
            await close()


def with_meter(model: LanguageModel, meter: UsageMeter, stage: str = "") -> LanguageModel:
    """Have a model's calls counted and bounded; a `Meterable` counts every single request, repeated ones too."""
    if isinstance(model, Meterable):
        metered: LanguageModel = model.metered(meter, stage)
        return metered
    return MeteredModel(model, meter, stage)
