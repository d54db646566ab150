"""`LangChainEmbedder`: any LangChain `Embeddings` as an `Embedder`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar, Union
from weakref import WeakKeyDictionary

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from langchain_sire.sire_embeddings import SireEmbeddings
from sire_core.errors import ConfigurationError, SireError
from sire_core.models.embedders import FrameworkEmbedder, answer_text, resolve_embedder
from sire_core.models.embedding import TextError
from sire_core.models.sync import call
from sire_core.protocols import Embedder, FloatArray
from sire_core.worker_pool import map_all

T = TypeVar("T")

EmbeddingLike = Union[Embeddings, "Embedder", str, None]
"""LangChain's embeddings, an `Embedder`, what `resolve_embedder` reads, or None for the default."""

_WRAPPED = "langchain:SireEmbeddings:"  # Begins the fingerprint of ours in folders of early versions
_DEPLOYMENT = "deployment"
_MODEL_FIELDS = ("model", "model_name", "model_id", _DEPLOYMENT)


class LangChainEmbedder(FrameworkEmbedder):
    """An `Embedder` over a LangChain embedding model.

    LangChain's interface has no name, dimension or batch size. The fingerprint consists of the class, the model
    attribute if there is one, the deployment if one was given, the same for the embeddings inside a wrapper such as
    `CacheBackedEmbeddings`, and `name`.
    Without any model attribute, the vector of a short text is included, to distinguish two models of the same class.
    The dimension is that of the first vector; texts are split into batches.

    Args:
        embeddings: The LangChain object.
        name: Part of the fingerprint. Needed only if class and model attribute are the same for different models.
        batch_size: Maximum texts per call.
        concurrency: Maximum concurrent calls.
        fingerprint: Identifies the model, instead of all that.

    Raises:
        ConfigurationError: It is no `Embeddings`, or a number is below one.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        *,
        name: str = "",
        batch_size: int = 128,
        concurrency: int = 4,
        fingerprint: str | None = None,
    ) -> None:
        if not isinstance(embeddings, Embeddings):
            raise ConfigurationError(f"{type(embeddings).__name__} is no LangChain Embeddings object.")
        if batch_size < 1 or concurrency < 1:
            raise ConfigurationError("batch_size and concurrency must be at least 1.")
        super().__init__(fingerprint)
        self.embeddings = embeddings
        self._name = name
        self.batch_size = batch_size
        self._concurrency = concurrency
        self._limits: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"LangChainEmbedder({self.fingerprint!r})"

    def _identify(self) -> str:
        """Classes, models and asked-for dimensions, from outside in, and name."""
        parts = list(_names(self.embeddings))
        if self._name:
            parts.append(self._name)
        elif not any(_model(layer) for layer in _layers(self.embeddings)):
            parts.append(answer_text(type(self.embeddings).__name__, self.embeddings.embed_query))
        return ":".join(["langchain", *parts])

    def _embed_word(self, word: str) -> Sequence[float]:
        return self.embeddings.embed_query(word)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_limits"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _limits=WeakKeyDictionary())

    async def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:
        """Embed texts; see `Embedder.embed`."""
        if kind not in ("document", "query"):
            raise ConfigurationError(f"kind must be document or query, not {kind!r}.")
        if not texts:
            return np.empty((0, self._dimension), dtype=np.float32)
        if kind == "query":  # questions of different callers do not wait for each other
            return self._checked(await map_all(self._query, texts, self._concurrency), texts)
        starts = range(0, len(texts), self.batch_size)
        batches = [list(texts[at : at + self.batch_size]) for at in starts]
        parts = await map_all(self._documents, batches, self._concurrency)
        return self._checked([row for part in parts for row in part], texts)

    async def _query(self, text: str) -> list[float]:
        return await self._called(self.embeddings.embed_query, self.embeddings.aembed_query, text)

    async def _documents(self, texts: list[str]) -> list[list[float]]:
        # The limit of this loop: a sync build and an async one may share the object.
        loop = asyncio.get_running_loop()
        async with self._limits.setdefault(loop, asyncio.Semaphore(self._concurrency)):
            return await self._called(self.embeddings.embed_documents, self.embeddings.aembed_documents, texts)

    async def _called(self, sync: Callable[[Any], T], native: Callable[[Any], Awaitable[T]], texts: Any) -> T:
        try:
            return await call(sync, native, texts)
        except SireError:
            raise
        except Exception as error:
            raise TextError(f"{type(self.embeddings).__name__} failed: {type(error).__name__}: {error}") from error


def _layers(embeddings: Embeddings) -> Iterator[Embeddings]:
    """An embeddings object and those inside it, from outside in."""
    waiting, seen = [embeddings], set[int]()
    while waiting:
        layer = waiting.pop()
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        yield layer
        inside = getattr(layer, "__dict__", {}).values()
        waiting += [value for value in inside if isinstance(value, Embeddings)]


def _model(embeddings: Embeddings) -> str:
    """The model attribute of an object; empty where it has none."""
    names = (getattr(embeddings, attribute, None) for attribute in _MODEL_FIELDS)
    return next((str(value) for value in names if isinstance(value, str) and value), "")


def _names(embeddings: Embeddings) -> Iterator[str]:
    for layer in _layers(embeddings):
        dimensions = getattr(layer, "dimensions", None)
        size = str(dimensions) if isinstance(dimensions, int) else ""
        yield from filter(None, (type(layer).__name__, _model(layer), _deployment(layer), size))


def _deployment(embeddings: Embeddings) -> str:
    """The deployment that was given: the model attribute of Azure's classes has a default, which says nothing."""
    deployment = getattr(embeddings, _DEPLOYMENT, None)
    field = getattr(type(embeddings), "model_fields", {}).get(_DEPLOYMENT)
    default = deployment == _model(embeddings) or (field is not None and deployment == field.default)
    return deployment if isinstance(deployment, str) and not default else ""


def as_embedder(embedding: EmbeddingLike, built_by: str = "") -> Embedder | str | None:
    """Embedder of an index that was built by one with a fingerprint, from LangChain's or ours."""
    if isinstance(embedding, VectorStore):
        raise ConfigurationError(
            f"embedding is {type(embedding).__name__}, a vector store: pass it as vector_store=..., and its embeddings "
            "are used."
        )
    if built_by.startswith(_WRAPPED) and isinstance(embedding, (str, SireEmbeddings)):
        ours = SireEmbeddings(embedding) if isinstance(embedding, str) else embedding
        return LangChainEmbedder(ours, fingerprint=_WRAPPED + answer_text("SireEmbeddings", ours.embed_query))
    if isinstance(embedding, SireEmbeddings):
        return embedding.core_embedder
    if isinstance(embedding, Embeddings):
        return LangChainEmbedder(embedding)
    return embedding if embedding is None or isinstance(embedding, str) else resolve_embedder(embedding)
