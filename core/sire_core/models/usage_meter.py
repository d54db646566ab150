"""`UsageMeter` counts what models use and keeps the limits to the call; `with_meter` counts for any model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

from sire_core.errors import LimitExceededError, RefusalError, UnusableAnswerError
from sire_core.models.base import AnswerParts, CheckedModel, ModelWrapper, whole_answer
from sire_core.models.usage import StageUsage, UsageLimits, UsageReport, credible_tokens, estimate_tokens
from sire_core.protocols import Completion, LanguageModel, ModelRequest
from sire_core.text.pluralize import count

_UNBOUNDED_ANSWER = 4096  # Reserved for an answer whose length is not bounded
# How often a call looks again whether others have given back tokens that they had reserved.
_POLL_SECONDS = 0.02


class Reservation(NamedTuple):
    """Room for one call, taken before it is sent."""

    stage: str
    tokens: int


class UsageMeter:
    """Counts calls and tokens by stage and refuses the call that would pass a limit. Thread-safe."""

    def __init__(self, limits: UsageLimits | None = None) -> None:
        self.limits = limits or UsageLimits()
        self._lock = threading.Lock()
        self._stages: dict[str, StageUsage] = {}
        self._calls = 0
        self._tokens = 0
        self._reserved = 0

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which counts on from here by itself, without the calls that are under way here."""
        with self._lock:
            return {**self.__dict__, "_stages": dict(self._stages), "_reserved": 0, "_lock": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    async def reserve(self, tokens: int, stage: str = "") -> Reservation:
        """Reserve one call; waits while calls under way hold tokens that this one may need."""
        while not self._reserves(tokens, stage):  # noqa: ASYNC110 - other threads and loops give back too
            await asyncio.sleep(_POLL_SECONDS)
        return Reservation(stage, tokens)

    def _reserves(self, tokens: int, stage: str) -> bool:
        """Take room for a call; False when its tokens only fit once calls under way give some back."""
        with self._lock:
            calls, bound = self.limits.max_calls, self.limits.max_tokens
            if calls is not None and self._calls >= calls:
                raise LimitExceededError(self._message(count(calls, "call")), "calls")
            if bound is not None and self._tokens + self._reserved + tokens > bound:
                if self._reserved and self._tokens + tokens <= bound:
                    return False
                raise LimitExceededError(self._message(count(bound, "token")), "tokens")
            self._calls += 1
            self._reserved += tokens
            self._add(stage, StageUsage(calls=1))
            return True

    def settle(
        self, reservation: Reservation, input_tokens: int = 0, output_tokens: int = 0, stored_tokens: int = 0
    ) -> None:
        """Replace what a call reserved by what it used. Every reservation must be settled exactly once."""
        with self._lock:
            self._reserved -= reservation.tokens
            self._tokens += input_tokens + output_tokens
            self._add(reservation.stage, StageUsage(0, 0, input_tokens, output_tokens, stored_tokens))

    def cancel(self, reservation: Reservation) -> None:
        """Take back a reservation whose request was never sent."""
        with self._lock:
            self._calls -= 1
            self._reserved -= reservation.tokens
            self._add(reservation.stage, StageUsage(calls=-1))

    def cached(self, stage: str = "", tokens: int = 0) -> None:
        """Count an answer that was taken from the store, and the tokens that it took when it was asked for."""
        with self._lock:
            self._add(stage, StageUsage(cached=1, stored_tokens=tokens))

    def report(self) -> UsageReport:
        """Usage so far, by stage."""
        with self._lock:
            return UsageReport(dict(self._stages))

    def _add(self, stage: str, used: StageUsage) -> None:
        self._stages[stage] = self._stages.get(stage, StageUsage()) + used

    def _message(self, bound: str) -> str:
        used = UsageReport(dict(self._stages)).describe()
        return (
            f"the limit of {bound} would be passed by the next call (so far {used}); raise it and ask again, or run "
            f"the build again, which goes on from here: every answer is stored"
        )


_Meters = Sequence[tuple[UsageMeter, str]]


@asynccontextmanager
async def counted(meters: _Meters, size: int, room: int | None) -> AsyncGenerator[list[int], None]:
    """Reserve one request on meters, each with the stage it belongs to, for as long as it is under way.

    Takes the tokens of its prompt and the most tokens of its answer, and yields the list of those that it used.
    """
    taken: list[tuple[UsageMeter, Reservation]] = []
    used, was_sent = [0, 0, 0], False
    try:
        for meter, stage in meters:
            taken.append((meter, await meter.reserve(size + (_UNBOUNDED_ANSWER if room is None else room), stage)))
        was_sent = True
        yield used
    except LimitExceededError as error:
        was_sent = was_sent and bool(error.said)
        raise
    finally:
        for meter, reservation in taken:
            if was_sent:
                meter.settle(reservation, *used)
            else:
                meter.cancel(reservation)


class MeteredModel(ModelWrapper):
    """Counts the answers of a model that does not count its requests. See `with_meter`."""

    def __init__(self, model: LanguageModel, meter: UsageMeter, stage: str = "") -> None:
        super().__init__(model)
        self._meters = ((meter, stage),)

    def asked(self, request: ModelRequest, *, in_pieces: bool) -> AnswerParts:
        """Answer, if the limits allow."""
        return _counted(self._meters, super().asked(request, in_pieces=in_pieces), request)


class _MeteredRequests(CheckedModel, MeteredModel):
    """Counts every request of a model, those for repairs too, since the parse ladder stands in front of the count."""

    _model: CheckedModel

    async def send(self, request: ModelRequest) -> Completion:
        return await whole_answer(_counted(self._meters, _sent(self._model, request), request))

    def pieces(self, request: ModelRequest) -> AnswerParts:
        return _counted(self._meters, self._model.pieces(request), request)


async def _sent(model: CheckedModel, request: ModelRequest) -> AnswerParts:
    yield await model.send(request)


def with_meter(model: LanguageModel, meter: UsageMeter, stage: str = "") -> LanguageModel:
    """Have calls counted and bounded; of a model with `metered` and a `CheckedModel`, repeated ones, too."""
    if (metered := getattr(model, "metered", None)) is not None:
        copy: LanguageModel = metered(meter, stage)
        return copy
    if isinstance(model, CheckedModel):
        return _MeteredRequests(model, meter, stage)
    return MeteredModel(model, meter, stage)


async def _counted(meters: _Meters, parts: AnswerParts, request: ModelRequest) -> AnswerParts:
    size = _size(request)
    came: list[str] = []
    async with counted(meters, size, request.max_tokens) as used, aclosing(parts) as walk:
        try:
            async for part in walk:
                if isinstance(part, str):
                    came.append(part)
                else:
                    came.clear()
                    used[:] = _used(part, size)
                yield part
        except (RefusalError, UnusableAnswerError) as error:  # an answer, which is paid for
            came = came or [getattr(error, "text", "")]
            raise
        finally:
            if came:  # it broke off: what was written before is paid for
                used[:] = size, estimate_tokens("".join(came)), 0


def _size(request: ModelRequest) -> int:
    return estimate_tokens(request.prompt.instructions) + estimate_tokens(request.prompt.data)


def _used(answer: Completion, size: int) -> tuple[int, int, int]:
    """Tokens as the model counts them, else estimated; those of a stored answer cost nothing."""
    read = credible_tokens(answer.input_tokens or None, size)
    wrote = credible_tokens(answer.output_tokens or None, estimate_tokens(answer.text), bounded=False)
    return (0, 0, read + wrote) if answer.stored else (read, wrote, 0)
