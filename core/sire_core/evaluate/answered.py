"""How the questions of a data set are answered, also without a search, and how good each answer is."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sire_core.errors import ConfigurationError
from sire_core.reason.reader import ReaderConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sire_core.evaluate.datasets import Question
    from sire_core.protocols import LanguageModel
    from sire_core.reason.steps import Answer, StopReason
    from sire_core.types import Document, Hit

__all__ = ["CLOSED_BOOK", "GOLDEN", "AnswerConfig", "AnsweredQuestion", "gold_passages", "read_alone"]


@dataclass(frozen=True, slots=True)
class AnswerConfig:
    """How answers are made.

    Attributes:
        via: A strategy of `sire_core.reason`: `single`, `ircot` or `self-ask`; `closed-book`, which reads nothing, or
            `golden`, which reads the gold passages.
        flavor: Of the strategy; see `settings_of`. None takes its first.
        k: Hits that an answer is read from.
        workers: Questions under way at once.
        reader: How it is read: with the papers' prompt or ours, and how much context.
        model: Who answers; None takes the index's own model.
    """

    via: str = "single"
    flavor: str | None = None
    k: int = 10
    workers: int = 8
    reader: ReaderConfig = field(default_factory=ReaderConfig)
    model: LanguageModel | None = None


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """How good an answer is; every rate 0 to 1, the best over the accepted answers.

    Attributes:
        id: The question's id.
        text: The answer without its citations; empty when there is none.
        stop: Why the reasoning ended.
        em: Exact match.
        f1: Token F1; on HotpotQA and 2WikiMultihopQA with the official rule for yes and no.
        acc: Whether the accepted answer is inside the answer (IndexRAG).
        coverage: Share of the accepted answer's words (SMART).
        acc_25: Whether that share is at least .25.
        acc_50: The same for .5.
        perspectives: Share of the question's reference perspectives (`perspectives`, a list of texts in the question's
            record) whose words the answer covers by half; None without any.
        calls: Requests to the model.
        retrievals: Searches.
        tokens: Of the prompts and the answers, those of answers from a file too.
        type: The question's type.
        gold: Gold document ids.
        documents: Documents of the final context in order, each once: of several searches after they were merged.
        seconds: Wall seconds of searches and calls.
        question: What was asked.
        golds: Accepted answers.
        findings: Share of its citations that are reports (SMART, table 6); None where no report was read, or nothing
            was cited.
        task: Scores that the question's data set alone has; see `task_scores`.
        asked: Whether a model was asked now, so that `seconds` are its own; not where a file held all that it said.
        closed: Whether `f1` has the official rule for yes and no.
        unread: Readings of the question for which the model that scores the answer failed; they count as 0.
    """

    id: str
    text: str
    stop: str
    em: float
    f1: float
    acc: float
    coverage: float
    acc_25: float
    acc_50: float
    calls: int
    retrievals: int
    perspectives: float | None = None
    tokens: int = 0
    type: str = ""
    gold: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    seconds: float = 0.0
    question: str = ""
    golds: tuple[str, ...] = ()
    findings: float | None = None
    task: Mapping[str, float] = field(default_factory=dict)
    unread: int = 0
    asked: bool = True
    closed: bool = False


CLOSED_BOOK = "closed-book"
"""The way to answer that searches nothing."""
GOLDEN = "golden"
"""The way to answer that reads the gold passages: what a reader could do with a perfect search."""


async def read_alone(
    question: Question, passages: Sequence[Hit], reader: ReaderConfig, model: LanguageModel | None
) -> Answer:
    """The answer of a model that searches nothing: it sees no passage, or gold ones (SiReRAG T9, IIER T1).

    Args:
        question: What is asked.
        passages: What it reads.
        reader: How; without passages always with the papers' prompt, since ours would have it say nothing.
        model: Who reads.

    Raises:
        ConfigurationError: There is no model.
    """
    from sire_core.reason.calls import ModelCalls, StoppedError
    from sire_core.reason.limits import ReasoningLimits
    from sire_core.reason.reader import ReadAnswer, read
    from sire_core.reason.steps import Answer, ReasoningUsage

    if model is None:
        raise ConfigurationError("Reading needs a language model: AnswerConfig(model=...).")
    calls = ModelCalls(model, ReasoningLimits(), keep=True)
    how = replace(reader, prompt="paper") if reader.prompt == "ours" and not passages else reader
    found = ReadAnswer()
    stop: StopReason = "answered"
    try:
        async with contextlib.aclosing(read(calls, question.question, passages, config=how)) as parts:
            async for part in parts:
                if isinstance(part, ReadAnswer):
                    found = part
    except StoppedError as stopped:
        stop = stopped.stop
    used = calls.usage
    usage = ReasoningUsage(used.calls, used.input_tokens, used.output_tokens, 0, used.stored_tokens)
    return Answer(found.text, stop, tuple(passages), found.citations, found.sufficient, usage, "")


def gold_passages(question: Question, documents: Mapping[str, Document]) -> list[Hit]:
    """The gold passages, in the question's order."""
    from sire_core.types import Hit, Unit, UnitKind

    found = (documents[name] for name in question.supporting)
    texts = [(one, " ".join(passage.text for passage in one.passages) or one.text) for one in found]
    units = [Unit(one.id, UnitKind.CHUNK, text, (one.id,), title=one.title) for one, text in texts]
    return [Hit(unit, 1.0, (unit.id,), ()) for unit in units]
