"""Vectors read from a file instead of computed."""

from __future__ import annotations

import asyncio
import os
import zipfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.atomic_files import replacing
from sire_core.errors import ConfigurationError, ModelError
from sire_core.types import digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import FloatArray, IdArray


def _vector_key(text: str) -> str:
    return digest("vector", text)


def write_precomputed(
    path: str | os.PathLike[str], texts: Sequence[str], vectors: FloatArray, fingerprint: str
) -> None:
    """Write a file of vectors for `PrecomputedEmbedder`.

    The file is an uncompressed `.npz` with `keys` (ASCII bytes `[n]`, `types.digest("vector", text)`, sorted),
    `vectors` (float32 `[n, d]`, in the order of the keys) and `fingerprint` (one string). It appears whole or not at
    all.

    Args:
        path: Where to; an existing file is replaced.
        texts: What was embedded. Of equal texts the first one counts.
        vectors: `[len(texts), d]`.
        fingerprint: That of the embedder that made the vectors.

    Raises:
        ConfigurationError: Texts and vectors do not match, or a vector is not finite.
    """
    path = Path(path)
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.shape[1] < 1:
        raise ConfigurationError(f"{len(texts)} texts need vectors of shape [{len(texts)}, d], not {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise ConfigurationError("the vectors hold NaN or infinity; embed the texts again")
    keys, first = np.unique(np.array([_vector_key(text) for text in texts], dtype="S24"), return_index=True)
    with replacing(path) as partial, partial.open("xb") as file:
        np.savez(file, keys=keys, vectors=vectors[first], fingerprint=np.array(fingerprint))


class PrecomputedEmbedder:
    """Looks vectors up in a file of `write_precomputed`; stands in for the embedder that made them.

    Its fingerprint is that embedder's, so an index built with one can be searched with the other. The file is read
    at first use.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self.spec = f"file:{self._path}"  # Creates this embedder again: `resolve_embedder(spec)`
        if not self._path.is_file():
            raise ConfigurationError(f"there is no file of vectors at {self._path}; make it with write_precomputed")

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the embedder that made the vectors."""
        return self._table[2]

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self._table[1].shape[1])

    async def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:  # noqa: ARG002 - the protocol's
        """Look texts up; float32 `[len(texts), dimension]`."""
        return await asyncio.to_thread(self._look_up, texts)

    def _look_up(self, texts: Sequence[str]) -> FloatArray:
        keys, table, _ = self._table
        wanted = np.array([_vector_key(text) for text in texts], dtype="S24")
        rows = np.searchsorted(keys, wanted)
        inside = rows < len(keys)
        inside[inside] = keys[rows[inside]] == wanted[inside]
        missing = np.flatnonzero(~inside)
        if len(missing):
            raise ModelError(
                f"{self._path} has no vector for {len(missing)} of {len(texts)} texts, the first being "
                f"{texts[missing[0]][:80]!r}; write them with write_precomputed"
            )
        return table[rows]

    @cached_property
    def _table(self) -> tuple[IdArray, FloatArray, str]:
        return _read(self._path)


def _read(path: Path) -> tuple[IdArray, FloatArray, str]:
    try:
        # Without pickle: arrays of objects are refused, so reading a file runs nothing.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays: Mapping[str, NDArray[Any]] = dict(archive)
        keys, vectors, fingerprint = arrays["keys"], arrays["vectors"], str(arrays["fingerprint"])
    except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise ConfigurationError(f"{path} is not a file of write_precomputed ({error}); make it again") from error
    fits = vectors.ndim == 2 and keys.shape == vectors.shape[:1] and vectors.dtype == np.float32
    if not fits or keys.dtype.kind != "S" or not (keys[:-1] < keys[1:]).all():
        raise ConfigurationError(f"{path} is not a file of write_precomputed (shapes or types differ); make it again")
    return keys, vectors, fingerprint
