"""The strategies: one search, IRCoT and self-ask; run by name, to their end, from sync code."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from typing_extensions import Unpack

from sire_core.arguments import check_choice, unknown_name
from sire_core.errors import ConfigurationError
from sire_core.models.answer_parsing import without_thinking
from sire_core.models.sync import run_sync
from sire_core.reason.evidence import Admit, Merge
from sire_core.reason.output_parsing import (
    as_query,
    choose_query,
    first_sentence,
    is_done,
    is_factual,
    labelled_line,
    states_answer,
    without_question_words,
)
from sire_core.reason.prompts import (
    ASK_FOLLOW_UP,
    LIST_FOLLOW_UPS,
    READ_FOLLOW_UP,
    SEARCH_LABEL,
    THINK,
    THINK_AND_SEARCH,
    FollowUps,
    SearchThought,
    prompt,
    with_examples,
)
from sire_core.reason.reasoning_run import HITS, ReasoningOptions, Run, Strategy, run_strategy
from sire_core.reason.searchers import Searchable
from sire_core.reason.steps import Answer, IntermediateAnswer, ReasoningStep, SubQuestion, Thought, Trace
from sire_core.types import Unit

_INTERMEDIATE = "Intermediate answer:"
_FOLLOW_UP = re.compile(r"follow[ -]?up(?: question)?(?: \d+)?[^\w:]{0,3}:", re.IGNORECASE)
_FINAL_ANSWER = re.compile(r"final answer\b", re.IGNORECASE)


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
    to ask, and one for the answer. `config` has the mode and its settings; other arguments and errors are those of
    `ircot`.
    """
    c = config or SelfAskConfig()
    rounds = partial(_two_calls if c.mode == "two_call" else _follow_ups, c=c)
    return run_strategy(Strategy("self-ask", rounds, steps=c.steps), index, question, options, edits)


async def _two_calls(run: Run, c: SelfAskConfig) -> AsyncGenerator[ReasoningStep, None]:
    """All follow-up questions at once, over the context of the answer."""
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
            run.stop = (
                "answered" if _FINAL_ANSWER.search(written) else "done" if is_done(query or written) else "no_question"
            )
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


_K = {"original": 6, "hipporag": 8, "indexrag": 20}
_MERGE: dict[str, Merge] = {"original": "append", "hipporag": "max_score", "indexrag": "relative"}
_MAX_STEPS_BY_PROMPT = {"original": 10, "hipporag": 3, "indexrag": 3}
_DUPLICATE_RATIO = 0.9  # Minimum similarity of paragraphs that count as duplicates
_COMPARED = 1000  # Characters of a text that are compared, to bound the time


