"""`ModelCalls`: the one way from a strategy to the language model, and the clock."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from sire_core.errors import ConfigurationError, LimitExceededError, ModelError, UnusableAnswerError
from sire_core.models.answer_parsing import parse_answer
from sire_core.models.base import in_own_task, stream_answer
from sire_core.models.usage import StageUsage, UsageLimits, estimate_tokens
from sire_core.models.usage_meter import UsageMeter, with_meter
from sire_core.protocols import Completion, LanguageModel, ModelRequest, Prompt
from sire_core.reason.steps import StopReason
from sire_core.telemetry import TraceSpan

T = TypeVar("T")
_ANSWER_TOKENS = 1000  # Room for one answer. The answers are short; models that think before they answer need the rest.


@dataclass(frozen=True, slots=True)
class ReasoningLimits:
    """Limits per question. None means no limit, and for `max_steps` the strategy's default.

    When a limit is reached, the reasoning ends with a stop reason and keeps what was found. One call of `max_calls`,
    and about as many tokens of `max_tokens` as the next call needs, are reserved for the answer.

    Attributes:
        max_steps: Maximum rounds of reasoning and searching after the first search.
        max_calls: Maximum requests to language models.
        max_tokens: Maximum tokens of prompts and answers.
        timeout: Maximum seconds, including the answer.

    Raises:
        ConfigurationError: A limit is negative, or the timeout is not above 0.
    """

    max_steps: int | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_steps", "max_calls", "max_tokens"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ConfigurationError(
                    f"{name} must be a whole number of at least 0, not {value!r}; leave it out for no limit."
                )
        if self.timeout is not None and not self.timeout > 0:
            raise ConfigurationError(f"timeout must be more than 0 seconds, not {self.timeout!r}.")


class StoppedError(Exception):
    """The reasoning has to end here. Never leaves the package."""

    def __init__(self, stop: StopReason, note: str = "") -> None:
        super().__init__(note)
        self.stop = stop
        self.note = note


@dataclass(frozen=True, slots=True)
class Reply:
    """Ask the model; `parsed` is None when the answer does not fit the schema."""

    text: str
    parsed: Any = None


class ModelCalls:
    """Counts calls against the limits before they are made, and lets nothing run longer than the time that is left."""

    def __init__(self, model: LanguageModel | None, limits: ReasoningLimits, *, keep: bool) -> None:
        self._limits = limits
        self._meter = UsageMeter(UsageLimits(limits.max_calls, limits.max_tokens))
        keeps_call = keep and limits.max_calls is not None
        before = max(0, (limits.max_calls or 0) - 1) if keeps_call else None
        self._before = UsageMeter(UsageLimits(before))
        """Counts every call but the answer's, whose last one neither a ranker nor a repair may spend."""
        self._answering = None if model is None else with_meter(model, self._meter, "reason")
        self._thinking = None if model is None else self.metered(model)
        self._keep = keep
        self.span = TraceSpan()
        """The span of the reasoning, below which the spans of its calls and searches stand."""
        self._end = None if limits.timeout is None else time.monotonic() + limits.timeout

    @property
    def usage(self) -> StageUsage:
        """Usage so far."""
        return self._meter.report().total

    @property
    def calls_left(self) -> float:
        """Number of calls that may still be made, that of the answer among them."""
        return math.inf if self._limits.max_calls is None else self._limits.max_calls - self.usage.calls

    @property
    def kept_call_only(self) -> bool:
        """True if no call is left but the one that is kept back for the answer."""
        return self._keep and self.calls_left <= 1

    def metered(self, model: LanguageModel) -> LanguageModel:
        """A model whose calls count here too; for the rankers and selectors that ask one."""
        return with_meter(with_meter(model, self._meter, "reason"), self._before, "reason")

    async def ask(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        last: bool = False,
        max_tokens: int = _ANSWER_TOKENS,
    ) -> Reply:
        """Ask the model."""
        model = self._ready(prompt, last=last)
        reply = await self._reply(model.complete(prompt, schema=schema, stop=stop, max_tokens=max_tokens), schema)
        assert isinstance(reply, Reply)  # pieces are of streams
        return reply

    async def stream(
        self, prompt: Prompt, *, schema: type[Any] | None = None, last: bool = False
    ) -> AsyncGenerator[str | Reply, None]:
        """Ask the model, and pass its answer on while it is written. Closing the generator ends the call."""
        model = self._ready(prompt, last=last)
        # In a task of its own: waiting with a time limit would run every piece of the model's generator in another one.
        asking = in_own_task(stream_answer(model, ModelRequest(prompt, schema, max_tokens=_ANSWER_TOKENS)))
        async with aclosing(asking) as parts:
            while isinstance(part := await self._reply(anext(parts), schema), str):
                yield part
            yield part

    def _ready(self, prompt: Prompt, *, last: bool) -> LanguageModel:
        model = self._answering if last else self._thinking
        if model is None:
            raise StoppedError("model_failed", "there is no language model")
        self._check_room(prompt, last=last)
        return model

    async def _reply(self, asking: Awaitable[str | Completion], schema: type[Any] | None) -> str | Reply:
        """The answer of a call; a piece of an answer as it is."""
        try:
            answer = await self.timed(asking)
        except StopAsyncIteration as error:
            raise StoppedError("model_failed", "the model's stream ended without an answer") from error
        except UnusableAnswerError as error:
            return Reply(error.text)
        except LimitExceededError as error:
            if error.said:  # only the repair was refused
                return Reply(error.said)
            raise self.limit_reached(error) from error
        except ModelError as error:
            raise StoppedError("model_failed", str(error)) from error
        if isinstance(answer, str):
            return answer
        if schema is None or isinstance(answer.parsed, schema):
            return Reply(answer.text, answer.parsed)
        try:
            return Reply(answer.text, parse_answer(answer.text, schema))
        except ValueError:
            return Reply(answer.text)

    async def timed(self, work: Awaitable[T], span: TraceSpan | None = None) -> T:
        """Wait for something, but not longer than the time that is left."""
        if self._end is None:
            with (span or self.span).current():
                return await work
        try:
            # With nothing left the work is cancelled before its first step.
            with (span or self.span).current():
                return await asyncio.wait_for(work, self._end - time.monotonic())
        except asyncio.TimeoutError:
            if time.monotonic() < self._end:  # somebody else's time-out
                raise
            raise StoppedError("timeout", f"the {self._limits.timeout:g} seconds have passed") from None

    def limit_reached(self, error: LimitExceededError) -> StoppedError:
        """The stop that a refused call means. The model may have limits of its own, beside those of this reasoning."""
        if self.kept_call_only or self.calls_left <= 0:
            return StoppedError("call_limit")
        ours = self._limits.max_tokens is not None and error.bound == "tokens"
        return StoppedError("call_limit" if error.bound == "calls" else "token_limit", "" if ours else str(error))

    def _check_room(self, prompt: Prompt, *, last: bool) -> None:
        """Stop thinking while there is still room for the answer, whose prompt is about as long as this one."""
        if last or not self._keep:
            return
        if self.kept_call_only:
            raise StoppedError("call_limit")
        if self._limits.max_tokens is not None:
            used = self.usage
            size = estimate_tokens(prompt.instructions) + estimate_tokens(prompt.data) + _ANSWER_TOKENS
            left = self._limits.max_tokens - used.input_tokens - used.output_tokens
            if left < 2 * size:
                raise StoppedError("token_limit")
