"""Answers without a search: from memory, or from the gold passages. What a retriever is measured between."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sire_core.evaluate.datasets import Question
    from sire_core.protocols import LanguageModel
    from sire_core.reason.reader import ReaderConfig
    from sire_core.reason.steps import Answer, StopReason
    from sire_core.types import Document, Hit

__all__ = ["CLOSED_BOOK", "GOLDEN", "gold_passages", "read_alone"]

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
