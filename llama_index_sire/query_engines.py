"""`IRCoTQueryEngine` and `SelfAskQueryEngine`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from llama_index_sire.models import LLMLike
from llama_index_sire.reasoning_engine import ReasoningQueryEngine
from llama_index_sire.retriever import SireRetriever
from sire_core.reason import IRCoTConfig, ReasoningLimits, SelfAskConfig, Step, ircot, self_ask

if TYPE_CHECKING:
    from llama_index.core.callbacks.base import CallbackManager

    from sire_core.index import Index

__all__ = ["IRCoTQueryEngine", "SelfAskQueryEngine"]


class IRCoTQueryEngine(ReasoningQueryEngine):
    """Thinks a sentence, searches for what is missing, and so on; then answers from all that was found.

    Args:
        source: See `ReasoningQueryEngine`, as for everything else.
        config: The flavour and its settings.
        llm: What thinks and answers.
        limits: What one question may cost.
        streaming: Respond with a generator.
        callback_manager: The retriever's when left out.
    """

    def __init__(
        self,
        source: SireRetriever | Index,
        *,
        config: IRCoTConfig | None = None,
        llm: LLMLike = None,
        limits: ReasoningLimits | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self.config = config or IRCoTConfig()
        super().__init__(source, llm=llm, limits=limits, streaming=streaming, callback_manager=callback_manager)

    def _begin(self, question: str, **arguments: Any) -> AsyncGenerator[Step, None]:
        return ircot(arguments.pop("index"), question, config=self.config, **arguments)


class SelfAskQueryEngine(ReasoningQueryEngine):
    """Answers follow-up questions first, then the question.

    Args:
        source: See `ReasoningQueryEngine`, as for everything else.
        config: `search` looks for each follow-up question; `two_call` proposes and answers all of them in one call.
        llm: What asks and answers.
        limits: What one question may cost.
        streaming: Respond with a generator.
        callback_manager: The retriever's when left out.
    """

    def __init__(
        self,
        source: SireRetriever | Index,
        *,
        config: SelfAskConfig | None = None,
        llm: LLMLike = None,
        limits: ReasoningLimits | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self.config = config or SelfAskConfig()
        super().__init__(source, llm=llm, limits=limits, streaming=streaming, callback_manager=callback_manager)

    @property
    def _searches(self) -> bool:
        return self.config.mode == "search"

    def _begin(self, question: str, **arguments: Any) -> AsyncGenerator[Step, None]:
        return self_ask(arguments.pop("index"), question, config=self.config, **arguments)
