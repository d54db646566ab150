"""Counting the calls of any model, whether it counts them itself or not."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from sire_core.errors import RefusalError, UnusableAnswerError
from sire_core.models.base import CheckedModel, ModelWrapper, concurrency_of
from sire_core.models.usage import estimate_tokens
from sire_core.models.usage_meter import Meterable, UsageMeter, UsageSink

if TYPE_CHECKING:
    from sire_core.models.base import AnswerParts
    from sire_core.models.plain_answers import Ask
    from sire_core.protocols import Completion, LanguageModel, ModelRequest

__all__ = ["MeteredModel", "with_meter"]


class MeteredModel(ModelWrapper):
    """Counts the answers of a model that says nothing of its requests. See `with_meter`."""

    def __init__(self, model: LanguageModel, meter: UsageMeter, stage: str = "") -> None:
        super().__init__(model)
        self._sink = UsageSink(((meter, stage),))

    async def answer(self, request: ModelRequest) -> Completion:
        """Answer, if the limits allow."""
        return await _counted(self._sink, super().answer, request)

    def parts(self, request: ModelRequest) -> AnswerParts:
        """Answer in pieces, if the limits allow."""
        return _counted_parts(self._sink, super().parts(request), request)


class _MeteredRequests(CheckedModel):
    """Counts every request of a model, those for repairs too, since the parse ladder stands in front of the count."""

    def __init__(self, model: CheckedModel, meter: UsageMeter, stage: str) -> None:
        self._model = model
        self._sink = UsageSink(((meter, stage),))
        self.concurrency = concurrency_of(model)

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    async def send(self, request: ModelRequest) -> Completion:
        return await _counted(self._sink, self._model.send, request)

    def pieces(self, request: ModelRequest) -> AnswerParts:
        return _counted_parts(self._sink, self._model.pieces(request), request)

    async def aclose(self) -> None:
        close = getattr(self._model, "aclose", None)
        if close is not None:
            await close()


def with_meter(model: LanguageModel, meter: UsageMeter, stage: str = "") -> LanguageModel:
    """Have a model's calls counted and bounded; a `Meterable` or `CheckedModel` every request, repeated ones too."""
    if isinstance(model, Meterable):
        metered: LanguageModel = model.metered(meter, stage)
        return metered
    if isinstance(model, CheckedModel):
        return _MeteredRequests(model, meter, stage)
    return MeteredModel(model, meter, stage)


async def _counted(sink: UsageSink, ask: Ask, request: ModelRequest) -> Completion:
    size = _size(request)
    async with sink.counted(size, request.max_tokens) as used:
        try:
            answer = await ask(request)
        except (RefusalError, UnusableAnswerError) as error:  # an answer, which is paid for
            used[:] = size, estimate_tokens(getattr(error, "text", "")), 0
            raise
        used[:] = _used(answer, size)
    return answer


async def _counted_parts(sink: UsageSink, parts: AnswerParts, request: ModelRequest) -> AnswerParts:
    size = _size(request)
    came: list[str] = []
    async with sink.counted(size, request.max_tokens) as used, aclosing(parts) as walk:
        try:
            async for part in walk:
                if isinstance(part, str):
                    came.append(part)
                else:
                    came.clear()
                    used[:] = _used(part, size)
                yield part
        finally:
            if came:  # it broke off: what was written before is paid for
                used[:] = size, estimate_tokens("".join(came)), 0


def _size(request: ModelRequest) -> int:
    """Tokens of the prompt."""
    return estimate_tokens(request.prompt.instructions) + estimate_tokens(request.prompt.data)


def _used(answer: Completion, size: int) -> tuple[int, int, int]:
    """Tokens as the model counts them, else estimated; those of a stored answer cost nothing."""
    read, wrote = answer.input_tokens or size, answer.output_tokens or estimate_tokens(answer.text)
    return (0, 0, read + wrote) if answer.stored else (read, wrote, 0)
