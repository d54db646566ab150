"""`EvidenceChains`: passages by chains walked over the interaction graph (IIER section 3.2)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.chains import FORMATS, arrange_chains
from sire_core.search.chains.graph import ChainGraph
from sire_core.search.chains.keywords import MOST_KEYWORDS, KeywordFinder, ask_keywords
from sire_core.search.chains.scorers import ChainScorer, HeuristicScorer
from sire_core.search.chains.walk import ChainQuestion, Seeds, Walked, find_seeds, walk_chains
from sire_core.search.ranking import NotedRanking, ScoredRanking, answer_or_reason
from sire_core.settings import check_settings, refuse_unused, setting
from sire_core.types import PathStep

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray, Embedder, FloatArray, Ranking, View
    from sire_core.types import Hit

__all__ = ["CHAIN", "SEED", "WHOLE", "ChainLines", "EvidenceChain", "EvidenceChains"]

SEED = "seed"
"""Step of the passage at which a chain starts."""
CHAIN = "chain"
"""Step of every further passage of a chain."""
WHOLE = "whole_chain"
"""Step that names all passages of a chain that the hit is on; the note is the chain's name."""


@dataclass(frozen=True, slots=True)
class EvidenceChain:
    """Passages in the order in which the walk took them.

    Attributes:
        chunk_ids: Ids of the passages, the seed first.
        notes: Why each is there: what the seed holds of the question, what links the others to the one before.
    """

    chunk_ids: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def steps(self) -> tuple[PathStep, ...]:
        """The chain as the path of its last passage."""
        return tuple(
            PathStep(CHAIN if place else SEED, (chunk,), note)
            for place, (chunk, note) in enumerate(zip(self.chunk_ids, self.notes, strict=True))
        )


@dataclass(frozen=True, slots=True)
class ChainLines:
    """Tells a reader which of the passages form a chain: a line each, so that chains stand apart (IIER 4.5.1)."""

    async def lines(self, hits: Sequence[Hit], view: View) -> list[str]:  # noqa: ARG002 - the hits know
        """One line per chain, with the numbers of its passages from 1; a passage of two chains stands in both."""
        number = {hit.unit.id: place for place, hit in enumerate(hits, 1)}
        chains = {step.note: step.ids for hit in hits for step in hit.path if step.step == WHOLE}
        return [
            f"{name}: passages {', '.join(str(number[chunk]) for chunk in chains[name] if chunk in number)}"
            for name in sorted(chains, key=lambda name: int(name.rpartition(" ")[2]))
        ]