@dataclass(frozen=True, slots=True)
class IRCoTConfig:
    """Settings of IRCoT.

    Attributes:
        flavor: `original` (released code: searches with the last factual sentence and collects paragraphs in the order
            found), `hipporag` (searches with every new sentence, keeps the best score of each unit) or `indexrag`
            (IndexRAG section 4.2: the model writes the next query or DONE; best relative scores).
        merge: How searches are merged into one ranking (see `Merge`); None uses the flavor's `append`, `max_score` or
            `relative`.
        k: Units per search; None uses the flavor's 6, 8 or 20.
        steps: Maximum sentences; None uses the flavor's 10 (as in its released code), 3 or 3.
            `ReasoningLimits.max_steps` overrides it.
        words: Passages are truncated to this many words for reasoning; the reader sees them whole.
        paragraphs: Maximum paragraphs that `original` collects.
        max_words: Longer paragraphs are left out by `original`, unless there is nothing else.
        examples: Solved examples that every step is shown, as in the papers; none come with the package.

    Raises:
        ConfigurationError: An unknown flavor, or a number below one.
    """

    flavor: Literal["original", "hipporag", "indexrag"] = "indexrag"
    merge: Merge | None = None
    k: int | None = None
    steps: int | None = None
    words: int = 350
    paragraphs: int = 15
    max_words: int = 600
    examples: str = ""

    def __post_init__(self) -> None:
        check_choice("flavor", self.flavor, tuple(_K))
        if self.merge is not None:
            check_choice("merge", self.merge, tuple(_MERGE.values()))
        for name in ("k", "steps", "words", "paragraphs", "max_words"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigurationError(f"{name} of IRCoT must be at least 1, not {value}.")


def ircot(
    index: Searchable,
    question: str,
    *,
    config: IRCoTConfig | None = None,
    edits: Mapping[int, str] | None = None,
    **options: Unpack[ReasoningOptions],
) -> AsyncGenerator[ReasoningStep, None]:
    """Interleave retrieval and chain of thought. Yields every step as it happens, and the `Answer` last.

    Searches with the question; then, in each round, the model writes one sentence, which leads to the next search.
    Every search uses the recipe's reranking. The results are merged, and the recipe's quotas are applied to all of
    them. Makes one model call per round and one for the answer, plus those of a reranker.

    Args:
        index: An `Index` with any recipe, or a `RetrieverSource` over any other retriever.
        question: The question.
        config: The flavor and its settings.
        edits: Queries that replace those of the model, by number of the round, for people who edit a run.
        **options: See `ReasoningOptions`.

    Raises:
        QueryError: Empty question or k below one.
        ConfigurationError: There is no language model, or the filter is invalid.
        IndexMissingError: There is no index.
        TypeError: An option is unknown.
    """
    c = config or IRCoTConfig()
    strategy = Strategy(
        "ircot",
        partial(_search_rounds if c.flavor == "indexrag" else _sentence_rounds, c=c),
        steps=c.steps or _MAX_STEPS_BY_PROMPT[c.flavor],
        k=None if c.flavor == "original" else HITS,
        merge=c.merge or _MERGE[c.flavor],
    )
    return run_strategy(strategy, index, question, options, edits)


async def _search_rounds(run: Run, c: IRCoTConfig) -> AsyncGenerator[ReasoningStep, None]:
    """Rounds in which the model writes the next query."""
    k = c.k or _K[c.flavor]
    yield await run.evidence.retrieve(0, run.question, k, step=True)
    if run.evidence.empty:
        run.stop = "empty_index"
        return
    searched: list[str] = []
    for number in range(1, run.steps + 1):
        passages = await run.evidence.best(k)
        next_prompt = prompt(
            with_examples(THINK_AND_SEARCH, c.examples),
            run.question,
            passages,
            c.words,
            reasoning=run.notes,
            searched=searched,
        )
        reply = await run.calls.ask(next_prompt, schema=SearchThought)
        thought, query = _read_search(reply.text, reply.parsed)
        if thought:
            run.notes.append(thought)
            yield Thought(number, thought)
        if not query or is_done(query):
            run.stop = "done" if query else "no_question"
            return
        query = run.edits.get(number, query)
        yield SubQuestion(number, query)
        if run.evidence.asked(query):
            run.stop = "repeated_query"
            return
        searched.append(query)
        yield await run.evidence.retrieve(number, query, k, step=True)
    run.stop = "step_limit"


def _read_search(text: str, parsed: SearchThought | None) -> tuple[str, str]:
    """Sentence and query of a reply; malformed replies give a `Search:` line, else the first sentence, as query."""
    if parsed is not None:
        return first_sentence(parsed.reasoning), as_query(parsed.search)
    sentence = first_sentence(text)
    return sentence, as_query(labelled_line(without_thinking(text), SEARCH_LABEL) or sentence)


async def _sentence_rounds(run: Run, c: IRCoTConfig) -> AsyncGenerator[ReasoningStep, None]:
    """Rounds in which the model's sentence is the next query."""
    original = c.flavor == "original"
    k = c.k or _K[c.flavor]
    shorten = without_question_words if original and run.evidence.lexical else str
    admit: Admit | None = (
        partial(admit_paragraphs, max_paragraphs=c.paragraphs, max_words=c.max_words) if original else None
    )
    yield await run.evidence.retrieve(0, shorten(run.question), k, admit=admit, step=True)
    if run.evidence.empty:
        run.stop = "empty_index"
        return
    for number in range(1, run.steps + 1):
        passages = await run.evidence.best(run.evidence.found if original else k)
        reply = await run.calls.ask(
            prompt(with_examples(THINK, c.examples), run.question, passages, c.words, reasoning=run.notes)
        )
        sentence = first_sentence(reply.text)
        if not sentence or is_done(sentence):
            run.stop = "done" if sentence else "no_question"
            return
        yield Thought(number, sentence)
        repeated = sentence in run.notes
        run.notes.append(sentence)
        if repeated or states_answer(sentence):
            run.stop = "repeated_query" if repeated else "answered"
            return
        if original and number == run.steps:  # as in the released code: no search after the last sentence
            break
        query = shorten(as_query(choose_query(run.question, run.notes) if original else sentence))
        query = run.edits.get(number, query)
        if run.evidence.asked(query):
            if original and not is_factual(sentence):  # a conclusion: nothing new to search for, the reasoning goes on
                continue
            run.stop = "repeated_query"
            return
        yield SubQuestion(number, query)
        yield await run.evidence.retrieve(number, query, k, admit=admit, step=True)
    run.stop = "step_limit"


def nearly_equal(one: str, other: str) -> bool:
    """True if two texts agree in 90 % of their characters, ignoring case."""
    matcher = SequenceMatcher(None, one.casefold()[:_COMPARED], other.casefold()[:_COMPARED], autojunk=False)
    # Two upper bounds first: they settle almost every comparison.
    return all(share() >= _DUPLICATE_RATIO for share in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio))


