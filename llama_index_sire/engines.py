"""Engines over a retriever, as an index of LlamaIndex makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.query_engine import RetrieverQueryEngine

from llama_index_sire.language_model import LlamaIndexModel
from llama_index_sire.opening import SEARCH_FIELDS
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.core.chat_engine.types import BaseChatEngine

    from llama_index_sire.retriever import SireRetriever
    from sire_core.index import Index

__all__ = ["Engines"]


class Engines:
    """The part of a retriever that makes engines over it.

    Attributes:
        index: Whose model answers where none is given.
        narrowed: Makes the retriever with other settings.
    """

    index: Index
    narrowed: Callable[..., SireRetriever]

    def as_query_engine(self, *, similarity_top_k: int | None = None, **kwargs: Any) -> RetrieverQueryEngine:
        """A query engine over this retriever.

        Args:
            similarity_top_k: How many nodes; None takes the retriever's.
            **kwargs: `filters`, `doc_ids` and `node_ids`, which narrow the retriever's, `recipe`, `returns`, `scores`,
                and arguments of `RetrieverQueryEngine.from_args`. Without an `llm` the index's own answers, where it
                was made with one of LlamaIndex's.
        """
        retriever = self._searching(similarity_top_k, kwargs)
        return RetrieverQueryEngine.from_args(retriever, **self._with_llm(kwargs))

    def as_chat_engine(
        self,
        chat_mode: str = "condense_plus_context",
        *,
        similarity_top_k: int | None = None,
        **kwargs: Any,
    ) -> BaseChatEngine:
        """A chat engine over this retriever, as an index of LlamaIndex has it.

        Args:
            chat_mode: `condense_plus_context` (also `best`), `context` or `condense_question`.
            similarity_top_k: How many nodes; None takes the retriever's.
            **kwargs: `filters` and the like, as in `as_query_engine`, and arguments of the engine's `from_defaults`:
                `llm`, `memory`, `system_prompt` and others.

        Raises:
            ConfigurationError: There is no such mode.
        """
        from llama_index.core import chat_engine

        mode, retriever = str(getattr(chat_mode, "value", chat_mode)), self._searching(similarity_top_k, kwargs)
        given = self._with_llm(kwargs)
        if mode in ("condense_plus_context", "best"):
            return chat_engine.CondensePlusContextChatEngine.from_defaults(retriever=retriever, **given)
        if mode == "context":
            return chat_engine.ContextChatEngine.from_defaults(retriever=retriever, **given)
        if mode == "condense_question":
            engine = retriever.as_query_engine(**({"llm": given["llm"]} if "llm" in given else {}))
            return chat_engine.CondenseQuestionChatEngine.from_defaults(query_engine=engine, **given)
        raise ConfigurationError(
            f"chat_mode is 'condense_plus_context', 'context' or 'condense_question', not {chat_mode!r}. For agents "
            "there is create_sire_tool."
        )

    def _searching(self, similarity_top_k: int | None, options: dict[str, Any]) -> SireRetriever:
        """This retriever, as some options say, which are taken out of them."""
        fields = {name: options.pop(name) for name in SEARCH_FIELDS if name in options}
        if similarity_top_k is None and not fields:
            return self  # type: ignore[return-value]  # the class below
        return self.narrowed(similarity_top_k, fields.pop("filters", None), **fields)

    def _with_llm(self, given: dict[str, Any]) -> dict[str, Any]:
        model = self.index.language_model
        return {"llm": model.llm, **given} if isinstance(model, LlamaIndexModel) else given
