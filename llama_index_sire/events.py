"""Steps of a reasoning as LlamaIndex events, and as a response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Union

from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Event

from llama_index_sire.nodes import node_of
from sire_core.reason import Answer, AnswerPiece, IntermediateAnswer, ReasoningStep, Retrieved, SubQuestion, Thought
from sire_core.reason.steps import plain_answer, plain_step
from sire_core.serve.outputs import source_title


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


_EVENTS: Mapping[type[Any], type[Any]] = {
    Thought: ThoughtEvent,
    SubQuestion: SubQuestionEvent,
    Retrieved: RetrievedEvent,
    IntermediateAnswer: IntermediateAnswerEvent,
    AnswerPiece: AnswerPieceEvent,
    Answer: AnswerEvent,
}
"""By step; its fields are the event's, with nodes for hits."""


def to_event(step: ReasoningStep) -> ReasoningEvent:
    """Convert a step of the core."""
    values: dict[str, Any] = {name.name: getattr(step, name.name) for name in fields(step)}
    if "hits" in values:
        values["nodes"] = [node_of(hit) for hit in values.pop("hits")]
    if isinstance(step, Answer):
        values |= plain_answer(step)
    event: ReasoningEvent = _EVENTS[type(step)](**values)
    return event


_NOTHING = "Empty Response"
"""LlamaIndex's own words for it."""


class CitedResponse(Response):
    """A response that says, as a text, what its citations are: what `QueryEngineTool` gives to an agent.

    `response.response` is the answer alone.
    """

    def __str__(self) -> str:
        text = super().__str__()
        sources = (self.metadata or {}).get("sources", ())
        lines = [
            f"[{source['number']}] {', '.join(source['doc_ids'])} {source['title']}".rstrip() for source in sources
        ]
        return "\n\n".join([text, *(["Sources:\n" + "\n".join(lines)] if lines else [])])


def empty_response() -> Response:
    """A response to which steps are added."""
    return CitedResponse(None, [], {"steps": []})


def add_step(step: ReasoningStep, response: Response) -> str:
    """Note a step in a response, whose lists may be shared already."""
    assert response.metadata is not None
    if isinstance(step, AnswerPiece):
        # Readers of a stream cannot take back what is void: the answer starts over below it.
        piece = "\n\n" * step.restart + step.text
        response.response = (response.response or "") + piece
        return piece
    response.metadata["steps"].append(plain_step(step, "node_ids", lambda hit: node_of(hit).node_id))
    if not isinstance(step, Answer):
        return ""
    rest = "" if response.response else step.text or _NOTHING
    response.response = step.text or _NOTHING
    response.source_nodes.extend(node_of(hit) for hit in step.hits)
    response.metadata.update(
        **plain_answer(step),
        sources=[
            {"number": number, "doc_ids": list(hit.doc_ids), "title": source_title(hit)}
            for number, hit in enumerate(step.hits, 1)
            if number in step.citations
        ],
    )
    return rest
