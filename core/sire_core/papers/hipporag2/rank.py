"""`TripleWalk`: from the question to triples, to phrases, to passages (HippoRAG 2, sections 3.3 to 3.5)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extend import (
    CSRGraph,
    EntityGraph,
    IdPositions,
    KnownSimilarities,
    ModelError,
    Prompt,
    ScoredRanking,
    UnitKind,
    Walk,
    WalkPaths,
    all_similar_names,
    answer_or_reason,
    best_first,
    check_settings,
    min_max,
    numbered,
    parse_numbers,
    refuse_unused,
    relation_ends,
    setting,
    similar_names,
    stored_values,
    walk_ranking,
    with_failure,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.extend import (
        BoolArray,
        DoubleArray,
        Filter,
        FloatArray,
        IntArray,
        LanguageModel,
        Ranking,
        SimilarPairs,
        View,
    )


@dataclass(frozen=True, slots=True)
class PhraseGraph:
    """Phrases and triples; phrases are numbered as the entities of `mentions`."""

    mentions: EntityGraph  # which passage names which phrase
    phrases: IntArray  # position of every phrase in the pool, -1 for one that is no unit, `[phrases]`
    triples: IntArray  # positions of the triples, ascending, `[triples]`
    ends: IntArray  # phrases at both ends of every triple, -1 where an end is none, `[triples, 2]`
    stated: IntArray  # in how many chunks every triple is stated, `[triples]`
    synonyms: IntArray  # phrases and those with similar names that they find, `[found, 2]`
    likeness: DoubleArray  # their cosines, `[found]`
    name: str  # of the graph among the structures of a snapshot

    @classmethod
    def of(cls, view: View, synonym: float, *, shared_word: bool = True) -> PhraseGraph:
        """Return the graph of a pool, made once per snapshot and stored in files."""
        name = f"phrase-graph-{synonym:g}{'' if shared_word else '-all'}"

        def make() -> PhraseGraph:
            mentions = EntityGraph.of(view)
            compare = _with_shared_word if shared_word else all_similar_names
            arrays = view.cached_arrays(name, lambda: _arrays(view, mentions, synonym, compare))
            _ = np.empty(view.size, dtype=bool)[arrays["triples"]]  # forged positions are refused here
            return cls(mentions, name=name, **arrays)

        return view.derived(f"{name} with mentions", make)

    def walk(self, view: View, context_weight: float, allowed: BoolArray | None) -> Walk:
        """Return the undirected graph of passages and phrases; weight 0 leaves out the edges between them."""
        if allowed is not None:
            return self._walk(context_weight, allowed)
        return view.derived(f"{self.name} walk {context_weight:g}", lambda: self._walk(context_weight, None))

    def _walk(self, context_weight: float, allowed: BoolArray | None) -> Walk:
        graph, size = self.mentions, len(self.mentions.chunk_positions)
        named = np.ones(len(graph.passages), dtype=bool)
        if allowed is not None:
            named = allowed[graph.chunk_positions][graph.passages]
        frequency = np.bincount(graph.entities[named], minlength=len(self.phrases)).astype(np.int64)
        facts = (self.ends >= 0).all(axis=1) & (self.ends[:, 0] != self.ends[:, 1])
        if allowed is not None:
            facts &= allowed[self.triples]
        alike = (frequency[self.synonyms] > 0).all(axis=1)
        # As in the released code, a triple joins its ends in both directions, and likeness takes the place of triples.
        ends = np.concatenate((self.ends[facts], self.ends[facts, ::-1]))
        alone = ~np.isin(ends @ (len(self.phrases), 1), self.synonyms[alike] @ (len(self.phrases), 1))
        edges = [
            (size + ends[alone], np.tile(self.stated[facts] / 2, 2)[alone]),
            (size + self.synonyms[alike], self.likeness[alike] / 2),
        ]
        if context_weight:
            pairs = np.stack((graph.passages[named], size + graph.entities[named]), axis=1)
            edges.append((pairs, np.full(len(pairs), context_weight)))
        pairs, weights = map(np.concatenate, zip(*edges, strict=True))
        return Walk(CSRGraph.undirected(size + len(self.phrases), pairs, weights), size, frequency)


def _with_shared_word(names: Sequence[str], vectors: FloatArray, synonym: float) -> SimilarPairs:
    """Return similar names that share a word, each of two finding the other."""
    first, second, likeness = similar_names(names, vectors, synonym)
    return np.concatenate((first, second)), np.concatenate((second, first)), np.tile(likeness, 2)


def _arrays(
    view: View, mentions: EntityGraph, synonym: float, compare: Callable[..., SimilarPairs]
) -> dict[str, NDArray[Any]]:
    """The fields of a `PhraseGraph` that take reading names and comparing vectors."""
    phrases = IdPositions.of(view).find(np.array(mentions.entity_ids, dtype="S24"))
    phrase_mentions = np.flatnonzero(phrases >= 0)
    names = [unit.text for unit in view.units(phrases[phrase_mentions])]
    first, second, likeness = compare(names, view.matrix[phrases[phrase_mentions]], synonym)
    triples = np.flatnonzero(view.kinds == list(view.kind_names).index(UnitKind.RELATION.value))
    number = np.full(view.size, -1, dtype=np.int64)
    number[phrases[phrase_mentions]] = phrase_mentions
    return {
        "phrases": phrases,
        "triples": triples,
        "ends": _ends(triples, number, relation_ends(view)),
        "stated": np.diff(view.chunk_pointers[0])[triples],
        "synonyms": np.stack((phrase_mentions[first], phrase_mentions[second]), axis=1),
        "likeness": likeness,
    }


def _ends(triples: IntArray, number: IntArray, pairs: IntArray) -> IntArray:
    """Phrases at both ends of every triple, `[triples, 2]`; a triple with one known end has it twice."""
    relations, phrases = pairs[0], number[pairs[1]]
    order = np.lexsort((phrases, relations))
    relations, phrases = relations[order][phrases[order] >= 0], phrases[order][phrases[order] >= 0]
    first = np.searchsorted(relations, triples, side="left")
    last = np.searchsorted(relations, triples, side="right") - 1
    ends = np.full((len(triples), 2), -1, dtype=np.int64)
    has_entity = last >= first
    ends[has_entity] = np.stack((phrases[first[has_entity]], phrases[last[has_entity]]), axis=1)
    return ends


_FILTER_INSTRUCTIONS = (
    "The data holds a question and numbered facts that a search found for it. Keep the facts that help to answer the "
    "question, also those that are only one step on the way to the answer. Answer with their numbers only, the most "
    "helpful first, joined by #, for example 2#0. If no fact helps, answer: none."
)


@dataclass(frozen=True, slots=True)
class TripleWalk:
    """Ranks passages by personalised PageRank from phrases that the question leads to, and from all passages.

    Needs `KnowledgeGraph(index_units=True)`. Where no triple is left, passages are ranked by cosine. Phrases and
    triples come after all passages; those that a filter forbids are not walked through.

    Attributes:
        link: How a question leads to phrases: `triple`, by the triples nearest to it, as published; `phrase`, by the
            phrases nearest to it; or `name`, by the phrases that it names (rows of the paper's table 4).
        triples: Number of triples, or of phrases with `link="phrase"`, that are nearest to the question.
        recognition: Who keeps those triples that help to answer: `model` (no effect without a model) or `none`.
        phrases: Number of phrases at which the walk starts, those with the highest mean score of their triples.
        passage_weight: Starting weight of a passage with the highest cosine, where that of a triple's score is 1.
        passage_nodes: Whether passages are nodes of the walk; otherwise a passage has the sum of its phrases' PageRank.
        synonyms: Minimum cosine of the names of two phrases that are joined; 1 joins none.
        shared_word: Whether only phrases that share a word are joined as synonyms; as published all are compared, in
            time that grows with the square of their number.
        context_weight: Weight of the edge between a passage and a phrase that it names, where that of a triple is 1.
            The released code enters triples in both directions into an undirected graph, passages in one.
        damping: Probability of following an edge instead of restarting.
    """

    link: str = setting("triple", choices=("triple", "phrase", "name"))
    triples: int = setting(5, low=1)
    recognition: str = setting("model", choices=("model", "none"))
    phrases: int = setting(5, low=1)
    passage_weight: float = setting(0.05, low=0.0)
    passage_nodes: bool = True
    synonyms: float = setting(0.8, above=0.0, high=1.0)
    shared_word: bool = True
    context_weight: float = setting(0.5, above=0.0)
    damping: float = setting(0.5, low=0.0, high=0.99)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.link != "triple":
            refuse_unused(self, f"link={self.link!r}", ("recognition", "phrases"))
        if self.link == "name":
            refuse_unused(self, "link='name'", ("triples",))
        if not self.passage_nodes:
            refuse_unused(self, "passage_nodes=False", ("passage_weight", "context_weight"))

    def prepare(self, view: View) -> None:
        """Join phrases and triples once, when a pool is built."""
        if view.size:
            PhraseGraph.of(view, self.synonyms, shared_word=self.shared_word)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter."""
        question, allowed = await view.embed_query(query), view.allowed(where)
        cosines = await view.cosines(query, question, where)
        if not view.size:
            return ScoredRanking(cosines, None, lambda _: ())
        graph = await asyncio.to_thread(PhraseGraph.of, view, self.synonyms, shared_word=self.shared_word)
        near, failure = np.empty(0, dtype=np.int64), ""
        if self.link == "triple":
            closed = np.inf if allowed is None else np.where(allowed[graph.triples], np.inf, -np.inf)
            near = best_first(np.minimum(cosines[graph.triples], closed).astype(np.float32), self.triples)
            if self.recognition == "model" and view.language_model is not None and len(near):
                texts = [unit.text for unit in view.units(graph.triples[near])]
                chosen, failure = await recognized(query, texts, view.language_model)
                near = near[chosen]
        ranking = await asyncio.to_thread(self._rank, query, cosines, view, graph, near, allowed)
        return with_failure(ranking, "recognition", "all triples were kept", failure)

    @stored_values("The walk over phrases")
    def _rank(
        self, query: str, cosines: FloatArray, view: View, graph: PhraseGraph, near: IntArray, allowed: BoolArray | None
    ) -> Ranking:
        walk = graph.walk(view, self.context_weight if self.passage_nodes else 0.0, allowed)
        passages = graph.mentions.chunk_positions
        allowed_passages = None if allowed is None else allowed[passages]
        if self.link == "triple":
            starts, reasons = self._by_triples(cosines, view, graph, walk, near, allowed)
        elif self.link == "phrase":
            starts, reasons = self._by_phrases(cosines, view, graph, walk, allowed)
        else:
            starts, reasons = _by_names(query, graph, walk, allowed_passages)
        mass, scores = np.zeros(walk.graph.size), np.zeros(walk.passages)
        if starts.any():
            near_passages = self.passage_weight * min_max(cosines[passages], allowed_passages) * self.passage_nodes
            mass = walk.mass(starts, near_passages, self.damping)
            scores = mass[: walk.passages] if self.passage_nodes else _summed(mass, graph, walk, allowed_passages)
        similarities = KnownSimilarities(cosines)
        paths = WalkPaths(view, graph.mentions, walk, reasons, mass, similarities)
        return walk_ranking(paths, scores, similarities, allowed, 0.0 if scores.any() else 1.0)

    def _by_triples(
        self, cosines: FloatArray, view: View, graph: PhraseGraph, walk: Walk, near: IntArray, allowed: BoolArray | None
    ) -> tuple[DoubleArray, dict[int, str]]:
        """Starting weights of phrases, `[phrases]`, by the triples near the question, and why they have them."""
        similarities = cosines[graph.triples]
        scores = min_max(similarities, None if allowed is None else allowed[graph.triples])
        texts = {row: unit.text for row, unit in zip(near.tolist(), view.units(graph.triples[near]), strict=True)}
        by_phrase: dict[int, list[int]] = {}
        for row in near.tolist():
            for phrase in dict.fromkeys(graph.ends[row].tolist()):
                if phrase >= 0 and walk.mentions[phrase]:
                    by_phrase.setdefault(phrase, []).append(row)
        weights = {
            phrase: float(np.mean(scores[rows])) / int(walk.mentions[phrase]) for phrase, rows in by_phrase.items()
        }
        # Both ends of a triple often weigh the same: the one more similar to the question comes first.
        similar = cosines[graph.phrases]
        first = sorted(weights, key=lambda phrase: (-weights[phrase], -similar[phrase], phrase))[: self.phrases]
        starts = np.zeros(len(graph.phrases))
        starts[first] = [weights[phrase] for phrase in first]
        notes = {
            phrase: f"cosine {similarities[rows[0]]:.3f} of the question with the fact: {texts[rows[0]]}"
            for phrase, rows in by_phrase.items()
            if phrase in first
        }
        return starts, notes

    def _by_phrases(
        self, cosines: FloatArray, view: View, graph: PhraseGraph, walk: Walk, allowed: BoolArray | None
    ) -> tuple[DoubleArray, dict[int, str]]:
        """As `_by_triples`, by the phrases whose names are nearest to the question."""
        allowed_phrases = (graph.phrases >= 0) & (walk.mentions > 0)
        if allowed is not None:  # a name may be spelled in hidden passages only
            allowed_phrases &= allowed[graph.phrases]
        similarities = np.where(allowed_phrases, cosines[graph.phrases], -np.inf).astype(np.float32)
        first = best_first(similarities, self.triples)
        starts = np.zeros(len(graph.phrases))
        starts[first] = np.maximum(similarities[first], 0.0) / walk.mentions[first]
        names = [unit.text for unit in view.units(graph.phrases[first])]
        return starts, {
            phrase: f"cosine {similarities[phrase]:.3f} of the question with {name}"
            for phrase, name in zip(first.tolist(), names, strict=True)
        }


def _by_names(
    query: str, graph: PhraseGraph, walk: Walk, allowed: BoolArray | None
) -> tuple[DoubleArray, dict[int, str]]:
    """As `TripleWalk._by_triples`, by the phrases that the question names; `allowed` are passages."""
    named = graph.mentions.link(query, allowed)
    starts = np.zeros(len(graph.phrases))
    for phrase in named:
        starts[phrase] = 1 / max(1, int(walk.mentions[phrase]))
    return starts, {phrase: f"the question names {name}" for phrase, name in named.items()}


def _summed(mass: DoubleArray, graph: PhraseGraph, walk: Walk, allowed: BoolArray | None) -> DoubleArray:
    """Sum of the PageRank of the phrases of every passage, `[passages]`."""
    shares = mass[walk.passages + graph.mentions.entities]
    if allowed is not None:
        shares = shares * allowed[graph.mentions.passages]
    return np.asarray(np.bincount(graph.mentions.passages, weights=shares, minlength=walk.passages), dtype=np.float64)


async def recognized(query: str, facts: Sequence[str], model: LanguageModel) -> tuple[list[int], str]:
    """Ask a language model which facts help to answer a question; one call."""
    data = json.dumps({"question": query, "facts": numbered(facts)}, ensure_ascii=False, indent=1)

    async def ask() -> list[int]:
        answer = await model.complete(Prompt(_FILTER_INSTRUCTIONS, data), max_tokens=10 + 5 * len(facts))
        numbers = parse_numbers(answer.text, len(facts))
        if not numbers and "none" not in answer.text.lower():
            raise ModelError(f"expected numbers of facts or 'none', got {answer.text[:80]!r}")
        return numbers

    numbers, failure = await answer_or_reason(ask(), "all triples near the question are kept")
    return (list(range(len(facts))), failure) if numbers is None else (numbers, "")
