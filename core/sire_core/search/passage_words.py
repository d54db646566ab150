"""Which passages contain a phrase, or are titled by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extraction.phrases import phrase_words
from sire_core.extraction.subjects import base_title
from sire_core.search.stored_arrays import join_words, split_words, stored_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        arrays = stored_arrays(view, "passage-words-1", lambda: _arrays(view, positions))
        self._words = _Postings(arrays, "words")
        self._titles = _Postings(arrays, "titles")

    @classmethod
    def of(cls, view: View, positions: IntArray) -> PassageWords:
        """Made once per snapshot."""
        words: PassageWords = view.derived("passage words", lambda: cls(view, positions))
        return words

    def titled(self, phrase: str) -> IntArray:
        """Places in `positions` of the units with this title; its bracketed part may be left out."""
        return self._titles.of(phrase_words(phrase))

    def with_phrase(self, phrase: str) -> IntArray:
        """Places in `positions` of the units that contain a phrase as whole words, ascending; case does not matter."""
        words = phrase_words(phrase)
        postings = sorted((self._words.of(word) for word in set(words.split())), key=len)
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


class _Postings:
    """From a phrase to places, ascending."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], name: str) -> None:
        self._bounds = arrays[f"{name}_bounds"]
        self._nodes = arrays[f"{name}_nodes"]
        phrases = split_words(arrays[name], len(self._bounds) - 1)
        self._number = {phrase: number for number, phrase in enumerate(phrases)}

    def of(self, phrase: str) -> IntArray:
        """Places of a phrase; none for an empty one."""
        number = self._number.get(phrase)
        if number is None or not phrase:
            return _NOBODY
        return self._nodes[self._bounds[number] : self._bounds[number + 1]].astype(np.int64)


def _arrays(view: View, positions: IntArray) -> dict[str, NDArray[Any]]:
    words: dict[str, list[int]] = {}
    titles: dict[str, list[int]] = {}
    for node, unit in enumerate(view.units(positions)):
        _note(titles, node, (phrase_words(unit.title), phrase_words(base_title(unit.title))))
        _note(words, node, phrase_words(unit.index_text).split())
    return dict(chain(_packed("words", words), _packed("titles", titles)))


def _note(postings: dict[str, list[int]], node: int, phrases: Iterable[str]) -> None:
    for phrase in dict.fromkeys(phrases):
        postings.setdefault(phrase, []).append(node)


def _packed(name: str, postings: Mapping[str, list[int]]) -> Iterator[tuple[str, NDArray[Any]]]:
    counts = [len(nodes) for nodes in postings.values()]
    yield name, join_words(list(postings))
    yield f"{name}_bounds", np.cumsum([0, *counts], dtype=np.int64)
    yield f"{name}_nodes", np.fromiter(chain.from_iterable(postings.values()), dtype=np.int32, count=sum(counts))
