"""Word statistics of a corpus in two small arrays: how rare a word is, and whether it is written as a name."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sire_core.errors import StorageError
from sire_core.types import digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["WordStatistics"]

_BUCKETS = 1 << 16
_WORD = re.compile(r"\w+")
# A word after a lower-case letter or a comma stands inside a sentence, where only names have a capital.
_INSIDE = re.compile(r"(?<=[a-z,;] )\w+")


class WordStatistics:
    """Document and case counts of hashed lower-case words; empty until `fit`.

    Args:
        documents: Number of texts counted.
        counts: uint32 `[3, 65536]`: texts that hold a word, its occurrences inside sentences in lower case, and those
            with a capital. Words that share a bucket share their counts.
    """

    def __init__(self, documents: int = 0, counts: NDArray[np.uint32] | None = None) -> None:
        self.documents = documents
        self._counts = counts
        self._memo: dict[str, tuple[float, int, int]] = {}

    @property
    def fitted(self) -> bool:
        """Whether any corpus was counted."""
        return self._counts is not None

    @property
    def fingerprint(self) -> str:
        """Digest of the counts; empty when unfitted."""
        if self._counts is None:
            return ""
        return digest(str(self.documents), self._counts.astype("<u4").tobytes().hex(), size=6)

    @classmethod
    def fit(cls, texts: Sequence[str]) -> WordStatistics:
        """Count the words of a corpus."""
        import numpy as np

        seen: Counter[str] = Counter()
        inside: Counter[str] = Counter()
        for text in texts:
            seen.update(set(_WORD.findall(text.lower())))  # sums: the order of a set does not matter
            inside.update(_INSIDE.findall(text))
        counts = np.zeros((3, _BUCKETS), dtype=np.uint32)
        for word, number in seen.items():
            counts[0, _bucket(word)] += number
        for word, number in inside.items():
            counts[1 if word[0].islower() else 2, _bucket(word.lower())] += number
        return cls(len(texts), counts)

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays that `from_state` restores the counts from."""
        import numpy as np

        counts = np.zeros((3, _BUCKETS), dtype=np.uint32) if self._counts is None else self._counts
        return {"documents": np.array([self.documents], dtype=np.int64), "counts": counts}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> WordStatistics:
        """Restore counts.

        Raises:
            StorageError: The arrays are not those of `state`.
        """
        import numpy as np

        try:
            documents, counts = int(state["documents"][0]), np.asarray(state["counts"])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise StorageError(f"The extractor's stored word counts are damaged ({error!r}); build again.") from error
        if counts.shape != (3, _BUCKETS):
            raise StorageError(f"The extractor's word counts have shape {counts.shape}, not (3, 65536); build again.")
        return cls(documents, counts.astype(np.uint32))

    def idf(self, word: str) -> float:
        """Inverse document frequency of a lower-case word; 1 for every word when unfitted.

        A word of a single text counts as one of two: misspellings are rare, too, and tell nothing.
        """
        return self._look_up(word)[0]

    def is_name(self, word: str) -> bool | None:
        """Whether a word is mostly written with a capital inside sentences; None when it was never seen there."""
        _, lower, capital = self._look_up(word.lower())
        return capital > lower if lower or capital else None

    def _look_up(self, word: str) -> tuple[float, int, int]:
        found = self._memo.get(word)
        if found is None:
            if self._counts is None:
                found = (1.0, 0, 0)
            else:
                documents, lower, capital = self._counts[:, _bucket(word)].tolist()
                found = (math.log((self.documents + 1) / (max(documents, 2) + 0.5)), lower, capital)
                found = (max(found[0], 0.0), lower, capital)
            if len(self._memo) >= 4 * _BUCKETS:  # bounds the memory on endless vocabularies
                self._memo.clear()
            self._memo[word] = found
        return found


def _bucket(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % _BUCKETS
