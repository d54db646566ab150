"""Tools of agents and their arguments: search, ask, explain, fetch, open, neighbors; independent of the protocol."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from sire_core.arguments import limits_of, similar_names
from sire_core.documents.document_names import check_cite_key, cited_names
from sire_core.errors import IndexMissingError, QueryError, SireError
from sire_core.reason import PassageSource, extract_answer, reason, settings_of
from sire_core.reason.model_calls import ReasoningLimits
from sire_core.reason.steps import Answer, ReasoningStep
from sire_core.search.context import ContextOptions, Evidence, context_text
from sire_core.search.extracts import PASSAGES
from sire_core.search.unanswered import unanswered_note
from sire_core.serve.outputs import answer_text, hit_label, hits_text, step_text
from sire_core.serve.skill import titles_among
from sire_core.text.pluralize import count, shorten
from sire_core.text.words import clean_value, count_tokens

if TYPE_CHECKING:
    from sire_core import filters
    from sire_core.index import Index
    from sire_core.protocols import LanguageModel
    from sire_core.types import Document, Unit

Tell = Callable[[str], Awaitable[None]]  # Reports progress in a sentence during a long call

_USUAL = 10  # Default number of hits

_OUTLINE = 200  # Maximum passages in an outline

_FIRST_WORDS = 80  # Characters of a passage in an outline

Filter = Union[dict[str, Any], str, None]

_MISTAKES = {
    "extra_forbidden": "there is no argument {}",
    "greater_than_equal": "{} must be at least {ge}",
    "int_from_float": "{} must be a whole number",
    "int_parsing": "{} must be a whole number",
    "int_type": "{} must be a whole number",
    "less_than_equal": "{} must be at most {le}",
    "missing": "{} is missing",
    "string_type": "{} must be a text",
}
"""Messages about an argument by pydantic's name of the mistake."""

_KEYS, _SAMPLES, _MAX_VALUE_LETTERS = 30, 3, 40
"""Most metadata keys, values of each and characters of a value that a schema names."""

SEARCHES = "Finds passages that answer a question, with the documents they come from in brackets."
ANSWERS = (
    "Answers a question from the documents, in few words, with the ids of the documents it cites in brackets, and "
    "says whether the evidence is sufficient. For questions that need several documents, too."
)
"""Descriptions of the adapters' tools, as agents read them."""

_K = Field(
    default=None, ge=1, le=50, description="How many passages and facts to look at; leave it out for the usual number."
)
_CONDITIONS = (
    "Only evidence from documents whose metadata meets all of these conditions, "
    'for example {"year": {"gt": 1990}, "lang": {"in": ["en", "de"]}} or "year>=1990 and lang=en". '
    "Comparisons: eq, ne, in, nin, lt, lte, gt, gte, contains, exists; to combine conditions: and, or, not. "
    "Leave it out to search everything."
)
_FILTER = Field(default=None, description=_CONDITIONS)
_AS_OF = Field(
    default=None,
    description=(
        'A day such as "2026-01-31": leave out documents dated later, and put versions last that a later one of the '
        "same source supersedes. Leave it out for all documents."
    ),
)
_DOC_ID = Field(min_length=1, description="A document, as results name it in brackets.")

_OTHER_WORDS = {
    "question": "query",
    "input": "query",
    "top_k": "k",
    "limit": "k",
    "filters": "filter",
    "id": "doc_id",
    "document_id": "doc_id",
}
"""Names that agents use for arguments, taken by every tool that has the argument."""


