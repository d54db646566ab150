"""Steps of a reasoning as LlamaIndex events."""

from __future__ import annotations

from dataclasses import asdict
from typing import Union

from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Event

from llama_index_sire.any_retriever import node_of
from sire_core.reason import AnswerPiece, IntermediateAnswer, ReasoningStep, Retrieved, SubQuestion, Thought

__all__ = [
    "AnswerEvent",
    "AnswerPieceEvent",
    "IntermediateAnswerEvent",
    "ReasoningEvent",
    "RetrievedEvent",
    "SubQuestionEvent",
    "ThoughtEvent",
    "to_event",
]


class ThoughtEvent(Event):
    """A sentence of the reasoning; numbers count the rounds."""

    number: int
    text: str


class SubQuestionEvent(Event):
    """What is searched for next, or the follow-up question that is answered next."""

    number: int
    text: str


class RetrievedEvent(Event):
    """What a search found, and how much of it was new."""

    number: int
    query: str
    nodes: list[NodeWithScore]
    new: int


class IntermediateAnswerEvent(Event):
    """The answer to a follow-up question."""

    number: int
    question: str
    text: str


class AnswerPieceEvent(Event):
    """A piece of the answer while it is written; `restart` says that the pieces before it are void."""

    text: str
    restart: bool


class AnswerEvent(Event):
    """The end of a reasoning: the answer, and the evidence in the order in which the text cites it as [1], [2]."""

    text: str
    stop: str
    nodes: list[NodeWithScore]
    citations: list[int]
    findings: list[str]
    sufficient: bool
    usage: dict[str, int]
    note: str


ReasoningEvent = Union[
    ThoughtEvent, SubQuestionEvent, RetrievedEvent, IntermediateAnswerEvent, AnswerPieceEvent, AnswerEvent
]


def to_event(step: ReasoningStep) -> ReasoningEvent:
    """Convert a step of the core."""
    if isinstance(step, Thought):
        return ThoughtEvent(number=step.number, text=step.text)
    if isinstance(step, SubQuestion):
        return SubQuestionEvent(number=step.number, text=step.text)
    if isinstance(step, IntermediateAnswer):
        return IntermediateAnswerEvent(number=step.number, question=step.question, text=step.text)
    if isinstance(step, AnswerPiece):
        return AnswerPieceEvent(text=step.text, restart=step.restart)
    nodes = [node_of(hit) for hit in step.hits]
    if isinstance(step, Retrieved):
        return RetrievedEvent(number=step.number, query=step.query, nodes=nodes, new=step.new)
    return AnswerEvent(
        text=step.text,
        stop=step.stop,
        nodes=nodes,
        citations=list(step.citations),
        findings=list(step.findings),
        sufficient=step.sufficient,
        usage=asdict(step.usage),
        note=step.note,
    )
