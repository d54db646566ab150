"""How far vectors are trusted: those of an index as a whole, and for a question beside words, names and links.

People who ask in their own words share few telling words with the passage that answers them; there a good embedder
knows best. Questions written with the page open share its words, and names lead on from passage to passage; there
vectors are one voice among others. And an embedder may be worth nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sire_core.search.ranking import best_first

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.protocols import FloatArray
    from sire_core.recipes.sire.index import EvidenceIndex

    Floats = NDArray[np.float64]

SAMPLED_PASSAGES, SAMPLED_OTHERS = 64, 2000
FEWEST_PASSAGES = 32
"""Fewer passages say nothing about an embedder, which is trusted then."""
RAREST_WORDS, NEAREST = 40, 5
UNRELIABLE_AGREEMENT, RELIABLE_AGREEMENT = 0.15, 0.27
"""Of vectors with words: that of random vectors is 0, of letter n-grams in 64 dimensions .11 to .22, of embedders .29 to
.58."""
COMPARED_HITS = 10
GATES = ("outlier", "length", "agreement", "bias")
"""What decides how much vectors count for a question: the standard score among the candidates of the passage nearest to
it, its number of words, and the share of the ten nearest passages that are also among the ten best by words."""


def vector_reliability(index: EvidenceIndex, vectors: FloatArray) -> float:
    """How far the vectors of an index know what its passages share, from 0 (not at all) to 1.

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
    by_vectors, by_words_alone = np.mean(agreement, axis=0) if agreement else (1.0, 1.0)
    span = RELIABLE_AGREEMENT - UNRELIABLE_AGREEMENT
    return float(np.clip((by_vectors / by_words_alone - UNRELIABLE_AGREEMENT) / span, 0.0, 1.0))


def _standard_score(values: Floats | FloatArray, others: Floats | FloatArray) -> float:
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
        scores[index.passages.values[start:end]] += index.impacts[start:end]
    scores[index.copied == index.copied[passage]] = 0.0
    return scores


@dataclass(frozen=True, slots=True)
class Gates:
    """Weights of `GATES`, their means and spreads over the questions that they were learned on, `[len(GATES)]` each."""

    weights: Floats
    means: Floats
    spreads: Floats

    def trust(self, gates: Floats) -> float:
        """What a standard score of a cosine adds to the score of a passage, at least 0."""
        return float(np.logaddexp(0.0, self.weights @ ((gates - self.means) / self.spreads)))


def gates_of(standard_scores: Floats, by_vectors: Ints, by_words: Ints, length: int) -> Floats:
    """`GATES` of a question.

    Args:
        standard_scores: Of the cosines of the candidates, `[candidates]`.
        by_vectors: Passages nearest to the question, best first.
        by_words: The best passages by words, best first.
        length: Number of words of the question.
    """
    compared = by_vectors[:COMPARED_HITS]
    shared = np.isin(compared, by_words[:COMPARED_HITS]).mean() if len(compared) else 0.0
    return np.array([standard_scores.max(initial=0.0), length, shared, 1.0])
