"""`self_ask`: follow-up questions and their answers first, then the answer."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sire_core.errors import ConfigurationError
from sire_core.reason.prompts import ASK_FOLLOW_UP, LIST_FOLLOW_UPS, READ_FOLLOW_UP, prompt
from sire_core.reason.run import Run, run_strategy, start
from sire_core.reason.sentences import as_query, is_done, labelled_line, without_thinking
from sire_core.reason.steps import IntermediateAnswer, ReasoningStep, SubQuestion

if TYPE_CHECKING:
    from sire_core.protocols import LanguageModel
    from sire_core.reason.limits import ReasoningLimits
    from sire_core.reason.reader import ReaderConfig
    from sire_core.reason.searchers import FilterLike, Searchable

__all__ = ["SelfAskConfig", "self_ask"]

_INTERMEDIATE = "Intermediate answer:"
_FOLLOW_UP = re.compile(r"follow[ -]?up(?: question)?(?: \d+)?[^\w:]{0,3}:", re.IGNORECASE)
_FINAL = re.compile(r"final answer\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SelfAskConfig:
    """How self-ask asks.

    Attributes:
        mode: `search` searches for every follow-up question and answers it from what that finds (two calls each);
            `two_call` searches once, for the question itself, and asks for all follow-up questions with their answers
            in one call (SiReRAG, appendix B).
        k: Units of one search of `search`.
        steps: Most follow-up questions of `search`. `ReasoningLimits.max_steps` overrides it.
        words: Where a passage is cut when a follow-up question is answered; the reader sees it whole.

    Raises:
        ConfigurationError: An unknown mode, or a number below one.
    """

    mode: Literal["two_call", "search"] = "search"
    k: int = 10
    steps: int = 4
    words: int = 350

    def __post_init__(self) -> None:
        if self.mode not in ("two_call", "search"):
            raise ConfigurationError(f"mode is 'two_call' or 'search', not {self.mode!r}.")
        if min(self.k, self.steps, self.words) < 1:
            raise ConfigurationError("k, steps and words of self-ask must be at least 1.")


async def self_ask(
    index: Searchable,
    question: str,
    *,
    model: LanguageModel | None = None,
    k: int | None = None,
    filter: FilterLike = None,  # noqa: A002 - the word users look for
    config: SelfAskConfig | None = None,
    limits: ReasoningLimits | None = None,
    answer: bool = True,
    stream: bool = False,
    reader: ReaderConfig | None = None,
    edits: Mapping[int, str] | None = None,
) -> AsyncGenerator[ReasoningStep, None]:
    """Break the question down; yields every step as it happens, and the `Answer` last.

    `two_call` makes exactly two calls and one search. `search` makes one search for the question, and for each
    follow-up question one call that asks it, one search and one call that answers it; then one call that has no more
    to ask, and one for the answer.

    Args:
        index: What is searched: an `Index` with any recipe, or a `RetrieverSource` over any other retriever.
        question: The question.
        model: Who asks and answers; None takes the index's own.
        k: Hits of the final context; None means 10.
        filter: As in `Index.search`, for every search.
        config: The mode and its settings.
        limits: Bounds of follow-up questions, calls, tokens and time.
        answer: Whether the answer is asked for in the end; without, the last step has the hits only.
        stream: Whether the answer also comes piece by piece, as `AnswerPiece`s before the `Answer`.
        reader: How the answer is read from the hits; see `ReaderConfig`.
        edits: What is searched for in a round in the place of what the model asks for, by the number of the round;
            for people who look over a reasoning's shoulder.

    Raises:
        QueryError: Empty question or k below one.
        ConfigurationError: There is no language model, or the filter cannot be read.
        IndexMissingError: There is no index.
    """
    c = config or SelfAskConfig()
    size = 10 if k is None else k
    run = await start(
        index,
        question,
        model=model,
        k=size,
        where=filter,
        limits=limits,
        strategy="self-ask",
        steps=c.steps,
        answers=answer,
        streams=stream,
        reader=reader,
        edits=edits,
    )
    played = run_strategy(run, _two_calls(run, size) if c.mode == "two_call" else _follow_ups(run, c))
    try:
        async for step in played:
            yield step
    finally:
        await played.aclose()


async def _two_calls(run: Run, k: int) -> AsyncGenerator[ReasoningStep, None]:
    """All follow-up questions at once, over the same context as the answer."""
    from sire_core.reason.schemas import FollowUps

    yield await run.evidence.retrieve(0, run.question, k)
    if run.evidence.empty:
        run.stop = "empty_index"
        return
    hits = await run.context()
    reply = await run.calls.ask(prompt(LIST_FOLLOW_UPS, run.question, [hit.unit for hit in hits]), schema=FollowUps)
    for number, found in enumerate(reply.parsed.followups if reply.parsed else (), 1):
        yield SubQuestion(number, found.q)
        yield IntermediateAnswer(number, found.q, found.a)
        run.notes.append({"question": found.q, "answer": found.a})
    run.stop = "answered" if run.answers else "done"


async def _follow_ups(run: Run, c: SelfAskConfig) -> AsyncGenerator[ReasoningStep, None]:
    """One follow-up question after the other, each searched for."""
    yield await run.evidence.retrieve(0, run.question, c.k)
    if run.evidence.empty:
        run.stop = "empty_index"
        return
    for number in range(1, run.steps + 1):
        asked = prompt(ASK_FOLLOW_UP, run.question, followups=run.notes)
        reply = await run.calls.ask(asked, stop=(_INTERMEDIATE,))
        written = without_thinking(reply.text)
        query = as_query(labelled_line(written, _FOLLOW_UP))
        if not query or is_done(query):
            # Whether it has the answer or makes no sense: the reader decides.
            run.stop = "answered" if _FINAL.search(written) else "done" if is_done(query or written) else "no_question"
            return
        query = run.edits.get(number, query)
        yield SubQuestion(number, query)
        if run.evidence.asked(query):
            run.stop = "repeated_query"
            return
        yield await run.evidence.retrieve(number, query, c.k)
        reading = await run.calls.ask(prompt(READ_FOLLOW_UP, query, run.evidence.last, c.words))
        text = without_thinking(reading.text)
        yield IntermediateAnswer(number, query, text)
        run.notes.append({"question": query, "answer": text})
    run.stop = "step_limit"
