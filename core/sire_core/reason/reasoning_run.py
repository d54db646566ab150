"""`Run`: the state of one reasoning, and the options of all strategies."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypedDict

from sire_core.arguments import limits_of, named
from sire_core.errors import ConfigurationError
from sire_core.filters import FilterLike
from sire_core.models.base import check_language_model
from sire_core.protocols import LanguageModel
from sire_core.reason.answer_reader import ReadAnswer, ReaderConfig, read
from sire_core.reason.evidence import Evidence, Merge
from sire_core.reason.model_calls import ModelCalls, ReasoningLimits, StoppedError
from sire_core.reason.searchers import Searchable
from sire_core.reason.steps import Answer, AnswerPiece, ReasoningStep, ReasoningUsage, StopReason
from sire_core.search.snapshot import check_query
from sire_core.search.validity import Day
from sire_core.telemetry import start as start_span
from sire_core.types import Hit

HITS = 10  # Default number of hits of a context

_NOTHING_MORE: tuple[StopReason, ...] = ("model_failed", "timeout", "empty_index")
"""Stop reasons after which the answer is not requested."""


class ReasoningOptions(TypedDict, total=False):
    """Options of every strategy.

    Attributes:
        model: The model that reasons and answers; None uses that of the index.
        k: Number of hits in the final context; None means 10, or for the `original` flavor of IRCoT everything
            collected (with a smaller number, every search gets a share).
        filter: Filter for every search; see `Index.search`.
        as_of: A day for every search; see `Index.search`.
        limits: Limits on steps, calls, tokens and time: `ReasoningLimits` or a mapping of these.
        answer: Whether the model answers at the end; otherwise the last step has only the hits.
        stream: Whether the answer also streams, as `AnswerPiece`s before the `Answer`.
        reader: How the answer is read from the hits; see `ReaderConfig`.
    """

    model: LanguageModel | None
    k: int | None
    filter: FilterLike
    as_of: Day
    limits: ReasoningLimits | Mapping[str, Any] | None
    answer: bool
    stream: bool
    reader: ReaderConfig | None


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to search and reason."""

    name: str
    rounds: Callable[[Run], AsyncGenerator[ReasoningStep, None]]  # The steps before the answer; sets `Run.stop`
    settings: tuple[str, ...] = ("config", "edits")  # Arguments that it takes beside `ReasoningOptions`
    steps: int = 0  # Most rounds, unless the limits say otherwise
    k: int | None = HITS  # Hits of the final context, unless the caller says otherwise; None for all that was collected
    thinks: bool = True  # Whether it needs a model even without an answer
    merge: Merge = "relative"  # How the searches become one ranking


@dataclass(slots=True)
class Run:
    """State of one reasoning."""

    question: str
    k: int | None  # Hits of the final context; None for all that was collected
    steps: int  # Most rounds
    answers: bool  # Whether the reader is asked in the end
    streams: bool  # Whether its answer is given piece by piece as well
    calls: ModelCalls  # The way to the model
    evidence: Evidence  # What was found
    stop: StopReason = "done"  # Why the rounds ended; set by the strategy
    edits: Mapping[int, str] = field(default_factory=dict)  # Queries of people in the place of the model's, by round
    notes: list[Any] = field(default_factory=list)  # What the reasoning has come to; shown to the reader
    reader: ReaderConfig = field(default_factory=ReaderConfig)  # How the answer is read from the context
    _context: tuple[int, tuple[Hit, ...]] = (-1, ())

    async def context(self) -> tuple[Hit, ...]:
        """The final context of everything found so far; selected once."""
        if self._context[0] != self.evidence.searches:
            hits = await self.evidence.context(self.question, self.k or self.evidence.found)
            self._context = (self.evidence.searches, hits)
        return self._context[1]

    async def finish(self, note: str = "") -> AsyncGenerator[AnswerPiece | Answer, None]:
        """Select the context and request the answer, unless the stop reason forbids it."""
        answer = ReadAnswer()
        try:
            hits = await self.context()
        except StoppedError as stopped:
            self.stop, note = stopped.stop, note or stopped.note
            hits = await self.evidence.plain_context(self.question, self.k or self.evidence.found)
        if self.answers and hits and self.stop not in _NOTHING_MORE:
            try:
                background = await self.evidence.background(hits)
                reading = read(
                    self.calls, self.question, hits, self.notes, background, config=self.reader, stream=self.streams
                )
                async with aclosing(reading) as parts:
                    async for part in parts:
                        if isinstance(part, ReadAnswer):
                            answer, note = part, note or part.note
                        else:
                            yield part
            except StoppedError as stopped:
                self.stop, note = stopped.stop, stopped.note
            if self.stop == "answered" and not answer.sufficient:
                self.stop = "done"  # what the rounds took for the answer is not in the evidence
        used = self.calls.usage
        searches = self.evidence.searches
        usage = ReasoningUsage(used.calls, used.input_tokens, used.output_tokens, searches, used.stored_tokens)
        yield Answer(answer.text, self.stop, hits, answer.citations, answer.sufficient, usage, note, answer.findings)


