"""Any LlamaIndex embedding model as our `Embedder`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding, mean_agg
from llama_index.core.embeddings.mock_embed_model import MockEmbedding
from llama_index.core.schema import QueryBundle

from llama_index_sire.calls import awaits, call, overrides
from sire_core.models.embedders import answer_text, under_fingerprint
from sire_core.models.vector_checks import check_vectors

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray

_logger = logging.getLogger(__name__)

_UNNAMED = "unknown"
"""What LlamaIndex calls a model whose class gives it no name."""

_TELLING = (
    "azure_deployment",
    "deployment",
    "deployment_name",
    "dimensions",
    "embed_dim",
    "engine",
    "input_type",
    "max_length",
    "mode",
    "normalize",
    "pooling",
    "query_instruction",
    "task",
    "text_instruction",
    "truncate_dim",
)
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


class LlamaIndexEmbedder:
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
        self.model = model
        self._fingerprint = fingerprint
        self._dimension = 0
        self._warned = False

    @property
    def tells_texts_apart(self) -> bool:
        """False for `MockEmbedding`, which gives every text one vector; see `check_vectors`."""
        return not isinstance(self.model, MockEmbedding)

    @property
    def fingerprint(self) -> str:
        """`llama-index:CLASS:MODEL`, with the settings that change vectors; see the class."""
        if self._fingerprint is None:
            self._fingerprint = self._made()
        return self._fingerprint

    def known_as(self, fingerprint: str) -> LlamaIndexEmbedder:
        """This embedder under the fingerprint of an index that its model built; its own may differ a little."""
        return under_fingerprint(self, fingerprint)

    def _made(self) -> str:
        values = {name: getattr(self.model, name, None) for name in _TELLING}
        settings = ",".join(f"{name}={value}" for name, value in values.items() if isinstance(value, (str, int, float)))
        name = f"llama-index:{type(self.model).__name__}:{self.model.model_name}"
        name = f"{name}({settings})" if settings else name
        if self.model.model_name != _UNNAMED:
            return name
        answered = answer_text(type(self.model).__name__, self.model.get_query_embedding)
        return f"{name}:{answered}" if answered else name

    @property
    def dimension(self) -> int:
        """Length of a vector; embeds one word when nothing was embedded before."""
        if not self._dimension:
            self._dimension = len(self.model.get_text_embedding("dimension"))
        return self._dimension

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
        knows_all = self.tells_texts_apart
        checked = check_vectors(vectors, texts, self.fingerprint, self._dimension, knows_all=knows_all)
        self._dimension = checked.shape[1]
        return checked

    async def _queries(self, texts: Sequence[str]) -> list[Sequence[float]]:
        known = _known.get()
        vectors: list[Sequence[float]] = []
        for text in texts:
            if known is None or known.query_str != text:
                vectors.append(await self._query(text))
            elif known.embedding:
                vectors.append(known.embedding)
            else:
                vectors.append(mean_agg([await self._query(part) for part in known.embedding_strs]))
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
        """Whether the model's own way to embed many texts is an async one."""
        model = self.model
        if overrides(model, BaseEmbedding, "_aget_text_embeddings"):
            return awaits(model._aget_text_embeddings)  # noqa: SLF001 - the method that a subclass writes
        batches = overrides(model, BaseEmbedding, "_get_text_embeddings")
        return not batches and awaits(model._aget_text_embedding)  # noqa: SLF001 - as above
