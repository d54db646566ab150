"""`EvidencePaths`: ranks passages by their own evidence and by the sentences that lead to them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sire_core.arrays.grouping import distinct
from sire_core.arrays.products import row_products
from sire_core.documents.heading_paths import title_path
from sire_core.documents.markdown_sections import heading_texts
from sire_core.extraction.headings import is_everyday
from sire_core.recipes.sire.evidence_index import EvidenceIndex
from sire_core.recipes.sire.passage_arrays import name_words, passage_headings
from sire_core.recipes.sire.question import NO_HOPS, OWN, Hops, QueryFeatures
from sire_core.recipes.sire.trust import DefaultVectors
from sire_core.recipes.sire.weights import Weights
from sire_core.search.passages import titled_sentences
from sire_core.search.ranking import ReachedRanking, ScoredRanking, best_first, cosine_step
from sire_core.search.vectors.sq_index import KnownSimilarities, SQIndex
from sire_core.settings import check_settings, setting
from sire_core.storage.checksums import stored_values
from sire_core.text.pluralize import excerpt, shorten
from sire_core.text.snippets import has_form, readable_sentences, stem, stems
from sire_core.text.words import find_words, with_parts
from sire_core.types import PathStep, Unit

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray, DoubleArray, IntArray, Ranking, Similarities, View


MAX_QUOTE_CHARS, MAX_TITLE_CHARS = 240, 60
MAX_INFLECTION_LETTERS = 3
"""Letters that forms of one word differ by at most: more make another word (`author`, `authorized`)."""
MIN_NAME_CONFIDENCE = 0.5
"""Least confidence that a name of the question is the subject of a passage."""
_MARKED = re.compile(r"\A[-/$.@]|\(\)\Z")
"""Marks of identifiers: `--gpus`, `$HOME`, `open()`."""


def unit_sentences(unit: Unit) -> list[str]:
    """Sentences of a passage, as their numbers count them."""
    return titled_sentences(unit.title, unit.text)[1]


class EvidenceReasons:
    """Paths to passages, worked out for the hits only."""

    def __init__(self, view: View, scored: ScoredPassages, cosines: Similarities, rounds: int) -> None:
        self._view = view
        self._rounds = rounds
        self._scored = scored
        self._evidence = scored.evidence
        self._best = scored.best()
        self._cosines = cosines
        self._index = scored.evidence.index
        self._read: dict[int, Unit] = {}
        self._split: dict[int, list[str]] = {}

    def path(self, position: int) -> tuple[PathStep, ...]:
        """The step that led to a position with the one before, then what the passage says by itself."""
        chunks = self._index.chunks
        passage = int(np.searchsorted(chunks, position))
        inside = passage < len(chunks) and chunks[passage] == position
        shared = f"{self._shared(passage)}; " if inside else ""
        cosine = cosine_step(self._view, position, self._cosines.at(np.array([position]))[0], shared)
        return (*self._steps(passage), cosine) if inside else (cosine,)

    def reading(self, positions: IntArray) -> tuple[DoubleArray, list[str]]:
        """Weights and leads for a reranker (`ReadableRanking`); a document that the question names counts less."""
        passages = np.searchsorted(self._index.chunks, positions)
        cut = self._evidence.is_cut(passages)
        leads = ["" if part else self._lead(passage) for passage, part in zip(passages.tolist(), cut, strict=True)]
        return np.where(cut, RERANK_WEIGHT, RERANK_WEIGHT * max(MIN_RERANK_SHARE, self._evidence.unsure)), leads

    def _lead(self, passage: int) -> str:
        """The sentence of the best step to a passage; empty if it is there by itself."""
        if passage not in self._best or self._is_named(passage):
            return ""
        source, sentence, _ = self._best[passage]
        return " ".join(readable_sentences(self._sentence(source, sentence)))

    def _shared(self, passage: int) -> str:
        """Which words of the question a passage has, and the heading with most of them."""
        unit = self._unit(passage)
        own_words = find_words(with_parts(f"{unit.title}\n{unit.text}").lower())
        words = self._evidence.texts.words_in(passage)
        letters = {word[0].lower() for word in words}
        own_words = list(dict.fromkeys(word for word in own_words if word[0] in letters))  # forms begin alike
        words = [word for word in words if has_form(word, own_words)]
        if not words:
            return "shares no word"
        headings = passage_headings(unit)
        shared_counts = [sum(word in words for word in name_words(with_parts(heading))) for heading in headings]
        best = headings[int(np.argmax(shared_counts))] if any(shared_counts) else ""
        is_heading = best in (*title_path(unit.title), *heading_texts(unit.text, unit.blocks))
        also = (
            f" (also in the {'heading' if is_heading else 'line'} '{shorten(best, MAX_TITLE_CHARS)}')" if best else ""
        )
        spelled = ", ".join(word + _other_form(word, own_words) for word in words)
        return f"shares the word{'s' if len(words) > 1 else ''} {spelled}{also}"

    def _steps(self, passage: int) -> tuple[PathStep, ...]:
        """Names of the question, and the steps to a passage from the strongest one on the way."""
        way = [passage]
        while len(way) <= self._rounds and passage in self._best and not self._is_named(passage):
            passage = self._best[passage][0]
            if passage in way:
                break
            way.append(passage)
        way = way[: int(np.argmax([self._strength(passage) for passage in way])) + 1]
        if len(way) > 1 and self._needs_no_way(way):
            way = way[:1]
        steps, name = list(self._named(way[-1])), ""
        hops: list[tuple[int, int, list[int]]] = []
        for source, target in zip(way[:0:-1], way[-2::-1], strict=True):
            _, number, entity = self._best[target]
            if hops and hops[-1][1] == entity:  # what lies between only has the name, too
                hops[-1][2].append(target)
            else:
                hops.append((number, entity, [source, target]))
        for sentence, entity, passages in hops:
            step, name = self._step(sentence, entity, passages, name)
            if step is None:
                return self._named(way[0])
            steps.append(step)
        return tuple(steps)

    def _step(self, number: int, entity: int, passages: list[int], last: str) -> tuple[PathStep | None, str]:
        """The step over a name in a sentence from the first to the last of some passages, and the name.

        Of a table that names several who lead there the row is told that has most of the question and of the last name.
        None if the sentence has another word than the name.
        """
        source, target = passages[0], passages[-1]
        parts = readable_sentences(self._sentence(source, number))
        if len(parts) > 1 and passages == [source, target] and self._index.own[target] != entity:
            several = (entity, *self._scored.names_between(source, number, target))
            names = {one: self._name(one, source) for one in several}
            entity = _in_fullest_row(names, [*self._evidence.texts.words_in(source), last], parts)
        ids = (
            self._passage_id(source),
            self._view.shown_entity(self._index.entity_id(entity)),
            self._passage_id(target),
        )
        name = self._name(entity, *passages) or "it"
        title = self._title(source)
        way_by = f"{title!r} names {name}"
        if title.casefold() == name.casefold() and self._index.own[target] == entity:
            way_by = f"{name} is the title of another passage"
        elif title.casefold() == name.casefold():  # the passage names what the one before it is about
            way_by = f"names {name}, the title of another passage"
            parts = next(([part] for part in self._sentences(target) if name.casefold() in part.casefold()), [])
        if any(_is_other_word(name, part) for part in parts):
            return None, name
        sentence = excerpt(" ".join([part for part in parts if name in part] or parts), name, MAX_QUOTE_CHARS)
        return PathStep("entity", ids, f"{way_by}: {sentence}" if sentence else way_by, sentence, name), name

    def _needs_no_way(self, way: list[int]) -> bool:
        """True if the question by itself leads to a passage.

        The passage has all words of the question that its way begins with, others in its title, or the last name is
        one of the question.
        """
        ended, begun = (self._evidence.texts.words_in(passage) for passage in (way[0], way[-1]))
        title = {stem(word) for word in name_words(self._unit(way[0]).title)}
        covers = bool(begun) and set(begun) <= set(ended)
        is_titled = any(stem(word) in title for word in ended if word not in begun)
        return covers or is_titled or self._best[way[0]][2] in self._evidence.named

    def _strength(self, passage: int) -> float:
        """Strength of a passage without steps; infinite for one that the question names."""
        return np.inf if self._is_named(passage) else self._scored.score_alone(passage)

    def _title(self, passage: int) -> str:
        unit = self._unit(passage)
        return shorten(unit.title or unit.text.strip().partition("\n")[0], MAX_TITLE_CHARS)

    def _is_named(self, passage: int) -> bool:
        """True if the question names what a passage is about: no step has to lead there."""
        return self._evidence.linked.get(int(self._index.own[passage]), 0.0) >= MIN_NAME_CONFIDENCE

    def _unit(self, passage: int) -> Unit:
        if passage not in self._read:
            [self._read[passage]] = self._view.units([int(self._index.chunks[passage])])
        return self._read[passage]

    def _sentences(self, passage: int) -> list[str]:
        return [part for sentence in unit_sentences(self._unit(passage)) for part in readable_sentences(sentence)]

    def _sentence(self, passage: int, sentence: int) -> str:
        if passage not in self._split:
            self._split[passage] = unit_sentences(self._unit(passage))
        return self._split[passage][sentence - self._index.first_sentence(passage)]

    def _named(self, passage: int) -> tuple[PathStep, ...]:
        """Step for the names of the question in a passage, if there are any."""
        inside = set(self._index.entities.of(passage).tolist())
        labels, codes = dict[str, str](), dict[str, str]()
        ids = []
        for entity, asked_name in self._evidence.named.items():
            is_word = asked_name.islower() and is_everyday(asked_name)  # `fixes` in a question without capitals
            if entity in inside and not is_word and (name := self._name(entity, passage)):
                ids.append(self._view.shown_entity(self._index.entity_id(entity)))
                if asked_name and _MARKED.search(name) and asked_name.lower() != name.lower():
                    codes[asked_name] = f"a word of {name}"
                    continue
                # Another spelling explains a name only if they share no word.
                is_other = asked_name.lower() not in name.lower() and stems(asked_name).isdisjoint(stems(name))
                labels[asked_name or name] = labels.get(asked_name) or (name if is_other else "")
        if not ids:
            return ()
        names = ", ".join(
            f"{asked_name} ({name})" if name else asked_name for asked_name, name in (codes | labels).items()
        )
        return (PathStep("question", (*ids, self._passage_id(passage)), f"the question names {names}"),)

    def _name(self, entity: int, *passages: int) -> str:
        """Spelling of a name in one of some passages, empty if none has it; others may be hidden by a filter."""
        spelled = (self._index.name_in(passage, entity) for passage in passages)
        return next((name for name in spelled if name), self._index.label(entity))

    def _passage_id(self, passage: int) -> str:
        return self._id(int(self._index.chunks[passage]))

    def _id(self, position: int) -> str:
        return str(self._view.ids[position].decode())


def _in_fullest_row(names: Mapping[int, str], words: Sequence[str], rows: Sequence[str]) -> int:
    """The name whose row of a table has most of some words; in doubt the first of the names."""
    wanted = stems(" ".join(words))
    shared = {row: len(stems(row) & wanted) for row in rows}
    counts = {
        entity: max((shared[row] for row in rows if name and name in row), default=0) for entity, name in names.items()
    }
    return max(counts, key=counts.__getitem__)


def _is_other_word(name: str, sentence: str) -> bool:
    """True if a sentence has a name of one word only in small letters or in a longer word: `non-aligned`, `Aligned`."""
    is_there = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", sentence)
    return " " not in name and not is_there and name.lower() in sentence.lower()


def _other_form(word: str, words: Sequence[str]) -> str:
    """In brackets the form of a word that others have, where it is another word to a reader: `author (authorized)`."""
    forms = [other for other in words if stem(other) == stem(word)]
    nearest = min(forms, key=lambda form: abs(len(form) - len(word)), default=word)
    return f" ({nearest})" if abs(len(nearest) - len(word)) > MAX_INFLECTION_LETTERS else ""


class _EvidenceRanking(ReachedRanking):
    """Reached units by score, the rest behind by cosine; see `EvidenceReasons.reading`."""

    __slots__ = ("parts", "reading")
    reading: Callable[[IntArray], tuple[DoubleArray, list[str]]]
    parts: Callable[[IntArray], Mapping[str, DoubleArray]]


RERANK_WEIGHT = 2.0  # weight of a reranker for a part of a document
MIN_RERANK_SHARE = 0.3  # least share of it, for a document that the question names; on musique-more, 2Wiki, HotpotQA
MIN_SHOWN_LIFT = 0.5
COPY_PENALTY = 2.0  # subtracted from copies of passages that rank before, and from tables of contents
NAMED_MARGIN = 1e-3  # margin by which a part of a document ranks behind the passage that names it
FIT_WEIGHT = (
    2.0  # weight of the cosine between a target and the question with the sentence; chosen on the even questions
)
_LEAST_KNOWN = 1e-6
_MAX_IN_FULL = 3  # Passages that alone have every word of a question
MIN_KNOWN_SHARE = 1 / 3  # below this share of known words, hybrid search has a say
SUPPORT_SLOPE = 4.0  # slope by which steps lose for question words that their source lacks
_VECTOR, _WORDS = OWN.index("vector"), OWN.index("words")
UNREACHED_SCORE = -1000.0  # score of units that were never candidates: behind all others, by cosine


@dataclass(frozen=True, slots=True)
class EvidencePaths:
    """Ranks passages by one mixture of evidence: their own, and that of the best ways to them from other passages.

    A passage's score is the logarithm of the sum of exponentials of its own evidence and of every step that leads to
    it: from a passage that ranks high so far, over a sentence and a name in it. All weights are linear, learned once on
    half of the questions of several corpora and fixed for all. Where the corpus lacks words of the question (other
    forms, misspellings, another language), steps from passages that have few of the others count for less, and where
    it lacks most, hybrid search counts as well. Needs the `KnowledgeGraph` organizer, whose entities are the names;
    passages without a title are about the name that they open with.

    Attributes:
        rounds: Number of rounds in which links are followed: 1 connects two passages, 2 three; 0 follows no links.
        first: Number of passages whose links are followed in a round.
        max_passages_per_name: A name that more passages than this mention leads only to the passages about it.
        pool: Number of candidates by vectors, and as many by words.
        read_steps: Number of best links for which the question and the sentence of the link are embedded together and
            compared with the linked passage. Takes one more embedder call per question; 0 turns it off.
        boilerplate: Whether text that recurs in many documents (menus, footers, licences) is searched, too: runs of
            five short lines that each stand in three or more, single ones in half of all, and sentences of eight words
            in 20 or more and a tenth of all.
    """

    rounds: int = setting(2, low=0, high=10)
    first: int = setting(15, low=1)
    max_passages_per_name: int = setting(40, low=1)
    pool: int = setting(200, low=1)
    read_steps: int = setting(0, low=0, high=1000)
    boilerplate: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    def prepare(self, view: View) -> None:
        """Make the index of sentences, words and names, and the codes of a large pool."""
        if not Weights.of(view, EvidenceIndex.of(view, boilerplate=self.boilerplate)).vector_share:
            DefaultVectors.of(view)
        SQIndex.prepare(view)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter; no other passage is looked at."""
        if not view.size:
            return ScoredRanking(np.zeros(0, dtype=np.float32), None, lambda _: ())
        allowed = view.allowed(where)
        cosines = await view.similarities(query, await view.embed_query(query), where)
        scored, ranking = await asyncio.to_thread(self._score, query, cosines, view, allowed)
        if scored is None or not (self.read_steps and len(scored.steps)):
            return ranking
        scored = await self._read(query, scored, view)
        return await asyncio.to_thread(scored.ranking, view, cosines, allowed, self.rounds)

    @stored_values("The search for evidence")
    def _score(
        self, query: str, cosines: Similarities, view: View, allowed: BoolArray | None
    ) -> tuple[ScoredPassages | None, Ranking]:
        """The candidates and the steps to them, None when there are no passages; and the ranking that they make."""
        index = EvidenceIndex.of(view, boilerplate=self.boilerplate)
        if not len(index.chunks):
            return None, ScoredRanking(cosines.all(), allowed, lambda _: ())
        inside = None if allowed is None else allowed[index.chunks]
        among = cosines if len(index.chunks) == view.size else KnownSimilarities(cosines.all()[index.chunks])
        weights, vectors = Weights.of(view, index), view.matrix
        if not weights.vector_share:
            default = DefaultVectors.of(view)
            weights, vectors = Weights.of_words(index), default.vectors
            among = KnownSimilarities(default.similarities(query)[index.chunks])
        evidence = QueryFeatures(query, index, among, vectors, inside, self.pool, weights.vector_share)
        passages, features, hops = self.evidence(evidence, weights)
        scored = ScoredPassages.of(evidence, passages, features, hops, weights)
        return scored, scored.ranking(view, cosines, allowed, self.rounds)

    async def _read(self, query: str, scored: ScoredPassages, view: View) -> ScoredPassages:
        """Steps whose ends fit the question and the sentence together count for more."""
        read = best_first(scored.steps.astype(np.float32), self.read_steps)
        index, hops = scored.evidence.index, scored.hops
        sources = hops.sources[read]
        sentences = [
            unit_sentences(unit)[sentence - index.first_sentence(source)]
            for unit, source, sentence in zip(
                view.units(index.chunks[sources]), sources.tolist(), hops.sentences[read].tolist(), strict=True
            )
        ]
        vectors = await view.embed_queries([f"{query} {sentence}" for sentence in sentences])
        fit = np.einsum("ij,ij->i", vectors, view.matrix[index.chunks[hops.targets[read]]], dtype=np.float64)
        steps = scored.steps.copy()
        steps[read] += FIT_WEIGHT * (fit - fit.mean())
        return replace(scored, steps=steps)

    def evidence(self, evidence: QueryFeatures, weights: Weights) -> tuple[IntArray, DoubleArray, Hops]:
        """Candidates and all passages that steps reach, ascending; their own evidence; and the steps."""
        passages = evidence.candidates
        features = evidence.own(passages)
        reached_so_far, evident = passages, features
        scores = evidence.alone(passages, features, weights)
        hops = NO_HOPS
        for last in range(self.rounds, 0, -1):
            order = best_first(scores.astype(np.float32), self.first)
            whole = float(np.logaddexp.reduce(scores))
            hops = evidence.hops(passages[order], scores[order], whole, self.max_passages_per_name)
            ends = distinct(hops.targets)
            new = ends[~np.isin(ends, reached_so_far)]
            reached_so_far, evident = (
                np.concatenate([reached_so_far, new]),
                np.concatenate([evident, evidence.own(new)]),
            )
            order = np.argsort(reached_so_far)
            reached_so_far, evident = reached_so_far[order], evident[order]
            reached = np.isin(reached_so_far, evidence.candidates) | np.isin(reached_so_far, ends)
            passages, features = reached_so_far[reached], evident[reached]
            if last > 1:
                scores = ScoredPassages.of(evidence, passages, features, hops, weights).scores()
        return passages, features, hops


