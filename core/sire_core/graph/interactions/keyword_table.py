"""`KeywordTable`: the keywords of passages as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.algorithms.packed_words import join_words, split_words
from sire_core.types import Edge, digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KEYWORD", "KeywordTable", "keyword_edges"]

KEYWORD = "keyword"
"""Kind of the edges from a passage to an id of a keyword; metadata `phrase`. They are the inverted index."""


@dataclass(frozen=True, slots=True)
class KeywordTable:
    """Which passage holds which keyword, in compressed sparse rows.

    The keywords of a passage stand in the order of the ids that their edges lead to, and keywords are numbered by the
    first passage that holds them, so that equal corpora have equal tables.

    Attributes:
        indptr: Keywords of passage i are `numbers[indptr[i]:indptr[i + 1]]`, `[n + 1]`.
        numbers: Of the keywords.
        keys: `name_key` of their phrases, by number.
    """

    indptr: NDArray[np.int64]
    numbers: NDArray[np.int64]
    keys: Sequence[str]

    @classmethod
    def empty(cls) -> KeywordTable:
        """No passages."""
        return cls(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), ())

    def followed(self, places: NDArray[np.int64], fresh: Mapping[int, Sequence[str]]) -> KeywordTable:
        """The table after a change.

        Args:
            places: Number of every passage before the change, `[n]`; what it says of the passages in `fresh` is not
                read.
            fresh: Keys of the passages that were read again, by number after the change.
        """
        number = {key: i for i, key in enumerate(self.keys)}
        added = [number.setdefault(key, len(number)) for keys in fresh.values() for key in keys]
        rows = places.copy()
        rows[list(fresh)] = np.arange(len(fresh)) + len(self.indptr) - 1
        sizes = np.concatenate([np.diff(self.indptr), np.array([len(keys) for keys in fresh.values()], dtype=np.int64)])
        counts = sizes[rows].astype(np.int64)
        every = np.concatenate([self.numbers, np.array(added, dtype=np.int64)])
        numbers = every[ranges((np.cumsum(sizes) - sizes)[rows], counts)]
        used, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(used), dtype=np.int64)
        rank[order] = np.arange(len(used))
        names = list(number)
        return KeywordTable(
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            numbers=rank[inverse].astype(np.int64),
            keys=[names[found] for found in used[order].tolist()],
        )

    def targets(self, node: int) -> Iterator[str]:
        """Ids that the edges of a passage lead to."""
        for number in self.numbers[self.indptr[node] : self.indptr[node + 1]].tolist():
            yield digest(KEYWORD, self.keys[number])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a note."""
        return {
            "keyword_indptr": self.indptr,
            "keyword_numbers": self.numbers.astype(np.int32),
            "keyword_count": np.array([len(self.keys)]),
            "keys": join_words(self.keys),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> KeywordTable:
        """What `arrays` gave."""
        return cls(
            indptr=arrays["keyword_indptr"],
            numbers=arrays["keyword_numbers"].astype(np.int64),
            keys=split_words(arrays["keys"], int(arrays["keyword_count"][0])),
        )


def keyword_edges(passage: str, phrases: Mapping[str, str]) -> dict[str, Edge]:
    """Edges of a passage to its keywords, by key, in the order of the ids that they lead to.

    Args:
        passage: Its id.
        phrases: How it writes its keywords, by key.
    """
    edges = {key: Edge(KEYWORD, passage, digest(KEYWORD, key), 1.0, {"phrase": text}) for key, text in phrases.items()}
    return dict(sorted(edges.items(), key=lambda item: item[1].target))
