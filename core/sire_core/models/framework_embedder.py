"""What embedders over the embedding models of frameworks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sire_core.models.embedders import under_fingerprint
from sire_core.models.embedding import check_vectors

if TYPE_CHECKING:
    from typing_extensions import Self

    from sire_core.protocols import FloatArray


class FrameworkEmbedder(ABC):
    """An embedder whose fingerprint and dimension become known with its model.

    Args:
        fingerprint: Identifies the model; None asks `_identify`.
    """

    tells_texts_apart = True
    """Whether the model gives different texts different vectors; see `check_vectors`."""

    def __init__(self, fingerprint: str | None = None) -> None:
        self._fingerprint = fingerprint
        self._dimension = 0

    @property
    def fingerprint(self) -> str:
        """Identifies the model; see the class."""
        if self._fingerprint is None:
            self._fingerprint = self._identify()
        return self._fingerprint

    def known_as(self, fingerprint: str) -> Self:
        """This embedder under the fingerprint of an index that its model built; its own may differ a little."""
        return under_fingerprint(self, fingerprint)

    @property
    def dimension(self) -> int:
        """Length of a vector. Before the first vector is known, one word is embedded to find out."""
        if not self._dimension:
            self._dimension = len(self._embed_word("dimension"))
        return self._dimension

    def _checked(self, rows: Sequence[Sequence[float]], texts: Sequence[str]) -> FloatArray:
        matrix = check_vectors(rows, texts, self.fingerprint, self._dimension, knows_all=self.tells_texts_apart)
        self._dimension = matrix.shape[1]
        return matrix

    @abstractmethod
    def _identify(self) -> str:
        """The default fingerprint."""

    @abstractmethod
    def _embed_word(self, word: str) -> Sequence[Any]:
        """A vector of the model."""
