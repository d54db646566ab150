"""`SireEmbeddings`: an embedder of the core in any LangChain vector store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings

from sire_core.models.fitted import FittedEmbedder

if TYPE_CHECKING:
    import os

    from typing_extensions import Self

    from sire_core.protocols import Embedder


class SireEmbeddings(Embeddings):
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
    def core_embedder(self) -> Embedder:
        """The embedder for an index of ours, whose vectors are the same; a lexical one is fitted to the index."""
        return self._embedder.unfitted

    @property
    def model(self) -> str:
        """Name of the model, for stores and caches."""
        return self._embedder.fingerprint

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed documents."""
        return [list(map(float, row)) for row in self._embedder.embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        """Embed a question.

        Raises:
            ConfigurationError: The lexical embedder was not fitted yet.
        """
        return list(map(float, self._embedder.embed([text], "query")[0]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what the lexical embedder has learned into a file."""
        self._embedder.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote."""
        made = cls()
        made._embedder = FittedEmbedder.load(path)
        return made
