"""Vectors of English stems that ship with the package, made by `benchmarks/word_vectors.py`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from sire_core.protocols import FloatArray

    Keys = NDArray[np.uint64]

FILE = Path(__file__).parents[1] / "data" / "word_vectors.npz"
WIDTH = 64


@cache
def _file() -> tuple[list[str], NDArray[np.int8], NDArray[np.float16]]:
    with np.load(FILE) as file:
        return file["stems"].tobytes().decode("ascii").split("\n"), file["codes"], file["scales"]


@cache
def _rows(key_of: Callable[[Sequence[str]], Keys]) -> tuple[Keys, NDArray[np.intp]]:
    """Keys of the stems in ascending order, and the row of each."""
    keys = key_of(_file()[0])
    rows = np.argsort(keys)
    return keys[rows], rows


@cache
def _stems() -> frozenset[str]:
    return frozenset(_file()[0])


def is_english(word: str) -> bool:
    """True if a word, in small letters and any inflection, has a vector."""
    import Stemmer

    return Stemmer.Stemmer("english").stemWord(word) in _stems()


def word_vectors(keys: Keys, key_of: Callable[[Sequence[str]], Keys]) -> FloatArray:
    """Vectors of stems, float32 `[len(keys), WIDTH]`; the longer, the more a word says. Unknown stems have zeros."""
    file_keys, rows = _rows(key_of)
    _, codes, scales = _file()
    positions = np.minimum(np.searchsorted(file_keys, keys), len(file_keys) - 1)
    vectors = codes[rows[positions]].astype(np.float32)
    vectors *= np.where(file_keys[positions] == keys, scales[rows[positions]], 0).astype(np.float32)[:, None]
    return vectors
