"""A deterministic embedder for tests."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.text import tokenize
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray


class HashEmbedder:
    """Hashed word counts: texts that share words point the same way, and every run gives the same bits.

    Needs no fitting, no download and nothing but numpy. For tests; `LexicalEmbedder` is the one to search with.
    """

    def __init__(self, dimension: int = 64) -> None:
        if dimension < 1:
            raise ConfigurationError(f"dimension must be at least 1, not {dimension}")
        self._dimension = dimension

    @property
    def fingerprint(self) -> str:
        """`hash/1:<dimension>`."""
        return f"hash/1:{self._dimension}"

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    async def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:  # noqa: ARG002 - the protocol's
        """Embed texts; float32 `[len(texts), dimension]`, unit rows, zero for a text without words."""
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word, count in Counter(tokenize(text)).items():
                code = zlib.crc32(word.encode("utf-8", "surrogatepass"))
                sign = 1.0 if code & 0x80000000 else -1.0
                vector[code % self._dimension] += sign * math.sqrt(count)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, norms, out=vectors, where=norms > 0)
        return vectors
