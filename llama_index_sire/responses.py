"""Steps of a reasoning as a LlamaIndex response."""

from __future__ import annotations

from dataclasses import asdict

from llama_index.core.base.response.schema import Response

from llama_index_sire.events import plain_step
from llama_index_sire.nodes import to_scored_node
from sire_core.reason import Answer, AnswerPiece, Step

__all__ = ["add_step", "empty_response"]

_NOTHING = "Empty Response"
"""LlamaIndex's own words for it."""


def empty_response() -> Response:
    """A response to which steps are added."""
    return Response(None, [], {"steps": []})


def add_step(step: Step, response: Response) -> str:
    """Note a step in a response, whose lists may be shared already.

    Returns:
        What the step adds to the text: a piece of the answer, or all of it where it did not come in pieces.
    """
    assert response.metadata is not None
    if isinstance(step, AnswerPiece):
        # Readers of a stream cannot take back what is void: the answer begins anew below it.
        piece = "\n\n" * step.restart + step.text
        response.response = (response.response or "") + piece
        return piece
    response.metadata["steps"].append(plain_step(step))
    if not isinstance(step, Answer):
        return ""
    rest = "" if response.response else step.text or _NOTHING
    response.response = step.text or _NOTHING
    response.source_nodes.extend(to_scored_node(hit) for hit in step.hits)
    response.metadata.update(
        stop=step.stop,
        sufficient=step.sufficient,
        citations=list(step.citations),
        usage=asdict(step.usage),
        note=step.note,
    )
    return rest
