"""Graph systems, with their default settings, over the same vectors and the scripted model."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["FastGraphRag", "LightRag", "NanoGraphRag"]


_LOOP = asyncio.new_event_loop()
asyncio.set_event_loop(_LOOP)  # where the libraries look for it


class _Graph:
    """What the graph systems share: a loop of their own, and passages found by their text."""

    def __init__(self, folder: Path, embed: Any, url: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.embed, self.url = folder, embed, url

        async def vectors(texts: list[str], **_: Any) -> np.ndarray:
            return embed(list(texts))

        self.vectors = vectors  # a plain function: settings are copied deeply
        self.known: dict[str, str] = {}
        self.loop = _LOOP

    def texts(self, passages: list[dict[str, Any]]) -> list[str]:
        """Texts of passages, whose ids are remembered."""
        made = [f"{p['title']}\n{p['text']}".strip() for p in passages]
        self.known.update(zip(map(_plain, made), [p["id"] for p in passages], strict=True))
        return made

    def ids(self, found: list[str], k: int) -> list[str]:
        """Ids of texts, in order, once each."""
        named = [self.known[_plain(text)] for text in found if _plain(text) in self.known]
        return list(dict.fromkeys(named))[:k]

    def chat(self) -> Any:
        """A function that asks the model over HTTP."""
        from openai import AsyncOpenAI

        client = AsyncOpenAI(base_url=self.url, api_key="none")

        async def ask(prompt: str, system_prompt: Any = None, history_messages: Any = (), **_: Any) -> str:
            messages = [{"role": "system", "content": system_prompt}] if system_prompt else []
            messages += [*(history_messages or ()), {"role": "user", "content": prompt}]
            answer = await client.chat.completions.create(model="scripted", messages=messages)
            return answer.choices[0].message.content or ""

        return ask


def _plain(text: str) -> str:
    return "".join(letter for letter in text if letter.isalnum())


class LightRag(_Graph):
    """LightRAG, mode `mix`, its context without an answer."""

    def build(self, passages: list[dict[str, Any]]) -> None:
        """Index."""
        from lightrag import LightRAG
        from lightrag.utils import EmbeddingFunc, TiktokenTokenizer

        self.rag = LightRAG(
            working_dir=str(self.folder),
            embedding_func=EmbeddingFunc(self.embed.dimension, self.vectors, max_token_size=8192),
            llm_model_func=self.chat(),
            tokenizer=TiktokenTokenizer("gpt-3.5-turbo"),
        )
        self.loop.run_until_complete(self.rag.initialize_storages())
        self.add(passages)

    def add(self, passages: list[dict[str, Any]]) -> None:
        """Insert."""
        ids = [passage["id"] for passage in passages]
        self.loop.run_until_complete(self.rag.ainsert(self.texts(passages), ids=ids, file_paths=ids))

    def search(self, question: str, k: int) -> list[str]:
        """Passages of the context."""
        from lightrag import QueryParam

        asked = QueryParam(mode="mix", chunk_top_k=k, enable_rerank=False)
        found = self.loop.run_until_complete(self.rag.aquery_data(question, asked))
        return self.ids([chunk["content"] for chunk in found["data"]["chunks"]], k)


class NanoGraphRag(_Graph):
    """nano-graphrag, mode `local`, its context without an answer."""

    def build(self, passages: list[dict[str, Any]]) -> None:
        """Index."""
        from nano_graphrag import GraphRAG
        from nano_graphrag._utils import EmbeddingFunc

        chat = self.chat()

        async def ask(prompt: str, system_prompt: Any = None, history_messages: Any = (), **_: Any) -> str:
            return str(await chat(prompt, system_prompt, history_messages))

        self.rag = GraphRAG(
            working_dir=str(self.folder),
            embedding_func=EmbeddingFunc(self.embed.dimension, 8192, self.vectors),
            best_model_func=ask,
            cheap_model_func=ask,
            tiktoken_model_name="gpt-3.5-turbo",
        )
        self.add(passages)

    def add(self, passages: list[dict[str, Any]]) -> None:
        """Insert."""
        self.loop.run_until_complete(self.rag.ainsert(self.texts(passages)))

    def search(self, question: str, k: int) -> list[str]:
        """Passages of the context."""
        from nano_graphrag import QueryParam

        asked = QueryParam(mode="local", only_need_context=True)
        context = self.loop.run_until_complete(self.rag.aquery(question, asked)) or ""
        table = context.rsplit("-----Sources-----", 1)[-1]
        # Quotes inside of a text are not escaped: rows are told apart by the numbers that they begin with.
        return self.ids(re.split(r"\n\d+,\t", table.rsplit("\n```", 1)[0])[1:], k)


class FastGraphRag(_Graph):
    """fast-graphrag, its context without an answer."""

    def build(self, passages: list[dict[str, Any]]) -> None:
        """Index."""
        from fast_graphrag import GraphRAG
        from fast_graphrag._llm import OpenAILLMService
        from fast_graphrag._llm._base import BaseEmbeddingService

        embed = self.embed

        class Ours(BaseEmbeddingService):
            async def encode(self, texts: list[str], model: Any = None) -> np.ndarray:
                return embed(list(texts))

        self.rag = GraphRAG(
            working_dir=str(self.folder),
            domain="Facts about people, places and works.",
            example_queries="Who directed the film?",
            entity_types=["person", "place", "work", "organization", "event"],
            config=GraphRAG.Config(
                llm_service=OpenAILLMService(model="scripted", base_url=self.url, api_key="none"),
                embedding_service=Ours(embedding_dim=embed.dimension, model="ours"),
            ),
        )
        self.add(passages)

    def add(self, passages: list[dict[str, Any]]) -> None:
        """Insert."""
        self.loop.run_until_complete(self.rag.async_insert(self.texts(passages), show_progress=False))

    def search(self, question: str, k: int) -> list[str]:
        """Passages of the context."""
        from fast_graphrag import QueryParam

        found = self.rag.query(question, QueryParam(only_context=True))
        return self.ids([chunk.content for chunk, _ in found.context.chunks], k)
