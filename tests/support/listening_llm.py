"""A LlamaIndex model for agents; the oldest version that we allow has no `MockFunctionCallingLLM`."""

from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms.mock import MockFunctionCallingLLM


class ListeningLLM(MockFunctionCallingLLM):
    """Says one thing to an agent; `seen` gets the messages of each request."""

    seen: list
    said: str = "Varn Harbour."

    async def astream_chat_with_tools(self, tools, chat_history=None, **kwargs):
        self.seen.append("\n".join(str(message.content) for message in chat_history))

        async def pieces():
            yield ChatResponse(message=ChatMessage(role="assistant", content=self.said), delta=self.said)

        return pieces()
