"""Words as one array of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["join_words", "split_words"]


def join_words(words: Sequence[str]) -> NDArray[np.uint8]:
    """Words without line ends as one array of bytes."""
    return np.frombuffer("\n".join(words).encode("utf-8", "surrogatepass"), dtype=np.uint8)


def split_words(array: NDArray[np.uint8], count: int) -> list[str]:
    """The words of `join_words`.

    Args:
        array: Their bytes.
        count: How many; none and an empty one look the same.
    """
    return array.tobytes().decode("utf-8", "surrogatepass").split("\n") if count else []
