"""`EvidenceChains`: passages by chains walked over the interaction graph (IIER section 3.2)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sire_core.recipes.iier.chains import FORMATS, arrange_chains
from sire_core.recipes.iier.graph import ChainGraph
from sire_core.recipes.iier.keywords import MOST_KEYWORDS, KeywordFinder, ask_keywords
from sire_core.recipes.iier.node_cosines import NodeCosines
from sire_core.recipes.iier.scorers import ChainScorer, HeuristicScorer
from sire_core.recipes.iier.walk import ChainQuestion, Seeds, find_seeds, walk_chains
from sire_core.recipes.iier.walked_question import WHOLE, ChainReasons, EvidenceChain, WalkedQuestion
from sire_core.search.ranking import LiftedRanking, NotedRanking, ScoredRanking, answer_or_reason
from sire_core.search.vectors.sq_index import SQIndex
from sire_core.settings import check_settings, refuse_unused, setting
from sire_core.types import PathStep

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import BoolArray, Embedder, FloatArray, Ranking, Similarities, View
    from sire_core.types import Hit

__all__ = ["ChainLines", "EvidenceChains"]


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

    def prepare(self, view: View) -> None:
        """Make the codes of a large pool."""
        SQIndex.prepare(view)

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
        reasons = ChainReasons(view, walk, apart=self.order == "chain")
        ranking: Ranking
        if self.order == "score" and allowed is None and walk.graph.size == view.size:
            ranking = self._lifted(walk, reasons)
        else:
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
        reasons = ChainReasons(view, walk)
        return [reasons.chain(number, len(chain.nodes)) for number, chain in enumerate(walk.chains)]

    async def _walk(self, query: str, view: View, where: Filter | None) -> WalkedQuestion:
        import asyncio

        vector, allowed = await view.embed_query(query), view.allowed(where)
        model = view.language_model if self.keywords == "model" else None
        asked, failure = None, ""
        if model is not None:
            asked, failure = await answer_or_reason(ask_keywords(query, model), "rules find the question's keywords")
        cosines = await view.similarities(query, vector, where)
        graph, near, seeds, open_ = await asyncio.to_thread(self._prepare, query, asked or (), cosines, view, allowed)
        question = ChainQuestion(query, vector, near, seeds.asked, seeds.coverage)
        chains = await walk_chains(graph, view, question, seeds.nodes, self.scorer, self.max_length, open_)
        return WalkedQuestion(graph, cosines, seeds, chains, failure)

    def _prepare(
        self, query: str, asked: Sequence[str], cosines: Similarities, view: View, allowed: BoolArray | None
    ) -> tuple[ChainGraph, NodeCosines, Seeds, BoolArray | None]:
        graph = ChainGraph.of(view)
        open_ = None if allowed is None else allowed[graph.positions]
        finder = KeywordFinder.of(view, graph, open_, strict=self.seed_match == "strict")
        known = list(dict.fromkeys(asked or finder.keywords(query)))[:MOST_KEYWORDS]
        near = NodeCosines.of(cosines, graph.positions)
        seeds = find_seeds(known, finder, near, open_, self.fallback_seeds, self.similar_seeds)
        return graph, near, seeds, open_

    def _lift(self, place: int) -> float:
        """What a passage is lifted by that stands at a place of a chain."""
        return self.step_lift * self.decay ** (place - 1) if place else self.seed_lift

    def _lifted(self, walk: WalkedQuestion, reasons: ChainReasons) -> LiftedRanking:
        """Passages by cosine, those of chains lifted; where all units are passages."""
        nodes = sorted(walk.places)
        lifts = np.array([self._lift(walk.places[node][1]) for node in nodes], dtype=np.float64)
        return LiftedRanking(walk.cosines, reasons.path, 1.0, np.array(nodes, dtype=np.int64), lifts)

    def _scores(self, view: View, walk: WalkedQuestion, query: str) -> FloatArray:
        scores = np.full(view.size, -2.0, dtype=np.float32)  # units that are no passages: behind every passage
        scores[walk.graph.positions] = 0.0
        scores += walk.cosines.all()
        positions = walk.graph.positions
        if self.order == "score":
            for node, (_, place) in walk.places.items():
                scores[positions[node]] += self._lift(place)
            return scores
        drawn = hashlib.blake2b(query.encode(), digest_size=8).digest()
        rng = np.random.default_rng([self.seed, int.from_bytes(drawn, "little")])
        read = [node for group in arrange_chains([c.nodes for c in walk.chains], self.order, rng) for node in group]
        nodes = list(dict.fromkeys(read))
        scores[positions[nodes]] = 2.0 - np.arange(len(nodes)) / max(1, len(nodes))  # in front of every cosine
        return scores