class ToolArguments(BaseModel):
    """Arguments of a tool: one name for each thing in all tools; other usual names are read, too."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, values: Any) -> Any:
        return cls.in_our_words(values)

    @classmethod
    def in_our_words(cls, values: Any) -> Any:
        """Return arguments with other usual names replaced; what is no mapping as it is."""
        if not isinstance(values, Mapping):
            return values
        names = cls.model_fields
        renamed: dict[str, Any] = {}
        for word, value in values.items():
            name = _OTHER_WORDS.get(word, word)
            name = word if word in names or name not in names or name in values or name in renamed else name
            renamed[name] = value
        return renamed


class QueryArguments(ToolArguments):
    """Arguments that every tool with a query has."""

    query: str = Field(min_length=1, description="The question to find evidence for: complete, with names spelled out.")
    k: int | None = _K
    filter: Filter = _FILTER
    as_of: str | None = _AS_OF


class SearchArguments(QueryArguments):
    """Arguments of `search`."""

    max_tokens: int | None = Field(
        default=None,
        ge=20,
        le=100_000,
        description=(
            "Return the parts of the best passages that answer the query, in at most so many tokens altogether; k has "
            "no effect then. Leave it out for whole passages."
        ),
    )


class ExplainArguments(QueryArguments):
    """Arguments of `explain`: those of the search that it explains."""

    doc_id: str | None = Field(default=None, description="Explain why this document is, or is not, among the results.")


class AnswerArguments(QueryArguments):
    """Arguments of a tool that answers."""

    query: str = Field(min_length=1, description="A complete question, with names spelled out.")
    show_steps: bool = Field(default=False, description="Also return the steps: thoughts, searches and their results.")


class AskArguments(AnswerArguments):
    """Arguments of `ask`."""

    via: Literal["single", "ircot", "self-ask"] = Field(
        default="single",
        description=(
            "How to reason. single: one search, one answer; quick. ircot: search, think a sentence, search for what is "
            "missing, and so on; for questions that need several documents. self-ask: answer follow-up questions first."
        ),
    )
    flavor: Literal["indexrag", "hipporag", "original", "search", "two_call"] | None = Field(
        default=None,
        description=(
            "Of ircot: indexrag (default), hipporag or original. Of self-ask: search (default) or two_call. Leave it "
            "out unless you compare them."
        ),
    )
    max_steps: int | None = Field(default=None, ge=0, le=20, description="Most rounds of thinking and searching.")
    timeout: float | None = Field(default=None, gt=0, le=3600, description="Most seconds for everything.")


class FetchArguments(ToolArguments):
    """Arguments of `fetch`."""

    doc_id: str = _DOC_ID
    start: int = Field(default=0, ge=0, description="The character to begin with; see next_start of the result.")
    length: int = Field(default=20_000, ge=1, le=100_000, description="How many characters to return at most.")


class OpenArguments(ToolArguments):
    """Arguments of `open`."""

    doc_id: str = _DOC_ID
    start: int = Field(default=1, ge=1, description="Number of the first passage to list; see next_start.")


class NeighborsArguments(ToolArguments):
    """Arguments of `neighbors`."""

    doc_id: str | None = Field(
        default=None, description="Its document, as results name it in brackets; not needed beside a result's id."
    )
    passage: int | str = Field(description="A result's id, or the number of a passage, as `open` lists it.")
    before: int = Field(default=1, ge=0, le=20, description="How many passages before it.")
    after: int = Field(default=1, ge=0, le=20, description="How many passages after it.")

    @model_validator(mode="before")
    @classmethod
    def _result_id(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and "id" in values and "passage" not in values:
            return {**{word: value for word, value in values.items() if word != "id"}, "passage": values["id"]}
        return values


Arguments = TypeVar("Arguments", bound=BaseModel)


def read_arguments(schema: type[Arguments], arguments: Mapping[str, Any]) -> Arguments:
    """Validate the arguments of an agent."""
    try:
        return schema.model_validate({key: clean_value(value) for key, value in arguments.items()})
    except RecursionError:
        raise QueryError("An argument is nested too deeply.") from None
    except ValidationError as error:
        raise QueryError(f"{explain_mistakes(error)} The arguments are {', '.join(schema.model_fields)}.") from None


def without_blanks(schema: type[BaseModel], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop optional arguments that are blank: agents fill in every field."""
    optional = {name for name, field in schema.model_fields.items() if not field.is_required()}
    return {name: value for name, value in arguments.items() if name not in optional or not _is_blank(value)}


def _is_blank(value: object) -> bool:
    return value in (None, {}, []) or (isinstance(value, str) and value.strip().lower() in ("", "null", "none", "{}"))


def with_known_keys(schema: type[Arguments], metadata: Iterable[Mapping[str, Any]]) -> type[Arguments]:
    """A schema whose filter lists the metadata keys of an index with sample values."""
    values: dict[str, dict[str, None]] = {}
    for row in metadata:
        for key, value in row.items():
            if not key.startswith("sire_"):
                samples = values.setdefault(key, {})
                if len(samples) < _SAMPLES and isinstance(value, (str, int, float)):
                    samples[_sample(value)] = None
    if not values:
        return schema
    keys = [f"{key} ({', '.join(samples)}, ...)" if samples else key for key, samples in sorted(values.items())]
    field = Field(default=None, description=f"{_CONDITIONS} Metadata keys here: {'; '.join(keys[:_KEYS])}.")
    return create_model(schema.__name__, __base__=schema, __doc__=schema.__doc__, filter=(Filter, field))


