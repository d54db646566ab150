"""Whether what an embedder returns is one usable vector per text, and which text it fails for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.text import tokenize
from sire_core.errors import ModelError

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray

_SHOWN = 60
_READ = 1000
"""Models read at least so many characters."""


class TextError(ModelError):
    """An embedder fails for a text, or for one of several; smaller batches tell for which."""


class BatchError(TextError):
    """What an embedder returns for several texts does not tell which vector is whose; single texts may do."""


def check_vectors(
    rows: Any, texts: Sequence[str], name: str, dimension: int | None = None, *, knows_all: bool = True
) -> FloatArray:
    """Vectors of texts as a matrix, float32 `[len(texts), dimension]`.

    `knows_all`: whether the embedder has a vector of its own for all words; one that was fitted to a corpus has not,
    nor has a test double that says so (`tells_texts_apart = False`).
    """
    try:
        vectors = [np.asarray(row, dtype=np.float32) for row in rows]
    except (TypeError, ValueError) as error:
        raise TextError(f"{name} returned vectors that cannot be read ({error}).") from error
    if len(vectors) != len(texts):
        raise BatchError(
            f"{name} returned {len(vectors)} vectors for {len(texts)} texts; one for each text, in their order, is due."
        )
    width = dimension or (vectors[0].size if vectors else 0)
    for vector, text in zip(vectors, texts, strict=True):
        problem = _problem(vector, width)
        if not problem and knows_all and not vector.any() and any(map(str.isalnum, text)):
            problem = "a zero vector"
        if problem:
            raise TextError(f"{name} returned {problem} for the text {text[:_SHOWN]!r}.")
    matrix = np.stack(vectors) if vectors else np.empty((0, width), dtype=np.float32)
    different = {" ".join(tokenize(text[:_READ])) for text in texts}
    if knows_all and len(different) > 1 and (matrix == matrix[0]).all() and matrix.any():
        raise BatchError(f"{name} returned the same vector for {len(different)} different texts.")
    return matrix


def _problem(vector: FloatArray, width: int) -> str:
    """What is wrong with the vector of a text; empty when nothing is."""
    if vector.ndim != 1 or not vector.size:
        return "no vector"
    if vector.size != width:
        return f"a vector of length {vector.size}, not {width},"
    return "" if np.isfinite(vector).all() else "a vector with infinite or undefined numbers"
