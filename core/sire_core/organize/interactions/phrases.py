"""`PassagePhrases`: the words of passages and their titles, as the organizer remembers them and queries read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.extraction.phrases import phrase_words
from sire_core.extraction.subjects import base_title
from sire_core.organize.array_notes import pack_arrays, unpack_arrays
from sire_core.organize.interactions.moves import RowMapping
from sire_core.organize.interactions.word_index import WordIndex

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
        new = {node: units[node] for node in np.flatnonzero(moves.origin < 0).tolist()}
        words = {node: phrase_words(unit.index_text).split() for node, unit in new.items()}
        titles = {node: _titles(unit.title) for node, unit in new.items()}
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
