"""How the questions of a data set are answered, and how good each answer is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sire_core.reason.reader import ReaderConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sire_core.protocols import LanguageModel

__all__ = ["AnswerConfig", "AnsweredQuestion"]


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
