"""Small things about vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["unit_rows"]


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Normalise the rows of `[n, d]` to length one; zero rows stay zero, so that similarity is 0 and never NaN."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    norms[norms == 0] = 1.0
    return np.ascontiguousarray(vectors / norms, dtype=np.float32)
