"""What agents can do with an index: search, ask, explain. Knows nothing of the protocol that carries it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.wording import count
from sire_core.errors import ConfigurationError, QueryError
from sire_core.serve.arguments import AskArguments, ExplainArguments, SearchArguments, read_arguments

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sire_core.index import Index
    from sire_core.protocols import LanguageModel
    from sire_core.reason.limits import ReasoningLimits
    from sire_core.reason.steps import Answer, Step
    from sire_core.types import Hit

__all__ = ["IndexTools", "Reply", "ToolSpec"]

Tell = Callable[[str], Awaitable[None]]
"""Told in a sentence what is going on, while a call takes its time."""

_KEYS = 30
"""Most metadata keys that the instructions name."""

_NO_MODEL = "This server has no language model to answer with: use search, or start it with `sire mcp DIR --llm MODEL`."


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """How a tool presents itself."""

    name: str
    title: str
    description: str
    arguments: type[BaseModel]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool found.

    Attributes:
        text: For the model to read, with the documents' ids in brackets.
        data: The same for programs.
    """

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


class IndexTools:
    """The tools over one index.

    Args:
        index: What is searched.
        language_model: Answers questions; without one `ask` says so.
        limits: What one question may cost.
    """

    def __init__(
        self, index: Index, language_model: LanguageModel | None = None, limits: ReasoningLimits | None = None
    ) -> None:
        self._index = index
        self._model = language_model
        self._limits = limits
        self._runs = {"search": self._search, "ask": self._ask, "explain": self._explain}

    def specs(self) -> list[ToolSpec]:
        """All tools."""
        asking = (
            "Answers a question from the indexed documents, with the evidence it used, numbered as the answer cites "
            "it. Says so when the evidence is not sufficient."
        )
        return [
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
                asking if self._model is not None else f"{asking} Not available here: no language model is configured.",
                AskArguments,
            ),
            ToolSpec(
                "explain",
                "Explain a search",
                "The same search, but with the reasons: for each result its score, the steps that led to it and what "
                "it stands on.",
                ExplainArguments,
            ),
        ]

    def introduction(self) -> str:
        """What the index holds, for the agent's instructions.

        Raises:
            IndexMissingError: There is no index.
        """
        metadata = [entry for _, entry in self._index.view().pool.document_metadata()]
        keys = sorted({key for entry in metadata for key in entry if not key.startswith("sire_")})[:_KEYS]
        known = (
            f"Metadata keys for filters: {', '.join(keys)}." if keys else "The documents have no metadata to filter by."
        )
        return (
            f"Evidence from a collection of {count(len(metadata), 'document')}. Search it before answering questions "
            f"about them, and cite the document ids in brackets. {known}"
        )

    async def call(self, name: str, given: Mapping[str, Any], tell: Tell) -> Reply:
        """Run a tool.

        Args:
            name: Which.
            given: Its arguments, as the agent sent them.
            tell: Hears what is going on.

        Raises:
            SireError: It cannot be done; the message is for the agent.
        """
        run = self._runs.get(name)
        if run is None:
            raise QueryError(f"There is no tool {name!r}; there are {', '.join(self._runs)}.")
        return await run(given, tell)

    async def _search(self, given: Mapping[str, Any], tell: Tell) -> Reply:  # noqa: ARG002 - quick; there is nothing to tell
        asked = read_arguments(SearchArguments, given)
        hits = await self._index.asearch(asked.query, asked.k, filter=asked.filter)
        return Reply("\n\n".join(map(_passage, hits)) or "Nothing was found.", {"hits": [_plain(hit) for hit in hits]})

    async def _explain(self, given: Mapping[str, Any], tell: Tell) -> Reply:  # noqa: ARG002 - as above
        asked = read_arguments(ExplainArguments, given)
        text = await self._index.aexplain(asked.query, asked.k, filter=asked.filter)
        return Reply(text, {"explanation": text})

    async def _ask(self, given: Mapping[str, Any], tell: Tell) -> Reply:
        asked = read_arguments(AskArguments, given)
        if self._model is None:
            raise ConfigurationError(_NO_MODEL)
        from sire_core.reason import STRATEGIES
        from sire_core.reason.steps import Answer

        reply = Reply("")
        settings = {"model": self._model, "k": asked.k, "filter": asked.filter, "limits": self._limits}
        run = STRATEGIES[asked.via](self._index, asked.question, **settings)
        async with aclosing(run) as steps:  # whoever stops listening stops the model calls, too
            async for step in steps:
                if isinstance(step, Answer):
                    reply = _answered(step)
                else:
                    await tell(_said(step))
        return reply


def _passage(hit: Hit) -> str:
    return f"[{', '.join(hit.doc_ids)}] {hit.unit.index_text}"


def _said(step: Step) -> str:
    """A step of reasoning in a sentence."""
    from sire_core.reason.steps import IntermediateAnswer, Retrieved, SubQuestion

    if isinstance(step, SubQuestion):
        return f"Searching: {step.text}"
    if isinstance(step, Retrieved):
        return f"Found {count(len(step.hits), 'passage or fact', 'passages and facts')}, {step.new:,} of them new."
    return f"{step.question} {step.text}" if isinstance(step, IntermediateAnswer) else step.text


def _answered(answer: Answer) -> Reply:
    """An answer with its evidence; the numbers are those that the answer cites."""
    text = answer.text or "There is no answer."
    if not answer.sufficient:
        why = f"{answer.stop}: {answer.note}" if answer.note else answer.stop
        text += f"\n\nThe evidence is not sufficient (stopped by {why})."
    evidence = "\n\n".join(f"[{number}] {_passage(hit)}" for number, hit in enumerate(answer.hits, 1))
    data = {
        "answer": answer.text,
        "sufficient": answer.sufficient,
        "stop": answer.stop,
        "citations": list(answer.citations),
        "hits": [_plain(hit) for hit in answer.hits],
        "usage": asdict(answer.usage),
        "note": answer.note,
    }
    return Reply(f"{text}\n\nEvidence:\n{evidence}" if evidence else text, data)


def _plain(hit: Hit) -> dict[str, Any]:
    unit = hit.unit
    return {
        "id": unit.id,
        "kind": str(unit.kind),
        "score": float(hit.score),
        "title": unit.title,
        "text": unit.text,
        "doc_ids": list(hit.doc_ids),
    }
