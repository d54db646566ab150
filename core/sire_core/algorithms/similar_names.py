"""Names that sound and mean alike: synonym edges and merges by embedding (MS-RAG). Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.text import tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["similar_names"]

_BLOCK = 65_536
"""Pairs whose cosines are computed at once."""


def similar_names(
    names: Sequence[str], vectors: NDArray[np.float32], threshold: float, max_names_per_word: int = 100
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Pairs of names that share a word and whose vectors are similar.

    The shared word keeps apart names that an embedding confuses (`1912`, `1913`), and makes the search cheap: only
    names under the same word are compared, in time proportional to those pairs.

    Args:
        names: Names.
        vectors: Their unit-length vectors, `[len(names), d]`.
        threshold: Least cosine.
        max_names_per_word: A word in more names than this links none of them.

    Returns:
        Numbers of the first and second name, ascending, and cosines, all `[pairs]`.
    """
    by_word: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        for word in dict.fromkeys(tokenize(name)):
            by_word.setdefault(word, []).append(number)
    size = len(names)
    codes = [
        np.asarray(found)[rows] * size + np.asarray(found)[columns]
        for found in by_word.values()
        if 1 < len(found) <= max_names_per_word
        for rows, columns in [np.triu_indices(len(found), 1)]
    ]
    pairs = np.unique(np.concatenate(codes)) if codes else np.empty(0, dtype=np.int64)
    first, second = np.divmod(pairs, max(size, 1))
    cosines = np.empty(len(pairs), dtype=np.float64)
    for start in range(0, len(pairs), _BLOCK):
        block = slice(start, start + _BLOCK)
        cosines[block] = np.einsum("id,id->i", vectors[first[block]], vectors[second[block]])
    near = cosines >= threshold
    return first[near], second[near], cosines[near]
