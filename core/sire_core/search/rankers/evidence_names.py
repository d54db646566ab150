"""`EvidenceNames`: the names that a pool's passages spell out, and where its sentences name them."""

from __future__ import annotations

from dataclasses import dataclass
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
    from sire_core.search.rankers.passage_words import PassageWords
    from sire_core.search.rankers.vocabulary import Vocabulary

    Keys = NDArray[np.uint64]
    Numbers = NDArray[np.int32]

__all__ = ["EvidenceNames", "SpelledText"]

_TABLE = 1 << 22
_LOW = np.uint64(_TABLE - 1)


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


@dataclass(frozen=True, slots=True)
class EvidenceNames:
    """Names of a pool and the entities they stand for; entities that only texts open with stand behind the graph's.

    Attributes:
        keys: Of names of up to `LONGEST_NAME` words, ascending.
        owners: Entity of each name.
        lengths: Words of each name.
        begun: Keys of the beginnings of all names, whole names among them, and of how many words each is.
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
        keys, lengths, owners = rows["keys"][whole], rows["lengths"][whole], (pairs // width).repeat(rows.counts)[whole]
        opened = _Opened.of(passages, graph, keys, owners)
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
                np.concatenate([rows["keys"], opened.begun[0]]),
                np.concatenate([rows["lengths"], opened.begun[1]]),
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
        covered = np.zeros(len(texts.keys), dtype=bool)
        found: list[tuple[Numbers, Ints]] = []
        for length, (starts, entities) in reversed(list(enumerate(self._places(texts), start=1))):
            apart = np.flatnonzero(about[entities])
            inside = starts[apart, None] + np.arange(length)
            apart = apart[texts.capital[inside].any(axis=1) & ~covered[inside].any(axis=1)]
            if length == 1:
                apart = apart[_stands_alone(texts, starts[apart])]
            codes = texts.passages[starts].astype(np.int64) * width + entities
            keep = recorded[np.searchsorted(recorded[:-1], codes)] == codes
            keep[apart] = True
            covered[starts[apart, None] + np.arange(length)] = True
            found.append((texts.sentences[starts[keep]], entities[keep]))
        sentences, entities = (np.concatenate(column) for column in zip(*found, strict=True))
        return Lists.of_pairs(sentences, entities, len(texts.sentence_passages))

    def _places(self, texts: SpelledText) -> Iterator[tuple[Ints, Ints]]:
        """Where sentences spell names of one word, of two and so on: the first word and the entity."""
        one = longer_keys(np.zeros(len(texts.vocabulary), dtype=np.uint64), texts.vocabulary.keys)
        starts = np.flatnonzero(_maybe(self._begun(1), one)[texts.words] & (texts.sentences >= 0))
        spelled = one[texts.words[starts]]
        for length in range(1, LONGEST_NAME + 1):
            if length > 1:
                last = np.minimum(starts + length - 1, len(texts.keys) - 1)
                inside = (texts.sentences[last] == texts.sentences[starts]) & (last == starts + length - 1)
                starts, spelled = starts[inside], longer_keys(spelled[inside], texts.keys[last[inside]])
                hopeful = _maybe(self._begun(length), spelled)
                starts, spelled = starts[hopeful], spelled[hopeful]
            mine = self.lengths == length
            keys, owners = self.keys[mine], self.owners[mine]
            named = np.flatnonzero(_maybe(keys, spelled))
            first = np.searchsorted(keys, spelled[named], side="left")
            counts = np.searchsorted(keys, spelled[named], side="right") - first
            yield np.repeat(starts[named], counts), owners[ranges(first, counts)]

    def _begun(self, length: int) -> Keys:
        """Keys of so many words that begin names."""
        keys, lengths = self.begun
        return np.asarray(keys[lengths == length], dtype=np.uint64)

    def entities(self, texts: SpelledText, graph: EntityGraph, mentions: Lists) -> Lists:
        """Entities of every passage."""
        owners = texts.sentence_passages[np.repeat(np.arange(len(mentions)), np.diff(mentions.starts))]
        mine = np.flatnonzero(self.own >= 0)
        return Lists.of_pairs(
            np.concatenate([owners, mine, graph.passages]),
            np.concatenate([mentions.values.astype(np.int64), self.own[mine], graph.entities]),
            len(self.own),
        )


def _maybe(known: Keys, keys: Keys) -> NDArray[np.bool_]:
    """Which keys may be among known ones, by a table of bits: a quick look that takes a few others along."""
    table = np.zeros(_TABLE, dtype=bool)
    table[(known & _LOW).astype(np.int64)] = True
    return np.asarray(table[(keys & _LOW).astype(np.int64)], dtype=bool)


def _stands_alone(texts: SpelledText, starts: Ints) -> NDArray[np.bool_]:
    """Whether capitalised words stand beside no other, as in `Paris Hilton`, and are neither short nor numbers."""
    last = len(texts.keys) - 1
    after, before = np.minimum(starts + 1, last), np.maximum(starts - 1, 0)
    joined = texts.capital[after] & (texts.sentences[after] == texts.sentences[starts]) & (after > starts)
    led = texts.capital[before] & (texts.sentences[before] == texts.sentences[starts]) & (before < starts)
    telling = texts.vocabulary.stems[texts.words[before]] != 0
    alone = ~joined & ~(led & telling) & texts.vocabulary.plain[texts.words[starts]]
    return np.asarray(alone, dtype=bool)


@dataclass(frozen=True, slots=True)
class _Opened:
    """What passages without a title in the graph are about; attributes as those of `EvidenceNames`."""

    keys: Keys
    owners: Ints
    lengths: Ints
    begun: tuple[Keys, Ints]
    own: Ints
    labels: Sequence[str]
    ids: Sequence[str]

    @classmethod
    def of(cls, passages: PassageWords, graph: EntityGraph, keys: Keys, owners: Ints) -> _Opened:
        """Look up the names that texts open with among those that the graph knows; the others are new entities.

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
        return cls(
            keys=named[new],
            owners=entities[new],
            lengths=lengths[at],
            begun=begun,
            own=own,
            labels=[" ".join(passages.names[row].split()) for row in rows[at].tolist()],
            ids=[digest("opening", name) for name in spelled],
        )
