"""Words, and texts, as arrays of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LINE_END = 10
_BASE = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True, slots=True)
class PackedTexts:
    """Texts of any letters, each decoded when it is asked for.

    Attributes:
        letters: Of all texts, uint8.
        ends: Where each text ends, int64 `[texts]`.
    """

    letters: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str]) -> PackedTexts:
        """Pack texts."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> str:
        start = int(self.ends[number - 1]) if number else 0
        return self.letters[start : int(self.ends[number])].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        return (self[number] for number in range(len(self)))


def join_words(words: Sequence[str]) -> NDArray[np.uint8]:
    """Words without line ends as one array of bytes."""
    return np.frombuffer("\n".join(words).encode("utf-8", "surrogatepass"), dtype=np.uint8)


def split_words(array: NDArray[np.uint8], count: int) -> list[str]:
    """The words of `join_words`."""
    return array.tobytes().decode("utf-8", "surrogatepass").split("\n") if count else []


def word_keys(words: Sequence[str]) -> NDArray[np.uint64]:
    """A hash of each word, uint64 `[len(words)]`: a polynomial of its bytes, mixed (splitmix64).

    It is the same in every process.
    """
    if not words:
        return np.zeros(0, dtype=np.uint64)
    letters = np.append(join_words(words), np.uint8(_LINE_END))
    ends = np.flatnonzero(letters == _LINE_END)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    powers = np.cumprod(np.full(int(lengths.max()), _BASE))  # wraps around at 64 bits, as wanted
    places = np.arange(len(letters)) - np.repeat(starts, lengths)
    found = np.add.reduceat(letters.astype(np.uint64) * powers[places], starts)
    found = (found ^ (found >> np.uint64(30))) * _MIX[0]
    found = (found ^ (found >> np.uint64(27))) * _MIX[1]
    return np.asarray(found ^ (found >> np.uint64(31)), dtype=np.uint64)
