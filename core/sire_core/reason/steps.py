"""Typed steps that a reasoning strategy yields, the last of which is an `Answer`; and its next search."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Union

from sire_core.arguments import check_choice
from sire_core.errors import NoAnswerError
from sire_core.reason.citations import without_citations
from sire_core.reason.output_parsing import abstains
from sire_core.text.words import name_key
from sire_core.types import Hit

StopReason = Literal[
    "answered",
    "done",
    "no_question",
    "repeated_query",
    "step_limit",
    "call_limit",
    "token_limit",
    "timeout",
    "empty_index",
    "model_failed",
    "extracted",
]
"""Why the reasoning ended.

`answered`: the answer was reached, and the evidence holds it; `done`: the model had nothing more to search for;
`no_question`: it named nothing that could be searched for; `repeated_query`: it asked the same again; `step_limit`,
`call_limit`, `token_limit`, `timeout`: a bound of `ReasoningLimits`; `empty_index`: nothing is indexed, or nothing
passes the filter; `model_failed`: the model failed or declined, `Answer.note` says how; `extracted`: there was no
model, and the text is sentences of the evidence (`extract_answer`).
"""

Outcome = Literal["answered", "doubted", "unanswered"]
"""The outcome of a reasoning.

`answered`: a model found the evidence sufficient and cites it, or sentences are quoted without a warning; `doubted`:
there is a text, but the model cites nothing for it, finds the evidence insufficient or broke off, or `Answer.note`
warns of what the quoted sentences lack; `unanswered`: there is none, or it only says so.
"""


@dataclass(frozen=True, slots=True)
class Thought:
    """A sentence of reasoning. Numbers count the rounds from 1."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """The next query: IRCoT's query, or self-ask's follow-up question."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The result of a search.

    Attributes:
        number: Round; 0 is the search for the question itself.
        query: The query.
        hits: The best hits of this search, after the recipe's selectors (rerankers, quotas).
        new: Number of hits that no earlier round found.
    """

    number: int
    query: str
    hits: tuple[Hit, ...]
    new: int


@dataclass(frozen=True, slots=True)
class IntermediateAnswer:
    """The answer to a follow-up question of self-ask."""

    number: int
    question: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """A piece of the answer as it streams; only with the option `stream`.

    The pieces since the last `restart` add up to the text of the `Answer` that follows.

    Attributes:
        text: The text of the piece.
        restart: Whether the pieces before this one are invalid, because the model's answer was unusable and was
            requested again.
    """

    text: str
    restart: bool = False


@dataclass(frozen=True, slots=True)
class ReasoningUsage:
    """Usage of the reasoning.

    Attributes:
        calls: Requests to language models, including repairs and, if the model reports them, retries.
        input_tokens: Tokens of the prompts.
        output_tokens: Tokens of the answers.
        retrievals: Searches.
        stored_tokens: Tokens that answers took which were stored before; nobody pays them now.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    retrievals: int = 0
    stored_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """The last step.

    Attributes:
        text: The answer, with citations such as [1]; empty if no answer was requested or the reader failed. If a stream
            broke off, the received part.
        stop: Why the reasoning ended.
        hits: The final context, in order; also if the model failed.
        citations: Numbers of the hits that the text cites, from 1.
        sufficient: Whether the reader found the evidence sufficient and cites it; False without an answer.
        usage: Calls, tokens and searches.
        note: A description of what went wrong, such as citations that were dropped; empty if nothing did.
        findings: Findings of reports on which the answer is based: 3.2 is finding 2 of hit 3 (SMART, table 6). Empty
            unless reports by a model are among the hits.
    """

    text: str
    stop: StopReason
    hits: tuple[Hit, ...] = ()
    citations: tuple[int, ...] = ()
    sufficient: bool = False
    usage: ReasoningUsage = ReasoningUsage()
    note: str = ""
    findings: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """Say in one word whether the text is an answer."""
        is_quoted = self.stop == "extracted"
        if not self.text or (not is_quoted and not self.sufficient and abstains(without_citations(self.text))):
            return "unanswered"
        return "answered" if self.sufficient or (is_quoted and not self.note) else "doubted"


ReasoningStep = Union[Thought, SubQuestion, Retrieved, IntermediateAnswer, AnswerPiece, Answer]


def plain_step(step: ReasoningStep, hits: str, convert: Callable[[Hit], Any], kind: str = "type") -> dict[str, Any]:
    """A step by its name and fields, for JSON; of an answer text and stop reason, the rest stands elsewhere.

    `hits` and `kind` name the fields with what a search found and with the step's name.
    """
    result = {kind: re.sub(r"(?<!^)(?=[A-Z])", "_", type(step).__name__).lower()}
    if isinstance(step, Answer):
        return {**result, "text": step.text, "stop": step.stop}
    values = {field.name: getattr(step, field.name) for field in fields(step)}
    return result | {hits if n == "hits" else n: [*map(convert, v)] if n == "hits" else v for n, v in values.items()}


def plain_answer(answer: Answer) -> dict[str, Any]:
    """An answer for JSON, without its text and hits."""
    return {
        "citations": list(answer.citations),
        "findings": list(answer.findings),
        "stop": answer.stop,
        "sufficient": answer.sufficient,
        "outcome": answer.outcome,
        "usage": asdict(answer.usage),
        "note": answer.note,
    }


@dataclass(frozen=True, slots=True)
class Trace:
    """All steps of a finished reasoning.

    Attributes:
        steps: In order; the last one is `answer`.
        answer: How it ended.
    """

    steps: tuple[ReasoningStep, ...]
    answer: Answer


def check_on_model_error(value: str) -> str:
    """Refuse anything but `raise` or `return`: what a framework gets when the model failed before an answer."""
    check_choice("on_model_error", value, ("raise", "return"))
    return value


def check_answered(step: ReasoningStep, convert: Callable[[Hit], Any]) -> None:
    """Raise `NoAnswerError` if a step ends a reasoning without an answer because the model failed."""
    if isinstance(step, Answer) and step.stop == "model_failed" and not step.text:
        raise NoAnswerError(
            f"There is no answer, because the language model failed: {step.note or 'no reason was given'}. What was "
            "found is in the error's `evidence`; on_model_error='return' returns it with an empty answer instead.",
            step,
            [convert(hit) for hit in step.hits],
        )


class NextSearch:
    """Follows the steps of a strategy.

    Args:
        question: What is searched for first; empty when the next step is no search.
        searches: Whether sub-questions are searched for.

    Attributes:
        query: What the next step searches for; empty when it is none.
    """

    def __init__(self, question: str, *, searches: bool = True) -> None:
        self.query = question
        self._searches = searches
        self._asked = {search_key(question)}

    def saw(self, step: ReasoningStep) -> None:
        """Note what happened."""
        self.query = ""
        # A question that was asked before ends the reasoning: it is not searched for again.
        if self._searches and isinstance(step, SubQuestion) and search_key(step.text) not in self._asked:
            self.query = step.text
            self._asked.add(search_key(step.text))


def search_key(query: str) -> str:
    """Normalised query, equal for rewordings of the same search."""
    return name_key(query).rstrip("?.! ")
