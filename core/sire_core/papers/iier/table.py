"""The stored form of an interaction graph: links, keywords and words of passages as arrays.

The paper does not store its graph; everything here is ours.
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
    PackedTexts,
    base_title,
    digest,
    distinct,
    hash64,
    phrase_words,
)
from sire_core.papers.iier import INTERACTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.extend import DoubleArray, HashArray, IdArray, Int32Array, IntArray, Unit


_NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class PassageLinks:
    """Edges between passages with their three weights; 0 where an edge is not of a kind."""

    pairs: Int32Array  # rows of passages, the smaller one first, distinct and ascending, `[m, 2]`
    structural: NDArray[np.uint8]  # 1 for neighbours in a document, `[m]`
    similarity: DoubleArray  # cosines of semantic edges, `[m]`
    near: NDArray[np.uint8]  # direction of a semantic edge, see `INTERACTS`, `[m]`
    keywords: Int32Array  # number of shared keywords, `[m]`

    @classmethod
    def of(
        cls,
        size: int,
        structural: IntArray = _NO_PAIRS,
        semantic: tuple[IntArray, DoubleArray, IntArray] | None = None,
        shared: tuple[IntArray, IntArray] | None = None,
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


def _spread(codes: IntArray, some: IntArray, values: NDArray[Any]) -> NDArray[Any]:
    """Scatter values of `some` to their places in `codes`; 0 elsewhere."""
    spread = np.zeros(len(codes), dtype=values.dtype)
    spread[np.searchsorted(codes, some)] = values
    return spread


@dataclass(frozen=True, slots=True)
class KeywordTable:
    """Keywords of passages in compressed sparse rows, by id of the edge; numbered by the first passage with them."""

    numbers: Lists  # keywords of every passage
    spellings: Int32Array  # number of the phrase as the passage spells it, aligned with `numbers.values`
    keys: PackedTexts  # `name_key` of every keyword, by number
    phrases: PackedTexts  # distinct phrases, by number

    @classmethod
    def of(cls, passages: Iterable[Mapping[str, str]]) -> KeywordTable:
        """Number the keywords of passages, given as phrases by key."""
        number: dict[str, int] = {}
        spelling: dict[str, int] = {}
        sizes, numbers, spellings = array("q"), array("q"), array("q")
        for written_as in passages:
            sizes.append(len(written_as))
            for key in sorted(written_as, key=_target):
                numbers.append(number.setdefault(key, len(number)))
                spellings.append(spelling.setdefault(written_as[key], len(spelling)))
        return cls(
            numbers=Lists.of_lengths(np.array(sizes), np.array(numbers)),
            spellings=np.array(spellings, dtype=np.int32),
            keys=PackedTexts.of(list(number)),
            phrases=PackedTexts.of(list(spelling)),
        )

    def edges(self, passages: Sequence[str]) -> Iterator[Edge]:
        """Yield edges from passages to their keywords."""
        owners = self.numbers.owners().tolist()
        for owner, number, spelling in zip(owners, self.numbers.values.tolist(), self.spellings.tolist(), strict=True):
            metadata = {"phrase": self.phrases[spelling]}
            yield Edge(KEYWORD, passages[owner], _target(self.keys[number]), 1.0, metadata)


def _target(key: str) -> str:
    return digest(KEYWORD, key)


@dataclass(frozen=True, slots=True)
class PassagePhrases(ArrayNote):
    """Inverted indexes over the titles and the texts of passages."""

    passages: IdArray  # ids of the chunk units, in corpus order, `[n]`
    words: WordIndex  # words of titles and texts; see `phrase_words`
    titles: WordIndex  # whole titles, with and without their bracketed part

    @classmethod
    def of(cls, units: Sequence[Unit]) -> PassagePhrases:
        """Index passages in order."""
        # Generators: the words of a passage take more memory than its text.
        words = WordIndex.of(phrase_words(unit.index_text).split() for unit in units)
        titles = WordIndex.of(_titles(unit.title) for unit in units)
        return cls(np.array([unit.id for unit in units], dtype="S24"), words, titles)

    @classmethod
    def empty(cls) -> PassagePhrases:
        """No passages."""
        return cls.of(())


def _titles(title: str) -> list[str]:
    return [phrase for phrase in (phrase_words(title), phrase_words(base_title(title))) if phrase]


@dataclass(frozen=True, slots=True)
class WordIndex:
    """Postings by hash of a word or phrase; the words themselves are not stored."""

    hashes: HashArray  # hashes of the words, ascending, uint64 `[v]`
    nodes: Lists  # rows of passages of every word, ascending

    @classmethod
    def of(cls, passages: Iterable[Iterable[str]]) -> WordIndex:
        """Index the words of passages."""
        number: dict[str, int] = {}
        numbers, owners = array("i"), array("i")
        for node, words in enumerate(passages):
            for word in dict.fromkeys(words):
                numbers.append(number.setdefault(word, len(number)))
                owners.append(node)
        hashes, ranks = np.unique(np.array([hash64(word) for word in number], dtype=np.uint64), return_inverse=True)
        return cls(hashes, Lists.of_pairs(ranks.ravel()[np.array(numbers)], np.array(owners), len(hashes)))

    def holders(self, word: str) -> IntArray:
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
    """The edges of an `InteractionGraph`."""

    passages: IdArray  # ids of the chunk units, in corpus order, `[n]`
    links: PassageLinks  # edges between passages, by row
    keywords: KeywordTable  # edges from passages to keywords

    @classmethod
    def empty(cls) -> InteractionTable:
        """A table without passages."""
        return cls(np.zeros(0, dtype="S24"), PassageLinks.of(0), KeywordTable.of(()))

    def __iter__(self) -> Iterator[Edge]:
        """Yield all edges: between passages, and to keywords."""
        passages = self.passages.astype(str)
        yield from self.links.edges(passages)
        yield from self.keywords.edges(passages.tolist())
