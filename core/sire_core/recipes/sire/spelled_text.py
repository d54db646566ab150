"""`SpelledText`: the words of a pool in their order, and `Spelling`: where they spell names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.recipes.sire.evidence_texts import LONGEST_NAME, longer_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.recipes.sire.passage_words import PassageWords, Vocabulary

    Keys = NDArray[np.uint64]
    Numbers = NDArray[np.int32]

__all__ = ["SpelledText", "Spelling", "stands_alone"]

_TABLE = 1 << 22
_LOW = np.uint64(_TABLE - 1)
_AT_ONCE = 2000
"""Passages in which names are looked for at once."""
_OF_WORDS = ("words", "capital", "passages", "sentences")


@dataclass(frozen=True, slots=True)
class SpelledText:
    """All words of a pool in their order, `[words]` each.

    Attributes:
        words: Its number in the vocabulary.
        capital: Whether it looks like part of a name.
        passages: Its passage.
        sentences: Its sentence, numbered through all passages; -1 in titles.
        sentence_passages: Passage of every sentence.
        vocabulary: Words by number.
    """

    words: Numbers
    capital: NDArray[np.bool_]
    passages: Numbers
    sentences: Numbers
    sentence_passages: Numbers
    vocabulary: Vocabulary

    @classmethod
    def of(cls, passages: PassageWords) -> SpelledText:
        """Spell out the words of passages."""
        words = passages.words.values
        size = len(passages.names)
        owners = np.arange(size, dtype=np.int32).repeat(np.diff(passages.words.starts))
        first = (np.cumsum(passages.sentences) - passages.sentences).astype(np.int32)
        inside = (passages.marks >> 1) - 1
        return cls(
            words=words,
            capital=(passages.marks & 1).astype(bool),
            passages=owners,
            sentences=np.where(inside < 0, -1, first[owners] + inside),
            sentence_passages=np.arange(size, dtype=np.int32).repeat(passages.sentences),
            vocabulary=passages.vocabulary,
        )

    def __len__(self) -> int:
        """How many words."""
        return len(self.words)

    def of_passages(self, wanted: NDArray[np.bool_]) -> SpelledText:
        """The words of some passages; passages and sentences keep their numbers."""
        if wanted.all():
            return self
        inside = wanted[self.passages]
        arrays = {name: getattr(self, name)[inside] for name in _OF_WORDS}
        return replace(self, **arrays)

    def parts(self) -> Iterator[SpelledText]:
        """The words of some passages after the other."""
        size = int(self.passages[-1]) + 1 if len(self.passages) else 0
        ends = np.searchsorted(self.passages, np.arange(0, size + _AT_ONCE, _AT_ONCE, dtype=np.int32))
        for start, end in pairwise(ends.tolist()):
            arrays = {name: getattr(self, name)[start:end] for name in _OF_WORDS}
            yield replace(self, **arrays)


@dataclass(frozen=True, slots=True)
class _SortedNames:
    """Names of so many words.

    Attributes:
        keys: Different ones, ascending.
        starts: First place of each among the entities.
        counts: How many entities each has; 0 behind the last.
        owners: Entities.
    """

    keys: Keys
    starts: Ints
    counts: Ints
    owners: Ints

    @classmethod
    def of(cls, keys: Keys, owners: Ints) -> _SortedNames:
        """From ascending keys and the entity of each."""
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        counts = np.diff(np.append(starts, len(keys)))
        return cls(np.append(keys[starts], np.uint64(0)), np.append(starts, 0), np.append(counts, 0), owners)

    def places(self, spelled: Keys) -> tuple[Ints, Ints]:
        """First place among the entities, and how many there are, of each of some keys."""
        found = np.searchsorted(self.keys[:-1], spelled)
        return self.starts[found], np.where(self.keys[found] == spelled, self.counts[found], 0)


@dataclass(frozen=True, slots=True)
class Spelling:
    """Finds names in text.

    Most words begin no name; a table of bits says so without a search.

    Attributes:
        names: Names of one word, of two and so on.
        bits: By the low bits of a key, for every length: whether a name of so many words may have it, and in the upper
            half, whether a longer name may begin with it.
        words: Keys of the words of the vocabulary as phrases of one word.
        word_bits: Bits of these.
        word_names: Number and length of the list of entities of each word that is a name.
    """

    names: Sequence[_SortedNames]
    bits: NDArray[np.uint16]
    words: Keys
    word_bits: NDArray[np.uint16]
    word_names: tuple[Ints, Ints]

    @classmethod
    def of(cls, keys: Keys, owners: Ints, lengths: Ints, begun: tuple[Keys, Ints], vocabulary: Vocabulary) -> Spelling:
        """Of the names of `EvidenceNames`, for texts of some words."""
        bits = np.zeros(_TABLE, dtype=np.uint16)
        names = []
        beginnings, words_begun = begun
        for length in range(1, LONGEST_NAME + 1):
            mine = lengths == length
            names.append(_SortedNames.of(keys[mine], owners[mine]))
            bits[_low(keys[mine])] |= np.uint16(1 << (length - 1))
            bits[_low(beginnings[words_begun == length])] |= np.uint16(1 << (LONGEST_NAME + length - 1))
        words = longer_keys(np.zeros(len(vocabulary), dtype=np.uint64), vocabulary.keys)
        return cls(names, bits, words, bits[_low(words)], names[0].places(words))

    def places(self, texts: SpelledText) -> Iterator[tuple[Ints, Ints]]:
        """Where sentences spell names of one word, of two and so on: the first word and the entity."""
        begins, keys = self.word_bits != 0, texts.vocabulary.keys
        starts = np.flatnonzero(begins[texts.words] & (texts.sentences >= 0))
        spelled = self.words[texts.words[starts]]
        for length, names in enumerate(self.names, start=1):
            # There are far fewer different words than words.
            words = texts.words[starts] if length == 1 else None
            bits = self.bits[_low(spelled)] if words is None else self.word_bits[words]
            named = np.flatnonzero(bits & np.uint16(1 << (length - 1)))
            if words is None:
                first, counts = names.places(spelled[named])
            else:
                first, counts = (found[words[named]] for found in self.word_names)
            yield np.repeat(starts[named], counts), names.owners[ranges(first, counts)]
            last = np.minimum(starts + length, len(texts) - 1)
            longer = (bits & np.uint16(1 << (LONGEST_NAME + length - 1))) != 0
            longer &= (texts.sentences[last] == texts.sentences[starts]) & (last == starts + length)
            starts, spelled = starts[longer], longer_keys(spelled[longer], keys[texts.words[last[longer]]])


def _low(keys: Keys) -> Ints:
    return np.asarray(keys & _LOW, dtype=np.int64)


def stands_alone(texts: SpelledText, starts: Ints) -> NDArray[np.bool_]:
    """Whether capitalised words stand beside no other, as in `Paris Hilton`, and are neither short nor numbers.

    A neighbour in a script without case says nothing: there all words would be capitalised.
    """
    last = len(texts) - 1
    after, before = np.minimum(starts + 1, last), np.maximum(starts - 1, 0)
    words = texts.vocabulary
    joined = _named_beside(texts, after, starts) & (after > starts)
    led = _named_beside(texts, before, starts) & (before < starts)
    telling = words.stems[texts.words[before]] != 0
    alone = ~joined & ~(led & telling) & words.plain[texts.words[starts]]
    return np.asarray(alone, dtype=bool)


def _named_beside(texts: SpelledText, beside: Ints, starts: Ints) -> NDArray[np.bool_]:
    """Whether a word of the same sentence is capitalised."""
    capital = texts.capital[beside] & ~texts.vocabulary.caseless[texts.words[beside]]
    return np.asarray(capital & (texts.sentences[beside] == texts.sentences[starts]), dtype=bool)