@dataclass(frozen=True, slots=True)
class ScoredPassages:
    """Passages and the steps that lead to them."""

    evidence: QueryFeatures  # features of the question and all passages
    passages: IntArray  # candidates and all that steps reach, ascending, `[passages]`
    alone: DoubleArray  # scores of the passages by themselves, `[passages]`
    hops: Hops  # the steps
    target: IntArray  # row in `passages` of the target of each step, `[steps]`
    steps: DoubleArray  # scores of the steps, `[steps]`; those to parts of documents include the passage's own
    trusted: DoubleArray  # scores added by trusted vectors or words, `[passages]`
    repeat: float  # subtracted where one passage of the same document ranks before, twice that where three do
    shown: float  # least gain of a step to a part of a document that is named as the reason

    @classmethod
    def of(
        cls, evidence: QueryFeatures, passages: IntArray, features: DoubleArray, hops: Hops, weights: Weights
    ) -> ScoredPassages:
        """Scores of passages with the evidence `own`, `[passages, features]`, and of steps between them."""
        target = np.searchsorted(passages, hops.targets)
        steps = row_products(hops.features, weights.step) + row_products(features, weights.target)[target]
        if evidence.known < 1.0:  # the less is known of the question, the more of that a step must begin with
            begun = evidence.texts.share(evidence.texts.passages[hops.sources])
            steps += np.log(max(_LEAST_KNOWN, evidence.known))
            steps += SUPPORT_SLOPE * (1.0 - evidence.known) * np.log(np.maximum(_LEAST_KNOWN, begun))
        alone = evidence.alone(passages, features, weights)
        lifted = alone[target] + evidence.unit * weights.document.lift(hops.features)
        # A passage that another one names ranks behind it, unless its own evidence is stronger.
        is_named = evidence.index.own[hops.targets] == hops.entities
        lifted = np.where(is_named, np.maximum(alone[target], np.minimum(lifted, hops.begun - NAMED_MARGIN)), lifted)
        is_cut = evidence.is_cut(passages)
        standard_scores = features[:, _VECTOR], features[:, _WORDS]
        trusted = weights.trust.added(evidence.gates, *standard_scores, evidence.part_share)
        trusted = np.where(is_cut, evidence.unit, 1.0) * trusted
        in_full = evidence.texts.in_full(passages)
        if 0 < np.count_nonzero(in_full) <= _MAX_IN_FULL:  # vectors do not count against these
            trusted[in_full] = trusted.max()
        identified = hops.begun + np.minimum(hops.identified, -NAMED_MARGIN) - trusted[target]
        steps = np.maximum(np.where(is_cut[target], lifted, steps), identified)
        repeat, shown = evidence.unit * weights.document.repeat, evidence.unit * MIN_SHOWN_LIFT
        return cls(evidence, passages, alone, hops, target, steps, trusted, repeat, shown)

    def scores(self) -> DoubleArray:
        """Scores of all passages, `[passages]`; see `_totals`."""
        totals, repeats, is_less = self._totals()
        return totals - self.repeat * repeats - self.evidence.unit * COPY_PENALTY * is_less

    def parts(self, positions: IntArray) -> dict[str, DoubleArray]:
        """Parts of the scores of positions that were candidates, in plain words, `[positions]` each."""
        totals, repeats, is_less = self._totals()
        rows = np.searchsorted(self.evidence.index.chunks[self.passages], positions)
        parts: dict[str, DoubleArray] = {
            "its own words, names and similarity": self.alone + self.trusted,
            "sentences that lead to it": totals - self.alone - self.trusted,
            "passages of its document that come before it": -self.repeat * repeats,
            "a text that stands elsewhere, or lists others": -self.evidence.unit
            * COPY_PENALTY
            * is_less.astype(np.float64),
        }
        return {words: part[rows] for words, part in parts.items()}

    def _totals(self) -> tuple[DoubleArray, DoubleArray, BoolArray]:
        """Own evidence and steps in one score, `[passages]`: the logarithm of the sum of their exponentials.

        Parts of documents have the score of the best step instead, where any leads to them. Vectors or words
        add what they say as far as they are trusted.
        Of a question that is mostly in words that the corpus lacks, hybrid search has a share in the sum.
        """
        highest = self.alone.copy()
        np.maximum.at(highest, self.target, self.steps)
        total = np.exp(self.alone - highest)
        total += np.bincount(self.target, np.exp(self.steps - highest[self.target]), minlength=len(highest))
        totals: DoubleArray = np.where(self.evidence.is_cut(self.passages), highest, highest + np.log(total))
        share = max(_LEAST_KNOWN, self.evidence.known / MIN_KNOWN_SHARE)
        if share < 1.0:
            similar = self.evidence.hybrid(self.passages) + np.logaddexp.reduce(totals) + np.log(1.0 - share)
            totals = np.logaddexp(totals + np.log(share), similar)
        totals = totals + self.trusted
        index = self.evidence.index
        repeats = np.log2(1.0 + self._places(totals, index.source[self.passages]))
        is_copy = self._places(totals, index.copied[self.passages]) > 0
        return totals, repeats, is_copy | index.contents[self.passages]

    def _places(self, scores: DoubleArray, groups: IntArray) -> DoubleArray:
        """Number of passages of the same group that come before each passage, `[passages]`."""
        order = np.lexsort((self.passages, -scores, groups))
        ranks = np.empty(len(order))
        ranks[order] = np.arange(len(order)) - np.searchsorted(groups[order], groups[order])
        return ranks

    def score_alone(self, passage: int) -> float:
        """Score of a passage without the steps that lead to it; the least for what is no candidate."""
        row = int(np.searchsorted(self.passages, passage))
        inside = row < len(self.passages) and self.passages[row] == passage
        return float(self.alone[row]) if inside else -np.inf

    def best(self) -> dict[int, tuple[int, int, int]]:
        """By passage the best step to it, where it says more than the passage itself: passage, sentence, entity."""
        highest = self.alone.copy()
        np.maximum.at(highest, self.target, self.steps)
        hops = self.hops
        least = self.alone + np.where(self.evidence.is_cut(self.passages), self.shown, 0.0)
        return {
            int(hops.targets[i]): (int(hops.sources[i]), int(hops.sentences[i]), int(hops.entities[i]))
            for i in np.flatnonzero((self.steps >= highest[self.target]) & (self.steps > least[self.target])).tolist()
        }

    def names_between(self, source: int, sentence: int, target: int) -> list[int]:
        """Names in a sentence of a passage that lead to another passage."""
        hops = self.hops
        is_between = (hops.sources == source) & (hops.sentences == sentence) & (hops.targets == target)
        return list(map(int, hops.entities[is_between]))

    def ranking(self, view: View, cosines: Similarities, allowed: BoolArray | None, rounds: int) -> Ranking:
        """All units: what was reached by its score, the rest behind by cosine."""
        reached = self.evidence.index.chunks[self.passages]
        reasons = EvidenceReasons(view, self, cosines, rounds)
        scores = self.scores().astype(np.float32)
        reached_ranking = _EvidenceRanking(reached, scores, cosines, UNREACHED_SCORE, allowed, reasons.path)
        reached_ranking.reading = reasons.reading
        reached_ranking.parts = self.parts
        return reached_ranking
