"""`RowReader`: a few rows of a matrix that lies in a file, without mapping the file's pages into the process."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, IntArray

__all__ = ["RowReader"]


class RowReader:
    """Reads single rows from the file behind a mapped matrix.

    A row that is read through the mapping brings the pages around it along, so that scattered rows of a few questions
    soon hold the whole file in the process. Read from the file they hold nothing. A matrix in memory, or one whose file
    is gone, is read where it is.

    Args:
        matrix: `[n, d]`, not changed while this object lives.
    """

    def __init__(self, matrix: FloatArray) -> None:
        self._matrix = matrix
        self._file, self._offset = _opened(matrix)
        if self._file is not None:
            weakref.finalize(self, os.close, self._file)

    def rows(self, positions: IntArray) -> FloatArray:
        """Copies of some rows, `[len(positions), d]`."""
        file, size = self._file, self._matrix.strides[0]
        if file is None:
            return np.asarray(self._matrix[positions])
        parts = [os.pread(file, size, self._offset + size * place) for place in positions.tolist()]
        return np.frombuffer(b"".join(parts), dtype=self._matrix.dtype).reshape(len(parts), self._matrix.shape[1])


def _opened(matrix: FloatArray) -> tuple[int | None, int]:
    """Descriptor of the file behind a matrix, and where in it the first row starts."""
    mapping: Any = matrix
    while isinstance(mapping.base, np.ndarray):
        mapping = mapping.base
    mapped = isinstance(mapping, np.memmap) and mapping.mode == "r" and mapping.filename is not None
    if not (mapped and matrix.flags.c_contiguous and hasattr(os, "pread")):  # Windows has no pread
        return None, 0
    inside = matrix.__array_interface__["data"][0] - mapping.__array_interface__["data"][0]
    try:
        file = os.open(mapping.filename, os.O_RDONLY)
    except OSError:
        return None, 0
    return file, mapping.offset + inside
