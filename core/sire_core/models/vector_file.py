"""`VectorFile`: vectors by id that take no memory to speak of, until they are committed."""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from sire_core.protocols import FloatArray

__all__ = ["VectorFile"]

_IN_MEMORY = 1 << 23
"""Bytes of vectors that are kept in memory; with more, all go to the file."""


class VectorFile(Mapping[str, "FloatArray"]):
    """Vectors of one length, in a file that has no name: it is gone with this object, or with the process.

    Thread-safe. Few vectors make no file.

    Args:
        directory: Where the file lies; None for where temporary files of the system do.
    """

    def __init__(self, directory: Path | None) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, dir=str(directory) if directory else None)  # noqa: SIM115 - closed with this
        weakref.finalize(self, self._file.close)
        self._places: dict[str, int] = {}
        self._rows = 0
        self._size = 0
        self._lock = threading.Lock()

    def put(self, ids: Iterable[str], vector: FloatArray) -> None:
        """Add a vector.

        Args:
            ids: Under which it is found.
            vector: `[dimension]`.

        Raises:
            StorageError: There is no room.
        """
        content = np.ascontiguousarray(vector, dtype=np.float32).tobytes()
        with self._lock:
            self._size = len(content)
            try:
                self._file.seek(self._rows * self._size)
                self._file.write(content)
            except OSError as error:
                raise StorageError(
                    f"Vectors cannot be kept until they are written ({error}): {self._rows + 1:,} of {self._size:,} "
                    "bytes each. Make room on the disk and run again."
                ) from error
            self._places.update(dict.fromkeys(ids, self._rows))
            self._rows += 1

    def __getitem__(self, key: str) -> FloatArray:
        with self._lock:
            self._file.seek(self._places[key] * self._size)
            return np.frombuffer(self._file.read(self._size), dtype=np.float32)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        """How many ids have a vector."""
        return len(self._places)
