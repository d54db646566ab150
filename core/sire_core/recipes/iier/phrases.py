"""`PassagePhrases`: the words of passages and their titles, as the organizer remembers them and queries read them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.text import phrase_words
from sire_core.extraction.headings import base_title
from sire_core.knowledge.ragged import pack_arrays, unpack_arrays
from sire_core.recipes.iier.links import RowMapping
from sire_core.types import hash64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.types import Unit

__all__ = ["WORDS_NOTE", "PassagePhrases"]

WORDS_NOTE = "words-1"
"""Key of the note that holds them; its number changes with the layout."""


@dataclass(frozen=True, slots=True)
class PassagePhrases:
    """Inverted indexes over the titles and the texts of passages.

    Attributes:
        passages: Ids of the chunk units, in corpus order, `[n]`.
        words: Of titles and texts; see `phrase_words`.
        titles: Whole titles, with and without their bracketed part.
    """

    passages: NDArray[np.bytes_]
    words: WordIndex
    titles: WordIndex

    @classmethod
    def of(cls, units: Sequence[Unit]) -> PassagePhrases:
        """Of passages in order."""
        nobody = cls.empty()
        passages = np.array([unit.id for unit in units], dtype="S24")
        return nobody.followed(units, RowMapping.between(nobody.passages, passages))

    @classmethod
    def empty(cls) -> PassagePhrases:
        """No passages."""
        return cls(np.zeros(0, dtype="S24"), WordIndex.empty(), WordIndex.empty())

    def followed(self, units: Sequence[Unit], moves: RowMapping) -> PassagePhrases:
        """The indexes after a change.

        Args:
            units: The passages after it, in order.
            moves: Which of them were there.
        """
        new = np.flatnonzero(moves.origin < 0).tolist()
        # Not all of them at once: the words of a passage take more room than its text.
        words = ((node, phrase_words(units[node].index_text).split()) for node in new)
        titles = ((node, _titles(units[node].title)) for node in new)
        return PassagePhrases(
            passages=moves.passages,
            words=self.words.followed(moves.place, len(units), words),
            titles=self.titles.followed(moves.place, len(units), titles),
        )

    def to_note(self) -> bytes:
        """Bytes for the store."""
        arrays = {"passages": self.passages, **self.words.arrays("words"), **self.titles.arrays("titles")}
        return pack_arrays(arrays)

    @classmethod
    def from_note(cls, note: bytes | None) -> PassagePhrases | None:
        """What `to_note` wrote; None where nothing was."""
        if note is None:
            return None
        arrays = unpack_arrays(note)
        return cls(arrays["passages"], WordIndex.of_arrays("words", arrays), WordIndex.of_arrays("titles", arrays))


def _titles(title: str) -> list[str]:
    return [phrase for phrase in (phrase_words(title), phrase_words(base_title(title))) if phrase]


_NOBODY = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class WordIndex:
    """Postings by hash of a word (or of a whole phrase); words themselves are not kept.

    Attributes:
        hashes: Of the words that somebody holds, ascending, uint64 `[v]`.
        bounds: Who holds word i: `nodes[bounds[i]:bounds[i + 1]]`, `[v + 1]`.
        nodes: Numbers of passages, ascending within a word.
    """

    hashes: NDArray[np.uint64]
    bounds: NDArray[np.int64]
    nodes: NDArray[np.int32]

    @classmethod
    def empty(cls) -> WordIndex:
        """No passages."""
        return cls(np.zeros(0, dtype=np.uint64), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32))

    def followed(self, places: NDArray[np.int64], size: int, fresh: Iterable[tuple[int, Iterable[str]]]) -> WordIndex:
        """The index after a change.

        Args:
            places: Number after the change of every passage before it, -1 where it is gone.
            size: Number of passages after it.
            fresh: Passages that are new, by number after the change, and their words.
        """
        number: dict[str, int] = {}
        added, owners = array("i"), array("i")
        for node, words in fresh:
            for word in dict.fromkeys(words):
                added.append(number.setdefault(word, len(number)))
                owners.append(node)
        new = np.array([hash64(word) for word in number], dtype=np.uint64)
        hashes = np.sort(np.concatenate((self.hashes, new)), kind="stable")
        hashes = hashes[np.concatenate(([True], hashes[1:] != hashes[:-1]))[: len(hashes)]]
        moved = places[self.nodes]
        ranks = np.repeat(np.searchsorted(hashes, self.hashes), np.diff(self.bounds))[moved >= 0]
        codes = np.concatenate(
            (ranks * size + moved[moved >= 0], np.searchsorted(hashes, new)[np.array(added)] * size + np.array(owners))
        )
        codes.sort(kind="stable")  # a few behind many that are in order: next to nothing
        ranks, nodes = np.divmod(codes, max(size, 1))
        counts = np.bincount(ranks, minlength=len(hashes))
        return WordIndex(
            hashes=hashes[counts > 0],
            bounds=np.concatenate(([0], np.cumsum(counts[counts > 0]))).astype(np.int64),
            nodes=nodes.astype(np.int32),
        )

    def holders(self, word: str) -> NDArray[np.int64]:
        """Passages that hold a word, ascending; nobody holds an empty one."""
        if not word or not len(self.hashes):
            return _NOBODY
        value = np.uint64(hash64(word))
        place = int(np.searchsorted(self.hashes, value))
        if place == len(self.hashes) or self.hashes[place] != value:
            return _NOBODY
        return self.nodes[self.bounds[place] : self.bounds[place + 1]].astype(np.int64)

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """For a file or note, under names that begin with `name`."""
        return {f"{name}_hashes": self.hashes, f"{name}_bounds": self.bounds, f"{name}_nodes": self.nodes}

    @classmethod
    def of_arrays(cls, name: str, arrays: Mapping[str, NDArray[Any]]) -> WordIndex:
        """What `arrays` gave."""
        return cls(arrays[f"{name}_hashes"], arrays[f"{name}_bounds"], arrays[f"{name}_nodes"])
