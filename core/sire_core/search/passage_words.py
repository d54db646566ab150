"""Which passages contain a phrase, or are titled by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.extraction.phrases import phrase_words
from sire_core.organize.interactions.phrases import WORDS_NOTE, PassagePhrases

if TYPE_CHECKING:
    from sire_core.protocols import IntArray, View

__all__ = ["PassageWords"]

_NOBODY = np.zeros(0, dtype=np.int64)


class PassageWords:
    """Words of the titles and texts of some units; texts themselves are read again when a phrase is looked for.

    Args:
        view: The pool.
        positions: Units that are looked at, `[n]`.
    """

    def __init__(self, view: View, positions: IntArray) -> None:
        self._view = view
        self._positions = positions
        stored = PassagePhrases.from_note(view.note(WORDS_NOTE))
        if stored is None or not np.array_equal(stored.passages, view.ids[positions]):
            stored = PassagePhrases.of(view.units(positions))
        self._words, self._titles = stored.words, stored.titles

    @classmethod
    def of(cls, view: View, positions: IntArray) -> PassageWords:
        """Made once per snapshot."""
        words: PassageWords = view.derived("passage words", lambda: cls(view, positions))
        return words

    def titled(self, phrase: str) -> IntArray:
        """Places in `positions` of the units with this title; its bracketed part may be left out."""
        return self._titles.holders(phrase_words(phrase))

    def with_phrase(self, phrase: str) -> IntArray:
        """Places in `positions` of the units that contain a phrase as whole words, ascending; case does not matter."""
        words = phrase_words(phrase)
        postings = sorted((self._words.holders(word) for word in set(words.split())), key=len)
        if not postings:
            return _NOBODY
        nodes = postings[0]
        for others in postings[1:]:
            nodes = nodes[np.isin(nodes, others, assume_unique=True)]
        if " " not in words or not len(nodes):
            return nodes
        texts = self._view.units(self._positions[nodes])
        holds = [f" {words} " in f" {phrase_words(unit.index_text)} " for unit in texts]
        return np.asarray(nodes[np.array(holds, dtype=bool)])
