"""Any LlamaIndex embedding model as our `Embedder`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding, mean_agg
from llama_index.core.embeddings.mock_embed_model import MockEmbedding
from llama_index.core.schema import QueryBundle

from llama_index_sire.calls import awaits, call, overrides
from sire_core.models.embedders import FrameworkEmbedder, answer_text
from sire_core.protocols import FloatArray

_logger = logging.getLogger(__name__)

_UNNAMED = "unknown"  # Name of a model whose class gives it none

_TELLING = (
    "azure_deployment deployment deployment_name dimensions embed_dim engine input_type max_length "
    "mode normalize pooling query_instruction task text_instruction truncate_dim"
).split()
"""Fields of embedding models that change vectors; keys, addresses, batch sizes and caches do not."""

_known: ContextVar[QueryBundle | None] = ContextVar("llama_index_sire_known_query", default=None)


@contextmanager
def known_query(bundle: QueryBundle) -> Iterator[None]:
    """Embed a question as its bundle says, in this context only."""
    token = _known.set(bundle)
    try:
        yield
    finally:
        _known.reset(token)


class LlamaIndexEmbedder(FrameworkEmbedder):
    """An `Embedder` over a LlamaIndex embedding model: its caches, rate limits and callbacks keep working.

    Questions go through the model's query methods, passages through its text methods. In async code, async methods are
    awaited; if they only call the sync methods, these run in a worker thread.

    Args:
        model: The embedding model.
        fingerprint: Identifies the model; by default composed of class, model name and the settings that change
            vectors. Without a model name, the vector of a short text is included, to distinguish two models of the
            same class.
    """

    def __init__(self, model: BaseEmbedding, fingerprint: str | None = None) -> None:
        super().__init__(fingerprint)
        self.model = model
        self.tells_texts_apart = not isinstance(model, MockEmbedding)  # it gives every text one vector
        self._warned = False

    @property
    def batch_size(self) -> int:
        """Texts of one request, as the model says."""
        return self.model.embed_batch_size

    def _identify(self) -> str:
        values = {name: getattr(self.model, name, None) for name in _TELLING}
        settings = ",".join(f"{name}={value}" for name, value in values.items() if isinstance(value, (str, int, float)))
        name = f"llama-index:{type(self.model).__name__}:{self.model.model_name}"
        name = f"{name}({settings})" if settings else name
        if self.model.model_name != _UNNAMED:
            return name
        answered = answer_text(type(self.model).__name__, self.model.get_query_embedding)
        return f"{name}:{answered}" if answered else name

    def _embed_word(self, word: str) -> Sequence[float]:
        return self.model.get_text_embedding(word)

    async def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:
        """Embed texts; see `Embedder.embed`."""
        vectors = await (self._queries(texts) if kind == "query" else self._documents(list(texts)))
        if not len(texts):
            return np.empty((0, self.dimension), dtype=np.float32)
        if not self.tells_texts_apart and not self._warned:
            self._warned = True
            _logger.warning(
                "MockEmbedding gives every text the same vector, so vectors rank nothing; for tests only. "
                "sire_core.testing.HashEmbedder() needs no model either, and tells texts apart."
            )
        return self._checked(vectors, texts)

    async def _queries(self, texts: Sequence[str]) -> list[Sequence[float]]:
        bundle = _known.get()
        vectors: list[Sequence[float]] = []
        for text in texts:
            if bundle is None or bundle.query_str != text:
                vectors.append(await self._query(text))
            elif bundle.embedding:
                vectors.append(bundle.embedding)
            else:
                vectors.append(mean_agg([await self._query(part) for part in bundle.embedding_strs]))
        return vectors

    async def _query(self, text: str) -> list[float]:
        model = self.model
        is_async = awaits(model._aget_query_embedding)  # noqa: SLF001 - the method that a subclass writes
        return await call(model.get_query_embedding, model.aget_query_embedding, text, is_async=is_async)

    async def _documents(self, texts: list[str]) -> list[list[float]]:
        model = self.model
        return await call(
            model.get_text_embedding_batch, model.aget_text_embedding_batch, texts, is_async=self._documents_await()
        )

    def _documents_await(self) -> bool:
        """True if the model's own way to embed many texts is an async one."""
        model = self.model
        if overrides(model, BaseEmbedding, "_aget_text_embeddings"):
            return awaits(model._aget_text_embeddings)  # noqa: SLF001 - the method that a subclass writes
        batches = overrides(model, BaseEmbedding, "_get_text_embeddings")
        return not batches and awaits(model._aget_text_embedding)  # noqa: SLF001 - as above
