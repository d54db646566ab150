"""Steps of a reasoning as a LlamaIndex response."""

from __future__ import annotations

from dataclasses import asdict

from llama_index.core.base.response.schema import Response

from llama_index_sire.any_retriever import node_of
from sire_core.reason.steps import Answer, AnswerPiece, ReasoningStep, plain_step
from sire_core.serve.outputs import source_title

__all__ = ["CitedResponse", "add_step", "empty_response"]

_NOTHING = "Empty Response"
"""LlamaIndex's own words for it."""


class CitedResponse(Response):
    """A response that says, as a text, what its citations are: what `QueryEngineTool` gives to an agent.

    `response.response` is the answer alone.
    """

    def __str__(self) -> str:
        text = super().__str__()
        sources = (self.metadata or {}).get("sources", ())
        lines = [f"[{found['number']}] {', '.join(found['doc_ids'])} {found['title']}".rstrip() for found in sources]
        return "\n\n".join([text, *(["Sources:\n" + "\n".join(lines)] if lines else [])])


def empty_response() -> Response:
    """A response to which steps are added."""
    return CitedResponse(None, [], {"steps": []})


def add_step(step: ReasoningStep, response: Response) -> str:
    """Note a step in a response, whose lists may be shared already.

    Returns:
        What the step adds to the text: a piece of the answer, or all of it where it did not come in pieces.
    """
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
        stop=step.stop,
        sufficient=step.sufficient,
        citations=list(step.citations),
        findings=list(step.findings),
        usage=asdict(step.usage),
        note=step.note,
        sources=[
            {"number": number, "doc_ids": list(hit.doc_ids), "title": source_title(hit)}
            for number, hit in enumerate(step.hits, 1)
            if number in step.citations
        ],
    )
    return rest
