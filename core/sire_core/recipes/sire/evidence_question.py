"""`QuestionEvidence`: how far passages answer a question by themselves, and which sentences lead on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.recipes.sire.evidence_leads import Leads
from sire_core.recipes.sire.evidence_links import linked_entities
from sire_core.recipes.sire.evidence_sources import FewScores, near_scores, source_ranks, source_scores
from sire_core.recipes.sire.evidence_words import QuestionWords, largest
from sire_core.search.ranking import best_first

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.protocols import BoolArray, FloatArray, Similarities
    from sire_core.recipes.sire.evidence_index import EvidenceIndex

    Floats = NDArray[np.float64]

__all__ = ["OWN", "QuestionEvidence"]

_ALONE = (
    *("vector", "words", "coverage", "sentence", "titled", "names", "rarest name", "title words", "fused"),
    *("heading words", "heading", "phrases", "near vector", "near words", "source vector", "source words"),
)
OWN = (*_ALONE, *(f"unsure {name}" for name in _ALONE))
"""Evidence of a passage by itself: cosine and BM25 (standard scores among the candidates), share of the question that
the passage and its best sentence cover (by inverse document frequency), whether the question names what the passage is
about, rarity of the named entities it mentions (sum, and largest), share of its title's words in the question,
reciprocal ranks by cosine and by BM25; the largest share of a heading's words that the question has, and that times the
share of the question which the heading has; share of the question in words that stand side by side in both; the better
cosine and BM25 of the passages before and behind, and the best of the same source (0 where there are none, or below
the mean). Then all of these once more, times how unsure it is that the question names what
a passage is about: where names say little, similarity decides."""
_CONSTANT, _DEPTH = 61.0, 50  # of reciprocal ranks
_LEAST_SHARE = -8.0
_MOST_ABOUT = 40
_COSINE, _FIRST = 0.15, 0.5  # beside the BM25 of a part of a document: its cosine, and being the best of the document


class QuestionEvidence:
    """A question against the passages of an index.

    Attributes:
        known: Share of the question whose words the passages have; at least the rarity of a name in both.

    Args:
        question: The question.
        index: The arrays.
        cosines: Of the question with every passage.
        vectors: Of the passages by position in the pool.
        allowed: Passages that may be looked at, `[passages]`; None for all.
        pool: How many of the best by vectors, and as many by words, are candidates.
    """

    def __init__(
        self,
        question: str,
        index: EvidenceIndex,
        cosines: Similarities,
        vectors: FloatArray,
        allowed: BoolArray | None,
        pool: int,
    ) -> None:
        self.index = index
        self._vectors = vectors
        self._allowed = allowed
        self.linked = linked_entities(question, index)
        self._linked = np.array([*sorted(self.linked), np.iinfo(np.int64).max])
        self.texts = QuestionWords(question, index)
        self._rarity = np.log1p(len(index.chunks)) or 1.0
        self._cosines = cosines
        self._scale: tuple[float, float, float, float] | None = None
        self._ends: tuple[Ints, Floats] = np.zeros(0, dtype=np.int64), np.zeros(0)
        self._words = self.texts.bm25()
        self._titled, self._names, self._rarest = self._links()
        by_vectors = cosines.best(pool)[0] if allowed is None else self._best(cosines.all(), None, pool)
        by_words = self._best(self._words, 0.0, pool)
        named = self._best_of(self._names, pool // 4), self._best_of(self._titled, pool)
        self.candidates = np.unique(np.concatenate([by_vectors, by_words, *named]))
        first = [order[:_DEPTH] for order in (by_vectors, by_words)]
        fused = np.unique(np.concatenate(first))
        ranks = np.zeros(len(fused))
        for order in first:
            ranks[np.searchsorted(fused, order)] += _CONSTANT / (_CONSTANT + np.arange(len(order)))
        self._fused = FewScores.of(fused, ranks)
        sure = self._titled.at(self.candidates) * self._rarest.at(self.candidates)
        self._unsure = 1.0 - min(1.0, float(sure.max(initial=0.0)))
        self.known = max(self.texts.known(allowed), min(1.0, float(self._rarest.at(self.candidates).max(initial=0.0))))
        self._mean, self._spread = _moments(self._cosine(self.candidates))
        self._mean_words, self._spread_words = _moments(self._words[self.candidates])

    def _cosine(self, passages: Ints) -> Floats:
        """Cosines with the question; mostly of passages at the ends of steps, whose vectors were read for these."""
        ends, cosines = self._ends
        places = np.minimum(np.searchsorted(ends, passages), max(0, len(ends) - 1))
        if len(ends) and np.array_equal(ends[places], passages):
            return cosines[places]
        return self._cosines.at(passages).astype(np.float64)

    def _vector(self, passages: Ints) -> Floats:
        return (self._cosine(passages) - self._mean) / self._spread

    def _bm25(self, passages: Ints) -> Floats:
        return np.asarray((self._words[passages] - self._mean_words) / self._spread_words)

    def own(self, passages: Ints) -> Floats:
        """Evidence of passages by themselves, `[len(passages), len(OWN)]`; see `OWN`."""
        texts = self.texts
        scores = (self._vector, self._bm25)
        found = (
            *(score(passages) for score in scores),
            texts.share(texts.passages[passages]),
            texts.best_sentence(passages),
            self._titled.at(passages),
            self._names.at(passages),
            self._rarest.at(passages),
            texts.title_share(passages),
            self._fused.at(passages),
            *texts.headed(passages),
            texts.phrases(passages),
            *near_scores(self.index, passages, scores, self._allowed),
            *source_scores(self.index, passages, scores, self._allowed),
        )
        alone = np.array(found).T
        return np.concatenate([alone, self._unsure * alone], axis=1)

    def alone(self, passages: Ints, own: Floats, weights: Floats) -> Floats:
        """Scores of passages by their own evidence, `[len(passages)]`.

        Passages that are documents by themselves are scored by `weights`. Of passages that a longer document was cut
        into, names and titles say little: they are scored by BM25, cosine and their rank within the document, on the
        scale that the other scores have among the candidates.

        Args:
            passages: Numbers of the passages.
            own: Their evidence, `[len(passages), len(OWN)]`.
            weights: One for each feature, `[len(OWN)]`.
        """
        scores = np.asarray(own @ weights)
        cut = self.is_cut(passages)
        if self._scale is None:
            self._scale = (*_moments(scores), *_moments(self._of_document(passages)))
        if cut.any():
            mean, spread, mean_of_document, spread_of_document = self._scale
            of_document = (self._of_document(passages[cut]) - mean_of_document) / spread_of_document
            scores[cut] = mean + spread * of_document
        return scores

    def is_cut(self, passages: Ints) -> BoolArray:
        """Whether passages are parts of documents that have several."""
        return np.asarray(self.index.members.lengths(self.index.source[passages]) > 1)

    def _of_document(self, passages: Ints) -> Floats:
        """Score of passages of longer documents: BM25, cosine and the rank within the document."""
        ranks = source_ranks(self.index, passages, self._words, self._allowed)
        return self._bm25(passages) + _COSINE * self._vector(passages) + _FIRST / (1.0 + ranks)

    def hybrid(self, passages: Ints) -> Floats:
        """Log share of passages, `[len(passages)]`, that falls as 1 / place in hybrid search; 0 behind its depth."""
        fused = self._fused.at(passages)
        places = np.arange(1, np.count_nonzero(fused) + 1)
        shares = np.full(len(passages), -np.inf)
        shares[best_first(fused.astype(np.float32), len(places))] = -np.log(places * (1.0 / places).sum())
        return shares

    def leads(self, sources: Ints, shares: Floats, widest: int) -> Leads:
        """Steps from some passages to others over the names in their sentences.

        Args:
            sources: First passages, distinct.
            shares: Log share of each among all candidates.
            widest: Names that more passages mention lead only to those that are about them; at most to so many, and no
                fewer than 40: those nearest to the question.
        """
        index = self.index
        places, sentences, entities, counts = self._named_in(sources)
        names, number = np.unique(entities, return_inverse=True)
        mentioned, titles = index.holders.lengths(names), index.owners.lengths(names)
        of_name, holders = self._followed(names, mentioned <= widest, max(widest, _MOST_ABOUT))
        counts_held = np.bincount(of_name, minlength=len(names))
        lengths = counts_held[number]
        held = np.arange(len(entities)).repeat(lengths)
        targets = holders[ranges((counts_held.cumsum() - counts_held)[number], lengths)]
        other = np.flatnonzero(targets != sources[places[held]])
        held, targets = held[other], targets[other]
        about = index.own[targets] == entities[held]
        from_place = places[held]
        mask, target_masks = self.texts.passages[sources][from_place], self.texts.passages[targets]
        rarity = (np.log1p(len(index.chunks) / np.maximum(1, mentioned)) / self._rarity)[number]
        features = np.array(
            [
                np.maximum(shares, _LEAST_SHARE)[from_place] / -_LEAST_SHARE,
                self.texts.share(self.texts.sentences[sentences])[held],
                self.texts.share(target_masks & ~mask),
                self.texts.share(target_masks | mask),
                about,
                rarity[held],
                self._is_linked(entities)[held],
                self._is_linked(index.own[sources])[from_place],
                self._alike(sources, from_place, targets) / self._spread / -_LEAST_SHARE,
                about / np.maximum(1, titles)[number][held],
                1.0 / np.maximum(1, counts)[from_place],
                self.texts.best_sentence(targets, ~mask),
                ~about / np.maximum(1, mentioned - titles)[number][held],
                np.ones(len(held)),
            ]
        ).T
        return Leads(sources[from_place], sentences[held], entities[held], targets, features)

    def _is_linked(self, entities: Ints) -> BoolArray:
        """Whether the question names some entities."""
        return np.asarray(self._linked[np.searchsorted(self._linked, entities)] == entities, dtype=bool)

    def _alike(self, sources: Ints, places: Ints, targets: Ints) -> Floats:
        """Cosines of pairs: of the source at a place with a target. A passage is the target of many."""
        ends, end = np.unique(targets, return_inverse=True)
        first, second = (self._vectors[self.index.chunks[passages]] for passages in (sources, ends))
        self._ends = ends, self._cosines.at(ends, second).astype(np.float64)
        return np.asarray((second @ first.T)[end.ravel(), places], dtype=np.float64)

    def _followed(self, names: Ints, narrow: BoolArray, most: int) -> tuple[Ints, Ints]:
        """Passages that steps over some names lead to, of each name at most so many: place of the name, and passage.

        Args:
            names: The names, distinct.
            narrow: Which lead to every passage that mentions them; the others only to those that are about them.
            most: How many passages of a name are followed.
        """
        lists = (self.index.holders, np.flatnonzero(narrow)), (self.index.owners, np.flatnonzero(~narrow))
        taken = [(places, *held.take(names[places])) for held, places in lists]
        of_name = np.concatenate([places[which] for places, which, _ in taken])
        passages = np.concatenate([found for *_, found in taken])
        order = np.argsort(of_name, kind="stable")
        if self._allowed is not None:
            order = order[self._allowed[passages[order]]]
        of_name, passages = of_name[order], passages[order]
        # A book in a thousand passages has one title: every passage would lead to all others.
        crowded = np.flatnonzero(np.bincount(of_name)[of_name] > most)
        if not len(crowded):
            return of_name, passages
        order = crowded[np.lexsort((-self._cosine(passages[crowded]), of_name[crowded]))]
        group = of_name[order]
        left_out = order[np.arange(len(order)) - np.searchsorted(group, group) >= most]
        return np.delete(of_name, left_out), np.delete(passages, left_out)

    def _named_in(self, sources: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Names of passages: place of the passage, the name's sentence that covers most of the question, the entity.

        What a passage itself is about comes with its first sentence, unless another names it; it leads to other
        passages about the same. Also how many names each passage has.
        """
        index = self.index
        sentences, lengths = index.sentences_of(sources)
        places = np.arange(len(sources)).repeat(lengths)
        inside, entities = index.mentions.take(sentences)
        places, sentences = places[inside], sentences[inside]
        others = index.own[sources[places]] != entities
        places, sentences, entities = places[others], sentences[others], entities[others]
        covered = self.texts.share(self.texts.sentences[sentences])
        order = np.lexsort((sentences, -covered, entities, places))
        places, sentences, entities = places[order], sentences[order], entities[order]
        first = np.ones(len(places), dtype=bool)
        first[1:] = (places[1:] != places[:-1]) | (entities[1:] != entities[:-1])
        owners = np.flatnonzero((index.own[sources] >= 0) & (index.sentences.lengths(sources) > 0))
        places = np.concatenate([places[first], owners])
        sentences = np.concatenate([sentences[first], self._best_sentences(sources[owners])])
        entities = np.concatenate([entities[first], index.own[sources[owners]]])
        return places, sentences, entities, np.bincount(places, minlength=len(sources))

    def _best_sentences(self, passages: Ints) -> Ints:
        """The sentence of each passage that covers most of the question."""
        sentences, lengths = self.index.sentences_of(passages)
        covered = self.texts.share(self.texts.sentences[sentences])
        best = np.flatnonzero(covered == largest(covered, lengths).repeat(lengths))
        owners = np.arange(len(passages)).repeat(lengths)[best]
        return np.asarray(sentences[best[np.searchsorted(owners, np.arange(len(passages)))]], dtype=np.int64)

    def _links(self) -> tuple[FewScores, FewScores, FewScores]:
        """By passage: how surely the question names what it is about; sum and largest rarity of named entities."""
        index, size = self.index, len(self.index.chunks)
        held = {entity: (index.holders.of(entity), index.owners.of(entity)) for entity in self.linked}
        either = [passages for both in held.values() for passages in both]
        touched = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *either]))
        titled, names, rarest = (np.zeros(len(touched)) for _ in range(3))
        for entity, sure in self.linked.items():
            holders, about = (np.searchsorted(touched, passages) for passages in held[entity])
            weight = sure * np.log1p(size / max(1, len(holders))) / self._rarity
            names[holders] += weight
            rarest[holders] = np.maximum(rarest[holders], weight)
            titled[about] = np.maximum(titled[about], sure)
        return FewScores.of(touched, titled), FewScores.of(touched, names), FewScores.of(touched, rarest)

    def _best_of(self, scores: FewScores, count: int) -> Ints:
        """The best allowed passages of those that have a score."""
        kept = scores.values > 0
        if self._allowed is not None:
            kept[:-1] &= self._allowed[scores.passages[:-1]]
        inside = np.flatnonzero(kept)
        return scores.passages[inside[best_first(scores.values[inside].astype(np.float32), count)]]

    def _best(self, scores: Floats | FloatArray, least: float | None, count: int) -> Ints:
        """The best allowed passages whose score is above `least`."""
        kept = np.ones(len(scores), dtype=bool) if least is None else scores > least
        inside = np.flatnonzero(kept if self._allowed is None else kept & self._allowed)
        return inside[best_first(scores[inside].astype(np.float32), count)]


def _moments(values: Floats) -> tuple[float, float]:
    """Mean and standard deviation; 0 and 1 of nothing or of equal values."""
    if not len(values):
        return 0.0, 1.0
    spread = float(values.std())
    return float(values.mean()), spread if spread > 1e-9 else 1.0
