"""`IRCoTState`: what an IRCoT graph keeps in its checkpoints, and how a node moves it on."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from langchain_sire.documents import hit_to_langchain
from langchain_sire.recorded_model import PausedError
from langchain_sire.runs import search_key
from langchain_sire.steps import step_to_chunk, step_to_dict
from sire_core.reason import Answer, Retrieved, Step, SubQuestion, Thought
from sire_core.types import Hit

__all__ = ["IRCoTInput", "IRCoTState", "Progress"]


_RESULT = ("answer", "citations", "stop", "sufficient", "usage", "note", "documents")


class IRCoTState(TypedDict, total=False):
    """Plain JSON. Only `question` is the caller's.

    Attributes:
        question: What is asked.
        thought: The last sentence of the reasoning.
        query: What is searched for next; empty when the reasoning is over.
        steps: All steps so far, as `step_to_dict` gives them; documents are dictionaries.
        replies: What the model has answered, by the number of its call, and `search`, what rankers have asked it.
        next: The node that comes next, or `end`.
        asked: The question that all this belongs to.
        answer: With the rest, what `ReasoningChain` returns.
    """

    question: str
    thought: str
    query: str
    steps: list[dict[str, Any]]
    replies: dict[str, Any]
    next: str
    asked: str
    answer: str
    documents: list[dict[str, Any]]
    citations: list[int]
    stop: str
    sufficient: bool
    usage: dict[str, int]
    note: str


class IRCoTInput(TypedDict):
    """What a caller gives."""

    question: str


class Progress:
    """One node's work on a state.

    Args:
        node: `retrieve`, `think` or `answer`.
        question: The question.
        state: As the last node left it.
    """

    def __init__(self, node: str, question: str, state: IRCoTState) -> None:
        # Another question on the same thread, or the same one again, begins anew.
        going = state.get("asked") == question and state.get("next") == node
        self.question = question
        self.known = len(state["steps"]) if going else 0
        """Steps that earlier nodes have made."""
        self.query = (state["query"] if node == "retrieve" else "") if going else question
        """What the next step searches for; empty when it is none."""
        kept = state["replies"] if going else {"model": {}, "search": {}}
        self.replies: dict[str, Any] = {name: dict(replies) for name, replies in kept.items()}
        self._update = IRCoTState(asked=question, thought="", query="", steps=[], next="end", replies=self.replies)
        if not going:  # nothing of an earlier question may stand beside this one
            self._update.update(
                IRCoTState(answer="", documents=[], citations=[], stop="", sufficient=False, usage={}, note="")
            )
        self._asked = {search_key(question)}

    def add(self, step: Step) -> bool:
        """Note a step. Whether the node's work ends with it."""
        made = step_to_dict(step)
        if isinstance(step, Retrieved):
            made["documents"] = [_plain(hit) for hit in step.hits]
        self._update["steps"].append(made)
        self._update["query"], self._update["next"] = "", "end"
        if isinstance(step, Thought):
            self._update["thought"] = step.text
        elif isinstance(step, Answer):
            result = {**step_to_chunk(self.question, step), "documents": [_plain(hit) for hit in step.hits]}
            self._update.update({key: result[key] for key in _RESULT})  # type: ignore[typeddict-item]  # the state's own keys
        elif isinstance(step, SubQuestion) and search_key(step.text) not in self._asked:
            # What was asked before ends the reasoning; something new is searched for by the next node.
            self._asked.add(search_key(step.text))
            self._update["query"], self._update["next"] = step.text, "retrieve"
            return True
        return False

    def pause(self, paused: PausedError) -> None:
        """The next call of the model belongs to the next node."""
        from sire_core.reason.schemas import Reading

        self._update["next"] = "answer" if paused.schema is Reading else "think"

    def update(self) -> IRCoTState:
        """What the node returns."""
        return self._update


def _plain(hit: Hit) -> dict[str, Any]:
    document = hit_to_langchain(hit)
    return {"id": document.id, "page_content": document.page_content, "metadata": document.metadata}
