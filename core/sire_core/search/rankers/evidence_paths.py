"""`EvidencePaths`: passages by their own evidence and by the sentences that lead to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.wording import excerpt
from sire_core.search.rankers.entity_graph import EntityGraph
from sire_core.search.rankers.evidence_index import EvidenceIndex
from sire_core.search.rankers.evidence_question import Leads, QuestionEvidence
from sire_core.search.rankers.evidence_texts import name_words, passage_headings, passage_sentences
from sire_core.search.rankers.evidence_weights import Weights
from sire_core.search.ranking import ScoredRanking, best_first
from sire_core.settings import check_settings, setting
from sire_core.types import Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints
    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray, FloatArray, Ranking, View

    Floats = NDArray[np.float64]

__all__ = ["EvidencePaths"]

_LONGEST_SENTENCE = 240
_BEHIND = -1000.0  # what was never a candidate comes behind all that were, by cosine


@dataclass(frozen=True, slots=True)
class EvidencePaths:
    """Ranks passages by one mixture of evidence: their own, and that of the best ways to them from other passages.

    A passage's score is the logarithm of the sum of exponentials of its own evidence and of every step that leads to
    it: from a passage that ranks high so far, over a sentence and a name in it. All weights are linear, learned once on
    half of the questions of several corpora and fixed for all. Needs the `KnowledgeGraph` organizer, whose entities are
    the names; passages without a title are about the name that they open with.

    Attributes:
        rounds: How often first passages are chosen anew and followed: 1 reaches two passages, 2 three; 0 follows no
            names.
        first: How many passages are followed in a round.
        widest: A name that more passages mention leads only to those that are about it.
        pool: How many of the best passages by vectors, and as many by words, are candidates.
    """

    rounds: int = setting(2, low=0)
    first: int = setting(15, low=1)
    widest: int = setting(40, low=1)
    pool: int = setting(200, low=1)

    def __post_init__(self) -> None:
        check_settings(self)

    def prepare(self, view: View) -> None:
        """Make the index of sentences, words and names."""
        EvidenceIndex.of(view)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter; no other passage is looked at."""
        import asyncio

        if not view.size:
            return ScoredRanking(np.zeros(0, dtype=np.float32), None, lambda _: ())
        allowed = view.allowed(where)
        cosines = await view.cosines(query, await view.embed_query(query), where)
        return await asyncio.to_thread(self._rank, query, cosines, view, allowed)

    def _rank(self, query: str, cosines: FloatArray, view: View, allowed: BoolArray | None) -> Ranking:
        index = EvidenceIndex.of(view)
        scores = cosines + np.float32(_BEHIND)
        if not len(index.chunks):
            return ScoredRanking(scores, allowed, lambda _: ())
        inside = None if allowed is None else allowed[index.chunks]
        evidence = QuestionEvidence(query, index, cosines[index.chunks], view.matrix, inside, self.pool)
        reached = self.follow(evidence, Weights.of(view.embedder_fingerprint))
        scores[index.chunks[reached.passages]] = reached.scores
        return ScoredRanking(scores, allowed, _Reasons(view, evidence, reached, cosines).path)

    def follow(self, evidence: QuestionEvidence, weights: Weights) -> Reached:
        """Scores of the candidates and of all that the steps reach."""
        passages, own, leads = self.evidence(evidence, weights)
        scores, best = _mixed(passages, own, leads, weights)
        return Reached(passages, scores.astype(np.float32), best)

    def evidence(self, evidence: QuestionEvidence, weights: Weights) -> tuple[Ints, Floats, Leads]:
        """What the last round ranks by.

        Returns:
            The candidates with all passages that steps reach, ascending; their own evidence; and the steps.
        """
        passages = evidence.candidates
        own = evidence.own(passages)
        known, evident = passages, own
        scores = own @ weights.own
        leads = evidence.leads(passages[:0], scores[:0], self.widest)
        for last in range(self.rounds, 0, -1):
            order = best_first(scores.astype(np.float32), self.first)
            leads = evidence.leads(passages[order], scores[order] - np.logaddexp.reduce(scores), self.widest)
            new = np.setdiff1d(leads.targets, known)
            order = np.argsort(np.concatenate([known, new]))
            known = np.concatenate([known, new])[order]
            evident = np.concatenate([evident, evidence.own(new)])[order]
            passages = np.union1d(evidence.candidates, leads.targets)
            own = evident[np.searchsorted(known, passages)]
            if last > 1:
                scores, _ = _mixed(passages, own, leads, weights)
        return passages, own, leads


