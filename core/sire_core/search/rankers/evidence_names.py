"""`EvidenceNames`: the names that a pool's passages spell out, and where its sentences name them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import distinct, ranges
from sire_core.algorithms.lists import Lists
from sire_core.search.rankers.evidence_texts import LONGEST_NAME, longer_keys
from sire_core.search.rankers.name_keys import beginnings
from sire_core.types import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.search.rankers.entity_graph import EntityGraph
    from sire_core.search.rankers.name_keys import NameKeys
    from sire_core.search.rankers.passage_words import PassageWords, Vocabulary

    Keys = NDArray[np.uint64]
    Numbers = NDArray[np.int32]

__all__ = ["EvidenceNames", "SpelledText"]

_TABLE = 1 << 22
_LOW = np.uint64(_TABLE - 1)
_AT_ONCE = 2000
"""Passages in which names are looked for at once."""
_OF_WORDS = ("words", "keys", "capital", "passages", "sentences")


@dataclass(frozen=True, slots=True)
class SpelledText:
    """All words of a pool in their order, `[words]` each.

    Attributes:
        words: Its number in the vocabulary.
        keys: See `word_keys`.
        capital: Whether it looks like part of a name.
        passages: Its passage.
        sentences: Its sentence, numbered through all passages; -1 in titles.
        sentence_passages: Passage of every sentence.
        vocabulary: Words by number.
    """

    words: Numbers
    keys: Keys
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
            keys=passages.vocabulary.keys[words],
            capital=(passages.marks & 1).astype(bool),
            passages=owners,
            sentences=np.where(inside < 0, -1, first[owners] + inside),
            sentence_passages=np.arange(size, dtype=np.int32).repeat(passages.sentences),
            vocabulary=passages.vocabulary,
        )

    def parts(self) -> Iterator[SpelledText]:
        """The words of some passages after the other."""
        size = int(self.passages[-1]) + 1 if len(self.passages) else 0
        ends = np.searchsorted(self.passages, np.arange(0, size + _AT_ONCE, _AT_ONCE, dtype=np.int32))
        for start, end in pairwise(ends.tolist()):
            arrays = {name: getattr(self, name)[start:end] for name in _OF_WORDS}
            yield replace(self, **arrays)


@dataclass(frozen=True, slots=True)
class EvidenceNames:
    """Names of a pool and the entities they stand for; entities that only texts open with stand behind the graph's.

    Attributes:
        keys: Of names of up to `LONGEST_NAME` words, ascending.
        owners: Entity of each name.
        lengths: Words of each name.
        begun: Keys of what names begin with, and of how many words each is.
        own: Entity that each passage is about, -1 for none.
        labels: Names of the entities that only texts open with; empty for the graph's.
        ids: Of the entities.
    """

    keys: Keys
    owners: Ints
    lengths: Ints
    begun: tuple[Keys, Ints]
    own: Ints
    labels: Sequence[str]
    ids: Sequence[str]

    @classmethod
    def of(cls, passages: PassageWords, graph: EntityGraph, known: NameKeys) -> EvidenceNames:
        """Collect the names that passages spell out, and those that titles and first sentences give."""
        width = max(1, len(known.hashes))
        lists = np.searchsorted(known.hashes, graph.names.lists.hashes)[graph.names.numbers]
        pairs = distinct(graph.entities.astype(np.int64) * width + lists)
        rows = known.beginnings.take(pairs % width)
        whole = np.flatnonzero(rows["whole"])
        begins = np.flatnonzero(~rows["whole"])
        keys, lengths, owners = rows["keys"][whole], rows["lengths"][whole], (pairs // width).repeat(rows.counts)[whole]
        opened = _opened(passages, graph, keys, owners)
        keys, lengths, owners = (
            np.concatenate(found) for found in ((keys, opened.keys), (lengths, opened.lengths), (owners, opened.owners))
        )
        order = np.lexsort((owners, keys))
        order = order[lengths[order] <= LONGEST_NAME]
        keys, lengths, owners = keys[order], lengths[order], owners[order]
        first = np.ones(len(keys), dtype=bool)
        first[1:] = (keys[1:] != keys[:-1]) | (owners[1:] != owners[:-1])
        return cls(
            keys=keys[first],
            owners=owners[first],
            lengths=lengths[first],
            begun=(
                np.concatenate([rows["keys"][begins], opened.begun[0]]),
                np.concatenate([rows["lengths"][begins], opened.begun[1]]),
            ),
            own=opened.own,
            labels=[*[""] * len(graph.entity_ids), *opened.labels],
            ids=[*graph.entity_ids, *opened.ids],
        )

    def mentions(self, texts: SpelledText, graph: EntityGraph) -> Lists:
        """Entities that sentences name: those that the passage's record has, and what other passages are about."""
        about = np.zeros(len(self.labels), dtype=bool)
        about[self.own[self.own >= 0]] = True
        width = max(1, len(self.labels))
        recorded = np.append(distinct(graph.passages * width + graph.entities), -1)
        spelling = _Spelling.of(self, texts.vocabulary)
        found: list[tuple[Numbers, Ints]] = []
        for part in texts.parts():
            covered = np.zeros(len(part.keys), dtype=bool)
            for length, (starts, entities) in reversed(list(enumerate(spelling.places(part), start=1))):
                apart = np.flatnonzero(about[entities])
                inside = starts[apart, None] + np.arange(length)
                apart = apart[part.capital[inside].any(axis=1) & ~covered[inside].any(axis=1)]
                if length == 1:
                    apart = apart[_stands_alone(part, starts[apart])]
                codes = part.passages[starts].astype(np.int64) * width + entities
                keep = recorded[np.searchsorted(recorded[:-1], codes)] == codes
                keep[apart] = True
                covered[starts[apart, None] + np.arange(length)] = True
                found.append((part.sentences[starts[keep]], entities[keep]))
        if not found:
            return Lists.of_lengths(np.zeros(len(texts.sentence_passages), dtype=np.int64), ())
        sentences, entities = (np.concatenate(column) for column in zip(*found, strict=True))
        return Lists.of_pairs(sentences, entities, len(texts.sentence_passages))

    def entities(self, texts: SpelledText, graph: EntityGraph, mentions: Lists) -> Lists:
        """Entities of every passage."""
        owners = texts.sentence_passages[np.repeat(np.arange(len(mentions)), np.diff(mentions.starts))]
        mine = np.flatnonzero(self.own >= 0)
        return Lists.of_pairs(
            np.concatenate([owners, mine, graph.passages]),
            np.concatenate([mentions.values.astype(np.int64), self.own[mine], graph.entities]),
            len(self.own),
        )


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
class _Spelling:
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
    def of(cls, known: EvidenceNames, vocabulary: Vocabulary) -> _Spelling:
        """Of some names, for texts of some words."""
        bits = np.zeros(_TABLE, dtype=np.uint16)
        names = []
        begun, lengths = known.begun
        for length in range(1, LONGEST_NAME + 1):
            mine = known.lengths == length
            names.append(_SortedNames.of(known.keys[mine], known.owners[mine]))
            bits[_low(known.keys[mine])] |= np.uint16(1 << (length - 1))
            bits[_low(begun[lengths == length])] |= np.uint16(1 << (LONGEST_NAME + length - 1))
        words = longer_keys(np.zeros(len(vocabulary), dtype=np.uint64), vocabulary.keys)
        return cls(names, bits, words, bits[_low(words)], names[0].places(words))

    def places(self, texts: SpelledText) -> Iterator[tuple[Ints, Ints]]:
        """Where sentences spell names of one word, of two and so on: the first word and the entity."""
        begins = self.word_bits != 0
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
            last = np.minimum(starts + length, len(texts.keys) - 1)
            longer = (bits & np.uint16(1 << (LONGEST_NAME + length - 1))) != 0
            longer &= (texts.sentences[last] == texts.sentences[starts]) & (last == starts + length)
            starts, spelled = starts[longer], longer_keys(spelled[longer], texts.keys[last[longer]])


