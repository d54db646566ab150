"""`QuestionWords`: how much of a question's words passages, sentences and headings have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.search.rankers.evidence_texts import name_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.search.rankers.evidence_index import EvidenceIndex

    Floats = NDArray[np.float64]
    Bits = NDArray[np.uint64]

__all__ = ["QuestionWords", "largest"]

_MOST_WORDS = 64
_BYTE = np.uint64(255)
_BITS_OF_BYTES = ((np.arange(256)[None, :] >> np.arange(8)[:, None]) & 1).astype(np.float64)
"""Bit i of every byte, `[8, 256]`."""


class QuestionWords:
    """The stems of a question as bits, and what of them texts have.

    Shares of a question are weighed by inverse document frequency.

    Args:
        question: The question; its first 64 different stems that the corpus has count, without function words.
        index: The arrays.
    """

    def __init__(self, question: str, index: EvidenceIndex) -> None:
        self.index = index
        self.stems = index.stems(name_words(question))[:_MOST_WORDS]
        idf = index.idf[self.stems].astype(np.float64)
        self._weight = max(1e-9, float(idf.sum()))
        shares = np.pad(idf / self._weight, (0, -len(idf) % 8)).reshape(-1, 8)
        self._tables = shares @ _BITS_OF_BYTES  # shares of the sets of eight words that a byte can hold
        self._bits = np.zeros(len(index.words), dtype=np.uint64)
        self._bits[self.stems] = np.uint64(1) << np.arange(len(self.stems), dtype=np.uint64)

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
            found += table[(masks >> np.uint64(8 * part)) & _BYTE]
        return found

    def sentence_masks(self, sentences: Ints) -> Bits:
        """Bit set of the question's words in each sentence."""
        lists = self.index.sentence_words
        _, words = lists.take(sentences)
        return _joined(self._bits[words], lists.lengths(sentences))

    def covered(self, passages: Ints, wanted: Bits | None = None) -> tuple[Bits, Floats]:
        """Bit set of the question's words in each passage, and the share of the question in its best sentence.

        Args:
            passages: Which.
            wanted: Words that count in sentences, by passage; None for all.
        """
        index = self.index
        unique, back = np.unique(passages, return_inverse=True)
        _, sentences = index.sentences.take(unique)
        masks = self.sentence_masks(sentences)
        lengths = index.sentences.lengths(unique)
        _, words = index.title_words.take(unique)
        titles = _joined(self._bits[words], index.title_words.lengths(unique))
        whole = (_joined(masks, lengths) | titles)[back]
        if wanted is None:
            return whole, largest(self.share(masks), lengths)[back]
        counts = lengths[back]
        starts = (np.cumsum(lengths) - lengths)[back]
        rows = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        return whole, largest(self.share(masks[rows] & np.repeat(wanted, counts)), counts)

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
        unique, back = np.unique(passages, return_inverse=True)
        places, sentences = index.sentences.take(unique)
        inside, words = index.sentence_words.take(sentences)
        bits = self._bits[words]
        beside = (bits[:-1] != 0) & (bits[1:] == bits[:-1] << np.uint64(1)) & (inside[1:] == inside[:-1])
        owners = places[inside[:-1][beside]]
        pairs = np.unique(np.stack([owners, words[:-1][beside], words[1:][beside]]), axis=1)
        weights = np.minimum(index.idf[pairs[1]], index.idf[pairs[2]]) / self._weight
        return np.asarray(np.bincount(pairs[0], weights, minlength=len(unique))[back])


def _joined(bits: Bits, lengths: Ints) -> Bits:
    """Union of each run of bit sets; 0 for an empty run."""
    found = np.zeros(len(lengths), dtype=np.uint64)
    filled = lengths > 0
    if filled.any():
        found[filled] = np.bitwise_or.reduceat(bits, (np.cumsum(lengths) - lengths)[filled])
    return found


def largest(values: Floats, lengths: Ints) -> Floats:
    """Largest value of each run; 0 for an empty run."""
    found = np.zeros(len(lengths))
    filled = lengths > 0
    if filled.any():
        found[filled] = np.maximum.reduceat(values, (np.cumsum(lengths) - lengths)[filled])
    return found
