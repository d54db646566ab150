"""Reasoning strategies as retrievers, and as `ReasoningChain`, a Runnable that streams its steps."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, fields
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Union, cast

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForChainRun,
    AsyncCallbackManagerForRetrieverRun,
    CallbackManager,
    CallbackManagerForChainRun,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import AddableDict, Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field, create_model, model_validator
from typing_extensions import Self, Unpack

from langchain_sire.chat import LLMLike, as_language_model, child_runs, inner_config
from langchain_sire.documents import evidence_to_langchain, foreign, hit_to_langchain
from langchain_sire.opening import SPELLINGS
from langchain_sire.options import ReasoningFields
from langchain_sire.retriever import SireRetriever
from sire_core.arguments import lists_options, similar_names
from sire_core.errors import ConfigurationError, IndexMissingError, QueryError, SireError
from sire_core.filters import FilterLike, both, parse_filter
from sire_core.index import Index
from sire_core.models.sync import call
from sire_core.protocols import LanguageModel
from sire_core.reason import (
    Answer,
    AnswerPiece,
    IRCoTConfig,
    PassageSource,
    ReasoningLimits,
    ReasoningStep,
    Retrieved,
    RetrieverSource,
    Searchable,
    SelfAskConfig,
    iterate_sync,
    reason,
)
from sire_core.reason.options import IRCoTOptions, SelfAskOptions
from sire_core.reason.reasoning_run import HITS
from sire_core.reason.searchers import ForeignHit
from sire_core.reason.steps import NextSearch, check_answered, check_on_model_error, plain_answer, plain_step
from sire_core.search.context import ranked, select_context
from sire_core.search.history import standalone_question
from sire_core.search.validity import Day
from sire_core.types import Hit


def retriever_source(retriever: BaseRetriever, record: dict[str, Any] | None = None) -> RetrieverSource:
    """A retriever as something to reason over."""

    async def retrieve(query: str, _: int) -> Sequence[Hit]:
        if record is not None and query in record:
            documents = [Document(**plain) for plain in record[query]]
        else:
            documents = await call(retriever.invoke, retriever.ainvoke, query, inner_config())
            if record is not None:
                record[query] = [_plain(document) for document in documents]
        return [foreign(document, rank) for rank, document in enumerate(documents, 1)]

    return RetrieverSource(retrieve, type(retriever).__name__)


def to_document(hit: Hit) -> Document:
    """A hit as a document: a copy of the one that the retriever gave, where it was not ours."""
    if isinstance(hit, ForeignHit):
        document: Document = hit.original
        return Document(id=hit.unit.id, page_content=document.page_content, metadata=copy.deepcopy(document.metadata))
    return hit_to_langchain(hit)


def plain_document(hit: Hit) -> dict[str, Any]:
    """A hit as a dictionary from which `Document(**plain)` makes the document again."""
    return _plain(to_document(hit))


def _plain(document: Document) -> dict[str, Any]:
    return {"id": document.id, "page_content": document.page_content, "metadata": document.metadata}


QUESTION_KEYS = ("question", "input", "query")  # Keys of a chain's input that may hold the question
_OPTIONS = ("k", "filter", "as_of")
_INPUT_KEYS = (*QUESTION_KEYS, "chat_history", *_OPTIONS)


def question_of(value: object) -> str:
    """The question of a chain's input: a text, or a mapping with `question`, `input` or `query`.

    With a `chat_history` in the mapping, a follow-up question gets the names and words that it refers to.

    Raises:
        QueryError: There is no question.
        ConfigurationError: The mapping has `k`, `filter` or `as_of`, which a question cannot carry.
    """
    if options := call_options(value):
        raise ConfigurationError(
            f"question_of returns the question alone, so that {', '.join(options)} of the input would have no effect. "
            "Give them to the retriever: retriever.invoke(question_of(value), filter=...)."
        )
    return read_question(value)


def read_question(value: object) -> str:
    """The question of an input, whatever else this has."""
    history: Any = ()
    if isinstance(value, Mapping):
        question = next((value[key] for key in QUESTION_KEYS if key in value), None)
        if question is None:
            raise QueryError(f"The input has no question; name it {' or '.join(map(repr, QUESTION_KEYS))}.")
        history = value.get("chat_history") or ()
        value = question
    if not isinstance(value, str):
        raise QueryError(f"The question is a {type(value).__name__}, not a text.")
    if not value.strip():
        raise QueryError("The query is empty.")
    return standalone_question(value, history) if history else value


def call_options(value: object) -> dict[str, Any]:
    """`k`, `filter` and `as_of` of an input."""
    options = value if isinstance(value, Mapping) else {}
    return {name: options[name] for name in _OPTIONS if options.get(name) is not None}


def _check_keys(value: object) -> None:
    """Refuse keys of a chain's input that have no effect."""
    for key in value if isinstance(value, Mapping) else ():
        if key not in _INPUT_KEYS:
            nearest = similar_names(str(key), _INPUT_KEYS, 1)
            advice = f"did you mean {nearest[0]!r}?" if nearest else f"a chain reads {', '.join(_INPUT_KEYS)}."
            raise ConfigurationError(f"The input has an unknown key {key!r}; {advice}")


