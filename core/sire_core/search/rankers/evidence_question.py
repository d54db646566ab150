"""`QuestionEvidence`: how far passages answer a question by themselves, and which sentences lead on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import ranges
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
        self._is_linked = np.zeros(len(index.holders) + 1, dtype=bool)  # the last one is for passages about nothing
        self._is_linked[list(self.linked)] = True
        self.texts = QuestionWords(question, index)
        size = len(index.chunks)
        self._rarity = np.log1p(size) or 1.0
        self._cosines = cosines.astype(np.float64)
        self._words = self.texts.bm25()
        self._titled, self._names, self._rarest = self._links(size)
        by_vectors, by_words = self._best(self._cosines, None, pool), self._best(self._words, 0.0, pool)
        named = self._best(self._names, 0.0, pool // 4), self._best(self._titled, 0.0, pool)
        self.candidates = np.unique(np.concatenate([by_vectors, by_words, *named]))
        self._fused = np.zeros(size)
        for order in (by_vectors[:_DEPTH], by_words[:_DEPTH]):
            self._fused[order] += _CONSTANT / (_CONSTANT + np.arange(len(order)))
        self._unsure = 1.0 - min(1.0, float((self._titled * self._rarest)[self.candidates].max(initial=0.0)))
        scores = (self._cosines, self._words)
        (mean, self._spread), (mean_words, spread_words) = (_moments(found[self.candidates]) for found in scores)
        self._vector, self._bm25 = (self._cosines - mean) / self._spread, (self._words - mean_words) / spread_words
        sources = _Sources(index, allowed)
        self._around = [of(found) for of in (sources.near, sources.elsewhere) for found in (self._vector, self._bm25)]

    def own(self, passages: Ints) -> Floats:
        """Evidence of passages by themselves, `[len(passages), len(OWN)]`; see `OWN`."""
        texts = self.texts
        found = (
            self._vector[passages],
            self._bm25[passages],
            texts.share(texts.passages[passages]),
            texts.best_sentence(passages),
            self._titled[passages],
            self._names[passages],
            self._rarest[passages],
            texts.title_share(passages),
            self._fused[passages],
            *texts.headed(passages),
            texts.phrases(passages),
            *(around[passages] for around in self._around),
        )
        alone = np.array(found).T
        return np.concatenate([alone, self._unsure * alone], axis=1)

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
        first, second = self._vectors[index.chunks[sources]], self._vectors[index.chunks[targets]]
        features = np.array(
            [
                np.maximum(shares, _LEAST_SHARE)[from_place] / -_LEAST_SHARE,
                self.texts.share(self.texts.sentences[sentences])[held],
                self.texts.share(target_masks & ~mask),
                self.texts.share(target_masks | mask),
                about,
                rarity[held],
                self._is_linked[entities][held],
                self._is_linked[index.own[sources]][from_place],
                np.einsum("ij,ij->i", first[from_place], second) / self._spread / -_LEAST_SHARE,
                about / np.maximum(1, titles)[held],
                1.0 / np.maximum(1, counts)[from_place],
                self.texts.best_sentence(targets, ~mask),
                ~about / np.maximum(1, others)[held],
                np.ones(len(held)),
            ]
        ).T
        return Leads(sources[from_place], sentences[held], entities[held], targets, features)

    def _followed(self, names: Ints, holders: Ints, keep: BoolArray, most: int) -> Ints:
        """Places in `holders` of those that steps lead to, of each name at most so many."""
        kept = np.flatnonzero(keep if self._allowed is None else keep & self._allowed[holders])
        # A book in a thousand passages has one title: every passage would lead to all others.
        crowded = np.flatnonzero(np.bincount(names[kept])[names[kept]] > most)
        if len(crowded):
            order = crowded[np.lexsort((-self._cosines[holders[kept[crowded]]], names[kept[crowded]]))]
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

    def _best(self, scores: Floats, least: float | None, count: int) -> Ints:
        """The best allowed passages whose score is above `least`."""
        if least is None and self._allowed is None:
            return best_first(scores.astype(np.float32), count)
        kept = np.ones(len(scores), dtype=bool) if least is None else scores > least
        inside = np.flatnonzero(kept if self._allowed is None else kept & self._allowed)
        return inside[best_first(scores[inside].astype(np.float32), count)]


class _Sources:
    """What passages beside one another in a source, and of the same source, score.

    Args:
        index: The arrays.
        allowed: Passages that count; None for all.
    """

    def __init__(self, index: EvidenceIndex, allowed: BoolArray | None) -> None:
        self._order = index.members.values
        self._lengths = np.diff(index.members.starts)
        self._apart = len(self._lengths) == len(self._order)  # every passage is a source of its own
        self._first = index.members.starts[:-1]
        self._allowed = None if allowed is None else allowed[self._order]

    def near(self, scores: Floats) -> Floats:
        """The better score of the passages before and behind; at least 0, `[passages]`."""
        found = np.zeros(len(scores))
        if not self._apart:
            score = self._counted(scores)
            before, behind = np.append(0.0, score[:-1]), np.append(score[1:], 0.0)
            before[self._first] = 0.0
            behind[self._first[1:] - 1] = 0.0
            found[self._order] = np.maximum(before, behind)
        return found

    def elsewhere(self, scores: Floats) -> Floats:
        """The best score of the other passages of the same source; at least 0, `[passages]`."""
        found = np.zeros(len(scores))
        if not self._apart:
            score = self._counted(scores)
            best = np.maximum.reduceat(score, self._first).repeat(self._lengths)
            at_best = score == best
            others = np.where(at_best, 0.0, score)
            second = np.maximum.reduceat(others, self._first).repeat(self._lengths)
            alone = np.add.reduceat(at_best.astype(np.int64), self._first).repeat(self._lengths) == 1
            found[self._order] = np.where(at_best & alone, second, best)
        return found

    def _counted(self, scores: Floats) -> Floats:
        score = np.maximum(scores[self._order], 0.0)
        return score if self._allowed is None else np.where(self._allowed, score, 0.0)


def _moments(values: Floats) -> tuple[float, float]:
    """Mean and standard deviation; 0 and 1 of nothing or of equal values."""
    if not len(values):
        return 0.0, 1.0
    spread = float(values.std())
    return float(values.mean()), spread if spread > 1e-9 else 1.0
