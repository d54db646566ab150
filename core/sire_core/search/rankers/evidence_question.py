"""`QuestionEvidence`: how far passages answer a question by themselves, and which sentences lead on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.search.rankers.evidence_links import linked_entities
from sire_core.search.rankers.evidence_sources import FewScores, near_scores, source_scores
from sire_core.search.rankers.evidence_words import QuestionWords, largest
from sire_core.search.ranking import best_first

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.protocols import BoolArray, FloatArray, Similarities
    from sire_core.search.rankers.evidence_index import EvidenceIndex

    Floats = NDArray[np.float64]

__all__ = ["NO_LEADS", "OWN", "STEP", "Leads", "QuestionEvidence"]

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
_MOST_ABOUT = 40


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


_NOWHERE = np.zeros(0, dtype=np.int64)
NO_LEADS = Leads(_NOWHERE, _NOWHERE, _NOWHERE, _NOWHERE, np.zeros((0, len(STEP))))
"""No steps."""


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
        self._linked = np.array(list(self.linked), dtype=np.int64)
        self.texts = QuestionWords(question, index)
        self._rarity = np.log1p(len(index.chunks)) or 1.0
        self._cosines = cosines
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
        mentioned = index.holders.lengths(names)
        of_name, holders = index.holders.take(names)
        about = index.own[holders] == names[of_name]
        titles = np.bincount(of_name[about], minlength=len(names))[number]
        others = np.bincount(of_name[~about], minlength=len(names))[number]
        kept = self._followed(of_name, holders, about | (mentioned[of_name] <= widest), max(widest, _MOST_ABOUT))
        ends = np.cumsum(np.bincount(of_name[kept], minlength=len(names)))
        lengths = np.diff(ends, prepend=0)[number]
        held, followed = np.arange(len(entities)).repeat(lengths), kept[ranges((ends[number] - lengths), lengths)]
        other = holders[followed] != sources[places[held]]
        held, targets, about = held[other], holders[followed][other], about[followed][other]
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
                np.isin(entities, self._linked)[held],
                np.isin(index.own[sources], self._linked)[from_place],
                self._alike(sources, from_place, targets) / self._spread / -_LEAST_SHARE,
                about / np.maximum(1, titles)[held],
                1.0 / np.maximum(1, counts)[from_place],
                self.texts.best_sentence(targets, ~mask),
                ~about / np.maximum(1, others)[held],
                np.ones(len(held)),
            ]
        ).T
        return Leads(sources[from_place], sentences[held], entities[held], targets, features)

    def _alike(self, sources: Ints, places: Ints, targets: Ints) -> Floats:
        """Cosines of pairs: of the source at a place with a target. A passage is the target of many."""
        ends, end = np.unique(targets, return_inverse=True)
        first, second = (self._vectors[self.index.chunks[passages]] for passages in (sources, ends))
        return np.asarray((second @ first.T)[end.ravel(), places], dtype=np.float64)

    def _followed(self, names: Ints, holders: Ints, keep: BoolArray, most: int) -> Ints:
        """Places in `holders` of those that steps lead to, of each name at most so many."""
        kept = np.flatnonzero(keep if self._allowed is None else keep & self._allowed[holders])
        # A book in a thousand passages has one title: every passage would lead to all others.
        crowded = np.flatnonzero(np.bincount(names[kept])[names[kept]] > most)
        if len(crowded):
            order = crowded[np.lexsort((-self._cosine(holders[kept[crowded]]), names[kept[crowded]]))]
            group = names[kept[order]]
            kept = np.delete(kept, order[np.arange(len(order)) - np.searchsorted(group, group) >= most])
        return kept

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
