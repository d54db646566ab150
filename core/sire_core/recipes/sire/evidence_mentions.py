"""`SentenceNames`: which entities the sentences of a pool name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import distinct, id_codes, ranges
from sire_core.algorithms.lists import Lists
from sire_core.recipes.sire.spelled_text import stands_alone

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.knowledge.entity_graph import EntityGraph
    from sire_core.protocols import View
    from sire_core.recipes.sire.evidence_names import EvidenceNames
    from sire_core.recipes.sire.passage_words import PassageWords
    from sire_core.recipes.sire.spelled_text import SpelledText

    Keys = NDArray[np.uint64]
    Numbers = NDArray[np.int32]

__all__ = ["SentenceNames"]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@dataclass(frozen=True, slots=True)
class SentenceNames:
    """Entities that sentences name, and all that this rests on beside the words of the passages.

    What sentences of a passage name follows from its words, from the entities that the graph has for it, and from the
    names spelled there: their entities, and which of them some passage is about. Where none of that differs from the
    snapshot before, it is carried over.

    Attributes:
        passages: Codes of the passages, `[passages]`.
        recorded: Of every passage a hash of the entities that the graph has for it, `[passages]`.
        sentences: How many sentences every passage has, `[passages]`.
        codes: Of the entities, by number.
        keys: Of the names, ascending, once for each entity that has it.
        owners: Entity of each name.
        meanings: Of each name a hash of its entity and of whether a passage is about that.
        mentions: Entities that every sentence names.
    """

    passages: Keys
    recorded: Keys
    sentences: Ints
    codes: Keys
    keys: Keys
    owners: Ints
    meanings: Keys
    mentions: Lists

    @classmethod
    def of(
        cls, view: View, passages: PassageWords, graph: EntityGraph, names: EvidenceNames, texts: SpelledText
    ) -> SentenceNames:
        """Those of a pool: looked for in the passages for which the snapshot before does not say them."""
        return view.cached_incremental(
            "sentence names", lambda before: cls._made(passages, graph, names, texts, before)
        )

    @classmethod
    def _made(
        cls,
        passages: PassageWords,
        graph: EntityGraph,
        names: EvidenceNames,
        texts: SpelledText,
        before: SentenceNames | None,
    ) -> SentenceNames:
        about = np.zeros(len(names.labels), dtype=bool)
        about[names.own[names.own >= 0]] = True
        codes = id_codes(np.array(names.ids, dtype="S24"))
        ends = np.searchsorted(graph.passages, np.arange(len(passages.ids) + 1))
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(_mixed(codes[graph.entities]))])
        found = cls(
            passages=id_codes(passages.ids),
            recorded=sums[ends[1:]] - sums[ends[:-1]],
            sentences=passages.sentences,
            codes=codes,
            keys=names.keys,
            owners=names.owners,
            meanings=_mixed(codes[names.owners] ^ about[names.owners].astype(np.uint64)),
            mentions=Lists.of_lengths((), ()),
        )
        known = np.full(len(passages.ids), -1) if before is None else found._carried(before, names, texts)
        pairs = [_spelled(texts.of_passages(known < 0), graph, names, about)]
        if before is not None:
            pairs.append(found._taken(before, known))
        sentences, entities = (np.concatenate(column) for column in zip(*pairs, strict=True))
        mentions = Lists.of_pairs(sentences, entities, int(passages.sentences.sum()))
        return replace(found, mentions=mentions)

    def _carried(self, before: SentenceNames, names: EvidenceNames, texts: SpelledText) -> Ints:
        """The number that every passage had before; -1 for those in which names have to be looked for again."""
        known = _places(before.passages, self.passages)
        known[(known >= 0) & (self.recorded != np.append(before.recorded, np.uint64(0))[known])] = -1
        new, old = _differing(self, before), _differing(before, self)
        # A name that means something else, or nothing, matters where it was a mention of what it meant.
        lost = np.zeros(len(before.codes), dtype=bool)
        lost[before.owners[old]] = True
        owners = np.arange(len(before.passages)).repeat(before.sentences)
        owners = owners[np.arange(len(before.mentions)).repeat(np.diff(before.mentions.starts))]
        again = np.zeros(len(before.passages) + 1, dtype=bool)
        again[owners[lost[before.mentions.values]]] = True
        known[again[known]] = -1
        spelling = names.chosen(np.flatnonzero(new)).spelling(texts)
        for part in texts.parts():
            for starts, _ in spelling.places(part):
                known[part.passages[starts]] = -1
        return known

    def _taken(self, before: SentenceNames, known: Ints) -> tuple[Ints, Ints]:
        """Sentences and entities of the passages that are known."""
        kept = np.flatnonzero(known >= 0)
        counts = self.sentences[kept]
        first, first_before = (np.cumsum(found) - found for found in (self.sentences, before.sentences))
        lists = before.mentions.chosen(ranges(first_before[known[kept]], counts))
        sentences = ranges(first[kept], counts).repeat(np.diff(lists.starts))
        return sentences, _places(self.codes, before.codes)[lists.values]


def _mixed(values: Keys) -> Keys:
    """Hashes whose sums differ where the values do."""
    mixed = (values ^ (values >> _HALF)) * _MIX
    return np.asarray((mixed ^ (mixed >> _HALF)) * _MIX)


def _places(known: Keys, wanted: Keys) -> Ints:
    """Place of each wanted number among distinct ones; -1 where it is not."""
    if not len(known):
        return np.full(len(wanted), -1)
    order = np.argsort(known)
    places = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return np.where(known[places] == wanted, places, -1)


def _differing(one: SentenceNames, other: SentenceNames) -> NDArray[np.bool_]:
    """Which names of one snapshot mean something else in another, or nothing."""
    starts = np.flatnonzero(np.append(True, one.keys[1:] != one.keys[:-1])[: len(one.keys)])
    theirs = np.flatnonzero(np.append(True, other.keys[1:] != other.keys[:-1])[: len(other.keys)])
    if not len(theirs) or not len(starts):
        return np.ones(len(one.keys), dtype=bool)
    keys, known = one.keys[starts], other.keys[theirs]
    meant, known_meant = np.add.reduceat(one.meanings, starts), np.add.reduceat(other.meanings, theirs)
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    same = (known[places] == keys) & (known_meant[places] == meant)
    return np.repeat(~same, np.diff(np.append(starts, len(one.keys))))


def _spelled(
    texts: SpelledText, graph: EntityGraph, names: EvidenceNames, about: NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    """Sentences and entities: those that the passage's record has, and what other passages are about.

    Args:
        texts: Where names are looked for.
        graph: Has the records.
        names: What is looked for.
        about: Whether a passage is about an entity, by entity.
    """
    width = max(1, len(names.labels))
    recorded = np.append(distinct(graph.passages * width + graph.entities), -1)
    spelling = names.spelling(texts)
    found: list[tuple[Numbers, Ints]] = [(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64))]
    for part in texts.parts():
        covered = np.zeros(len(part), dtype=bool)
        for length, (starts, entities) in reversed(list(enumerate(spelling.places(part), start=1))):
            apart = np.flatnonzero(about[entities])
            inside = starts[apart, None] + np.arange(length)
            apart = apart[part.capital[inside].any(axis=1) & ~covered[inside].any(axis=1)]
            if length == 1:
                apart = apart[stands_alone(part, starts[apart])]
            codes = part.passages[starts].astype(np.int64) * width + entities
            keep = recorded[np.searchsorted(recorded[:-1], codes)] == codes
            keep[apart] = True
            covered[starts[apart, None] + np.arange(length)] = True
            found.append((part.sentences[starts[keep]], entities[keep]))
    sentences, entities = (np.concatenate(column) for column in zip(*found, strict=True))
    return sentences.astype(np.int64), entities
