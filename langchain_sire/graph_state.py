"""`ReasoningState`: what a graph of a reasoning keeps in its checkpoints, and how a node moves it on."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from langchain_sire.steps import step_to_chunk, step_to_dict
from sire_core.errors import QueryError
from sire_core.reason import Answer, ReasoningStep, Thought
from sire_core.reason.replay import PausedError
from sire_core.reason.steps import NextSearch

_RESULT = ("answer", "citations", "findings", "stop", "sufficient", "usage", "note", "documents")


class ReasoningState(TypedDict, total=False):
    """Plain JSON. `question` is the caller's, and `query` may be edited before it is searched for.

    Attributes:
        question: What is asked.
        thought: The last sentence of the reasoning.
        query: What is searched for next; empty when the reasoning is over. What a person writes here (`update_state`)
            is searched for in the place of the model's query, and stays so in what the model is told.
        edits: These queries, by the number of the round.
        steps: All steps so far, as `step_to_dict` gives them; documents are dictionaries.
        replies: What the model has answered, by the number of its call, and `search`, what rankers have asked it or
            what a retriever that is not ours has found.
        next: The node that comes next, or `end`.
        asked: The question that all this belongs to.
        answer: With the rest, what `ReasoningChain` returns.
    """

    question: str
    thought: str
    query: str
    steps: list[dict[str, Any]]
    edits: dict[str, str]
    replies: dict[str, Any]
    next: str
    asked: str
    answer: str
    documents: list[dict[str, Any]]
    citations: list[int]
    findings: list[str]
    stop: str
    sufficient: bool
    usage: dict[str, int]
    note: str


class ReasoningInput(TypedDict):
    """What a caller gives."""

    question: str


class Progress:
    """One node's work on a state."""

    def __init__(
        self, node: str, question: str, state: ReasoningState, *, reads: bool = False, searches: bool = True
    ) -> None:
        # Another question on the same thread, or the same one again, begins again.
        going = state.get("asked") == question and state.get("next") == node
        self.question = question
        self.known = len(state["steps"]) if going else 0
        """Steps that earlier nodes have made."""
        self.query = (state["query"] if node == "retrieve" else "") if going else question
        """What the next step searches for; empty when it is none."""
        stored_replies = state["replies"] if going else {"model": {}, "search": {}}
        self.replies: dict[str, Any] = {name: dict(replies) for name, replies in stored_replies.items()}
        self.edits = _edits(state, edited=node == "retrieve") if going else {}
        self._reads = reads
        self._update = ReasoningState(
            asked=question, thought="", query="", steps=[], next="end", replies=self.replies, edits=self.edits
        )
        if not going:  # nothing of an earlier question may stand beside this one
            empty = ReasoningState(answer="", documents=[], citations=[], findings=[], stop="", usage={}, note="")
            self._update.update(empty | ReasoningState(sufficient=False))
        self._following = NextSearch(question, searches=searches)

    def add(self, step: ReasoningStep) -> bool:
        """Note a step. Whether the node's work ends with it."""
        self._update["steps"].append(step_to_dict(step))
        self._following.saw(step)
        query = self._update["query"] = self._following.query
        self._update["next"] = "retrieve" if query else "end"
        if isinstance(step, Thought):
            self._update["thought"] = step.text
        elif isinstance(step, Answer):
            result = step_to_chunk(self.question, step, plain=True)
            self._update.update({key: result[key] for key in _RESULT})  # type: ignore[typeddict-item]  # the state's own keys
        return bool(query)

    def pause(self, paused: PausedError) -> None:
        """The next call of the model belongs to the next node."""
        from sire_core.reason.prompts import Reading

        last = self._update["steps"][-1] if self._update["steps"] else {}
        was_retrieved = self._reads and last.get("type") == "retrieved" and last["number"] > 0
        reads = paused.schema is not None and issubclass(paused.schema, Reading)  # reports are read in a form of it
        self._update["next"] = "answer" if reads else "read" if was_retrieved else "think"

    def update(self) -> ReasoningState:
        """What the node returns."""
        return self._update


def _edits(state: ReasoningState, *, edited: bool) -> dict[str, str]:
    """Queries of people, by round; also the one that stands in the place of the model's last query now."""
    edits = dict(state.get("edits", {}))
    last_question = next((step for step in reversed(state["steps"]) if step["type"] == "sub_question"), None)
    if edited and last_question is not None and state["query"] != last_question["text"]:
        if not isinstance(state["query"], str) or not state["query"].strip():
            raise QueryError("The query that is to be searched for next is empty: write one, or leave the model's.")
        edits[str(last_question["number"])] = state["query"]
    return edits