@dataclass(frozen=True, slots=True)
class Reached:
    """Passages with their scores.

    Attributes:
        passages: Ascending, `[passages]`.
        scores: `[passages]`.
        best: The best step to a passage, where it says more than the passage itself: passage, sentence, entity.
    """

    passages: Ints
    scores: FloatArray
    best: Mapping[int, tuple[int, int, int]]


def _mixed(
    passages: Ints, own: Floats, leads: Leads, weights: Weights
) -> tuple[Floats, dict[int, tuple[int, int, int]]]:
    """Own evidence and steps in one score."""
    alone = own @ weights.own
    target = np.searchsorted(passages, leads.targets)
    steps = leads.features @ weights.step + (own @ weights.target)[target]
    most = alone.copy()
    np.maximum.at(most, target, steps)
    total = np.exp(alone - most) + np.bincount(target, np.exp(steps - most[target]), minlength=len(passages))
    best = {
        int(leads.targets[i]): (int(leads.sources[i]), int(leads.sentences[i]), int(leads.entities[i]))
        for i in np.flatnonzero((steps >= most[target]) & (steps > alone[target])).tolist()
    }
    return most + np.log(total), best


class _Reasons:
    """How a passage was reached; worked out for the hits only."""

    def __init__(self, view: View, evidence: QuestionEvidence, reached: Reached, cosines: FloatArray) -> None:
        self._view = view
        self._evidence = evidence
        self._reached = reached
        self._cosines = cosines
        self._graph = EntityGraph.of(view)
        self._labels, self._entity_ids = view.derived("evidence names", evidence.index.display)

    def path(self, position: int) -> tuple[Step, ...]:
        """The step that led to a position with the one before, then what the passage says by itself."""
        kind = self._view.kind_names[self._view.kinds[position]]
        note = f"cosine {self._cosines[position]:.3f} with the question"
        chunks = self._evidence.index.chunks
        passage = int(np.searchsorted(chunks, position))
        inside = passage < len(chunks) and chunks[passage] == position
        shared = f"; {self._shared(passage)}" if inside else ""
        own = Step(f"vector:{kind}", (self._id(position),), note + shared)
        return (*self._steps(passage), own) if inside else (own,)

    def _shared(self, passage: int) -> str:
        """Which words of the question a passage has, and the heading with most of them."""
        words = self._evidence.texts.words_in(passage)
        if not words:
            return "shares no word with it"
        [unit] = self._view.units([int(self._evidence.index.chunks[passage])])
        headings = passage_headings(unit.title, unit.text)
        asked = [sum(word in words for word in name_words(heading)) for heading in headings]
        best = f", in the heading {headings[int(np.argmax(asked))]!r} too" if any(asked) else ""
        return f"shares {', '.join(words)}{best}"

    def _steps(self, passage: int) -> tuple[Step, ...]:
        chain: list[tuple[int, int, int, int]] = []
        seen = {passage}
        while passage in self._reached.best:
            source, sentence, entity = self._reached.best[passage]
            if source in seen:
                break
            chain.insert(0, (source, sentence, entity, passage))
            seen.add(source)
            passage = source
        steps = list(self._named(passage))
        for source, sentence, entity, target in chain:
            ids = (self._passage_id(source), self._entity_ids[entity], self._passage_id(target))
            name = self._name(entity, source, target)
            note = f"names {name}: {excerpt(self._sentence(source, sentence), name, _LONGEST_SENTENCE)}"
            steps.append(Step("entity", ids, note))
        return tuple(steps)

    def _named(self, passage: int) -> tuple[Step, ...]:
        """What the question names in the passage, if anything."""
        index = self._evidence.index
        inside = set(index.entities.of(passage).tolist())
        named = [entity for entity in self._evidence.linked if entity in inside]
        if not named:
            return ()
        labels = ", ".join(self._name(entity, passage) for entity in named)
        ids = tuple(self._entity_ids[entity] for entity in named)
        return (Step("question", (*ids, self._passage_id(passage)), f"the question names {labels}"),)

    def _name(self, entity: int, *passages: int) -> str:
        """How one of some passages spells a name; others may call it what a filter hides."""
        spelled = (self._graph.name_in(passage, entity) for passage in passages)
        return next((name for name in spelled if name), self._labels[entity] or "it")

    def _sentence(self, passage: int, sentence: int) -> str:
        index = self._evidence.index
        [unit] = self._view.units([int(index.chunks[passage])])
        return passage_sentences(unit.text)[sentence - int(index.sentences.of(passage)[0])]

    def _passage_id(self, passage: int) -> str:
        return self._id(int(self._evidence.index.chunks[passage]))

    def _id(self, position: int) -> str:
        return str(self._view.ids[position].decode())
