"""`IRCoTQueryEngine`, `SelfAskQueryEngine`, and `SingleQueryEngine`, which they are measured against."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from llama_index_sire.reasoning_engine import ReasoningQueryEngine
from sire_core.reason import IRCoTConfig, ReasoningStep, SelfAskConfig, ircot, self_ask, single

__all__ = ["IRCoTQueryEngine", "SelfAskQueryEngine", "SingleQueryEngine"]


class IRCoTQueryEngine(ReasoningQueryEngine[IRCoTConfig]):
    """Thinks a sentence, searches for what is missing, and so on; then answers from all that was found.

    `config` has the flavour and its settings; see `ReasoningQueryEngine` for everything else.
    """

    def _settings(self) -> IRCoTConfig:
        return IRCoTConfig()

    def _begin(self, question: str, **arguments: Any) -> AsyncGenerator[ReasoningStep, None]:
        return ircot(arguments.pop("index"), question, config=self.config, **arguments)


class SelfAskQueryEngine(ReasoningQueryEngine[SelfAskConfig]):
    """Answers follow-up questions first, then the question.

    The mode `search` of `config` looks for each follow-up question, `two_call` proposes and answers all of them in one
    call; see `ReasoningQueryEngine` for everything else.
    """

    def _settings(self) -> SelfAskConfig:
        return SelfAskConfig()

    @property
    def _searches(self) -> bool:
        return self.config.mode == "search"

    def _begin(self, question: str, **arguments: Any) -> AsyncGenerator[ReasoningStep, None]:
        return self_ask(arguments.pop("index"), question, config=self.config, **arguments)


class SingleQueryEngine(ReasoningQueryEngine[None]):
    """One search, one answer with citations; see `ReasoningQueryEngine`. There are no settings."""

    def _settings(self) -> None:
        return None

    def _begin(self, question: str, **arguments: Any) -> AsyncGenerator[ReasoningStep, None]:
        return single(arguments.pop("index"), question, **arguments)