def step_to_dict(step: ReasoningStep) -> dict[str, Any]:
    """A step as a dictionary, plain JSON: `type`, and the step's own fields with hits as `documents`."""
    return plain_step(step, "documents", plain_document)


def step_to_chunk(question: str, step: ReasoningStep, *, streamed: bool = False, plain: bool = False) -> AddableDict:
    """Chunk of a chain's output for a step; the sum of all chunks is its result."""
    if isinstance(step, AnswerPiece):
        # Chunks can only be added to: what is void stays, and the answer starts over below it.
        return AddableDict(steps=[], answer="\n\n" * step.restart + step.text)
    chunk = AddableDict(steps=[step_to_dict(step)])
    if isinstance(step, Answer):
        chunk |= {
            "question": question,
            "documents": [(plain_document if plain else to_document)(hit) for hit in step.hits],
            **plain_answer(step),
        }
        if not streamed:
            chunk["answer"] = step.text
    return chunk


Manager = TypeVar("Manager", CallbackManager, AsyncCallbackManager)

_SEARCH_RUN = "SireSearch"  # Name of the run of a search in a trace


def traced(
    steps: AsyncGenerator[ReasoningStep, None],
    callbacks: CallbackManager,
    question: str,
    *,
    searches: bool = True,
    about: Mapping[str, Any] | None = None,
) -> Generator[ReasoningStep, None, None]:
    """Steps as they happen, from sync code, reported to the callbacks of the run that they belong to."""
    following = NextSearch(question, searches=searches)
    callbacks = _knowing(callbacks, about)
    with closing(cast("Generator[ReasoningStep, None, None]", iterate_sync(steps))) as walk:
        while True:
            query = following.query
            run = callbacks.on_retriever_start(None, query, name=_SEARCH_RUN) if query else None
            try:
                with child_runs(run.get_child() if run else callbacks):
                    step = next(walk, None)
            except BaseException as error:
                if run:
                    run.on_retriever_error(error)
                raise
            if run:
                run.on_retriever_end(_documents(step))
            if step is None:
                return
            following.saw(step)
            yield step


async def atraced(
    steps: AsyncGenerator[ReasoningStep, None],
    callbacks: AsyncCallbackManager,
    question: str,
    *,
    searches: bool = True,
    about: Mapping[str, Any] | None = None,
) -> AsyncGenerator[ReasoningStep, None]:
    """See `traced`."""
    following = NextSearch(question, searches=searches)
    callbacks = _knowing(callbacks, about)
    async with aclosing(steps) as walk:
        while True:
            query = following.query
            run = await callbacks.on_retriever_start(None, query, name=_SEARCH_RUN) if query else None
            try:
                with child_runs(run.get_child() if run else callbacks):
                    step = await anext(walk, None)
            except BaseException as error:
                if run:
                    await run.on_retriever_error(error)
                raise
            if run:
                await run.on_retriever_end(_documents(step))
            if step is None:
                return
            following.saw(step)
            yield step


def _knowing(callbacks: Manager, about: Mapping[str, Any] | None) -> Manager:
    """Callbacks whose own runs have this metadata; runs below them do not."""
    knowing: Manager = callbacks.copy()
    knowing.add_metadata(dict(about or {}), inherit=False)
    return knowing


