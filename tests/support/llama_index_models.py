"""LlamaIndex models of the kinds that users bring: sync only, truly async, chat only, calling functions."""

import asyncio
import json
import time

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.schema import Document

from sire_core.data import demo_documents
from sire_core.models.sync import run_sync
from sire_core.testing.doubles import HashEmbedder, ScriptedCall, default_script
from support.scripted_server import unfence


def as_llama_index(documents=None):
    """Core documents as LlamaIndex documents, titles in the metadata."""
    given = demo_documents() if documents is None else documents
    return [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in given]


class WordEmbedding(BaseEmbedding):
    """Hashed words; notes which of its methods were called."""

    model_name: str = "words"
    delay: float = 0.0
    size: int = 64
    _calls: list = PrivateAttr(default_factory=list)

    def _vectors(self, texts):
        return run_sync(HashEmbedder(self.size).embed(texts)).tolist()

    def _get_query_embedding(self, query):
        self._calls.append("query")
        time.sleep(self.delay)
        return self._vectors([query])[0]

    def _get_text_embedding(self, text):
        self._calls.append("text")
        return self._vectors([text])[0]

    async def _aget_query_embedding(self, query):
        # As most integrations of local models have it: the sync method, on the loop.
        return self._get_query_embedding(query)


class ChatLLM(CustomLLM):
    """A chat model without functions that answers like the core's scripted model, with usage in `raw`."""

    model: str = "chatty"
    temperature: float = 0.0
    answer: str = ""
    raw: dict | None = None
    _prompts: list = PrivateAttr(default_factory=list)

    @classmethod
    def class_name(cls):
        return "ChatLLM"

    @property
    def metadata(self):
        return LLMMetadata(model_name=self.model, is_chat_model=True)

    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        self._prompts.append((list(messages), kwargs))
        instructions = messages[0].content
        data = unfence(messages[1].content) if len(messages) > 1 else ""
        schema = {} if "JSON" in instructions else None
        text = self.answer or default_script(ScriptedCall(instructions, data, schema))
        raw = {"usage": {"prompt_tokens": 11, "completion_tokens": 7}} if self.raw is None else self.raw
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text), raw=raw)

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=self.chat([ChatMessage(role=MessageRole.USER, content=prompt)]).message.content)

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        yield self.complete(prompt)


class FunctionLLM(FunctionCallingLLM):
    """Plays a list of answers: a dict calls the first tool with it, a text is said, an error is raised."""

    answers: list
    calls_functions: bool = True
    _prompts: list = PrivateAttr(default_factory=list)

    @property
    def metadata(self):
        return LLMMetadata(model_name="functions", is_chat_model=True, is_function_calling_model=self.calls_functions)

    def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs):
        messages = list(chat_history or [])
        if user_msg:
            messages.append(ChatMessage(role=MessageRole.USER, content=str(user_msg)))
        return {"messages": messages, "tools": [tool.metadata.to_openai_tool() for tool in tools]}

    def _play(self, messages, tools=(), **kwargs):
        self._prompts.append((list(messages), list(tools)))
        answer = self.answers[len(self._prompts) - 1]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str):
            return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=answer))
        call = {"name": tools[0]["function"]["name"], "arguments": answer}
        message = ChatMessage(role=MessageRole.ASSISTANT, content="", additional_kwargs={"tool_calls": [call]})
        return ChatResponse(message=message, additional_kwargs={"prompt_tokens": 5, "completion_tokens": 3})

    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        return self._play(messages, **kwargs)

    @llm_chat_callback()
    async def achat(self, messages, **kwargs):
        await asyncio.sleep(0)
        return self._play(messages, **kwargs)

    @llm_chat_callback()
    async def astream_chat(self, messages, **kwargs):
        async def answer():
            yield self._play(messages, **kwargs)

        return answer()

    def stream_chat(self, messages, **kwargs):
        raise NotImplementedError

    def complete(self, prompt, formatted=False, **kwargs):
        raise NotImplementedError

    acomplete = stream_complete = astream_complete = complete

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs):
        calls = response.message.additional_kwargs.get("tool_calls", [])
        return [
            ToolSelection(
                tool_id=str(at), tool_name=call["name"], tool_kwargs=json.loads(json.dumps(call["arguments"]))
            )
            for at, call in enumerate(calls)
        ]
