"""`QuestionEvidence`: how far passages answer a question by themselves, and which sentences lead on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.search.rankers.evidence_links import linked_entities
from sire_core.search.rankers.evidence_words import QuestionWords, largest
from sire_core.search.ranking import best_first

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.protocols import BoolArray, FloatArray
    from sire_core.search.rankers.evidence_index import EvidenceIndex

    Floats = NDArray[np.float64]

__all__ = ["OWN", "STEP", "Leads", "QuestionEvidence"]

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
STEP = (
    *("from", "sentence", "new words", "both", "to title", "rarity", "asked", "from title", "alike", "single title"),
    *("few names", "new in sentence", "few holders", "bias"),
)
"""Evidence of a step from a passage over a sentence and a name to another passage: log share of the first among all
candidates, the sentence's share of the question, what the other adds to it and what both cover, whether the other is
about the name, how rare the name is, whether the question names it, whether the question names what the first is about,
cosine of both, 1 / how many passages are about the name, 1 / names of the first, what the other's best sentence adds,
1 / how many others mention it."""
_CONSTANT, _DEPTH = 61.0, 50  # of reciprocal ranks
_LEAST_SHARE = -8.0


@dataclass(frozen=True, slots=True)
class Leads:
    """Steps from first passages over a sentence and a name to other passages, `[steps]` each.

    Attributes:
        sources: Passage of the step's beginning.
        sentences: Sentence of it that has the name.
        entities: The name.
        targets: Where the step leads.
        features: See `STEP`, `[steps, len(STEP)]`.
    """

    sources: Ints
    sentences: Ints
    entities: Ints
    targets: Ints
    features: Floats


class QuestionEvidence:
    """A question against the passages of an index.

    Args:
        question: The question.
        index: The arrays.
        cosines: Of the question with every passage, `[passages]`.
        vectors: Of the passages by position in the pool.
        allowed: Passages that may be looked at, `[passages]`; None for all.
        pool: How many of the best by vectors, and as many by words, are candidates.
    """

    def __init__(
        self,
        question: str,
        index: EvidenceIndex,
        cosines: FloatArray,
        vectors: FloatArray,
        allowed: BoolArray | None,
        pool: int,
    ) -> None:
        self.index = index
        self._vectors = vectors
        self._allowed = allowed
        self.linked = linked_entities(question, index)
        self._texts = QuestionWords(question, index)
        size = len(index.chunks)
        self._rarity = np.log1p(size) or 1.0
        self._cosines = cosines.astype(np.float64)
        self._words = self._texts.bm25()
        self._titled, self._names, self._rarest = self._links(size)
        self.candidates = self._pool(pool)
        self._fused = self._reciprocal_ranks(size)
        self._unsure = 1.0 - min(1.0, float((self._titled * self._rarest)[self.candidates].max(initial=0.0)))
        self._scale = [_moments(scores[self.candidates]) for scores in (self._cosines, self._words)]

    def own(self, passages: Ints) -> Floats:
        """Evidence of passages by themselves, `[len(passages), len(OWN)]`; see `OWN`."""
        masks, best = self._texts.covered(passages)
        vector, words = self._cosines - self._scale[0][0], self._words - self._scale[1][0]
        vector, words = vector / self._scale[0][1], words / self._scale[1][1]
        alone = np.stack(
            [
                vector[passages],
                words[passages],
                self._texts.share(masks),
                best,
                self._titled[passages],
                self._names[passages],
                self._rarest[passages],
                self._texts.title_share(passages),
                self._fused[passages],
                *self._texts.headed(passages),
                self._texts.phrases(passages),
                *(self._near(passages, scores) for scores in (vector, words)),
                *(self._in_source(passages, scores) for scores in (vector, words)),
            ],
            axis=1,
        )
        return np.concatenate([alone, self._unsure * alone], axis=1)

    def leads(self, sources: Ints, shares: Floats, widest: int) -> Leads:
        """Steps from some passages to others over the names in their sentences.

        Args:
            sources: First passages, distinct.
            shares: Log share of each among all candidates.
            widest: Names that more passages mention lead only to those that are about them.
        """
        index = self.index
        places, sentences, entities, counts = self._named_in(sources)
        held, holders = index.holders.take(entities)
        about = index.own[holders] == entities[held]
        others = np.bincount(held[~about], minlength=len(entities))
        titles = np.bincount(held[about], minlength=len(entities))
        keep = (about | (index.holders.lengths(entities)[held] <= widest)) & (holders != sources[places[held]])
        if self._allowed is not None:
            keep &= self._allowed[holders]
        held, targets, about = held[keep], holders[keep], about[keep]
        from_place = places[held]
        masks, _ = self._texts.covered(sources)
        mask = masks[from_place]
        target_masks, new_best = self._texts.covered(targets, ~mask)
        rarity = np.log1p(len(index.chunks) / np.maximum(1, index.holders.lengths(entities))) / self._rarity
        linked = np.isin(entities, list(self.linked))
        first, second = self._vectors[index.chunks[sources]], self._vectors[index.chunks[targets]]
        features = np.stack(
            [
                np.maximum(shares, _LEAST_SHARE)[from_place] / -_LEAST_SHARE,
                self._texts.share(self._texts.sentence_masks(sentences))[held],
                self._texts.share(target_masks & ~mask),
                self._texts.share(target_masks | mask),
                about.astype(np.float64),
                rarity[held],
                linked[held].astype(np.float64),
                np.isin(index.own[sources], list(self.linked))[from_place].astype(np.float64),
                np.einsum("ij,ij->i", first[from_place], second) / self._scale[0][1] / -_LEAST_SHARE,
                about / np.maximum(1, titles)[held],
                1.0 / np.maximum(1, counts)[from_place],
                new_best,
                ~about / np.maximum(1, others)[held],
                np.ones(len(held)),
            ],
            axis=1,
        )
        return Leads(sources[from_place], sentences[held], entities[held], targets, features)

    def _named_in(self, sources: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Names of passages: place of the passage, the name's sentence that covers most of the question, the entity.

        What a passage itself is about comes with its first sentence, unless another names it; it leads to other
        passages about the same. Also how many names each passage has.
        """
        index = self.index
        places, sentences = index.sentences.take(sources)
        inside, entities = index.mentions.take(sentences)
        places, sentences = places[inside], sentences[inside]
        others = index.own[sources[places]] != entities
        places, sentences, entities = places[others], sentences[others], entities[others]
        covered = self._texts.share(self._texts.sentence_masks(sentences))
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
        places, sentences = self.index.sentences.take(passages)
        covered = self._texts.share(self._texts.sentence_masks(sentences))
        order = np.lexsort((sentences, -covered, places))
        first = np.searchsorted(places[order], np.arange(len(passages)))
        return np.asarray(sentences[order][first], dtype=np.int64)

    def _links(self, size: int) -> tuple[Floats, Floats, Floats]:
        """By passage: how surely the question names what it is about; sum and largest rarity of named entities."""
        index = self.index
        titled, names, rarest = np.zeros(size), np.zeros(size), np.zeros(size)
        for entity, sure in self.linked.items():
            holders = index.holders.of(entity)
            weight = sure * np.log1p(size / max(1, len(holders))) / self._rarity
            names[holders] += weight
            rarest[holders] = np.maximum(rarest[holders], weight)
            about = index.owners.of(entity)
            titled[about] = np.maximum(titled[about], sure)
        return titled, names, rarest

    def _near(self, passages: Ints, scores: Floats) -> Floats:
        """The better score of the passages before and behind in the same source; at least 0."""
        index = self.index
        source = index.source[passages]
        best = np.zeros(len(passages))
        for step in (-1, 1):
            place = index.place[passages] + step
            there = (place >= 0) & (place < index.members.lengths(source))
            other = index.members.values[np.where(there, index.members.starts[source] + place, 0)]
            if self._allowed is not None:
                there &= self._allowed[other]
            best = np.maximum(best, np.where(there, scores[other], 0.0))
        return best

    def _in_source(self, passages: Ints, scores: Floats) -> Floats:
        """The best score of the other passages of the same source; at least 0."""
        index = self.index
        sources, back = np.unique(index.source[passages], return_inverse=True)
        _, others = index.members.take(sources)
        found = np.maximum(scores[others], 0.0)
        if self._allowed is not None:
            found = np.where(self._allowed[others], found, 0.0)
        lengths = index.members.lengths(sources)
        starts = np.cumsum(lengths) - lengths
        best = largest(found, lengths)
        first = np.minimum.reduceat(
            np.where(found == np.repeat(best, lengths), np.arange(len(found)), len(found)), starts
        )
        mine = others[first]
        found[first] = 0.0
        second = largest(found, lengths)
        return np.where(mine[back] == passages, second[back], best[back])

    def _reciprocal_ranks(self, size: int) -> Floats:
        fused = np.zeros(size)
        for scores, least in ((self._cosines, None), (self._words, 0.0)):
            order = self._best(scores, least, _DEPTH)
            fused[order] += _CONSTANT / (_CONSTANT + np.arange(len(order)))
        return fused

    def _pool(self, count: int) -> Ints:
        kept = [
            self._best(self._cosines, None, count),
            self._best(self._words, 0.0, count),
            self._best(self._names, 0.0, count // 4),
            self._best(self._titled, 0.0, count),
        ]
        return np.unique(np.concatenate(kept))

    def _best(self, scores: Floats, least: float | None, count: int) -> Ints:
        """The best allowed passages whose score is above `least`."""
        hidden = _hidden(scores, self._allowed, least)
        return best_first(np.where(hidden, -np.inf, scores).astype(np.float32), count)


def _hidden(scores: Floats, allowed: BoolArray | None, least: float | None) -> BoolArray:
    hidden = np.zeros(len(scores), dtype=bool) if least is None else scores <= least
    return hidden if allowed is None else hidden | ~allowed


def _moments(values: Floats) -> tuple[float, float]:
    """Mean and standard deviation; 0 and 1 of nothing or of equal values."""
    if not len(values):
        return 0.0, 1.0
    spread = float(values.std())
    return float(values.mean()), spread if spread > 1e-9 else 1.0
