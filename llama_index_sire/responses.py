"""Steps of a reasoning as a LlamaIndex response."""

from __future__ import annotations

from dataclasses import asdict

from llama_index.core.base.response.schema import Response

from llama_index_sire.events import plain_step
from llama_index_sire.nodes import to_scored_node
from sire_core.reason import Answer, Step

__all__ = ["add_step", "empty_response"]


def empty_response() -> Response:
    """A response to which steps are added."""
    return Response(None, [], {"steps": []})


def add_step(step: Step, response: Response) -> str | None:
    """Note a step in a response, whose lists may be shared already; gives the text when it is the last one."""
    assert response.metadata is not None
    response.metadata["steps"].append(plain_step(step))
    if not isinstance(step, Answer):
        return None
    response.response = step.text or "Empty Response"  # LlamaIndex's own words for it
    response.source_nodes.extend(to_scored_node(hit) for hit in step.hits)
    response.metadata.update(
        stop=step.stop,
        sufficient=step.sufficient,
        citations=list(step.citations),
        usage=asdict(step.usage),
        note=step.note,
    )
    return response.response
