"""IRCoT and self-ask as retrievers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from pydantic import Field, model_validator
from typing_extensions import Self

from langchain_sire.any_retriever import to_document
from langchain_sire.reasoner import Reasoner, make_reasoner
from langchain_sire.retriever import SireRetriever
from langchain_sire.steps import atraced, step_to_dict, traced
from sire_core.reason import Answer, ReasoningStep

__all__ = ["STEP_EVENT", "IRCoTRetriever", "ReasoningRetriever", "SelfAskRetriever"]


STEP_EVENT = "sire_step"
"""Name of the custom event that tells of a step; its data is `step_to_dict(step)`."""


class ReasoningRetriever(SireRetriever):
    """A `SireRetriever` that searches in several rounds and returns a selection of all evidence found.

    Each step is a custom event `sire_step`, so `astream_events` shows the progress.

    Attributes:
        llm: Reasons: a LangChain chat model or a `LanguageModel`. None uses that of the index.
        options: Settings and limits of the strategy, as in `create_ircot_chain` and `create_self_ask_chain`.
    """

    strategy: ClassVar[str]

    llm: Any = None
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _known_options(self) -> Self:
        self._reasoner()
        return self

    def _reasoner(self, asked: Mapping[str, Any] | None = None) -> Reasoner:
        return make_reasoner(self.strategy, self, self.llm, self.options, answer=False, asked=asked)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        callbacks, reasoner = run_manager.get_child(), self._reasoner(self.asked(options))
        k, where = map(self.called(options).get, ("k", "filter"))
        documents: list[Document] = []
        for step in traced(reasoner.steps(query, k, where), callbacks, query, **reasoner.traces(k, where)):
            dispatch_custom_event(STEP_EVENT, step_to_dict(step), config={"callbacks": callbacks})
            documents = _evidence(step)
        return documents

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        callbacks, reasoner = run_manager.get_child(), self._reasoner(self.asked(options))
        k, where = map(self.called(options).get, ("k", "filter"))
        documents: list[Document] = []
        async for step in atraced(reasoner.steps(query, k, where), callbacks, query, **reasoner.traces(k, where)):
            await adispatch_custom_event(STEP_EVENT, step_to_dict(step), config={"callbacks": callbacks})
            documents = _evidence(step)
        return documents


def _evidence(step: ReasoningStep) -> list[Document]:
    return [to_document(hit) for hit in step.hits] if isinstance(step, Answer) else []


class IRCoTRetriever(ReasoningRetriever):
    """A retriever that searches in several rounds with IRCoT; see `create_ircot_chain`.

    Use it like a `SireRetriever`: `from_documents`, `load`, `k`, `filter`. It makes no call for a final answer. See
    `ReasoningRetriever` for `llm` and `options`.
    """

    strategy: ClassVar[str] = "ircot"


class SelfAskRetriever(ReasoningRetriever):
    """A retriever that searches for each follow-up question of the model; see `create_self_ask_chain`.

    Use it like a `SireRetriever`: `from_documents`, `load`, `k`, `filter`. It makes no call for a final answer. See
    `ReasoningRetriever` for `llm` and `options`.
    """

    strategy: ClassVar[str] = "self-ask"
