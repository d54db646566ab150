"""The stored form of an interaction graph: links, keywords, words and nearest neighbours of passages as arrays.

The paper does not store its graph; everything here is ours, so that a change of few documents updates few rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extend import (
    KEYWORD,
    ArrayNote,
    Edge,
    Lists,
    NeighborLists,
    PackedTexts,
    Ragged,
    base_title,
    by_appearance,
    digest,
    distinct,
    hash64,
    phrase_words,
    positions_in,
)
from sire_core.papers.iier import INTERACTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.extend import Unit

    Pairs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowMapping:
    """Maps row numbers of passages from before a change to after it, and back."""

    passages: NDArray[np.bytes_]  # ids after the change, `[n]`
    new_rows: NDArray[np.int64]  # by row before the change the row after it, -1 for a deleted passage
    old_rows: NDArray[np.int64]  # by row after the change the row before it, -1 for a new passage, `[n]`

    @classmethod
    def between(cls, before: NDArray[Any], after: NDArray[Any]) -> RowMapping:
        """Compare the ids of two corpora."""
        return cls(after, positions_in(after, before), positions_in(before, after))

    @property
    def in_order(self) -> bool:
        """True if the passages that stayed keep their order."""
        return bool((np.diff(self.new_rows[self.new_rows >= 0]) > 0).all())


_NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class PassageLinks:
    """Edges between passages with their three weights; 0 where an edge is not of a kind."""

    pairs: NDArray[np.int32]  # rows of passages, the smaller one first, distinct and ascending, `[m, 2]`
    structural: NDArray[np.uint8]  # 1 for neighbours in a document, `[m]`
    similarity: NDArray[np.float64]  # cosines of semantic edges, `[m]`
    near: NDArray[np.uint8]  # direction of a semantic edge, see `INTERACTS`, `[m]`
    keywords: NDArray[np.int32]  # number of shared keywords, `[m]`

    @classmethod
    def of(
        cls,
        size: int,
        structural: Pairs = _NO_PAIRS,
        semantic: tuple[Pairs, NDArray[np.float64], NDArray[np.int64]] | None = None,
        shared: tuple[Pairs, NDArray[np.int64]] | None = None,
    ) -> PassageLinks:
        """Join edges of several kinds."""
        near_pairs, cosines, near_flags = semantic or (_NO_PAIRS, np.zeros(0), np.zeros(0, dtype=np.int64))
        kw_pairs, counts = shared or (_NO_PAIRS, np.zeros(0, dtype=np.int64))
        by_document, by_meaning, by_keyword = (
            pairs[:, 0] * max(size, 1) + pairs[:, 1] for pairs in (structural, near_pairs, kw_pairs)
        )
        codes = distinct(np.concatenate([by_document, by_meaning, by_keyword]))
        return cls(
            pairs=np.stack(np.divmod(codes, max(size, 1)), axis=1).astype(np.int32),
            structural=_spread(codes, by_document, np.ones(len(by_document), dtype=np.uint8)),
            similarity=_spread(codes, by_meaning, cosines),
            near=_spread(codes, by_meaning, near_flags.astype(np.uint8)),
            keywords=_spread(codes, by_keyword, counts.astype(np.int32)),
        )

    def counts(self) -> dict[str, int]:
        """Number of edges of each kind; one edge may be of several kinds."""
        return {name: int(np.count_nonzero(getattr(self, name))) for name in ("structural", "similarity", "keywords")}

    def edges(self, passages: NDArray[np.str_]) -> Iterator[Edge]:
        """Yield the edges one by one, for exports."""
        ends = passages[self.pairs].tolist()
        columns = [column.tolist() for column in (self.structural, self.similarity, self.near, self.keywords)]
        for (source, target), structural, similarity, is_near, keywords in zip(ends, *columns, strict=True):
            metadata = {"structural": structural, "similarity": similarity, "near": is_near, "keywords": keywords}
            weight = structural + similarity + keywords / 5
            yield Edge(INTERACTS, source, target, weight, {name: value for name, value in metadata.items() if value})


def _spread(codes: NDArray[np.int64], some: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """Scatter values of `some` to their places in `codes`; 0 elsewhere."""
    spread = np.zeros(len(codes), dtype=values.dtype)
    spread[np.searchsorted(codes, some)] = values
    return spread


@dataclass(frozen=True, slots=True)
class KeywordTable:
    """Keywords of passages in compressed sparse rows, by id of the edge; numbered by the first passage with them."""

    numbers: Lists  # keywords of every passage
    spellings: NDArray[np.int32]  # number of the phrase as the passage spells it, aligned with `numbers.values`
    keys: PackedTexts  # `name_key` of every keyword, by number
    phrases: PackedTexts  # distinct phrases, by number

    @classmethod
    def without_keywords(cls, size: int) -> KeywordTable:
        """A table of passages without keywords."""
        nothing = PackedTexts.of(())
        return cls(Lists.of_lengths([0] * size, ()), np.zeros(0, dtype=np.int32), nothing, nothing)

    def updated(self, old_rows: NDArray[np.int64], fresh: Iterable[tuple[int, Mapping[str, str]]]) -> KeywordTable:
        """Return the table given the old row of every passage `[n]`, and phrases by key of rows that are `fresh`."""
        number = {key: i for i, key in enumerate(self.keys)}
        spelling = {phrase: i for i, phrase in enumerate(self.phrases)}
        nodes, sizes, added, written = array("q"), array("q"), array("q"), array("q")
        for node, written_as in fresh:
            nodes.append(node)
            sizes.append(len(written_as))
            for key in sorted(written_as, key=_target):
                added.append(number.setdefault(key, len(number)))
                written.append(spelling.setdefault(written_as[key], len(spelling)))
        groups = old_rows.copy()
        groups[np.array(nodes)] = np.arange(len(nodes)) + len(self.numbers)
        before = Ragged(np.diff(self.numbers.starts), {"numbers": self.numbers.values, "spellings": self.spellings})
        others = Ragged(np.array(sizes), {"numbers": np.array(added), "spellings": np.array(written)})
        after = before.chosen(others, groups)
        numbers, first = by_appearance(after["numbers"])
        spellings, first_spelled = by_appearance(after["spellings"])
        keys, phrases = list(number), list(spelling)
        return KeywordTable(
            numbers=Lists.of_lengths(after.counts, numbers),
            spellings=spellings.astype(np.int32),
            keys=PackedTexts.of([keys[i] for i in after["numbers"][first].tolist()]),
            phrases=PackedTexts.of([phrases[i] for i in after["spellings"][first_spelled].tolist()]),
        )

    def edges(self, passages: Sequence[str]) -> Iterator[Edge]:
        """Yield edges from passages to their keywords."""
        owners = np.repeat(np.arange(len(self.numbers)), np.diff(self.numbers.starts)).tolist()
        for owner, number, spelling in zip(owners, self.numbers.values.tolist(), self.spellings.tolist(), strict=True):
            metadata = {"phrase": self.phrases[spelling]}
            yield Edge(KEYWORD, passages[owner], _target(self.keys[number]), 1.0, metadata)


def _target(key: str) -> str:
    return digest(KEYWORD, key)


@dataclass(frozen=True, slots=True)
class PassagePhrases(ArrayNote):
    """Inverted indexes over the titles and the texts of passages."""

    passages: NDArray[np.bytes_]  # ids of the chunk units, in corpus order, `[n]`
    words: WordIndex  # words of titles and texts; see `phrase_words`
    titles: WordIndex  # whole titles, with and without their bracketed part

    @classmethod
    def of(cls, units: Sequence[Unit]) -> PassagePhrases:
        """Index passages in order."""
        empty = cls.empty()
        passages = np.array([unit.id for unit in units], dtype="S24")
        return empty.updated(units, RowMapping.between(empty.passages, passages))

    @classmethod
    def empty(cls) -> PassagePhrases:
        """No passages."""
        return cls(np.zeros(0, dtype="S24"), WordIndex.empty(), WordIndex.empty())

    def updated(self, units: Sequence[Unit], mapping: RowMapping) -> PassagePhrases:
        """Return the indexes after a change."""
        new = np.flatnonzero(mapping.old_rows < 0).tolist()
        # Generators: the words of a passage take more memory than its text.
        words = ((node, phrase_words(units[node].index_text).split()) for node in new)
        titles = ((node, _titles(units[node].title)) for node in new)
        return PassagePhrases(
            passages=mapping.passages,
            words=self.words.updated(mapping.new_rows, len(units), words),
            titles=self.titles.updated(mapping.new_rows, len(units), titles),
        )


def _titles(title: str) -> list[str]:
    return [phrase for phrase in (phrase_words(title), phrase_words(base_title(title))) if phrase]


@dataclass(frozen=True, slots=True)
class WordIndex:
    """Postings by hash of a word or phrase; the words themselves are not stored."""

    hashes: NDArray[np.uint64]  # hashes of the words, ascending, uint64 `[v]`
    nodes: Lists  # rows of passages of every word, ascending

    @classmethod
    def empty(cls) -> WordIndex:
        """No passages."""
        return cls(np.zeros(0, dtype=np.uint64), Lists.of_lengths((), ()))

    def updated(self, new_rows: NDArray[np.int64], size: int, fresh: Iterable[tuple[int, Iterable[str]]]) -> WordIndex:
        """Return the index after a change: row after it by row before it, number of rows, words of new rows."""
        number: dict[str, int] = {}
        added, owners = array("i"), array("i")
        for node, words in fresh:
            for word in dict.fromkeys(words):
                added.append(number.setdefault(word, len(number)))
                owners.append(node)
        new = np.array([hash64(word) for word in number], dtype=np.uint64)
        hashes = distinct(np.concatenate((self.hashes, new)))
        moved = new_rows[self.nodes.values]
        ranks = np.repeat(np.searchsorted(hashes, self.hashes), np.diff(self.nodes.starts))[moved >= 0]
        codes = np.concatenate(
            (ranks * size + moved[moved >= 0], np.searchsorted(hashes, new)[np.array(added)] * size + np.array(owners))
        )
        codes.sort(kind="stable")  # a long sorted run and a short one: cheap
        ranks, nodes = np.divmod(codes, max(size, 1))
        counts = np.bincount(ranks, minlength=len(hashes))
        return WordIndex(hashes[counts > 0], Lists.of_lengths(counts[counts > 0], nodes))

    def holders(self, word: str) -> NDArray[np.int64]:
        """Passages that contain a word, ascending; none for an empty word."""
        if not word or not len(self.hashes):
            return np.zeros(0, dtype=np.int64)
        value = np.uint64(hash64(word))
        row = int(np.searchsorted(self.hashes, value))
        if row == len(self.hashes) or self.hashes[row] != value:
            return np.zeros(0, dtype=np.int64)
        return self.nodes.of(row)


@dataclass(frozen=True, slots=True)
class InteractionTable(ArrayNote):
    """An `InteractionGraph`, and the neighbour lists from which its semantic edges are made."""

    fingerprints: tuple[str, str]  # fingerprints of the embedder and of the extractor
    passages: NDArray[np.bytes_]  # ids of the chunk units, in corpus order, `[n]`
    links: PassageLinks  # edges between passages, by row
    keywords: KeywordTable  # edges from passages to keywords
    lists: NeighborLists  # nearest neighbours; empty without semantic edges, or when approximate

    @classmethod
    def empty(cls) -> InteractionTable:
        """A table without passages."""
        keywords, lists = KeywordTable.without_keywords(0), NeighborLists.empty(0, 0)
        return cls(("", ""), np.zeros(0, dtype="S24"), PassageLinks.of(0), keywords, lists)

    def __iter__(self) -> Iterator[Edge]:
        """Yield all edges: between passages, and to keywords."""
        passages = self.passages.astype(str)
        yield from self.links.edges(passages)
        yield from self.keywords.edges(passages.tolist())
