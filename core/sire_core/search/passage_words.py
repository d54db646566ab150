"""Which passages contain a phrase, or are titled by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.extraction.phrases import phrase_words
from sire_core.extraction.subjects import base_title

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        found: dict[str, list[int]] = {}
        titled: dict[str, list[int]] = {}
        for node, unit in enumerate(view.units(positions)):
            for title in dict.fromkeys((phrase_words(unit.title), phrase_words(base_title(unit.title)))):
                titled.setdefault(title, []).append(node)
            for word in set(phrase_words(unit.index_text).split()):  # the order of words does not matter here
                found.setdefault(word, []).append(node)
        self._nodes: Mapping[str, IntArray] = {word: np.array(nodes, dtype=np.int32) for word, nodes in found.items()}
        self._titled = {title: np.array(nodes, dtype=np.int64) for title, nodes in titled.items()}

    @classmethod
    def of(cls, view: View, positions: IntArray) -> PassageWords:
        """Made once per snapshot."""
        words: PassageWords = view.derived("passage words", lambda: cls(view, positions))
        return words

    def titled(self, phrase: str) -> IntArray:
        """Places in `positions` of the units with this title; its bracketed part may be left out."""
        words = phrase_words(phrase)
        return self._titled.get(words, _NOBODY) if words else _NOBODY

    def with_phrase(self, phrase: str) -> IntArray:
        """Places in `positions` of the units that contain a phrase as whole words, ascending; case does not matter."""
        words = phrase_words(phrase)
        postings = sorted((self._nodes.get(word, np.zeros(0, np.int32)) for word in set(words.split())), key=len)
        if not postings:
            return np.zeros(0, dtype=np.int64)
        nodes = postings[0]
        for others in postings[1:]:
            nodes = nodes[np.isin(nodes, others, assume_unique=True)]
        nodes = nodes.astype(np.int64)
        if " " not in words or not len(nodes):
            return nodes
        texts = self._view.units(self._positions[nodes])
        holds = [f" {words} " in f" {phrase_words(unit.index_text)} " for unit in texts]
        return np.asarray(nodes[np.array(holds, dtype=bool)])
