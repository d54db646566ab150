"""`IRCoTQueryEngine`, `SelfAskQueryEngine`, and `SingleQueryEngine`, which they are measured against."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from llama_index_sire.reasoning_engine import ReasoningQueryEngine
from sire_core.reason import IRCoTConfig, ReasoningStep, SelfAskConfig, ircot, self_ask, single

__all__ = ["IRCoTQueryEngine", "SelfAskQueryEngine", "SingleQueryEngine"]


class IRCoTQueryEngine(ReasoningQueryEngine[IRCoTConfig]):
    """Alternates reasoning and searching, then answers from everything that was found (IRCoT).

    `config` has the flavor and its settings; for everything else, see `ReasoningQueryEngine`.
    """

    def _settings(self) -> IRCoTConfig:
        return IRCoTConfig()

    def _begin(self, question: str, **arguments: Any) -> AsyncGenerator[ReasoningStep, None]:
        return ircot(arguments.pop("index"), question, config=self.config, **arguments)


class SelfAskQueryEngine(ReasoningQueryEngine[SelfAskConfig]):
    """Asks and answers follow-up questions, then answers the question (self-ask).

    The mode `search` of `config` searches for each follow-up question; `two_call` asks and answers all of them in one
    call. For everything else, see `ReasoningQueryEngine`.
    """

    def _settings(self) -> SelfAskConfig:
        return SelfAskConfig()

    @property
    def _searches(self) -> bool:
        return self.config.mode == "search"

    def _begin(self, question: str, **arguments: Any) -> AsyncGenerator[ReasoningStep, None]:
        return self_ask(arguments.pop("index"), question, config=self.config, **arguments)


class SingleQueryEngine(ReasoningQueryEngine[None]):
    """One search and one answer with citations; see `ReasoningQueryEngine`. It has no settings."""

    def _settings(self) -> None:
        return None

    def _begin(self, question: str, **arguments: Any) -> AsyncGenerator[ReasoningStep, None]:
        return single(arguments.pop("index"), question, **arguments)
