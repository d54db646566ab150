"""Engines over a retriever, as an index of LlamaIndex makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.query_engine import RetrieverQueryEngine

from llama_index_sire.language_model import LlamaIndexModel
from llama_index_sire.opening import SEARCH_FIELDS, SPELLINGS
from sire_core.arguments import named, parameters
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from llama_index.core.chat_engine.types import BaseChatEngine
    from typing_extensions import Self

    from sire_core.index import Index

__all__ = ["Engines"]

_CHAT_ENGINES = {
    "condense_plus_context": "CondensePlusContextChatEngine",
    "best": "CondensePlusContextChatEngine",
    "context": "ContextChatEngine",
    "condense_question": "CondenseQuestionChatEngine",
}
"""Classes of LlamaIndex by mode."""


class Engines(BaseRetriever):
    """The part of a retriever that makes engines over it.

    Attributes:
        index: Whose model answers where none is given.
        as_retriever: Makes the retriever with other settings.
    """

    index: Index
    as_retriever: Callable[..., Self]

    def as_query_engine(self, *, similarity_top_k: int | None = None, **kwargs: Any) -> RetrieverQueryEngine:
        """A query engine over this retriever.

        Args:
            similarity_top_k: How many nodes; None takes the retriever's.
            **kwargs: `filters`, `doc_ids` and `node_ids`, which narrow the retriever's, `recipe`, `returns`, `scores`,
                and arguments of `RetrieverQueryEngine.from_args`. Without an `llm`, the model of the index answers, if
                it is a LlamaIndex LLM.

        Raises:
            TypeError: An argument is unknown, or was given twice.
        """
        make = RetrieverQueryEngine.from_args
        retriever, given = self._parted("as_query_engine", similarity_top_k, kwargs, parameters(make))
        return make(retriever, **given)

    def as_chat_engine(
        self,
        chat_mode: str = "condense_plus_context",
        *,
        similarity_top_k: int | None = None,
        **kwargs: Any,
    ) -> BaseChatEngine:
        """A chat engine over this retriever.

        Args:
            chat_mode: `condense_plus_context` (also `best`), `context` or `condense_question`.
            similarity_top_k: How many nodes; None takes the retriever's.
            **kwargs: `filters` and the like, as in `as_query_engine`, and arguments of the engine's `from_defaults`:
                `llm`, `memory`, `system_prompt` and others; of `condense_question` those of its query engine, too.

        Raises:
            ConfigurationError: There is no such mode.
            TypeError: An argument is unknown in this mode, or was given twice.
        """
        from llama_index.core import chat_engine

        mode = str(getattr(chat_mode, "value", chat_mode))
        if mode not in _CHAT_ENGINES:
            raise ConfigurationError(
                "chat_mode is 'condense_plus_context', 'context' or 'condense_question', not "
                f"{chat_mode!r}. For agents there is create_sire_tool."
            )
        make = getattr(chat_engine, _CHAT_ENGINES[mode]).from_defaults
        chats, queries = parameters(make), parameters(RetrieverQueryEngine.from_args)
        over_queries = "query_engine" in chats
        retriever, given = self._parted(
            "as_chat_engine", similarity_top_k, kwargs, (*chats, *queries) if over_queries else chats
        )
        if not over_queries:
            return cast("BaseChatEngine", make(retriever=retriever, **given))
        asked = RetrieverQueryEngine.from_args(retriever, **{k: v for k, v in given.items() if k in queries})
        return cast("BaseChatEngine", make(query_engine=asked, **{k: v for k, v in given.items() if k in chats}))

    def _parted(
        self, called: str, similarity_top_k: int | None, options: Mapping[str, Any], of_engine: Sequence[str]
    ) -> tuple[Self, dict[str, Any]]:
        """This retriever as some options say, and those of the engine; the engines themselves drop what is unknown."""
        of_engine = [name for name in of_engine if name not in ("retriever", "query_engine")]
        if similarity_top_k is not None:
            options = {"similarity_top_k": similarity_top_k, **options}
        found = named(called, options, ("similarity_top_k", "verbose", *SEARCH_FIELDS, *of_engine), SPELLINGS)
        given = {name: found.pop(name) for name in of_engine if name in found}
        model = self.index.language_model
        if isinstance(model, LlamaIndexModel):
            given.setdefault("llm", model.llm)
        return (self.as_retriever(**found) if found else self), given
