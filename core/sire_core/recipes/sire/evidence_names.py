"""`EvidenceNames`: the names that a pool's passages spell out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import distinct, ranges
from sire_core.algorithms.lists import Lists
from sire_core.recipes.sire.evidence_texts import LONGEST_NAME
from sire_core.recipes.sire.name_keys import beginnings
from sire_core.recipes.sire.spelled_text import Spelling
from sire_core.types import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.knowledge.entity_graph import EntityGraph
    from sire_core.recipes.sire.name_keys import NameKeys
    from sire_core.recipes.sire.passage_words import PassageWords
    from sire_core.recipes.sire.spelled_text import SpelledText

    Keys = NDArray[np.uint64]

__all__ = ["EvidenceNames"]


@dataclass(frozen=True, slots=True)
class EvidenceNames:
    """Names of a pool and the entities they stand for; entities that only texts open with stand behind the graph's.

    Attributes:
        keys: Of names of up to `LONGEST_NAME` words, ascending.
        owners: Entity of each name.
        lengths: Words of each name.
        begun: Keys of what names begin with, and of how many words each is.
        rows: Keys of the beginnings of names, word by word; the last of each is the name.
        ends: Row of each name.
        own: Entity that each passage is about, -1 for none.
        labels: Names of the entities that only texts open with; empty for the graph's.
        ids: Of the entities.
    """

    keys: Keys
    owners: Ints
    lengths: Ints
    begun: tuple[Keys, Ints]
    rows: Keys
    ends: Ints
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
        ends = np.concatenate([whole, len(rows["keys"]) + opened.ends])
        keys, lengths, owners = (
            np.concatenate(found) for found in ((keys, opened.keys), (lengths, opened.lengths), (owners, opened.owners))
        )
        order = np.lexsort((owners, keys))
        order = order[lengths[order] <= LONGEST_NAME]
        keys, lengths, owners, ends = keys[order], lengths[order], owners[order], ends[order]
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
            rows=np.concatenate([rows["keys"], opened.rows]),
            ends=ends[first],
            own=opened.own,
            labels=[*[""] * len(graph.entity_ids), *opened.labels],
            ids=[*graph.entity_ids, *opened.ids],
        )

    def chosen(self, names: Ints) -> EvidenceNames:
        """Some of the names, which are looked for as all are."""
        lengths, ends = self.lengths[names], self.ends[names]
        begun = self.rows[ranges(ends - lengths + 1, lengths - 1)]
        places = ranges(np.ones(len(names), dtype=np.int64), lengths - 1)
        return replace(
            self,
            keys=self.keys[names],
            owners=self.owners[names],
            lengths=lengths,
            begun=(begun, places),
            ends=ends,
        )

    def spelling(self, texts: SpelledText) -> Spelling:
        """What finds the names in some texts."""
        return Spelling.of(self.keys, self.owners, self.lengths, self.begun, texts.vocabulary)

    def entities(self, texts: SpelledText, graph: tuple[Ints, Ints], mentions: Lists) -> Lists:
        """Entities of every passage."""
        owners = texts.sentence_passages[np.repeat(np.arange(len(mentions)), np.diff(mentions.starts))]
        mine = np.flatnonzero(self.own >= 0)
        return Lists.of_pairs(
            np.concatenate([owners, mine, graph[0]]),
            np.concatenate([mentions.values.astype(np.int64), self.own[mine], graph[1]]),
            len(self.own),
        )


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
        rows=begun[0],
        ends=words.starts[1:][at] - 1,
        own=own,
        labels=[" ".join(passages.names[row].split()) for row in rows[at].tolist()],
        ids=[digest("opening", name) for name in spelled],
    )
