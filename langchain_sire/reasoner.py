"""`Reasoner`: a strategy with all that it needs, ready for a question; IRCoT and self-ask as retrievers over it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, model_validator
from typing_extensions import Self

from langchain_sire.chat import LLMLike, as_language_model
from langchain_sire.opening import SPELLINGS
from langchain_sire.retriever import SireRetriever
from langchain_sire.steps import atraced, retriever_source, step_to_dict, to_document, traced
from sire_core.errors import ConfigurationError, IndexMissingError, SireError
from sire_core.filters import FilterLike
from sire_core.index import Index
from sire_core.reason import (
    Answer,
    IRCoTConfig,
    PassageSource,
    ReasoningLimits,
    ReasoningStep,
    Searchable,
    SelfAskConfig,
    reason,
)
from sire_core.reason.runner import HITS
from sire_core.reason.steps import check_answered, check_on_model_error
from sire_core.search.validity import Day

if TYPE_CHECKING:
    from sire_core.protocols import LanguageModel


@dataclass(frozen=True, slots=True)
class _NoSettings:
    """Of `single`, which has none."""


_CONFIGS: Mapping[str, type[Any]] = {"single": _NoSettings, "ircot": IRCoTConfig, "self-ask": SelfAskConfig}


@dataclass(frozen=True)
class Reasoner:
    """A strategy over a retriever."""

    strategy: str
    retriever: BaseRetriever
    source: Searchable
    model: LanguageModel | None
    k: int | None
    config: Any
    limits: ReasoningLimits
    answer: bool = True
    on_model_error: str = "raise"
    as_of: Day = None

    @property
    def searches(self) -> bool:
        """Whether each sub-question is searched for."""
        return bool(getattr(self.config, "mode", "search") == "search")

    def size(self, k: int | None = None) -> int | None:
        """Documents of the final context; None leaves it to the strategy."""
        return self.k if k is None else k

    def traces(self, k: int | None = None, where: FilterLike = None) -> dict[str, Any]:
        """How a trace shows the searches; for `traced`."""
        known: dict[str, Any] = {"sire_strategy": self.strategy, "sire_k": self.size(k)}
        if isinstance(self.retriever, SireRetriever):
            narrowed = self.retriever.narrowed(where)
            known["sire_filter"] = None if narrowed is None else str(narrowed)
            known["sire_recipe"] = self._recipe()
        return {"searches": self.searches, "about": known}

    def _recipe(self) -> str:
        """Name of the recipe that is searched; empty while nothing is built."""
        assert isinstance(self.source, (Index, PassageSource))
        try:
            return str(self.source.stats()["recipe"])
        except SireError:
            return ""

    async def steps(
        self,
        question: str,
        k: int | None = None,
        where: FilterLike = None,
        as_of: Day = None,
        *,
        stream: bool = False,
        edits: Mapping[int, str] | None = None,
    ) -> AsyncGenerator[ReasoningStep, None]:
        """The steps of a question, perhaps with its answer in pieces; `k` and a filter as with `SireRetriever`."""
        if (self.answer or self.strategy != "single") and self.model is None and self.source.language_model is None:
            raise ConfigurationError(
                f"{self.strategy} needs a language model: pass llm=..., for example ChatOpenAI(model='gpt-4o-mini'). "
                "The retriever alone finds evidence without one."
            )
        may_be_empty = isinstance(self.retriever, SireRetriever) and await self.retriever.prepare_search()
        settings = {} if self.strategy == "single" else {"config": self.config, "edits": edits}
        steps = reason(
            self.strategy,
            self.source,
            question,
            model=self.model,
            k=self.size(k),
            filter=self.retriever.narrowed(where) if isinstance(self.retriever, SireRetriever) else where,
            as_of=self.as_of if as_of is None else as_of,
            limits=self.limits,
            answer=self.answer,
            stream=stream,
            **settings,
        )
        try:
            async with aclosing(steps) as walk:
                async for step in walk:
                    if self.on_model_error == "raise":
                        check_answered(step, to_document)
                    yield step
        except IndexMissingError:  # an empty store finds nothing
            if not may_be_empty:
                raise
            yield Answer("", "empty_index")


def make_reasoner(
    strategy: str,
    source: BaseRetriever | Index,
    llm: LLMLike,
    options: Mapping[str, Any],
    *,
    answer: bool = True,
    search_options: Mapping[str, Any] | None = None,
) -> Reasoner:
    """A reasoner from what a user gives."""
    form = _CONFIGS[strategy]
    retriever = SireRetriever(index=source) if isinstance(source, Index) else source
    if not isinstance(retriever, BaseRetriever):
        raise ConfigurationError(f"{type(source).__name__} is neither a retriever nor an Index.")
    bounds = {field.name: field.name for field in fields(ReasoningLimits)}
    settings = {"search_k" if field.name == "k" else field.name: field.name for field in fields(form)}
    known = {"k", "on_model_error", *bounds, *settings}
    unknown = sorted(set(options) - known)
    if unknown:
        raise ConfigurationError(
            f"{strategy} has no option {', '.join(unknown)}; its options are {', '.join(sorted(known))}."
        )
    searched, size, as_of = _searched(retriever, search_options)
    return Reasoner(
        strategy,
        retriever,
        searched,
        as_language_model(llm),
        options.get("k", size if strategy == "single" else None),
        form(**{settings[name]: value for name, value in options.items() if name in settings}),
        ReasoningLimits(**{name: value for name, value in options.items() if name in bounds}),
        answer,
        check_on_model_error(options.get("on_model_error", "raise")),
        as_of,
    )


def _searched(retriever: BaseRetriever, options: Mapping[str, Any] | None) -> tuple[Searchable, int | None, Day]:
    """What is searched, with the recipe and in the form of a retriever of ours; its number of documents and its day."""
    if not isinstance(retriever, SireRetriever):
        return retriever_source(retriever), None, None
    wanted = retriever.asked({}) if options is None else options
    index = retriever.searched(wanted)
    return index if wanted["returns"] == "units" else PassageSource(index), wanted["k"], wanted["as_of"]


STEP_EVENT = "sire_step"
"""Name of the custom event that tells of a step; its data is `step_to_dict(step)`."""


class ReasoningRetriever(SireRetriever):
    """A `SireRetriever` that searches in several rounds and returns a selection of all evidence found.

    Each step is a custom event `sire_step`, so `astream_events` shows the progress.

    Attributes:
        k: Number of documents; by default as many as the strategy reads, 10, or all that `original` IRCoT collects.
        llm: Reasons: a LangChain chat model or a `LanguageModel`. None uses that of the index. To extract and summarize
            with a model as well, `from_documents` and `load` take `extraction_llm`.
        options: Settings and limits of the strategy, as in `create_ircot_chain` and `create_self_ask_chain`.
    """

    strategy: ClassVar[str]

    k: int = Field(default=HITS, gt=0)
    llm: Any = None
    options: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def _over(cls, called: str, arguments: Mapping[str, Any], *, is_writer: bool = False) -> Self:
        """Open an index with `extraction_llm`; `llm` reasons only."""
        reasons = {word for word in arguments if SPELLINGS.get(word, word) == "llm" and word != "extraction_llm"}
        models = [arguments[word] for word in arguments if word in reasons and arguments[word] is not None]
        if len(models) > 1:
            raise TypeError(f"{called}() got {' and '.join(sorted(reasons))}: two words for one argument.")
        others = {word: value for word, value in arguments.items() if word not in reasons}
        retriever = super()._over(called, others, is_writer=is_writer)
        retriever.llm = models[0] if models else None
        as_language_model(retriever.llm)  # says what is none
        return retriever

    @model_validator(mode="after")
    def _known_options(self) -> Self:
        self._reasoner()
        return self

    def _reasoner(self, options: Mapping[str, Any] | None = None) -> Reasoner:
        sized = {"k": self.asked({})["k"]} if self.has_k else {}
        return make_reasoner(
            self.strategy, self, self.llm, {**sized, **self.options}, answer=False, search_options=options
        )

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        callbacks, reasoner = run_manager.get_child(), self._reasoner(self.asked(options))
        k, filter = map(self.called(options).get, ("k", "filter"))
        documents: list[Document] = []
        for step in traced(reasoner.steps(query, k, filter), callbacks, query, **reasoner.traces(k, filter)):
            dispatch_custom_event(STEP_EVENT, step_to_dict(step), config={"callbacks": callbacks})
            documents = _evidence(step)
        return documents

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        callbacks, reasoner = run_manager.get_child(), self._reasoner(self.asked(options))
        k, filter = map(self.called(options).get, ("k", "filter"))
        documents: list[Document] = []
        async for step in atraced(reasoner.steps(query, k, filter), callbacks, query, **reasoner.traces(k, filter)):
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
