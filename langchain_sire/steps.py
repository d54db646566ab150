"""Reasoning steps as what LangChain streams and traces: dictionaries that add up, and runs of their own."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing, closing
from typing import Any, TypeVar, cast

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import AddableDict

from langchain_sire.chat import child_runs, inner_config
from langchain_sire.documents import hit_to_langchain
from sire_core.errors import QueryError
from sire_core.models.sync import call
from sire_core.reason import Answer, AnswerPiece, ReasoningStep, Retrieved, RetrieverSource, iterate_sync
from sire_core.reason.searchers import ForeignHit, foreign_hit
from sire_core.reason.steps import NextSearch, plain_answer, plain_step
from sire_core.search.history import standalone_question
from sire_core.types import Hit, digest


def retriever_source(retriever: BaseRetriever, record: dict[str, Any] | None = None) -> RetrieverSource:
    """A retriever as something to reason over."""

    async def retrieve(query: str, _: int) -> Sequence[Hit]:
        if record is not None and query in record:
            documents = [Document(**plain) for plain in record[query]]
        else:
            documents = await call(retriever.invoke, retriever.ainvoke, query, inner_config())
            if record is not None:
                record[query] = [_plain(document) for document in documents]
        return [_hit(document, rank) for rank, document in enumerate(documents, 1)]

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


def _hit(document: Document, rank: int) -> Hit:
    text, title, source = document.page_content, document.metadata.get("title"), document.metadata.get("source")
    # Without an id a passage is known by its text and where it is from: the rest of the metadata may be of the search,
    # a score for example, and the same passage would take several places of the context.
    name = digest("langchain", text, str(source)) if document.id is None else str(document.id)
    return foreign_hit(name, text, title, source, 1.0 / rank, document)


_KEYS = ("question", "input", "query")


def question_of(value: object) -> str:
    """The question of a chain's input: a text, or a mapping with `question`, `input` or `query`.

    With a `chat_history` in the mapping, a follow-up question gets the names and words that it refers to.
    """
    history: Any = ()
    if isinstance(value, Mapping):
        question = next((value[key] for key in _KEYS if key in value), None)
        if question is None:
            raise QueryError(f"The input has no question; name it {' or '.join(map(repr, _KEYS))}.")
        history = value.get("chat_history") or ()
        value = question
    if not isinstance(value, str):
        raise QueryError(f"The question is a {type(value).__name__}, not a text.")
    if not value.strip():
        raise QueryError("The query is empty.")
    return standalone_question(value, history) if history else value


def step_to_dict(step: ReasoningStep) -> dict[str, Any]:
    """A step as a dictionary, plain JSON: `type`, and the step's own fields with hits as `documents`."""
    return plain_step(step, "documents", plain_document)


def step_to_chunk(question: str, step: ReasoningStep, *, streamed: bool = False, plain: bool = False) -> AddableDict:
    """What a chain makes of a step; the sum of all chunks is its result."""
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

_NAME = "SireSearch"


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
            run = callbacks.on_retriever_start(None, query, name=_NAME) if query else None
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
            run = await callbacks.on_retriever_start(None, query, name=_NAME) if query else None
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
