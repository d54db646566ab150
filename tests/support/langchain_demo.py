"""What several tests of LangChain use: the demo corpus, a chat model with a script, clients over HTTP."""

from contextlib import asynccontextmanager

import httpx
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from sire_core.data import demo_documents
from sire_core.models.sync import run_sync
from sire_core.testing.doubles import HashEmbedder


def as_langchain():
    """The demo corpus, titles in the metadata."""
    return [Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]


class Hashed(Embeddings):
    """The test embedder as LangChain's."""

    model = "hash"

    def embed_documents(self, texts):
        return run_sync(HashEmbedder(256).embed(texts)).tolist()

    def embed_query(self, text):
        return self.embed_documents([text])[0]


class ScriptedAgent(BaseChatModel):
    """Says its turns one after the other (a text, or calls of tools) and notes the messages it was shown."""

    turns: list
    seen: list

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.seen.append(list(messages))
        turn = self.turns[len(self.seen) - 1]
        message = AIMessage(turn) if isinstance(turn, str) else AIMessage("", tool_calls=turn)
        return ChatResult(generations=[ChatGeneration(message=message)])


@asynccontextmanager
async def chats_over_http(**client):
    """Makes `ChatOpenAI` clients of a scripted server, whose connections are closed at the end."""
    from langchain_openai import ChatOpenAI

    async with httpx.AsyncClient(**client) as native:
        with httpx.Client(**client) as sync:
            yield lambda server, **more: ChatOpenAI(
                model="gpt-4o-mini",
                base_url=server.base_url,
                api_key="sk-scripted",
                max_retries=0,
                http_client=sync,
                http_async_client=native,
                **more,
            )
