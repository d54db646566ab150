"""`Reasoner`: a strategy with all that it needs, ready for a question."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from langchain_sire.chat import as_language_model
from langchain_sire.document_index import SireDocumentIndex
from langchain_sire.retriever import FilterLike, SireRetriever
from sire_core.errors import ConfigurationError, IndexMissingError
from sire_core.index import Index
from sire_core.reason import Answer, IRCoTConfig, ReasoningLimits, SelfAskConfig, Step, ircot, self_ask

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from sire_core.protocols import LanguageModel

__all__ = ["Reasoner", "make_reasoner"]

_STRATEGIES: Mapping[str, tuple[Any, type[Any]]] = {
    "ircot": (ircot, IRCoTConfig),
    "self-ask": (self_ask, SelfAskConfig),
}


@dataclass(frozen=True)
class Reasoner:
    """A strategy over a retriever.

    Attributes:
        strategy: `ircot` or `self-ask`.
        retriever: Its `k` and `filter` hold.
        index: What is searched.
        model: Thinks and answers; None takes the index's own.
        k: Documents of the final context; None takes the retriever's.
        config: Settings of the strategy.
        limits: Bounds of one question.
        answer: Whether a reader answers at the end.
    """

    strategy: str
    retriever: SireRetriever
    index: Index
    model: LanguageModel | None
    k: int | None
    config: Any
    limits: ReasoningLimits
    answer: bool = True

    @property
    def searches(self) -> bool:
        """Whether each sub-question is searched for."""
        return bool(getattr(self.config, "mode", "search") == "search")

    async def steps(
        self, question: str, k: int | None = None, where: FilterLike = None, *, stream: bool = False
    ) -> AsyncGenerator[Step, None]:
        """The steps of a question, perhaps with its answer in pieces; `k` and a filter as with `SireRetriever`."""
        if isinstance(self.retriever, SireDocumentIndex):
            await self.retriever.aflush()
        function, _ = _STRATEGIES[self.strategy]
        steps = function(
            self.index,
            question,
            model=self.model,
            k=next(size for size in (k, self.k, self.retriever.k) if size is not None),
            filter=self.retriever.narrowed(where),
            config=self.config,
            limits=self.limits,
            answer=self.answer,
            stream=stream,
        )
        try:
            async with aclosing(steps) as walk:
                async for step in walk:
                    yield step
        except IndexMissingError:  # an empty store finds nothing
            if not isinstance(self.retriever, SireDocumentIndex):
                raise
            yield Answer("", "empty_index")


def make_reasoner(
    strategy: str,
    source: SireRetriever | Index,
    llm: BaseChatModel | LanguageModel | None,
    options: Mapping[str, Any],
    *,
    answer: bool = True,
) -> Reasoner:
    """A reasoner from what a user gives.

    Args:
        strategy: `ircot` or `self-ask`.
        source: A retriever, or an index with the defaults of one.
        llm: LangChain's or ours; None takes the index's own.
        options: `k`; settings of the strategy, whose own `k` is called `search_k` here; bounds.
        answer: See `Reasoner`.

    Raises:
        ConfigurationError: An option is unknown or impossible, or the source is neither retriever nor index.
    """
    _, form = _STRATEGIES[strategy]
    retriever = SireRetriever(index=source) if isinstance(source, Index) else source
    if not isinstance(retriever, SireRetriever):
        raise ConfigurationError(f"{type(source).__name__} is neither a SireRetriever nor an Index.")
    bounds = {field.name: field.name for field in fields(ReasoningLimits)}
    settings = {"search_k" if field.name == "k" else field.name: field.name for field in fields(form)}
    known = {"k", *bounds, *settings}
    unknown = sorted(set(options) - known)
    if unknown:
        raise ConfigurationError(
            f"{strategy} has no option {', '.join(unknown)}; its options are {', '.join(sorted(known))}."
        )
    return Reasoner(
        strategy,
        retriever,
        retriever.index,
        as_language_model(llm),
        options.get("k"),
        form(**{settings[name]: value for name, value in options.items() if name in settings}),
        ReasoningLimits(**{name: value for name, value in options.items() if name in bounds}),
        answer,
    )
