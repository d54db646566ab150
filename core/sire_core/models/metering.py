"""Counting the calls of any model, whether it counts them itself or not."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from sire_core.models.base import ModelWrapper
from sire_core.models.usage import Meterable, Reservation, UsageMeter, estimate_tokens
from sire_core.protocols import Completion, ModelRequest

if TYPE_CHECKING:
    from sire_core.models.base import AnswerParts
    from sire_core.protocols import LanguageModel

__all__ = ["MeteredModel", "with_meter"]

_UNBOUNDED_ANSWER = 4096


class MeteredModel(ModelWrapper):
    """Counts the calls of a model that does not count its own requests. See `with_meter`."""

    def __init__(self, model: LanguageModel, meter: UsageMeter, stage: str = "") -> None:
        super().__init__(model)
        self._meter = meter
        self._stage = stage

    async def answer(self, request: ModelRequest) -> Completion:
        """Answer, if the limits allow."""
        size, reservation = await self._reserve(request)
        used = (0, 0)
        try:
            answer = await super().answer(request)
            used = _used(answer, size)
        finally:
            self._meter.settle(reservation, *used)
        return answer

    async def parts(self, request: ModelRequest) -> AnswerParts:
        """Answer in pieces, if the limits allow."""
        size, reservation = await self._reserve(request)
        came: list[str] = []
        used: tuple[int, int] | None = None
        try:
            async with aclosing(super().parts(request)) as walk:
                async for part in walk:
                    if isinstance(part, str):
                        came.append(part)
                    else:
                        used = _used(part, size)
                    yield part
        finally:
            # What was written before it broke off is paid for.
            broken = (size, estimate_tokens("".join(came))) if came else (0, 0)
            self._meter.settle(reservation, *(used or broken))

    async def _reserve(self, request: ModelRequest) -> tuple[int, Reservation]:
        """Tokens of the prompt, and room for the call."""
        size = estimate_tokens(request.prompt.instructions) + estimate_tokens(request.prompt.data)
        return size, await self._meter.reserve(size + (request.max_tokens or _UNBOUNDED_ANSWER), self._stage)


def _used(answer: Completion, size: int) -> tuple[int, int]:
    """Tokens as the model counts them, else estimated; a stored answer costs none."""
    if answer.stored:
        return 0, 0
    return answer.input_tokens or size, answer.output_tokens or estimate_tokens(answer.text)


def with_meter(model: LanguageModel, meter: UsageMeter, stage: str = "") -> LanguageModel:
    """Have a model's calls counted and bounded; a `Meterable` counts every single request, repeated ones too."""
    if isinstance(model, Meterable):
        metered: LanguageModel = model.metered(meter, stage)
        return metered
    return MeteredModel(model, meter, stage)