def run_strategy(
    strategy: Strategy,
    index: Searchable,
    question: str,
    options: ReasoningOptions,
    edits: Mapping[int, str] | None = None,
) -> AsyncGenerator[ReasoningStep, None]:
    """Yield the steps of a strategy, then the answer, whatever ended the rounds."""
    named(strategy.name.replace("-", "_"), options, {*ReasoningOptions.__annotations__, *strategy.settings})
    bounds = limits_of(options.get("limits"), ReasoningLimits)
    check_language_model(options.get("model"))
    return _steps(strategy, partial(_start, strategy, index, question, options, bounds, edits or {}))


async def _steps(strategy: Strategy, start: Callable[[], Awaitable[Run]]) -> AsyncGenerator[ReasoningStep, None]:
    run = await start()
    note = ""
    with start_span("invoke_agent", strategy.name, {"gen_ai.agent.name": strategy.name, "sire.k": run.k}) as span:
        run.calls.span = span
        try:
            async with aclosing(strategy.rounds(run)) as steps:
                async for step in steps:
                    yield step
        except StoppedError as stopped:
            run.stop, note = stopped.stop, stopped.note
        async with aclosing(run.finish(note)) as ending:
            async for last in ending:
                if isinstance(last, Answer):
                    span.set(_outcome(last))
                yield last


async def _start(
    strategy: Strategy,
    index: Searchable,
    question: str,
    options: ReasoningOptions,
    bounds: ReasoningLimits,
    edits: Mapping[int, str],
) -> Run:
    """Take a snapshot of the index; no call and no search yet."""
    k, answers = options.get("k"), options.get("answer", True)
    question = check_query(question, 1 if k is None else k)
    chosen = options.get("model") or index.language_model
    if chosen is None and (answers or strategy.thinks):
        raise ConfigurationError(
            "This needs a language model: pass model=..., for example OpenAIChat('gpt-4o-mini') of "
            "sire_core.models.openai.client, or give the index one: Index(path, language_model=...). "
            "Index.search finds the evidence without one."
        )
    searcher = await index.asnapshot(filter=options.get("filter"), as_of=options.get("as_of"))
    calls = ModelCalls(chosen, bounds, keep=answers)
    return Run(
        question=question,
        k=strategy.k if k is None else k,
        steps=strategy.steps if bounds.max_steps is None else bounds.max_steps,
        answers=answers,
        streams=options.get("stream", False),
        calls=calls,
        evidence=Evidence(searcher, calls, strategy.merge),
        edits=edits,
        reader=options.get("reader") or ReaderConfig(),
    )


def _outcome(answer: Answer) -> dict[str, Any]:
    return {
        "sire.stop": answer.stop,
        "sire.sufficient": answer.sufficient,
        "sire.searches": answer.usage.retrievals,
        "gen_ai.usage.input_tokens": answer.usage.input_tokens,
        "gen_ai.usage.output_tokens": answer.usage.output_tokens,
    }
