"""Small things about vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sire_core.errors import ConfigurationError


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows `[n, d]` divided by their length; zero rows stay zero."""
    array = np.ascontiguousarray(vectors, dtype=np.float32)
    if array.ndim != 2:
        raise ConfigurationError(f"vectors must be a matrix with one row per text, not of shape {array.shape}")
    squares = np.einsum("ij,ij->i", array, array, dtype=np.float64)
    if not np.isfinite(squares).all():
        row = int(np.flatnonzero(~np.isfinite(squares))[0])
        raise ConfigurationError(f"vector {row} is not finite; check what the embedder returns for this text")
    lengths = np.sqrt(squares)
    return np.asarray(array / np.where(lengths > 0, lengths, 1.0)[:, None], dtype=np.float32)