def _documents(step: ReasoningStep | None) -> list[Document]:
    return [to_document(hit) for hit in step.hits] if isinstance(step, Retrieved) else []


@dataclass(frozen=True, slots=True)
class _NoSettings:
    """Settings of `single`, which has none."""


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
        """True if each sub-question is searched for."""
        return bool(getattr(self.config, "mode", "search") == "search")

    def traces(self, k: int | None = None, filter: FilterLike = None) -> dict[str, Any]:
        """Metadata of the searches in a trace; for `traced`."""
        metadata: dict[str, Any] = {"sire_strategy": self.strategy, "sire_k": self.k if k is None else k}
        if isinstance(self.retriever, SireRetriever):
            narrowed = self.retriever.narrowed(filter)
            metadata["sire_filter"] = None if narrowed is None else str(narrowed)
            metadata["sire_recipe"] = self._recipe()
        return {"searches": self.searches, "about": metadata}

    def _recipe(self) -> str:
        assert isinstance(self.source, (Index, PassageSource))
        try:
            return str(self.source.stats()["recipe"])
        except SireError:
            return ""

    async def steps(
        self,
        question: str,
        k: int | None = None,
        filter: FilterLike = None,
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
            k=self.k if k is None else k,
            filter=self.retriever.narrowed(filter) if isinstance(self.retriever, SireRetriever) else filter,
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
    available = {"k", "on_model_error", *bounds, *settings}
    unknown = sorted(set(options) - available)
    if unknown:
        raise ConfigurationError(
            f"{strategy} has no option {', '.join(unknown)}; its options are {', '.join(sorted(available))}."
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
    """Source of a retriever's searches, with its recipe; its number of documents and its day."""
    if not isinstance(retriever, SireRetriever):
        return retriever_source(retriever), None, None
    wanted = retriever.asked({}) if options is None else options
    index = retriever.searched(wanted)
    return index if wanted["returns"] == "units" else PassageSource(index), wanted["k"], wanted["as_of"]


STEP_EVENT = "sire_step"  # Name of the custom event that tells of a step; its data is `step_to_dict(step)`


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

    if TYPE_CHECKING:

        def __init__(self, *, index: Index, **fields: Unpack[ReasoningFields]) -> None: ...

    has_search_types: ClassVar[bool] = False

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
        if self.search_type != "similarity":
            raise ConfigurationError(f"{type(self).__name__} merges several searches; it has no search_type.")
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
        hits: Sequence[Hit] = ()
        for step in traced(reasoner.steps(query, k, filter), callbacks, query, **reasoner.traces(k, filter)):
            dispatch_custom_event(STEP_EVENT, step_to_dict(step), config={"callbacks": callbacks})
            hits = step.hits if isinstance(step, Answer) else ()
        return self._within_budget(query, hits, options)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        callbacks, reasoner = run_manager.get_child(), self._reasoner(self.asked(options))
        k, filter = map(self.called(options).get, ("k", "filter"))
        hits: Sequence[Hit] = ()
        async for step in atraced(reasoner.steps(query, k, filter), callbacks, query, **reasoner.traces(k, filter)):
            await adispatch_custom_event(STEP_EVENT, step_to_dict(step), config={"callbacks": callbacks})
            hits = step.hits if isinstance(step, Answer) else ()
        return await asyncio.to_thread(self._within_budget, query, hits, options)

    def _within_budget(self, query: str, hits: Sequence[Hit], options: Mapping[str, Any]) -> list[Document]:
        """Documents of the hits; with `max_tokens` the evidence in them."""
        max_tokens = self.asked(options)["max_tokens"]
        if max_tokens is None:
            return list(map(to_document, hits))
        context = select_context(query, ranked(hits), max_tokens, self.evidence_options)
        return list(map(evidence_to_langchain, context.evidence))


class IRCoTRetriever(ReasoningRetriever):
    """A retriever that searches in several rounds with IRCoT; see `create_ircot_chain`.

    Use it like a `SireRetriever`: `from_documents`, `load`, `k`, `filter`. It makes no call for a final answer. See
    `ReasoningRetriever` for `llm` and `options`.
    """

    strategy: ClassVar[str] = "ircot"


class SelfAskRetriever(ReasoningRetriever):
    """Searches for each follow-up question of the model, see `create_self_ask_chain`; used like `IRCoTRetriever`."""

    strategy: ClassVar[str] = "self-ask"


Question = Union[str, Mapping[str, Any]]


class ReasoningChain(Runnable[Question, dict[str, Any]]):
    """Answers a question with citations, and streams every step.

    The input is a string, or a mapping with `question`, `input` or `query`. Calls accept `k`, `filter` and `as_of` as a
    `SireRetriever` does, as keywords or in the mapping: of two filters both apply, otherwise the mapping decides.
    `stream` and `astream` yield one dictionary per step, `{"steps": [step]}`, see `step_to_dict`, and then the answer
    in pieces, `{"steps": [], "answer": piece}`; a model that cannot stream gives one piece. The last dictionary has the
    rest of the result. Everything is plain JSON; documents are dictionaries. The chunks add up to the result of
    `invoke`, in which documents are `Document`s:

    * `answer`, with citations such as [1], and `citations`, the numbers of the documents it cites, from 1;
    * `findings` of cited reports: "3.2" is finding 2 of document 3;
    * `documents`, the final context in order: the documents that were put in, unless the retriever `returns` "units";
    * `stop`, why the reasoning ended, and `note`, what went wrong;
    * `outcome`, "answered", "doubted" or "unanswered", and `sufficient`, whether the reader found the evidence
      sufficient;
    * `usage`: calls, tokens, searches;
    * `steps` and `question`.

    A malformed answer is requested again. The pieces then contain both, with the valid one after an empty line; the
    last step's `text` has only the valid one. If an answer breaks off, the received part is kept; `stop` and `note` say
    so.

    Model calls and searches are child runs of the chain's run. A stream that is closed early makes no further call.

    Args:
        reasoner: The strategy.
        name: Of the run in a trace.
    """

    def __init__(self, reasoner: Reasoner, name: str) -> None:
        self.reasoner = reasoner
        self.name = name

    def __repr__(self) -> str:
        return f"ReasoningChain({self.name}, {self.reasoner.config}, {self.reasoner.limits})"

    def invoke(self, input: Question, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Run to the end."""
        chunks = self._transform_stream_with_config(iter([input]), partial(self._run, streams=False), config, **kwargs)
        return dict(reduce(add, chunks))

    async def ainvoke(self, input: Question, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Run to the end."""
        run = partial(self._arun, streams=False)
        chunks = self._atransform_stream_with_config(_once(input), run, config, **kwargs)
        return dict(reduce(add, [chunk async for chunk in chunks]))

    def stream(self, input: Question, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[dict[str, Any]]:
        """Yield each step when it happens."""
        run = partial(self._run, plain=True)
        return self._transform_stream_with_config(iter([input]), run, config, **kwargs)

    def astream(
        self, input: Question, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield each step when it happens."""
        run = partial(self._arun, plain=True)
        return self._atransform_stream_with_config(_once(input), run, config, **kwargs)

    def transform(
        self, input: Iterator[Question], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[dict[str, Any]]:
        """Yield each step when it happens; the question may come in pieces."""
        return self._transform_stream_with_config(input, self._run, config, **kwargs)

    def atransform(
        self, input: AsyncIterator[Question], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """See `transform`."""
        return self._atransform_stream_with_config(input, self._arun, config, **kwargs)

    def _run(
        self, inputs: Iterator[Any], run_manager: CallbackManagerForChainRun, **options: Any
    ) -> Iterator[AddableDict]:
        call = _Call(self.reasoner, reduce(add, inputs), **options)
        with closing(traced(call.steps(), run_manager.get_child(), call.question, **call.traces())) as walk:
            for step in walk:
                yield call.chunk(step)

    async def _arun(
        self, inputs: AsyncIterator[Any], run_manager: AsyncCallbackManagerForChainRun, **options: Any
    ) -> AsyncIterator[AddableDict]:
        call = _Call(self.reasoner, reduce(add, [piece async for piece in inputs]), **options)
        async with aclosing(atraced(call.steps(), run_manager.get_child(), call.question, **call.traces())) as walk:
            async for step in walk:
                yield call.chunk(step)

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """The chain as a tool for agents; see `create_sire_answer_tool`.

        Args:
            args_schema: In the place of our arguments, for descriptions of your own: `query` (or `input`, `question`),
                and what else you want of `k`, `filter`, `as_of` and `show_steps`.
            name: How the model calls it.
            description: When to call it.
            arg_types: The same as names and types.
        """
        if arg_types is not None and args_schema is None:
            fields: dict[str, Any] = {key: (kind, ...) for key, kind in arg_types.items()}
            args_schema = create_model("AnswerArguments", **fields)
        from langchain_sire.tool import create_sire_answer_tool

        words: dict[str, Any] = {key: word for key, word in (("name", name), ("description", description)) if word}
        return create_sire_answer_tool(self, args_schema=args_schema, **words)


class _Call:
    """One question to a chain; made inside of the generators, as LangChain does not survive one that fails before."""

    def __init__(
        self,
        reasoner: Reasoner,
        value: object,
        k: int | None = None,
        filter: FilterLike = None,
        as_of: Day = None,
        *,
        streams: bool = True,
        plain: bool = False,
        recorded: list[ReasoningStep] | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise TypeError(f"a call takes k, filter and as_of, not {', '.join(unknown)}")
        self.question = read_question(value)
        _check_keys(value)
        options = {"k": k, "as_of": as_of, **call_options(value)}
        options["filter"] = both(parse_filter(filter), parse_filter(options.get("filter")))
        self.steps = partial(reasoner.steps, self.question, **options, stream=streams)
        self.traces = partial(reasoner.traces, options["k"], options["filter"])
        self._plain, self._recorded, self._streamed = plain, recorded, False

    def chunk(self, step: ReasoningStep) -> AddableDict:
        """A step as the chain's next output."""
        self._streamed |= isinstance(step, AnswerPiece)
        if self._recorded is not None:
            self._recorded.append(step)
        return step_to_chunk(self.question, step, streamed=self._streamed, plain=self._plain)


async def _once(question: Question) -> AsyncIterator[Question]:
    yield question


@lists_options(IRCoTOptions)
def create_ircot_chain(
    retriever: BaseRetriever | Index, llm: LLMLike = None, **options: Unpack[IRCoTOptions]
) -> ReasoningChain:
    """A chain that alternates reasoning and searching, then answers with citations (IRCoT).

    Interleaved retrieval and chain of thought (Trivedi et al.).

    Args:
        retriever: Any LangChain retriever. The `filter`, `as_of`, `recipe` and `returns` of a `SireRetriever` apply,
            and not its `k` and `max_tokens`: how much is searched for and read belongs to the strategy. Other
            retrievers are used as they are, and calls cannot filter them.
        llm: Reasons and answers: a LangChain chat model or a `LanguageModel`. None uses that of the index.
        **options: `k`, the number of documents in the final context (default: 10, or the up to 15 that the `original`
            flavor collects); settings of `sire_core.reason.IRCoTConfig`
            (`flavor` and others), whose `k` is called `search_k` here; and limits of
            `sire_core.reason.ReasoningLimits`: `max_steps`, `max_calls`, `max_tokens`, `timeout`.
            `on_model_error="return"` returns the evidence and an empty answer if the model failed before there was an
            answer; by default `invoke` and the rest raise `NoAnswerError`, which has the evidence.

    Raises:
        ConfigurationError: An option is unknown or invalid.
    """
    return ReasoningChain(make_reasoner("ircot", retriever, llm, options), "IRCoT")


@lists_options(SelfAskOptions)
def create_self_ask_chain(
    retriever: BaseRetriever | Index, llm: LLMLike = None, **options: Unpack[SelfAskOptions]
) -> ReasoningChain:
    """A chain that asks and answers follow-up questions, then answers with citations (self-ask).

    Self-ask (Press et al.). Arguments and errors are those of `create_ircot_chain`, with the settings of
    `sire_core.reason.SelfAskConfig` (`mode` and others) in the place of those of IRCoT.
    """
    return ReasoningChain(make_reasoner("self-ask", retriever, llm, options), "SelfAsk")