@dataclass(frozen=True, slots=True)
class EvidenceChains:
    """Ranks passages by evidence chains: from few seeds that cover the question's keywords, a greedy walk each.

    Needs the `InteractionGraph` organizer; over a pool without one every chain is its seed. What is on no chain follows
    by cosine (`fill`), units that are no passages come behind all passages. A filter restricts seeds and walk.

    The paper reads chains as they are (`order="chain"`, `similar_seeds=0`). Its first five passages are then those of
    one chain, the second fact of the question often stands in another one, and so recall at five is below that of plain
    similarity. By default, therefore, a passage's place in its chain lifts its cosine, and the most similar passage
    starts a chain, too; chosen on the even questions of a development set of 2WikiMultihopQA, for all corpora.

    Attributes:
        scorer: Chooses the next passage of a chain.
        max_length: Maximum passages of a chain, including its seed.
        keywords: How the question's keywords are found: `model`, by one model call (by rules without a model), or
            `rules`.
        seed_match: How seeds match keywords: `strict`, by the keywords of a passage, as in the paper;
            `keyword_then_text`, also by its title, and by its text for keywords that no passage has.
        fallback_seeds: Number of most similar passages that start chains if no keyword is found.
        similar_seeds: Number of most similar passages that always start chains.
        order: `score`, or `chain`, `iterative` or `shuffle`, as in the paper.
        seed_lift: Added to the cosine similarity of a seed, with `order=score`.
        step_lift: Added to the first passage after a seed.
        decay: Factor for every further step.
        fill: Whether passages outside of chains follow. The paper's contexts contain only chains.
        seed: Of the order `shuffle`.

    Raises:
        ConfigurationError: A setting makes no sense.
    """

    scorer: ChainScorer = field(default_factory=HeuristicScorer)
    max_length: int = setting(5, low=1)
    keywords: str = setting("model", choices=("model", "rules"))
    seed_match: str = setting("keyword_then_text", choices=("strict", "keyword_then_text"))
    fallback_seeds: int = setting(3, low=1)
    similar_seeds: int = setting(1, low=0)
    order: str = setting("score", choices=("score", *FORMATS))
    seed_lift: float = setting(0.5, low=0.0)
    step_lift: float = setting(0.4, low=0.0)
    decay: float = setting(0.8, low=0.0, high=1.0)
    fill: bool = True
    seed: int = setting(0, low=0)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.order != "score":
            refuse_unused(self, f"order={self.order!r}", ("seed_lift", "step_lift", "decay"))

    def check_embedder(self, embedder: Embedder) -> None:
        """Refuse vectors that a trained scorer cannot read.

        Raises:
            EmbedderMismatchError: The scorer was trained on vectors of another embedder.
        """
        check = getattr(self.scorer, "check_embedder", None)
        if check is not None:
            check(embedder)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter; the walk does not touch a passage that does not.

        Raises:
            ModelError: A call of the scorer failed.
            LimitExceededError: A usage limit was reached.
        """
        allowed = view.allowed(where)
        if not view.size:
            return ScoredRanking(np.zeros(0, dtype=np.float32), None, lambda _: ())
        walk = await self._walk(query, view, where)
        if not self.fill:
            chained = np.zeros(view.size, dtype=bool)
            chained[walk.graph.positions[list(walk.places)]] = True
            allowed = chained if allowed is None else allowed & chained
        reasons = _Reasons(view, walk, apart=self.order == "chain")
        ranking = ScoredRanking(self._scores(view, walk, query), allowed, reasons.path)
        if not walk.failure:
            return ranking
        return NotedRanking(ranking, PathStep("keywords", (), f"found by rules, the model failed: {walk.failure}"))

    async def chains(self, query: str, view: View, where: Filter | None = None) -> list[EvidenceChain]:
        """The whole chains of a question, in the order of their seeds.

        Raises:
            ModelError: See `rank`.
        """
        if not view.size:
            return []
        walk = await self._walk(query, view, where)
        reasons = _Reasons(view, walk)
        return [reasons.chain(number, len(chain.nodes)) for number, chain in enumerate(walk.chains)]

    async def _walk(self, query: str, view: View, where: Filter | None) -> _Walk:
        import asyncio

        vector, allowed = await view.embed_query(query), view.allowed(where)
        model = view.language_model if self.keywords == "model" else None
        asked, failure = None, ""
        if model is not None:
            asked, failure = await answer_or_reason(ask_keywords(query, model), "rules find the question's keywords")
        cosines = await view.cosines(query, vector, where)
        graph, seeds, open_ = await asyncio.to_thread(self._prepare, query, asked or (), cosines, view, allowed)
        question = ChainQuestion(query, vector, cosines[graph.positions], seeds.asked, seeds.coverage)
        chains = await walk_chains(graph, view, question, seeds.nodes, self.scorer, self.max_length, open_)
        return _Walk(graph, cosines, seeds, chains, failure)

    def _prepare(
        self, query: str, asked: Sequence[str], cosines: FloatArray, view: View, allowed: BoolArray | None
    ) -> tuple[ChainGraph, Seeds, BoolArray | None]:
        graph = ChainGraph.of(view)
        open_ = None if allowed is None else allowed[graph.positions]
        finder = KeywordFinder.of(view, graph, open_, strict=self.seed_match == "strict")
        known = list(dict.fromkeys(asked or finder.keywords(query)))[:MOST_KEYWORDS]
        near = cosines[graph.positions]
        return graph, find_seeds(known, finder, near, open_, self.fallback_seeds, self.similar_seeds), open_

    def _scores(self, view: View, walk: _Walk, query: str) -> FloatArray:
        scores = np.full(view.size, -2.0, dtype=np.float32)  # units that are no passages: behind every passage
        scores[walk.graph.positions] = 0.0
        scores += walk.cosines
        positions = walk.graph.positions
        if self.order == "score":
            for node, (_, place) in walk.places.items():
                lift = self.step_lift * self.decay ** (place - 1) if place else self.seed_lift
                scores[positions[node]] += lift
            return scores
        drawn = hashlib.blake2b(query.encode(), digest_size=8).digest()
        rng = np.random.default_rng([self.seed, int.from_bytes(drawn, "little")])
        read = [node for group in arrange_chains([c.nodes for c in walk.chains], self.order, rng) for node in group]
        nodes = list(dict.fromkeys(read))
        scores[positions[nodes]] = 2.0 - np.arange(len(nodes)) / max(1, len(nodes))  # in front of every cosine
        return scores


class _Walk:
    """The chains of a question, and where on them a passage stands first.

    Args:
        graph: What was walked on.
        cosines: Of the question with every unit, `[size]`.
        seeds: Where the chains start.
        chains: One per seed.
        failure: Why the model did not find the keywords; empty where it did or was not asked.
    """

    def __init__(
        self, graph: ChainGraph, cosines: FloatArray, seeds: Seeds, chains: Sequence[Walked], failure: str
    ) -> None:
        self.graph = graph
        self.cosines = cosines
        self.seeds = seeds
        self.chains = chains
        self.failure = failure
        self.places: Mapping[int, tuple[int, int]] = self._places()

    def _places(self) -> dict[int, tuple[int, int]]:
        """Chain and place of every node, the earliest place, then the earliest chain."""
        found: dict[int, tuple[int, int]] = {}
        for number, chain in enumerate(self.chains):
            for place, node in enumerate(chain.nodes):
                if node not in found or place < found[node][1]:
                    found[node] = (number, place)
        return found


class _Reasons:
    """What led to a passage: its chain up to it, one step per passage; worked out for the hits only."""

    def __init__(self, view: View, walk: _Walk, *, apart: bool = False) -> None:
        self._view = view
        self._walk = walk
        self._apart = apart

    def path(self, position: int) -> tuple[PathStep, ...]:
        """The chain, or the cosine."""
        positions = self._walk.graph.positions
        node = int(np.searchsorted(positions, position))
        if node < len(positions) and positions[node] == position and node in self._walk.places:
            number, place = self._walk.places[node]
            return (*self.chain(number, place + 1).steps, *(self._whole(node) if self._apart else ()))
        kind = self._view.kind_names[self._view.kinds[position]]
        return (PathStep(f"vector:{kind}", (self._id(position),), self._near(position)),)

    def _whole(self, node: int) -> Iterator[PathStep]:
        """Every chain that a passage is on, for a reader who is shown chains one after the other."""
        for number, chain in enumerate(self._walk.chains, 1):
            if node in chain.nodes:
                places = self._walk.graph.positions[list(chain.nodes)].tolist()
                yield PathStep(WHOLE, tuple(map(self._id, places)), f"chain of evidence {number}")

    def chain(self, number: int, length: int) -> EvidenceChain:
        """The beginning of a chain."""
        nodes = self._walk.chains[number].nodes[:length]
        places = self._walk.graph.positions[list(nodes)].tolist()
        held = self._walk.seeds.keywords[number]
        start = f"holds {_quoted(held)} of the question" if held else "among the passages most similar to the question"
        notes = [f"{start}, {self._near(places[0])}"]
        notes += [
            f"{self._link(left, right)}, {self._near(place)}"
            for left, right, place in zip(nodes[:-1], nodes[1:], places[1:], strict=True)
        ]
        return EvidenceChain(tuple(self._id(place) for place in places), tuple(notes))

    def _link(self, left: int, right: int) -> str:
        """What joins two passages. Both are allowed ones, and so is every keyword that both have."""
        graph = self._walk.graph
        structural, similarity, shared = graph.edge(left, right).tolist()
        parts = ["beside it in the document"] if structural else []
        if similarity:
            parts.append(f"cosine {similarity:.3f} with the one before")
        if shared:
            both = np.intersect1d(graph.keywords(left), graph.keywords(right)).tolist()
            parts.append(f"shares {_quoted([graph.keys[number] for number in both])}")
        return "; ".join(parts)

    def _near(self, position: int) -> str:
        return f"cosine {self._walk.cosines[position]:.3f} with the question"

    def _id(self, position: int) -> str:
        return str(self._view.ids[position].decode())


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