def _sample(value: Any) -> str:
    """A metadata value as JSON; the beginning of a long text."""
    cut = isinstance(value, str) and len(value) > _MAX_VALUE_LETTERS
    return json.dumps(f"{value[:_MAX_VALUE_LETTERS]}..." if cut else value, ensure_ascii=False)


def search_arguments(index: Index, visible: filters.Filter | None) -> type[BaseModel]:
    """`SearchArguments` with the metadata keys of what a filter shows; without them while nothing is built."""
    try:
        return with_known_keys(SearchArguments, index.snapshot(filter=visible).metadata())
    except SireError:
        return SearchArguments


async def explain_filter(index: Index, visible: filters.Filter | None, wanted: filters.Filter | None) -> str:
    """Hint about the filter of a call, said of what a filter shows only; empty if there is nothing."""
    try:
        return "" if wanted is None else (await index.asnapshot(filter=visible)).filter_hint(wanted)
    except IndexMissingError:
        return ""


def explain_mistakes(error: Any) -> str:
    """All invalid arguments and the reasons, in a sentence."""
    return f"{'; '.join(dict.fromkeys(_mistake(fault) for fault in error.errors(include_url=False)))}."


def _mistake(fault: Mapping[str, Any]) -> str:
    name, said = ".".join(map(str, fault["loc"][:1])), _MISTAKES.get(fault["type"])
    return said.format(name, **fault.get("ctx", {})) if said else f"{name}: {fault['msg']}"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Name, description and arguments of a tool as agents see them; it returns text for the model to read."""

    name: str
    title: str
    description: str
    arguments: type[BaseModel]


_TOOLS = (
    ToolSpec(
        "search",
        "Search documents",
        "Finds passages, and summaries and facts drawn from several passages, that help to answer a question, "
        "best first. Each comes with the ids of its documents in brackets.",
        SearchArguments,
    ),
    ToolSpec(
        "ask",
        "Ask documents",
        "Answers a question from the indexed documents, in few words, with the ids of the documents that it cites "
        "in brackets, and says whether the evidence is sufficient.",
        AskArguments,
    ),
    ToolSpec(
        "explain",
        "Explain a search",
        "The same search, but with the reasons: for each result its score, the steps that led to it and what "
        "it stands on.",
        ExplainArguments,
    ),
    ToolSpec(
        "fetch",
        "Fetch a document",
        "Gives a document as it was indexed, whole or in parts, by the id that results name in brackets.",
        FetchArguments,
    ),
    ToolSpec(
        "open",
        "Open a document",
        "Lists the passages of a document in their order, numbered, each with its section and first words: the "
        "outline of a long document, from which to read on with neighbors.",
        OpenArguments,
    ),
    ToolSpec(
        "neighbors",
        "Read around a passage",
        "Gives a passage whole with the passages before and after it in its document.",
        NeighborsArguments,
    ),
)
_EXTRACTING = (
    "Gives the sentences of the indexed documents that answer a question best, word for word, with the ids of "
    "their documents in brackets. Nothing checks whether they answer it: no language model is configured."
)
"""Description of `ask` without a language model."""


class IndexTools:
    """The tools over one index.

    Args:
        index: What is searched.
        language_model: Answers questions; without one `ask` gives sentences of the evidence.
        limits: What one question may cost: `ReasoningLimits`, or a mapping of these.
        cite_key: Names of documents in texts; see `cited_names`.

    Raises:
        ConfigurationError: `limits` is neither, or `cite_key` cannot be read.
    """

    def __init__(
        self,
        index: Index,
        language_model: LanguageModel | None = None,
        limits: ReasoningLimits | Mapping[str, Any] | None = None,
        cite_key: str = "",
    ) -> None:
        self._index = index
        self._model = language_model
        self._limits = limits_of(limits, ReasoningLimits)
        self._cite_key = check_cite_key(cite_key)
        self._runs: Mapping[str, Callable[[Any, Tell], Awaitable[str]]] = {
            "search": self._search,
            "ask": self._ask,
            "explain": self._explain,
            "fetch": self._fetch,
            "open": self._open,
            "neighbors": self._neighbors,
        }

    def specs(self) -> list[ToolSpec]:
        """All tools; filters name the metadata keys that the index has now."""
        metadata = self._index.snapshot().metadata()
        specs = []
        for tool in _TOOLS:
            is_search = issubclass(tool.arguments, QueryArguments)
            arguments = with_known_keys(tool.arguments, metadata) if is_search else tool.arguments
            is_extracting = tool.name == "ask" and self._model is None
            description = _EXTRACTING if is_extracting else tool.description
            specs.append(replace(tool, description=description, arguments=arguments))
        return specs

    def introduction(self) -> str:
        """Description of the index for the agent's instructions."""
        snapshot = self._index.snapshot()
        ids = snapshot.document_ids()
        keys = sorted({key for entry in snapshot.metadata() for key in entry if not key.startswith("sire_")})[:_KEYS]
        filter_keys = (
            f"Metadata keys for filters: {', '.join(keys)}." if keys else "The documents have no metadata to filter by."
        )
        documents = f"{count(len(ids), 'document')} ({titles_among(self._index, ids)})"
        return (
            f"Evidence from a collection of {documents}. Search it before answering questions about them, and cite the "
            f"document ids in brackets. {filter_keys}"
        )

    async def call(self, name: str, arguments: Mapping[str, Any], tell: Tell) -> str:
        """Run a tool."""
        form = next((tool.arguments for tool in _TOOLS if tool.name == name), None)
        if form is None:
            raise QueryError(f"There is no tool {name!r}; there are {', '.join(self._runs)}.")
        return await self._runs[name](read_arguments(form, without_blanks(form, arguments)), tell)

    async def _search(self, query: SearchArguments, tell: Tell) -> str:  # noqa: ARG002 - quick; there is nothing to tell
        if query.max_tokens is not None:
            return await self._context(query, query.max_tokens)
        hits = await self._index.asearch(query.query, query.k or _USUAL, filter=query.filter, as_of=query.as_of)
        hint = unanswered_note(query.query, hits) if hits else await self._index.afilter_hint(query.filter)
        passages = hits_text(hits, self._cite_key)
        return f"{hint}\n\n{passages}".lstrip() if hits else f"{passages} {hint}".rstrip()

    async def _context(self, query: SearchArguments, max_tokens: int) -> str:
        """Evidence within a budget, and the names of further documents as far as they fit."""

        def text(evidence: Sequence[Evidence], more: Sequence[str] = ()) -> str:
            quotes = context_text(evidence, lambda _, hit: hit_label(hit, self._cite_key)) or "Nothing was found."
            return f"{quotes}\n\nFurther documents that match well: {', '.join(more)}" if more else quotes

        options = ContextOptions(write=text, head=lambda hit: text([Evidence(hit, "", ((0, 0),))]))
        context = await self._index.acontext(
            query.query, max_tokens, options=options, filter=query.filter, as_of=query.as_of
        )
        more = list(context.more)
        while more and count_tokens(text(context.evidence, more)) > max_tokens:
            more.pop()
        return text(context.evidence, more)

    async def _explain(self, query: ExplainArguments, tell: Tell) -> str:  # noqa: ARG002 - as above
        search: dict[str, Any] = {"filter": query.filter, "as_of": query.as_of}
        k = query.k or _USUAL
        if query.doc_id is None:
            text = await self._index.aexplain(query.query, k, **search)
        else:
            from sire_core.explore.why_not import why_no_hit

            documents = self._index.documents([query.doc_id]) or self._cited_as(query.doc_id)
            name = documents[0].id if documents else query.doc_id
            reasons = await why_no_hit(await self._index.asnapshot(**search), query.query, name, k)
            text = "\n".join([reasons.title, *(f"{examined}: {finding}" for examined, finding in reasons.reasons)])
        return text

    async def _ask(self, query: AskArguments, tell: Tell) -> str:
        settings = settings_of(query.via, query.flavor)
        if self._model is None and query.via != "single":
            raise QueryError(f"via={query.via!r} needs a language model, and there is none here: leave via out.")
        run = reason(
            query.via,
            PassageSource(self._index),
            query.query,
            model=self._model,
            k=query.k or (None if self._model else PASSAGES),
            filter=query.filter,
            as_of=query.as_of,
            limits=self._limits_of(query),
            **(settings if self._model else {"answer": False}),
        )
        steps_made: list[ReasoningStep] = []
        answer: Answer | None = None
        async with aclosing(run) as steps:  # closing the stream stops the model calls, too
            async for step in steps:
                if isinstance(step, Answer):
                    answer = step
                else:
                    steps_made.append(step)
                    await tell(step_text(step))
        assert answer is not None  # what every strategy ends with
        if self._model is None:
            answer = extract_answer(query.query, answer.hits)
            warning = answer.note
        else:
            warning = unanswered_note(query.query, answer.hits)
        steps_shown = steps_made if query.show_steps else []
        return f"{warning}\n\n{answer_text(answer, steps_shown, self._cite_key)}".lstrip()

    async def _fetch(self, query: FetchArguments, tell: Tell) -> str:  # noqa: ARG002 - as above
        documents = self._index.documents([query.doc_id]) or self._cited_as(query.doc_id)
        if not documents:
            raise QueryError(self._no_document(query.doc_id))
        document = documents[0]
        whole = "\n\n".join(each.text for each in documents)
        part = whole[query.start : query.start + query.length]
        end = query.start + len(part)
        more = f"\n\n(Goes on: start={end}, {len(whole) - end:,} characters more.)" if end < len(whole) else ""
        return f"{_document_head(document)}\n\n{part}{more}"

    async def _open(self, query: OpenArguments, tell: Tell) -> str:  # noqa: ARG002 - as above
        document, units = await self._passages(query.doc_id)
        end = query.start - 1 + _OUTLINE
        lines = [
            f"{number}. {unit.title}: {shorten(unit.text, _FIRST_WORDS)}".replace(". : ", ". ")
            for number, unit in enumerate(units[query.start - 1 : end], query.start)
        ]
        more = f"\n(Goes on: start={end + 1}, {len(units) - end:,} more.)" if end < len(units) else ""
        return "\n".join([f"{_document_head(document)}, {count(len(units), 'passage')}\n", *lines]) + more

    async def _neighbors(self, query: NeighborsArguments, tell: Tell) -> str:  # noqa: ARG002 - as above
        named = str(query.passage)
        document, units = await self._passages(query.doc_id or self._document_of(named))
        position = next((n for n, unit in enumerate(units) if named in (str(n + 1), unit.id)), None)
        if position is None:
            numbers = f"it has the numbers 1 to {len(units)}, which `open` lists"
            raise QueryError(f"{document.id!r} has no passage {named!r}: {numbers}.")
        first = max(0, position - query.before)
        shown = units[first : position + query.after + 1]
        head = f"[{document.id}] passages {first + 1} to {first + len(shown)} of {len(units)}"
        texts = [f"{number}. {unit.title}\n{unit.text}" for number, unit in enumerate(shown, first + 1)]
        return "\n\n".join([head, *texts])

    async def _passages(self, doc_id: str) -> tuple[Document, list[Unit]]:
        """A document and its passages in their order; those of all documents that results call so."""
        from sire_core.explore.browse import document_units

        documents = self._index.documents([doc_id]) or self._cited_as(doc_id)
        snapshot = await self._index.asnapshot()
        units = [unit for document in documents for unit in document_units(snapshot, document.id)]
        if not units:
            raise QueryError(self._no_document(doc_id))
        return documents[0], units

    def _document_of(self, passage: str) -> str:
        """The document of a passage that is named by a result's id."""
        snapshot = self._index.snapshot()
        pool = snapshot.view.pool
        is_it = (pool.chunk_ids == passage.encode()) & snapshot.view.passing_chunks(snapshot.where)
        for number in np.flatnonzero(is_it).tolist():
            return str(pool.document_ids()[pool.chunk_documents[number]])
        raise QueryError(f"No result has the id {passage!r}. For the number of a passage give its document's doc_id.")

    def _cited_as(self, name: str) -> list[Document]:
        """Documents with this name in results: the passages of a file that was split."""
        documents = self._index.documents()
        return [
            each for each in documents if name in cited_names([each.id], each.metadata, {}, each.title, self._cite_key)
        ]

    def _limits_of(self, query: AskArguments) -> ReasoningLimits:
        """The limits of the server, or lower ones of the agent."""
        ours = self._limits
        return replace(
            ours, max_steps=_least(ours.max_steps, query.max_steps), timeout=_least(ours.timeout, query.timeout)
        )

    def _no_document(self, doc_id: str) -> str:
        similar = similar_names(doc_id, self._index.snapshot().document_ids())
        return f"There is no document {doc_id!r}." + (f" Similar ids: {', '.join(similar)}." if similar else "")


def _document_head(document: Document) -> str:
    """Id, title and metadata of a document, in a line."""
    metadata = {key: value for key, value in document.metadata.items() if not key.startswith("sire_")}
    return f"[{document.id}] {document.title} {json.dumps(metadata, ensure_ascii=False) if metadata else ''}".rstrip()


def _least(*bounds: Any) -> Any:
    return min((bound for bound in bounds if bound is not None), default=None)
