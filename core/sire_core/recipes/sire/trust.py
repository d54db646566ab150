"""Trust in vectors: in those of an index as a whole, and for a question beside words, names and links.

People who ask in their own words share few telling words with the passage that answers them; there a good embedder
knows best. Questions written with the page open share its words, and names lead on from passage to passage; there
vectors are one voice among others. And an embedder may be worth nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arrays.products import row_products
from sire_core.models.lexical_embedder import LexicalEmbedder
from sire_core.search.ranking import best_first
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import DoubleArray, FloatArray, View
    from sire_core.recipes.sire.evidence_index import EvidenceIndex


SAMPLED_PASSAGES, SAMPLED_OTHERS = 64, 2000
FEWEST_PASSAGES = 32  # Fewer passages say nothing about an embedder, which is trusted then
RAREST_WORDS, NEAREST = 40, 5
UNRELIABLE_AGREEMENT, RELIABLE_AGREEMENT = 0.2, 0.28
"""Agreement of vectors with words: 0 for random vectors, .11 to .22 for letter n-grams, .29 to .58 for models"""
UNRELIABLE_SCORE, RELIABLE_SCORE = 0.3, 0.6
"""Scores of embedders (`models.paraphrases`) between which the trust in vectors rises."""
BEST_BY_WORDS = 3
PARTS_TRUST = 0.5
"""Trust in vectors of any question where all passages are parts of longer documents; chosen on all questions."""
GATES = ("length", "shared", "unsure", "bias")
"""Features that decide the trust in vectors, or words, for a question: the logarithm of one more than its number of
words; the share of it that the three best passages by words have on average (where many passages have nearly all of
it, words do not tell them apart); how unsure it is that the question names what a passage is about."""


def embedder_reliability(paraphrase_score: float) -> float:
    """Share of the trust in vectors, from 0 to 1, that an embedder with a score in English has earned."""
    return _share_between(paraphrase_score, UNRELIABLE_SCORE, RELIABLE_SCORE)


def vector_reliability(index: EvidenceIndex, vectors: FloatArray) -> float:
    """Agreement of the vectors of an index with shared rare words, from 0 to 1.

    Passages that share rare words have to be nearer to each other than to others. Over a sample of passages, the mean
    standard score of the cosines with those that share most words, divided by that of BM25, is compared with that of
    known embedders. Needs no call of the embedder.

    Args:
        index: The passages.
        vectors: Unit-length vectors of all units of the pool, `[size, dimension]`.
    """
    count = len(index.chunks)
    if count < FEWEST_PASSAGES:
        return 1.0
    others = np.unique(np.linspace(0, count - 1, min(count, SAMPLED_OTHERS)).astype(np.int64))
    compared = np.asarray(vectors[index.chunks[others]], dtype=np.float64)
    agreement = []
    for passage in np.unique(np.linspace(0, count - 1, min(count, SAMPLED_PASSAGES)).astype(np.int64)).tolist():
        by_words = _shared_words(index, passage)
        near = best_first(by_words, NEAREST)
        near = near[by_words[near] > 0]
        if not len(near):
            continue
        vector = np.asarray(vectors[index.chunks[passage]], dtype=np.float64)
        related = np.asarray(vectors[index.chunks[near]], dtype=np.float64) @ vector
        is_other = others != passage
        agreement.append(
            (
                _standard_score(related, compared[is_other] @ vector),
                _standard_score(by_words[near], by_words[others[is_other]]),
            )
        )
    by_vectors, by_bm25 = np.mean(agreement, axis=0).tolist() if agreement else (0.0, 0.0)
    if by_bm25 <= 0.0:
        return 1.0  # no passage shares words with another
    return _share_between(by_vectors / by_bm25, UNRELIABLE_AGREEMENT, RELIABLE_AGREEMENT)


def _share_between(value: float, low: float, high: float) -> float:
    """0 up to a low value, 1 from a high one on, in proportion between them."""
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _standard_score(values: DoubleArray | FloatArray, others: DoubleArray | FloatArray) -> float:
    spread = float(others.std())
    return float(values.mean() - others.mean()) / spread if spread > 0 else 0.0


def _shared_words(index: EvidenceIndex, passage: int) -> FloatArray:
    """BM25 of all passages for the rarest words of one, `[passages]`; 0 for itself and for its copies."""
    sentences, _ = index.sentences_of(np.array([passage]))
    words = np.unique(index.sentence_words.take(sentences)[1])
    words = words[index.passages.lengths(words) > 1]
    words = words[best_first(np.asarray(index.idf[words], dtype=np.float32), RAREST_WORDS)]
    scores = np.zeros(len(index.chunks), dtype=np.float32)
    for word in words.tolist():
        start, end = index.passages.starts[word], index.passages.starts[word + 1]
        scores[index.passages.values[start:end]] += index.impacts(word)
    scores[index.copied == index.copied[passage]] = 0.0
    return scores


@dataclass(frozen=True, slots=True)
class DefaultVectors:
    """Vectors of the units of a pool by the default embedder, for an index whose own are worth nothing."""

    embedder: LexicalEmbedder
    vectors: FloatArray  # `[size, dimension]`

    @classmethod
    def of(cls, view: View) -> DefaultVectors:
        """Embed the units, once per generation, with what is learned from the passages alone."""

        def arrays() -> Mapping[str, NDArray[Any]]:
            units = view.units(range(view.size))
            embedder = LexicalEmbedder().fit([unit.index_text for unit in units if unit.kind is UnitKind.CHUNK])
            return {"vectors": embedder.embed_here([unit.index_text for unit in units]), **embedder.state()}

        def restored() -> DefaultVectors:
            stored = view.cached_arrays("default vectors of passages", arrays)
            return cls(LexicalEmbedder().from_state(stored), stored["vectors"])

        return view.derived("default vectors record", restored)

    def similarities(self, question: str) -> FloatArray:
        """Cosines of the units with a question, `[size]`."""
        with np.errstate(all="ignore"):  # a forged file may hold anything
            cosines = np.asarray(row_products(self.vectors, self.embedder.embed_here([question])[0]), dtype=np.float32)
        if not np.isfinite(cosines).all():
            raise ValueError("default vectors that are not finite")
        return cosines


@dataclass(frozen=True, slots=True)
class Trust:
    """Weights of `GATES`, `[len(GATES)]` each: how much is added to the score of a passage, at least 0."""

    vectors: DoubleArray  # of a standard score of the cosine
    words: DoubleArray  # of a standard score of BM25, as far as the vectors of an index are not reliable
    reliability: float = 0.0  # of the vectors of an index, 0 for vectors of words

    def added(self, gates: DoubleArray, cosines: DoubleArray, words: DoubleArray, part_share: float) -> DoubleArray:
        """Score that a question adds to passages, `[passages]`.

        Args:
            gates: `GATES` of the question.
            cosines: Standard scores of the cosines, `[passages]`.
            words: Standard scores of BM25, `[passages]`.
            part_share: Share of the passages of the index that longer documents were cut into.
        """
        by_vectors, by_words = (max(0.0, float(gates @ table)) for table in (self.vectors, self.words))
        by_vectors += PARTS_TRUST * part_share
        return np.asarray(self.reliability * by_vectors * cosines + (1.0 - self.reliability) * by_words * words)
