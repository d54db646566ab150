"""Reasoning steps as what LangChain streams: dictionaries that add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from langchain_core.runnables import AddableDict

from langchain_sire.any_retriever import plain_document, to_document
from sire_core.errors import QueryError
from sire_core.reason.steps import Answer, AnswerPiece, ReasoningStep, plain_step

__all__ = ["question_of", "step_to_chunk", "step_to_dict"]

_KEYS = ("question", "input", "query")


def question_of(given: object) -> str:
    """The question of a chain's input: a text, or a mapping with `question`, `input` or `query`.

    Raises:
        QueryError: There is none.
    """
    if isinstance(given, Mapping):
        found = next((given[key] for key in _KEYS if key in given), None)
        if found is None:
            raise QueryError(f"The input has no question; name it {' or '.join(map(repr, _KEYS))}.")
        given = found
    if not isinstance(given, str):
        raise QueryError(f"The question is a {type(given).__name__}, not a text.")
    if not given.strip():
        raise QueryError("The question is empty. Ask something.")
    return given


def step_to_dict(step: ReasoningStep) -> dict[str, Any]:
    """A step as a dictionary, plain JSON: `type`, and the step's own fields with hits as `documents`.

    A document is a dictionary from which `Document(**plain)` makes one.

    The types are `thought`, `sub_question`, `retrieved`, `intermediate_answer` and `answer`. The last one has text and
    stop reason only: the rest of an answer stands in the result itself.
    """
    return plain_step(step, "documents", plain_document)


def step_to_chunk(question: str, step: ReasoningStep, *, streamed: bool = False, plain: bool = False) -> AddableDict:
    """What a chain makes of a step; the sum of all chunks is its result.

    Args:
        question: What was asked.
        step: The step, or a piece of the answer.
        streamed: Whether the answer's text has come in pieces.
        plain: Whether the result's documents are dictionaries, too.
    """
    if isinstance(step, AnswerPiece):
        # Chunks can only be added to: what is void stays, and the answer starts over below it.
        return AddableDict(steps=[], answer="\n\n" * step.restart + step.text)
    chunk = AddableDict(steps=[step_to_dict(step)])
    if isinstance(step, Answer):
        chunk |= {
            "question": question,
            "documents": [(plain_document if plain else to_document)(hit) for hit in step.hits],
            "citations": list(step.citations),
            "findings": list(step.findings),
            "stop": step.stop,
            "sufficient": step.sufficient,
            "usage": asdict(step.usage),
            "note": step.note,
        }
        if not streamed:
            chunk["answer"] = step.text
    return chunk
