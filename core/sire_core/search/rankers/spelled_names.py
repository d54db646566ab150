"""`SpelledNames`: which of all names of a pool a question spells out, without a look at all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.extraction.titles import WORD, TitleLinker
from sire_core.graph.name_lists import NameLists, word_hashes
from sire_core.types import hash64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sire_core.protocols import BoolArray, IntArray

__all__ = ["SpelledNames"]


class SpelledNames:
    """Finds names as a `TitleLinker` of all of them would; only those that share words with the question are parsed.

    Args:
        lists: Lists of names.
        numbers: Number of the list of every mention, `[m]`.
        titles: Whether the passage is titled by what is mentioned, `[m]`.
    """

    def __init__(self, lists: NameLists, numbers: IntArray, titles: BoolArray) -> None:
        self.lists = lists
        self.numbers = numbers
        self._titles = titles
        self._first = _Sorted(lists.forms["first"])
        self._keys = _Sorted(lists.forms["keys"])
        self._owners = lists.forms.groups()
        self._starts = lists.forms.starts()
        self._mentions = _Sorted(numbers)

    @classmethod
    def of(cls, names: Sequence[Sequence[str]], titles: BoolArray) -> SpelledNames:
        """From the names of every mention."""
        from sire_core.graph.name_lists import list_hash

        hashes = np.array([list_hash(found) for found in names], dtype=np.uint64)
        lists = NameLists().updated(np.unique(hashes), dict(zip(hashes.tolist(), names, strict=True)))
        return cls(lists, lists.places(hashes), titles)

    def names(self, mention: int) -> list[str]:
        """Names of a mention."""
        return self.lists.names(int(self.numbers[mention]))

    def said(self, question: str) -> dict[str, list[int]]:
        """Names that a question spells out, in order, with their mentions, those by a title first."""
        near = self._near(question)
        names = {place: self.lists.names(place) for place in near.tolist()}
        mentions = self._mentions.rows(near)
        # Titles come first: of two names that differ in their bracketed part only, they decide what both mean.
        mentions = mentions[np.lexsort((mentions, ~self._titles[mentions]))]
        named: dict[str, list[int]] = {}
        for mention, place in zip(mentions.tolist(), self.numbers[mentions].tolist(), strict=True):
            for name in names[place]:
                named.setdefault(name, []).append(mention)
        return {name: named[name] for name in TitleLinker(list(named)).mentions(question)}

    def _near(self, question: str) -> IntArray:
        """Lists with a form that begins and ends with words of a question, and those with forms of the same keys.

        How a name is understood depends on all names that share the key of one of its forms, and on no others.
        """
        words = {*word_hashes(question), *(hash64(word.lower()) for word in WORD.findall(question))}
        said = np.array(sorted(words), dtype=np.uint64)
        forms = self._first.rows(said)
        for name in ("last", "second"):
            forms = forms[np.isin(self.lists.forms[name][forms], said)]
        found = np.unique(self._owners[forms])
        near = ranges(self._starts[found], self.lists.forms.counts[found])
        return np.unique(self._owners[self._keys.rows(np.unique(self.lists.forms["keys"][near]))])


class _Sorted:
    """Rows by value."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._order = np.argsort(values, kind="stable")
        self._values = values[self._order]

    def rows(self, wanted: NDArray[Any]) -> IntArray:
        """Rows that have one of some distinct values."""
        starts = np.searchsorted(self._values, wanted, side="left")
        return self._order[ranges(starts, np.searchsorted(self._values, wanted, side="right") - starts)]
