"""`ConversationRetriever`: follow-up questions of chat engines."""

from __future__ import annotations

from llama_index.core.memory import BaseMemory
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from sire_core.search.history import standalone_question


class ConversationRetriever(BaseRetriever):
    """Searches for a follow-up question with the names and words that it refers to, without a model.

    For chat engines that search for the last message as it is:
    `ContextChatEngine.from_defaults(ConversationRetriever(retriever, memory), memory=memory, llm=llm)`.

    Args:
        retriever: Any retriever of LlamaIndex.
        memory: The memory of the chat engine.
    """

    def __init__(self, retriever: BaseRetriever, memory: BaseMemory) -> None:
        self._searched, self._memory = retriever, memory
        super().__init__(callback_manager=retriever.callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._searched.retrieve(standalone_question(query_bundle.query_str, self._memory.get_all()))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        history = await self._memory.aget_all()
        return await self._searched.aretrieve(standalone_question(query_bundle.query_str, history))
