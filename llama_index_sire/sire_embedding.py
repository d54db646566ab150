"""`SireEmbedding`: an embedder of the core in any LlamaIndex index or store."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr

from sire_core.models.fitted import FittedEmbedder, FrameworkEmbeddings
from sire_core.protocols import Embedder

_BATCH = 2048  # The most that LlamaIndex allows


class SireEmbedding(FrameworkEmbeddings, BaseEmbedding):
    """A LlamaIndex embedding model over an embedder of the core, by default the lexical one, which needs no download.

    The lexical embedder is fitted to the first batch of nodes (2,048 texts) and then frozen. `save` it beside a stored
    index, and `load` it with the index.

    Args:
        embedder: An `Embedder` or a name such as `lexical`, `semantic` or `onnx:NAME_OR_FOLDER`; None means `lexical`.
        fit_on: Texts to fit the lexical embedder to at once.
        embed_batch_size: Texts of one call.
        model_name: Name in traces and caches.

    Raises:
        ConfigurationError: It is no embedder.
    """

    _embedder: FittedEmbedder = PrivateAttr()

    def __init__(
        self,
        embedder: Embedder | str | None = None,
        *,
        fit_on: Sequence[str] = (),
        embed_batch_size: int = _BATCH,
        model_name: str = "",
    ) -> None:
        name = model_name or (embedder if isinstance(embedder, str) else "") or "lexical"
        super().__init__(model_name=f"sire:{name.removeprefix('sire:')}", embed_batch_size=embed_batch_size)
        self._embedder = FittedEmbedder(embedder, fit_on)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized settings."""
        return "SireEmbedding"

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._embedded(texts)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embedded([query], "query")[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [list(map(float, row)) for row in await self._embedder.aembed(texts)]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._aget_text_embeddings([text]))[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return list(map(float, (await self._embedder.aembed([query], "query"))[0]))
