"""`QuestionWords`: how much of a question's words passages, sentences and headings have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.recipes.sire.evidence_texts import name_words
from sire_core.recipes.sire.passage_words import stem_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints, Lists
    from sire_core.protocols import BoolArray
    from sire_core.recipes.sire.evidence_index import EvidenceIndex

    Floats = NDArray[np.float64]
    Bits = NDArray[np.unsignedinteger[Any]]

__all__ = ["QuestionWords", "largest"]

_MOST_WORDS = 64
_ALL_BITS = 2**64 - 1
_BITS_OF_BYTES = ((np.arange(256)[None, :] >> np.arange(8)[:, None]) & 1).astype(np.float64)
"""Bit i of every byte, `[8, 256]`."""


class QuestionWords:
    """The stems of a question as bits, and what of them texts have.

    Shares of a question are weighed by inverse document frequency.

    Args:
        question: The question; its first 64 different stems that the corpus has count, without function words.
        index: The arrays.

    Attributes:
        stems: Numbers of its stems; stem i is bit i.
        sentences: Bit set of the stems in every sentence.
        passages: Bit set of the stems in every passage.
    """

    def __init__(self, question: str, index: EvidenceIndex) -> None:
        self.index = index
        words = list(dict.fromkeys(name_words(question)))
        keys = stem_keys(words)
        found: dict[int, str] = {}
        for word, stem in zip(words, index.stems(keys).tolist(), strict=True):
            found.setdefault(stem, word)
        found.pop(-1, None)
        self._lacking = len(np.unique(keys[keys != 0])) - len(found)
        self._spelled = list(found.values())[:_MOST_WORDS]
        self.stems = np.array(list(found)[:_MOST_WORDS], dtype=np.int64)
        idf = index.idf[self.stems].astype(np.float64)
        self._weight = max(1e-9, float(idf.sum()))
        shares = np.zeros(-(-len(idf) // 8) * 8)
        shares[: len(idf)] = idf / self._weight
        self._tables = shares.reshape(-1, 8) @ _BITS_OF_BYTES  # shares of the sets of eight words that a byte can hold
        # One bit more than there are stems, where there is room: the last one shifted is not none.
        self._type = np.min_scalar_type(min(1 << len(self.stems), _ALL_BITS)).type
        self._bits = np.zeros(len(index.words), dtype=self._type)
        self._bits[self.stems] = self._type(1) << np.arange(len(self.stems), dtype=self._type)
        self.sentences = self._found_in(index.sentence_postings, len(index.sentence_words))
        self.passages = self._found_in(index.passages, len(index.chunks))

    def _found_in(self, postings: Lists, size: int) -> Bits:
        found = np.zeros(size, dtype=self._type)
        for place, stem in enumerate(self.stems.tolist()):
            found[postings.values[postings.starts[stem] : postings.starts[stem + 1]]] |= self._type(1 << place)
        return found

    def known(self, allowed: BoolArray | None) -> float:
        """Share of the question whose words any passage has; a word that none has weighs as much as the rarest.

        Args:
            allowed: Passages that count, `[passages]`; None for all.
        """
        index = self.index
        had = index.passages.lengths(self.stems) > 0
        if allowed is not None:
            had = np.array([allowed[index.passages.of(stem)].any() for stem in self.stems.tolist()], dtype=bool)
        known = float(index.idf[self.stems[had]].sum())
        lacking = self._lacking + int(np.count_nonzero(~had))
        rarest = float(np.log1p(2.0 * len(index.chunks) + 1.0))
        return known / max(1e-9, known + lacking * rarest)

    def words_in(self, passage: int) -> list[str]:
        """Words of the question that a passage has, as the question spells them, in its order."""
        bits = self._bits[self.stems] & self.passages[passage]
        return [word for word, bit in zip(self._spelled, bits.tolist(), strict=True) if bit]

    def bm25(self) -> Floats:
        """BM25 of every passage, `[passages]`."""
        index = self.index
        scores = np.zeros(len(index.chunks))
        for stem in self.stems.tolist():
            start, end = index.passages.starts[stem], index.passages.starts[stem + 1]
            scores[index.passages.values[start:end]] += index.impacts[start:end]
        return scores

    def share(self, masks: Bits) -> Floats:
        """Share of the question, by inverse document frequency, of sets of its words."""
        found = np.zeros(len(masks))
        for part, table in enumerate(self._tables):
            found += table[(masks >> self._type(8 * part)) & self._type(255)]
        return found

    def best_sentence(self, passages: Ints, wanted: Bits | None = None) -> Floats:
        """Share of the question in the best sentence of each passage.

        Args:
            passages: Which.
            wanted: Words that count, by passage; None for all.
        """
        sentences, counts = self.index.sentences_of(passages)
        masks = self.sentences[sentences]
        if wanted is not None:
            masks &= wanted.repeat(counts)
        return largest(self.share(masks), counts)

    def title_share(self, passages: Ints) -> Floats:
        """Share of the words of what a passage is about that the question has, by inverse document frequency."""
        index = self.index
        places, words = index.title_words.take(passages)
        idf = index.idf[words].astype(np.float64)
        all_words = np.bincount(places, idf, minlength=len(passages))
        shared = np.bincount(places, idf * (self._bits[words] != 0), minlength=len(passages))
        return np.asarray(shared / np.maximum(1e-9, all_words))

    def headed(self, passages: Ints) -> tuple[Floats, Floats]:
        """Of the best heading: share of its words that the question has; that times its share of the question."""
        index = self.index
        if not len(index.headings.values):
            return np.zeros(len(passages)), np.zeros(len(passages))
        places, headings = index.headings.take(passages)
        inside, words = index.heading_words.take(headings)
        idf = index.idf[words].astype(np.float64)
        asked = np.bincount(inside, idf * (self._bits[words] != 0), minlength=len(headings))
        shares = asked / np.maximum(1e-9, np.bincount(inside, idf, minlength=len(headings)))
        counts = np.bincount(places, minlength=len(passages))
        return largest(shares, counts), largest(shares * asked / self._weight, counts)

    def phrases(self, passages: Ints) -> Floats:
        """Share of the question in pairs of its words that stand side by side in a sentence of each passage."""
        index = self.index
        sentences, counts = index.sentences_of(passages)
        masks = self.sentences[sentences]
        hopeful = np.flatnonzero(masks & (masks >> self._type(1)))
        inside, words = index.sentence_words.take(sentences[hopeful])
        bits = self._bits[words]
        beside = (
            (bits[:-1] != 0) & (bits[1:] != 0) & (bits[1:] == bits[:-1] << self._type(1)) & (inside[1:] == inside[:-1])
        )
        owners = np.arange(len(passages)).repeat(counts)[hopeful[inside[:-1][beside]]]
        first = words[:-1][beside]
        _, once = np.unique(owners * len(index.words) + first, return_index=True)  # the first word tells the second
        weights = np.minimum(index.idf[first[once]], index.idf[words[1:][beside][once]]) / self._weight
        return np.bincount(owners[once], weights, minlength=len(passages)).astype(np.float64)


def largest(values: Floats, lengths: Ints) -> Floats:
    """Largest value of each run; 0 for an empty run."""
    found = np.zeros(len(lengths))
    filled = lengths.nonzero()[0]
    if len(filled):
        found[filled] = np.maximum.reduceat(values, (lengths.cumsum() - lengths)[filled])
    return found
