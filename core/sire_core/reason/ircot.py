"""`ircot`: alternates one sentence of reasoning and one search."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from typing import TYPE_CHECKING, Literal

from sire_core.errors import ConfigurationError
from sire_core.models.answers import without_thinking
from sire_core.reason.evidence import Merge
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
from sire_core.reason.prompts import THINK, THINK_AND_SEARCH, prompt, with_examples
from sire_core.reason.runner import HITS, ReasoningOptions, Run, Strategy, run_strategy
from sire_core.reason.steps import ReasoningStep, SubQuestion, Thought

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.reason.evidence import Admit
    from sire_core.reason.prompts import SearchThought
    from sire_core.reason.searchers import Searchable
    from sire_core.types import Unit

_K = {"original": 6, "hipporag": 8, "indexrag": 20}
_MERGE: dict[str, Merge] = {"original": "append", "hipporag": "max_score", "indexrag": "relative"}
_STEPS = {"original": 10, "hipporag": 3, "indexrag": 3}
_SEARCH = re.compile(r"(?:next )?search(?: query)?[^\w:]{0,3}:", re.IGNORECASE)

_ALIKE = 0.9
"""Minimum similarity of paragraphs that count as duplicates."""
_COMPARED = 1000
"""Characters of a text that are compared, to bound the time."""


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
        if self.flavor not in _K:
            raise ConfigurationError(f"flavor is 'original', 'hipporag' or 'indexrag', not {self.flavor!r}.")
        if self.merge not in (None, *_MERGE.values()):
            raise ConfigurationError(f"merge is 'append', 'max_score' or 'relative', not {self.merge!r}.")
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
        steps=c.steps or _STEPS[c.flavor],
        k=None if c.flavor == "original" else HITS,
        merge=c.merge or _MERGE[c.flavor],
    )
    return run_strategy(strategy, index, question, options, edits)


async def _search_rounds(run: Run, c: IRCoTConfig) -> AsyncGenerator[ReasoningStep, None]:
    """Rounds in which the model writes the next query."""
    from sire_core.reason.prompts import SearchThought

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
    return sentence, as_query(labelled_line(without_thinking(text), _SEARCH) or sentence)


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
    """Whether two texts agree in 90 % of their characters, ignoring case."""
    matcher = SequenceMatcher(None, one.casefold()[:_COMPARED], other.casefold()[:_COMPARED], autojunk=False)
    # Two upper bounds first: they settle almost every comparison.
    return all(share() >= _ALIKE for share in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio))


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
