"""`KeywordTable`: the keywords of passages as arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import by_appearance, ranges
from sire_core.algorithms.packed_words import PackedTexts, join_words, split_words
from sire_core.knowledge.kinds import KEYWORD
from sire_core.types import Edge, digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KeywordTable"]


@dataclass(frozen=True, slots=True)
class KeywordTable:
    """Which passage holds which keyword, in compressed sparse rows.

    The keywords of a passage stand in the order of the ids that their edges lead to. Keywords and phrases are numbered
    by the first passage that holds them, so that equal corpora have equal tables.

    Attributes:
        indptr: Keywords of passage i are `numbers[indptr[i]:indptr[i + 1]]`, `[n + 1]`.
        numbers: Of the keywords.
        spellings: Number of the phrase that the passage writes, aligned with `numbers`.
        keys: `name_key` of their phrases, by number.
        phrases: The different phrases, by number.
    """

    indptr: NDArray[np.int64]
    numbers: NDArray[np.int64]
    spellings: NDArray[np.int64]
    keys: Sequence[str]
    phrases: PackedTexts

    @classmethod
    def without_keywords(cls, size: int) -> KeywordTable:
        """Passages that have none."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(size + 1, dtype=np.int64), nothing, nothing, (), PackedTexts.of(()))

    def followed(self, places: NDArray[np.int64], fresh: Iterable[tuple[int, Mapping[str, str]]]) -> KeywordTable:
        """The table after a change.

        Args:
            places: Number of every passage before the change, `[n]`; what it says of the passages in `fresh` is not
                read.
            fresh: Of the passages that were read again the number after the change, and their phrases by key.
        """
        number = {key: i for i, key in enumerate(self.keys)}
        spelling = {phrase: i for i, phrase in enumerate(self.phrases)}
        nodes, sizes, added, written = array("q"), array("q"), array("q"), array("q")
        for node, written_as in fresh:
            nodes.append(node)
            sizes.append(len(written_as))
            for key in sorted(written_as, key=_target):
                added.append(number.setdefault(key, len(number)))
                written.append(spelling.setdefault(written_as[key], len(spelling)))
        rows = places.copy()
        rows[np.array(nodes)] = np.arange(len(nodes)) + len(self.indptr) - 1
        lengths = np.concatenate([np.diff(self.indptr), np.array(sizes)])
        counts = lengths[rows]
        taken = ranges((np.cumsum(lengths) - lengths)[rows], counts)
        every, spelled = np.concatenate([self.numbers, added])[taken], np.concatenate([self.spellings, written])[taken]
        numbers, first = by_appearance(every)
        spellings, first_spelled = by_appearance(spelled)
        keys, phrases = list(number), list(spelling)
        return KeywordTable(
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            numbers=numbers,
            spellings=spellings,
            keys=[keys[found] for found in every[first].tolist()],
            phrases=PackedTexts.of([phrases[found] for found in spelled[first_spelled].tolist()]),
        )

    def edges(self, passages: Sequence[str]) -> Iterator[Edge]:
        """Edges from passages to their keywords.

        Args:
            passages: Ids by number.
        """
        ends = self.indptr.tolist()
        for passage, start, end in zip(passages, ends, ends[1:], strict=False):
            for number, spelling in zip(
                self.numbers[start:end].tolist(), self.spellings[start:end].tolist(), strict=True
            ):
                metadata = {"phrase": self.phrases[spelling]}
                yield Edge(KEYWORD, passage, _target(self.keys[number]), 1.0, metadata)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a note."""
        return {
            "keyword_indptr": self.indptr,
            "keyword_numbers": self.numbers.astype(np.int32),
            "keyword_spellings": self.spellings.astype(np.int32),
            "keyword_count": np.array([len(self.keys)]),
            "keys": join_words(self.keys),
            "phrases": self.phrases.letters,
            "phrase_ends": self.phrases.ends,
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> KeywordTable:
        """What `arrays` gave."""
        return cls(
            indptr=arrays["keyword_indptr"],
            numbers=arrays["keyword_numbers"].astype(np.int64),
            spellings=arrays["keyword_spellings"].astype(np.int64),
            keys=split_words(arrays["keys"], int(arrays["keyword_count"][0])),
            phrases=PackedTexts(arrays["phrases"], arrays["phrase_ends"]),
        )


def _target(key: str) -> str:
    return digest(KEYWORD, key)
