"""Reasoning over an index: strategies that search in several rounds, as async generators of typed steps."""

from sire_core.reason.answer_reader import ReaderConfig, extract_answer
from sire_core.reason.model_calls import ReasoningLimits
from sire_core.reason.reasoning_run import ReasoningOptions
from sire_core.reason.searchers import PassageSource, RetrieverSource, Searchable
from sire_core.reason.steps import (
    Answer,
    AnswerPiece,
    IntermediateAnswer,
    ReasoningStep,
    ReasoningUsage,
    Retrieved,
    StopReason,
    SubQuestion,
    Thought,
    Trace,
)
from sire_core.reason.strategies import (
    STRATEGIES,
    IRCoTConfig,
    SelfAskConfig,
    collect,
    ircot,
    iterate_sync,
    reason,
    self_ask,
    settings_of,
    single,
)

__all__ = [
    "STRATEGIES",
    "Answer",
    "AnswerPiece",
    "IRCoTConfig",
    "IntermediateAnswer",
    "PassageSource",
    "ReaderConfig",
    "ReasoningLimits",
    "ReasoningOptions",
    "ReasoningStep",
    "ReasoningUsage",
    "Retrieved",
    "RetrieverSource",
    "Searchable",
    "SelfAskConfig",
    "StopReason",
    "SubQuestion",
    "Thought",
    "Trace",
    "collect",
    "extract_answer",
    "ircot",
    "iterate_sync",
    "reason",
    "self_ask",
    "settings_of",
    "single",
]