def _low(keys: Keys) -> Ints:
    return np.asarray(keys & _LOW, dtype=np.int64)


def _stands_alone(texts: SpelledText, starts: Ints) -> NDArray[np.bool_]:
    """Whether capitalised words stand beside no other, as in `Paris Hilton`, and are neither short nor numbers."""
    last = len(texts.keys) - 1
    after, before = np.minimum(starts + 1, last), np.maximum(starts - 1, 0)
    joined = texts.capital[after] & (texts.sentences[after] == texts.sentences[starts]) & (after > starts)
    led = texts.capital[before] & (texts.sentences[before] == texts.sentences[starts]) & (before < starts)
    telling = texts.vocabulary.stems[texts.words[before]] != 0
    alone = ~joined & ~(led & telling) & texts.vocabulary.plain[texts.words[starts]]
    return np.asarray(alone, dtype=bool)


def _opened(passages: PassageWords, graph: EntityGraph, keys: Keys, owners: Ints) -> EvidenceNames:
    """What passages without a title in the graph are about: names that the graph knows, and new entities for others.

    Args:
        passages: All passages.
        graph: Says which passages have a title.
        keys: Of the names that the graph knows.
        owners: Their entities.
    """
    own = np.full(len(passages.names), -1, dtype=np.int64)
    own[graph.passages[graph.titles]] = graph.entities[graph.titles]
    rows = np.flatnonzero((own < 0) & (np.diff(passages.name_words.starts) > 0))
    words = passages.name_words.chosen(rows)
    lengths = np.diff(words.starts)
    begun = beginnings(passages.vocabulary.keys[words.values], lengths)
    named, first, inverse = np.unique(begun[0][words.starts[1:] - 1], return_index=True, return_inverse=True)
    order = np.lexsort((owners, keys))
    places = np.searchsorted(keys[order], named)
    entities = np.append(owners[order], -1)[places]
    new = np.flatnonzero((np.append(keys[order], np.uint64(0))[places] != named) | (entities < 0))
    new = new[np.argsort(first[new])]
    entities[new] = len(graph.entity_ids) + np.arange(len(new))
    own[rows] = entities[inverse.ravel()]
    at = first[new]
    spelled = [" ".join(passages.vocabulary.words[word] for word in words.of(row).tolist()) for row in at.tolist()]
    return EvidenceNames(
        keys=named[new],
        owners=entities[new],
        lengths=lengths[at],
        begun=begun,
        own=own,
        labels=[" ".join(passages.names[row].split()) for row in rows[at].tolist()],
        ids=[digest("opening", name) for name in spelled],
    )
