"""What the tools give to programs, beside the text for models: pydantic models, whose schemas clients are shown."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, Union

from pydantic import BaseModel, Field

from sire_core.reason.steps import AnswerPiece, IntermediateAnswer, Retrieved, SubQuestion, Thought

if TYPE_CHECKING:
    from sire_core.reason.steps import Answer, ReasoningStep
    from sire_core.types import Hit

__all__ = ["AskOutput", "ExplainOutput", "FetchOutput", "HitOutput", "SearchOutput", "StepOutput"]


class HitOutput(BaseModel):
    """A passage, or something drawn from several passages."""

    id: str
    kind: str
    score: float
    title: str
    text: str
    doc_ids: list[str]

    @classmethod
    def of(cls, hit: Hit) -> HitOutput:
        """From a hit."""
        unit, score = hit.unit, float(hit.score)
        kind, ids = str(unit.kind), list(hit.doc_ids)
        return cls(id=unit.id, kind=kind, score=score, title=unit.title, text=unit.text, doc_ids=ids)


class StepOutput(BaseModel):
    """A step of reasoning; `ids` are those of the hits of a search."""

    step: Literal["thought", "sub_question", "retrieved", "intermediate_answer"]
    number: int
    text: str
    query: str = ""
    ids: list[str] = Field(default_factory=list)

    @classmethod
    def of(cls, step: ReasoningStep) -> StepOutput | None:
        """From a step; None of the answer."""
        if isinstance(step, Thought):
            return cls(step="thought", number=step.number, text=step.text)
        if isinstance(step, SubQuestion):
            return cls(step="sub_question", number=step.number, text=step.text)
        if isinstance(step, IntermediateAnswer):
            return cls(step="intermediate_answer", number=step.number, text=step.text, query=step.question)
        if isinstance(step, Retrieved):
            ids = [hit.unit.id for hit in step.hits]
            return cls(step="retrieved", number=step.number, text="", query=step.query, ids=ids)
        assert step is None or isinstance(step, AnswerPiece) or hasattr(step, "stop")
        return None


class Searched(BaseModel):
    """How was searched."""

    recipe: str
    k: int
    filter: Union[dict[str, Any], str, None] = None


class SearchOutput(Searched):
    """What `search` gives."""

    hits: list[HitOutput]


class ExplainOutput(Searched):
    """What `explain` gives."""

    explanation: str


class AskOutput(Searched):
    """What `ask` gives; `citations` are numbers of `hits` from 1, `steps` is empty unless it was asked for."""

    answer: str
    sufficient: bool
    stop: str
    citations: list[int]
    doc_ids: list[str] = Field(description="Documents that the answer cites.")
    findings: list[str] = Field(description="Findings of cited reports: 3.2 is finding 2 of hit 3.")
    hits: list[HitOutput]
    steps: list[StepOutput]
    usage: dict[str, int]
    note: str

    @classmethod
    def of(cls, answer: Answer, steps: list[ReasoningStep], **searched: Any) -> AskOutput:
        """From an answer and the steps to show."""
        cited = [doc_id for number in answer.citations for doc_id in answer.hits[number - 1].doc_ids]
        return cls(
            answer=answer.text,
            sufficient=answer.sufficient,
            stop=answer.stop,
            citations=list(answer.citations),
            doc_ids=list(dict.fromkeys(cited)),
            findings=list(answer.findings),
            hits=[HitOutput.of(hit) for hit in answer.hits],
            steps=[made for made in map(StepOutput.of, steps) if made is not None],
            usage=asdict(answer.usage),
            note=answer.note,
            **searched,
        )


class FetchOutput(BaseModel):
    """A document, or a part of it."""

    doc_id: str
    title: str
    text: str
    metadata: dict[str, Any]
    start: int
    length: int = Field(description="Characters of the whole document.")
    next_start: Union[int, None] = Field(description="Where the next part begins; null at the end.")