def admit_paragraphs(
    collected: Sequence[Unit], results: Sequence[Unit], *, max_paragraphs: int, max_words: int
) -> list[int]:
    """Indexes in `results` of the paragraphs to add to those collected, first come first served."""
    paragraphs = list(collected)
    short = [index for index, unit in enumerate(results) if len(unit.text.split()) <= max_words]
    indexes: list[int] = []
    for index in short if short or collected else range(len(results)):
        unit = results[index]
        if len(paragraphs) >= max_paragraphs:
            break
        if any(nearly_equal(unit.title, other.title) and nearly_equal(unit.text, other.text) for other in paragraphs):
            continue
        paragraphs.append(unit)
        indexes.append(index)
    return indexes


T = TypeVar("T")


def single(
    index: Searchable, question: str, **options: Unpack[ReasoningOptions]
) -> AsyncGenerator[ReasoningStep, None]:
    """Search once and answer in one model call. The hits are those of `Index.search`.

    Args:
        index: An `Index` with any recipe, or a `RetrieverSource` over any other retriever.
        question: The question.
        **options: See `ReasoningOptions`; with `answer=False`, no model is needed.

    Raises:
        QueryError: Empty question or k below one.
        ConfigurationError: There is no language model, or the filter is invalid.
        IndexMissingError: There is no index.
        TypeError: An option is unknown.
    """
    return run_strategy(Strategy("single", _once, settings=(), thinks=False), index, question, options)


async def _once(run: Run) -> AsyncGenerator[ReasoningStep, None]:
    yield await run.evidence.retrieve(0, run.question, run.k or HITS)
    run.stop = "empty_index" if run.evidence.empty else "answered" if run.answers else "done"


STRATEGIES: Mapping[str, Callable[..., AsyncGenerator[ReasoningStep, None]]] = MappingProxyType(
    {"single": single, "ircot": ircot, "self-ask": self_ask}
)
"""Strategies by name, for the command line and the adapters."""


def settings_of(strategy: str, flavor: str | None = None, examples: str = "") -> dict[str, Any]:
    """Arguments of a strategy for one of its flavors, None for its default, and with solved examples."""
    if strategy not in STRATEGIES:
        raise unknown_name("strategy", strategy, STRATEGIES)
    if flavor is None and not examples:
        return {}
    if strategy == "ircot":
        return {"config": IRCoTConfig(flavor or IRCoTConfig().flavor, examples=examples)}  # type: ignore[arg-type]  # the config checks it
    if strategy == "self-ask":
        return {"config": SelfAskConfig(flavor or SelfAskConfig().mode, examples=examples)}  # type: ignore[arg-type]  # as above
    raise ConfigurationError("A flavor and examples are for ircot and self-ask only.")


def reason(strategy: str, index: Searchable, question: str, **settings: Any) -> AsyncGenerator[ReasoningStep, None]:
    """Run a strategy by name."""
    settings_of(strategy)
    return STRATEGIES[strategy](index, question, **settings)


async def collect(steps: AsyncIterator[ReasoningStep]) -> Trace:
    """Run a strategy to its end, for example all of `ircot`."""
    steps_: list[ReasoningStep] = []
    try:
        async for step in steps:
            steps_.append(step)  # noqa: PERF401 - the generator has to be closed when the caller is cancelled
    finally:
        if isinstance(steps, AsyncGenerator):
            await steps.aclose()
    if not steps_ or not isinstance(steps_[-1], Answer):
        raise ValueError("these steps do not end with an answer")
    return Trace(tuple(steps_), steps_[-1])


def iterate_sync(steps: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Iterate over an async generator from sync code; leaving the loop early closes the generator."""

    async def following() -> tuple[T, ...]:
        try:
            return (await anext(steps),)
        except StopAsyncIteration:
            return ()

    try:
        while item := run_sync(following()):
            yield item[0]
    finally:
        run_sync(steps.aclose())
