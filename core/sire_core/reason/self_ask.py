"""`self_ask`: follow-up questions with their answers, then the answer."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from sire_core.errors import ConfigurationError
from sire_core.models.answers import without_thinking
from sire_core.reason.output_parsing import as_query, is_done, labelled_line
from sire_core.reason.prompts import ASK_FOLLOW_UP, LIST_FOLLOW_UPS, READ_FOLLOW_UP, prompt, with_examples
from sire_core.reason.runner import HITS, ReasoningOptions, Run, Strategy, run_strategy
from sire_core.reason.steps import IntermediateAnswer, ReasoningStep, SubQuestion

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.reason.searchers import Searchable

_INTERMEDIATE = "Intermediate answer:"
_FOLLOW_UP = re.compile(r"follow[ -]?up(?: question)?(?: \d+)?[^\w:]{0,3}:", re.IGNORECASE)
_FINAL = re.compile(r"final answer\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SelfAskConfig:
    """Settings of self-ask.

    Attributes:
        mode: `search` searches for every follow-up question and answers it from the results (two calls each);
            `two_call` searches once, with the question itself, and gets all follow-up questions with their answers in
            one call (SiReRAG, appendix B).
        k: Units per search, with `search`.
        steps: Maximum follow-up questions, with `search`. `ReasoningLimits.max_steps` overrides it.
        words: Passages are truncated to this many words to answer follow-up questions; the reader sees them whole.
        examples: Solved examples that every step is shown, as in the papers; none come with the package.

    Raises:
        ConfigurationError: An unknown mode, or a number below one.
    """

    mode: Literal["two_call", "search"] = "search"
    k: int = 10
    steps: int = 4
    words: int = 350
    examples: str = ""

    def __post_init__(self) -> None:
        if self.mode not in ("two_call", "search"):
            raise ConfigurationError(f"mode is 'two_call' or 'search', not {self.mode!r}.")
        if min(self.k, self.steps, self.words) < 1:
            raise ConfigurationError("k, steps and words of self-ask must be at least 1.")


def self_ask(
    index: Searchable,
    question: str,
    *,
    config: SelfAskConfig | None = None,
    edits: Mapping[int, str] | None = None,
    **options: Unpack[ReasoningOptions],
) -> AsyncGenerator[ReasoningStep, None]:
    """Break the question down into follow-up questions. Yields every step as it happens, and the `Answer` last.

    `two_call` makes exactly two calls and one search. `search` makes one search for the question, and for each
    follow-up question one call that asks it, one search and one call that answers it; then one call that has no more
    to ask, and one for the answer.

    Args:
        index: An `Index` with any recipe, or a `RetrieverSource` over any other retriever.
        question: The question.
        config: The mode and its settings.
        edits: See `ircot`.
        **options: See `ReasoningOptions`.

    Raises:
        QueryError: Empty question or k below one.
        ConfigurationError: There is no language model, or the filter is invalid.
        IndexMissingError: There is no index.
        TypeError: An option is unknown.
    """
    c = config or SelfAskConfig()
    rounds = partial(_two_calls if c.mode == "two_call" else _follow_ups, c=c)
    return run_strategy(Strategy("self-ask", rounds, steps=c.steps), index, question, options, edits)


async def _two_calls(run: Run, c: SelfAskConfig) -> AsyncGenerator[ReasoningStep, None]:
    """All follow-up questions at once, over the context of the answer."""
    from sire_core.reason.prompts import FollowUps

    yield await run.evidence.retrieve(0, run.question, run.k or HITS)
    if run.evidence.empty:
        run.stop = "empty_index"
        return
    hits = await run.context()
    list_prompt = prompt(with_examples(LIST_FOLLOW_UPS, c.examples), run.question, [hit.unit for hit in hits])
    reply = await run.calls.ask(list_prompt, schema=FollowUps)
    for number, followup in enumerate(reply.parsed.followups if reply.parsed else (), 1):
        yield SubQuestion(number, followup.q)
        yield IntermediateAnswer(number, followup.q, followup.a)
        run.notes.append({"question": followup.q, "answer": followup.a})
    run.stop = "answered" if run.answers else "done"


async def _follow_ups(run: Run, c: SelfAskConfig) -> AsyncGenerator[ReasoningStep, None]:
    """Ask and search one follow-up question after the other."""
    yield await run.evidence.retrieve(0, run.question, c.k)
    if run.evidence.empty:
        run.stop = "empty_index"
        return
    for number in range(1, run.steps + 1):
        next_prompt = prompt(with_examples(ASK_FOLLOW_UP, c.examples), run.question, followups=run.notes)
        reply = await run.calls.ask(next_prompt, stop=(_INTERMEDIATE,))
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
