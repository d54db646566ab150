"""`SireEmbeddings`: an embedder of the core in any LangChain vector store."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.embeddings import Embeddings

from sire_core.models.fitted import FittedEmbedder, FrameworkEmbeddings
from sire_core.protocols import Embedder


class SireEmbeddings(FrameworkEmbeddings, Embeddings):
    """LangChain `Embeddings` over an embedder of the core, by default the lexical one, which needs no download.

    The lexical embedder is fitted to the documents of the first `embed_documents` and then frozen. `save` it beside a
    store that is kept, and `load` it with the store.

    Args:
        embedder: An `Embedder` or a name such as `lexical`, `semantic` or `onnx:NAME_OR_FOLDER`; None means `lexical`.
        fit_on: Texts to fit the lexical embedder to at once, for stores that embed documents in small batches.

    Raises:
        ConfigurationError: It is no embedder.
    """

    def __init__(self, embedder: Embedder | str | None = None, *, fit_on: Sequence[str] = ()) -> None:
        self._embedder = FittedEmbedder(embedder, fit_on)

    @property
    def model(self) -> str:
        """Name of the model, for stores and caches."""
        return self._embedder.fingerprint

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed documents."""
        return self._embedded(texts)

    def embed_query(self, text: str) -> list[float]:
        """Embed a question.

        Raises:
            ConfigurationError: The lexical embedder was not fitted yet.
        """
        return self._embedded([text], "query")[0]
