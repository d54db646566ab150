"""Tools of agents: search, ask, explain, fetch; independent of the protocol."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.pluralize import count
from sire_core.errors import QueryError
from sire_core.models.usage import limits_of
from sire_core.serve.arguments import (
    AskArguments,
    ExplainArguments,
    FetchArguments,
    SearchArguments,
    read_arguments,
    with_known_keys,
    without_blank_filter,
)
from sire_core.serve.outputs import (
    AskOutput,
    ExplainOutput,
    FetchOutput,
    HitOutput,
    SearchOutput,
    answer_text,
    check_cite_key,
    cited_names,
    hits_text,
    step_text,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sire_core.index import Index
    from sire_core.protocols import LanguageModel
    from sire_core.reason.calls import ReasoningLimits
    from sire_core.reason.steps import Answer, ReasoningStep
    from sire_core.types import Document

Tell = Callable[[str], Awaitable[None]]
"""Reports progress in a sentence during a long call."""

_USUAL = 10
"""Default number of hits."""

_KEYS = 30
"""Maximum metadata keys in the instructions."""

_COMPARED = 20_000
"""Maximum ids that an unknown id is compared with."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Description of a tool."""

    name: str
    title: str
    description: str
    arguments: type[BaseModel]
    output: type[BaseModel]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Result of a tool.

    Attributes:
        text: For the model to read, with the documents' ids in brackets.
        output: The same for programs.
    """

    text: str
    output: BaseModel


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
        from sire_core.reason.calls import ReasoningLimits

        self._index = index
        self._model = language_model
        self._limits = limits_of(limits, ReasoningLimits)
        self._cite_key = check_cite_key(cite_key)
        self._runs: Mapping[str, Callable[[Mapping[str, Any], Tell], Awaitable[ToolResult]]] = {
            "search": self._search,
            "ask": self._ask,
            "explain": self._explain,
            "fetch": self._fetch,
        }

    def specs(self) -> list[ToolSpec]:
        """All tools."""
        metadata = self._index.snapshot().metadata()
        asking = (
            "Answers a question from the indexed documents, in few words, with the ids of the documents that it cites "
            "in brackets, and says whether the evidence is sufficient."
        )
        extracting = (
            "Gives the sentences of the indexed documents that answer a question best, word for word, with the ids of "
            "their documents in brackets. Nothing judges whether they suffice: no language model is configured."
        )
        return [
            ToolSpec(
                "search",
                "Search documents",
                "Finds passages, and summaries and facts drawn from several passages, that help to answer a question, "
                "best first. Each comes with the ids of its documents in brackets.",
                with_known_keys(SearchArguments, metadata),
                SearchOutput,
            ),
            ToolSpec(
                "ask",
                "Ask documents",
                asking if self._model is not None else extracting,
                with_known_keys(AskArguments, metadata),
                AskOutput,
            ),
            ToolSpec(
                "explain",
                "Explain a search",
                "The same search, but with the reasons: for each result its score, the steps that led to it and what "
                "it stands on.",
                with_known_keys(ExplainArguments, metadata),
                ExplainOutput,
            ),
            ToolSpec(
                "fetch",
                "Fetch a document",
                "Gives a document as it was indexed, whole or in parts, by the id that results name in brackets.",
                FetchArguments,
                FetchOutput,
            ),
        ]

    def introduction(self) -> str:
        """Description of the index for the agent's instructions."""
        snapshot = self._index.snapshot()
        keys = sorted({key for entry in snapshot.metadata() for key in entry if not key.startswith("sire_")})[:_KEYS]
        known = (
            f"Metadata keys for filters: {', '.join(keys)}." if keys else "The documents have no metadata to filter by."
        )
        return (
            f"Evidence from a collection of {count(len(snapshot.document_ids()), 'document')}. Search it before "
            f"answering questions about them, and cite the document ids in brackets. {known}"
        )

    async def call(self, name: str, arguments: Mapping[str, Any], tell: Tell) -> ToolResult:
        """Run a tool."""
        run = self._runs.get(name)
        if run is None:
            raise QueryError(f"There is no tool {name!r}; there are {', '.join(self._runs)}.")
        return await run(without_blank_filter(arguments), tell)

    async def _search(self, arguments: Mapping[str, Any], tell: Tell) -> ToolResult:  # noqa: ARG002 - quick; there is nothing to tell
        query = read_arguments(SearchArguments, arguments)
        hits = await self._index.asearch(query.query, query.k or _USUAL, filter=query.filter)
        hint = "" if hits else await self._index.afilter_hint(query.filter)
        return ToolResult(
            f"{hits_text(hits, self._cite_key)} {hint}".rstrip(),
            SearchOutput(hits=[HitOutput.of(hit) for hit in hits], **self._searched(query)),
        )

    async def _explain(self, arguments: Mapping[str, Any], tell: Tell) -> ToolResult:  # noqa: ARG002 - as above
        query = read_arguments(ExplainArguments, arguments)
        text = await self._index.aexplain(query.query, query.k or _USUAL, filter=query.filter)
        return ToolResult(text, ExplainOutput(explanation=text, **self._searched(query)))

    async def _ask(self, arguments: Mapping[str, Any], tell: Tell) -> ToolResult:
        query = read_arguments(AskArguments, arguments)
        from sire_core.reason import PassageSource, extract_answer, reason, settings_of
        from sire_core.reason.steps import Answer

        settings = settings_of(query.via, query.flavor)
        run = reason(
            query.via if self._model else "single",
            PassageSource(self._index),
            query.question,
            model=self._model,
            k=query.k,
            filter=query.filter,
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
            answer = extract_answer(query.question, answer.hits)
        steps_shown = steps_made if query.show_steps else []
        return ToolResult(
            answer_text(answer, steps_shown, self._cite_key), AskOutput.of(answer, steps_shown, **self._searched(query))
        )

    async def _fetch(self, arguments: Mapping[str, Any], tell: Tell) -> ToolResult:  # noqa: ARG002 - as above
        from sire_core.corpus.chunker import SentenceChunker, joined

        query = read_arguments(FetchArguments, arguments)
        documents = self._index.documents([query.doc_id]) or self._cited_as(query.doc_id)
        if not documents:
            raise QueryError(self._no_document(query.doc_id))
        document = documents[0]
        chunker = self._index.chunker
        cutter = SentenceChunker() if isinstance(chunker, str) else chunker
        whole = "\n\n".join(joined(each.passages, cutter) for each in documents)
        part = whole[query.start : query.start + query.length]
        end = query.start + len(part)
        output = FetchOutput(
            doc_id=document.id,
            title=document.title,
            text=part,
            metadata=dict(document.metadata),
            start=query.start,
            length=len(whole),
            next_start=end if end < len(whole) else None,
        )
        more = f"\n\n(Goes on: start={end}, {len(whole) - end:,} characters more.)" if end < len(whole) else ""
        head = f"[{document.id}] {document.title}".rstrip()
        return ToolResult(f"{head}\n\n{part}{more}", output)

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

    def _searched(self, query: SearchArguments | AskArguments) -> dict[str, Any]:
        """Parameters of a search, for traces."""
        return {"recipe": str(self._index.stats()["recipe"]), "k": query.k or _USUAL, "filter": query.filter}

    def _no_document(self, doc_id: str) -> str:
        known = self._index.snapshot().document_ids()
        similar = difflib.get_close_matches(doc_id, known[:_COMPARED], n=3)
        return f"There is no document {doc_id!r}." + (f" Similar ids: {', '.join(similar)}." if similar else "")


def _least(*bounds: Any) -> Any:
    return min((bound for bound in bounds if bound is not None), default=None)
