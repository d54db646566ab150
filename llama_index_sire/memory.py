"""`SireMemoryBlock`: evidence in the memory of LlamaIndex's agents and chat engines."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field, field_validator
from llama_index.core.memory.memory import BaseMemoryBlock

from llama_index_sire.retriever import SireRetriever
from llama_index_sire.tool import cited_as
from sire_core.errors import ConfigurationError
from sire_core.search.history import standalone_question
from sire_core.serve.outputs import check_cite_key, quoted_passages


class SireMemoryBlock(BaseMemoryBlock[str]):
    """A memory block with the passages that answer the last message of the user.

    `Memory.from_defaults(memory_blocks=[SireMemoryBlock(retriever=retriever)])` shows them to any agent with a memory,
    as quotations with names to cite. They are searched for anew for every call and never stored in the history.

    Attributes:
        retriever: A `SireRetriever`, whose `similarity_top_k` and `filters` apply.
        max_tokens: Bound of the passages, estimated.
        cite_key: See `create_sire_tool`.
        name: Name of the block in the prompt.

    Raises:
        ValueError: An argument is something else.
    """

    name: str = "documents"
    description: str | None = "Passages of the indexed documents."
    accept_short_term_memory: bool = False
    retriever: Any
    max_tokens: int = Field(default=2000, ge=1)
    cite_key: str = ""

    @field_validator("retriever")
    @classmethod
    def _ours(cls, value: Any) -> Any:
        if not isinstance(value, SireRetriever):
            raise ConfigurationError(f"Expected a SireRetriever, got {type(value).__name__}.")
        return value

    @field_validator("cite_key")
    @classmethod
    def _readable(cls, value: str) -> str:
        return check_cite_key(value)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:  # noqa: ARG002 - the interface's
        questions = [
            message.content for message in messages or () if message.role == MessageRole.USER and message.content
        ]
        if not questions or not questions[-1].strip():
            return ""
        nodes = await self.retriever.aretrieve(standalone_question(questions[-1], questions[:-1]))
        passages = [(cited_as(each, self.cite_key), each.node.get_content()) for each in nodes]
        return quoted_passages(passages, self.max_tokens)[0]

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Keep nothing: messages are not documents."""
