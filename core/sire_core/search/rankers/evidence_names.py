"""`EvidenceNames`: the names that a pool's passages spell out, and where its sentences name them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import distinct
from sire_core.algorithms.lists import Lists
from sire_core.algorithms.packed_words import word_keys
from sire_core.extraction.lexicon import FUNCTION_WORDS
from sire_core.search.rankers.evidence_texts import LONGEST_NAME, longer_keys, name_words
from sire_core.types import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.search.rankers.entity_graph import EntityGraph
    from sire_core.search.rankers.passage_words import PassageWords

    Keys = NDArray[np.uint64]

__all__ = ["EvidenceNames", "SpelledText"]

_TABLE = 1 << 22
_LOW = np.uint64(_TABLE - 1)


@dataclass(frozen=True, slots=True)
class SpelledText:
    """All words of a pool in their order, `[words]` each.

    Attributes:
        keys: See `word_keys`.
        capital: Whether it looks like part of a name.
        telling: Whether it is no function word.
        plain: Whether it can be a name alone: three letters at least, no number, no function word.
        passages: Its passage.
        sentences: Its sentence, numbered through all passages; -1 in titles.
        sentence_passages: Passage of every sentence.
    """

    keys: Keys
    capital: NDArray[np.bool_]
    telling: NDArray[np.bool_]
    plain: NDArray[np.bool_]
    passages: Ints
    sentences: Ints
    sentence_passages: Ints

    @classmethod
    def of(cls, passages: PassageWords) -> SpelledText:
        """Spell out the words of passages."""
        words, known = passages.words.values, passages.vocabulary
        size = len(passages.names)
        owners = np.arange(size).repeat(np.diff(passages.words.starts))
        first = np.cumsum(passages.sentences) - passages.sentences
        inside = (passages.marks >> 1) - 1
        telling = np.array([word not in FUNCTION_WORDS for word in known], dtype=bool)
        plain = np.array([len(word) > 2 and not word.isdigit() for word in known], dtype=bool) & telling
        return cls(
            keys=word_keys(known)[words],
            capital=(passages.marks & 1).astype(bool),
            telling=telling[words],
            plain=plain[words],
            passages=owners,
            sentences=np.where(inside < 0, -1, first[owners] + inside),
            sentence_passages=np.arange(size).repeat(passages.sentences),
        )


@dataclass(frozen=True, slots=True)
class EvidenceNames:
    """Names of a pool and the entities they stand for; entities that only texts open with stand behind the graph's."""

    keys: Keys
    owners: Ints
    lengths: Ints
    own: Ints
    labels: Sequence[str]
    ids: Sequence[str]

    @classmethod
    def of(cls, passages: PassageWords, graph: EntityGraph) -> EvidenceNames:
        """Collect the names that passages spell out, and those that titles and first sentences give."""
        spelled = defaultdict[int, dict[str, None]](dict)
        listed = graph.names.lists.all_names()
        width = max(1, len(listed))
        pairs = distinct(graph.entities.astype(np.int64) * width + graph.names.numbers)
        for entity, place in zip((pairs // width).tolist(), (pairs % width).tolist(), strict=True):
            spelled[entity].update(dict.fromkeys(listed[place]))
        ids = list(graph.entity_ids)
        labels = [""] * len(ids)
        known: dict[tuple[str, ...], int] = {}
        rows: list[tuple[tuple[str, ...], int]] = []
        for entity, names in spelled.items():
            for name in names:
                words = tuple(name_words(name))
                known.setdefault(words, entity)
                rows.append((words, entity))
        own = np.full(len(passages.names), -1, dtype=np.int64)
        own[graph.passages[graph.titles]] = graph.entities[graph.titles]
        for place in np.flatnonzero(own < 0).tolist():
            words = tuple(name_words(passages.names[place]))
            if words and words not in known:
                known[words] = len(ids)
                ids.append(digest("opening", " ".join(words)))
                labels.append(passages.names[place])
                rows.append((words, known[words]))
            own[place] = known[words] if words else -1
        rows = [(words, entity) for words, entity in dict.fromkeys(rows) if 0 < len(words) <= LONGEST_NAME]
        keys = _keys([words for words, _ in rows])
        order = np.argsort(keys, kind="stable")
        owners = np.array([entity for _, entity in rows], dtype=np.int64)
        lengths = np.array([len(words) for words, _ in rows], dtype=np.int64)
        return cls(keys[order], owners[order], lengths[order], own, [_plain(name) for name in labels], ids)

    def mentions(self, texts: SpelledText, graph: EntityGraph) -> Lists:
        """Entities that sentences name: those that the passage's record has, and what other passages are about."""
        words = texts.keys
        about = np.zeros(len(self.labels), dtype=bool)
        about[self.own[self.own >= 0]] = True
        width = max(1, len(self.labels))
        recorded = distinct(graph.passages * width + graph.entities)
        covered = np.zeros(len(words), dtype=bool)
        found: list[tuple[Ints, Ints]] = []
        for length, (starts, entities) in reversed(list(enumerate(self._places(words, texts.sentences), start=1))):
            inside = starts[:, None] + np.arange(length)
            named = texts.capital[inside].any(axis=1) & ~covered[inside].any(axis=1) & about[entities]
            if length == 1:
                named &= _stands_alone(texts, starts)
            codes = texts.passages[starts] * width + entities
            keep = named | np.isin(codes, recorded)
            covered[inside[named]] = True
            found.append((texts.sentences[starts[keep]], entities[keep]))
        sentences, entities = (np.concatenate(column) for column in zip(*found, strict=True))
        return Lists.of_pairs(sentences, entities, len(texts.sentence_passages))

    def _places(self, words: Keys, sentences: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Where sentences spell names of one word, of two and so on: the first word and the entity."""
        spelled = np.zeros(len(words), dtype=np.uint64)
        for length in range(1, LONGEST_NAME + 1):
            spelled = longer_keys(spelled, words[length - 1 :])
            mine = self.lengths == length
            keys, owners = self.keys[mine], self.owners[mine]
            # Most words are no name: a table of bits says so without a search.
            maybe = np.zeros(_TABLE, dtype=bool)
            maybe[(keys & _LOW).astype(np.int64)] = True
            starts = np.flatnonzero(maybe[(spelled & _LOW).astype(np.int64)] & (sentences[: len(spelled)] >= 0))
            starts = starts[sentences[starts] == sentences[starts + length - 1]]
            first = np.searchsorted(keys, spelled[starts], side="left")
            counts = np.searchsorted(keys, spelled[starts], side="right") - first
            lists = np.repeat(starts, counts)
            offsets = np.arange(len(lists)) - np.repeat(np.cumsum(counts) - counts, counts)
            yield lists, owners[np.repeat(first, counts) + offsets]

    def entities(self, texts: SpelledText, graph: EntityGraph, mentions: Lists) -> Lists:
        """Entities of every passage."""
        owners = texts.sentence_passages[np.repeat(np.arange(len(mentions)), np.diff(mentions.starts))]
        mine = np.flatnonzero(self.own >= 0)
        return Lists.of_pairs(
            np.concatenate([owners, mine, graph.passages]),
            np.concatenate([mentions.values.astype(np.int64), self.own[mine], graph.entities]),
            len(self.own),
        )


def _stands_alone(texts: SpelledText, starts: Ints) -> NDArray[np.bool_]:
    """Whether capitalised words stand beside no other, as in `Paris Hilton`, and are neither short nor numbers."""
    last = len(texts.keys) - 1
    after, before = np.minimum(starts + 1, last), np.maximum(starts - 1, 0)
    joined = texts.capital[after] & (texts.sentences[after] == texts.sentences[starts]) & (after > starts)
    led = texts.capital[before] & (texts.sentences[before] == texts.sentences[starts]) & (before < starts)
    alone = ~joined & ~(led & texts.telling[before]) & texts.plain[starts]
    return np.asarray(alone, dtype=bool)


def _keys(names: Sequence[Sequence[str]]) -> Keys:
    """Keys of names by their words; see `phrase_keys`."""
    words = list(dict.fromkeys(word for name in names for word in name))
    number = {word: place for place, word in enumerate(words)}
    hashes = word_keys(words)
    lengths = np.array([len(name) for name in names], dtype=np.int64)
    found = np.zeros(len(names), dtype=np.uint64)
    for length in np.unique(lengths).tolist():
        mine = np.flatnonzero(lengths == length)
        table = np.array([[number[word] for word in names[place]] for place in mine.tolist()], dtype=np.int64)
        for column in hashes[table].T:
            found[mine] = longer_keys(found[mine], column)
    return found


def _plain(name: str) -> str:
    return " ".join(name.split())
