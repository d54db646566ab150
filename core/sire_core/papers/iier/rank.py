"""`EvidenceChains`: ranks passages by chains walked over the interaction graph (IIER, section 3.2).

Seeds cover the question's keywords (`find_seeds`), every seed grows into a chain (`walk_chains`), and chains become a
ranking (`EvidenceChains`). Ours are `order="score"`, the seeds by similarity and passages outside of chains.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain as concatenated
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sire_core.extend import (
    KnownSimilarities,
    LiftedRanking,
    PathStep,
    ScoredRanking,
    SQIndex,
    answer_or_reason,
    best_first,
    check_settings,
    cosine_step,
    refuse_unused,
    setting,
    with_failure,
)
from sire_core.papers.iier.chain_graph import (
    MAX_KEYWORDS,
    ChainGraph,
    GoldNodes,
    KeywordFinder,
    PassageKeywords,
    ask_keywords,
)
from sire_core.papers.iier.scorers import ChainQuestion, ChainScorer, HeuristicScorer, WalkState

if TYPE_CHECKING:
    from sire_core.extend import (
        BoolArray,
        Embedder,
        Filter,
        FloatArray,
        HashArray,
        Hit,
        IntArray,
        PoolView,
        Question,
        Ranking,
        Similarities,
        View,
    )


def greedy_cover(holders: Sequence[IntArray], similarity: Similarities) -> tuple[list[int], list[tuple[int, ...]]]:
    """Cover keywords greedily with few nodes; ties go to the larger similarity `[n]`, then to the smaller node."""
    open_ = [number for number, nodes in enumerate(holders) if len(nodes)]
    seeds: list[int] = []
    covers: list[tuple[int, ...]] = []
    while open_:
        nodes, counts = np.unique(np.concatenate([holders[number] for number in open_]), return_counts=True)
        candidates = nodes[counts == counts.max()]
        best = int(candidates[np.argmax(similarity.at(candidates))])
        covered = tuple(number for number in open_ if best in holders[number])
        seeds.append(best)
        covers.append(covered)
        open_ = [number for number in open_ if number not in covered]
    return seeds, covers


FORMATS = ("chain", "iterative", "shuffle")
"""Chain after chain; first passages of all chains, then second passages, and so on; random order."""

Node = TypeVar("Node")


def arrange_chains(chains: Sequence[Sequence[Node]], form: str, rng: np.random.Generator) -> list[list[Node]]:
    """Arrange passages of chains for a reader (oracle I7); only `chain` repeats those that chains share."""
    if form == "chain":
        return [list(members) for members in chains]
    if form == "iterative":
        longest = max(map(len, chains), default=0)
        steps = (members[step] for step in range(longest) for members in chains if step < len(members))
        return [list(dict.fromkeys(steps))]
    members = list(dict.fromkeys(concatenated.from_iterable(chains)))
    return [[members[i] for i in rng.permutation(len(members)).tolist()]]


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where chains start."""

    nodes: Sequence[int]  # node of each seed
    keywords: Sequence[Sequence[str]]  # keywords of the question that each covers; none for a seed taken by similarity
    query_keywords: Sequence[str]  # all keywords of the question, at most 64
    coverage: HashArray  # bit set of the keywords that a node contains, uint64 `[n]`


def find_seeds(
    query_keywords: Sequence[str],
    finder: KeywordFinder,
    cosines: Similarities,
    allowed: BoolArray | None,
    fallback: int = 3,
    similar: int = 0,
) -> Seeds:
    """Cover the keywords; add `similar` nearest passages, at least `fallback` where no passage has a keyword."""
    holders = [finder.holders(keyword) for keyword in query_keywords]
    coverage = np.zeros(len(cosines), dtype=np.uint64)
    for number, nodes in enumerate(holders):
        coverage[nodes] |= np.uint64(1 << number)
    seeds, covers = greedy_cover(holders, cosines)
    keywords = [tuple(query_keywords[number] for number in cover) for cover in covers]
    nearest = _nearest_nodes(cosines, similar if seeds else max(fallback, similar), allowed)
    extra = [node for node in nearest.tolist() if node not in seeds]
    return Seeds([*seeds, *extra], [*keywords, *(() for _ in extra)], query_keywords, coverage)


def _nearest_nodes(cosines: Similarities, n: int, allowed: BoolArray | None) -> IntArray:
    """Return the allowed nodes most similar to the question, best first, ties by node."""
    if allowed is None:
        return cosines.best(n)[0] if n else np.empty(0, dtype=np.int64)
    return best_first(np.where(allowed, cosines.all(), -np.inf).astype(np.float32), n)


_DECIMALS = 6  # Scores are rounded before the best is taken, so that results do not depend on batches


async def walk_chains(
    graph: ChainGraph,
    view: View,
    question: ChainQuestion,
    seeds: Sequence[int],
    scorer: ChainScorer,
    max_length: int,
    allowed: BoolArray | None = None,
) -> list[tuple[int, ...]]:
    """Grow one chain per seed, all at once, by its best new neighbor; chains may share passages and end early."""
    chains = [[seed] for seed in seeds]
    active = np.arange(len(chains))
    while len(active) and len(chains[active[0]]) < max_length:
        state, alive = frontier(graph, question, np.array([chains[i] for i in active], dtype=np.int64), allowed)
        active = active[alive]
        if not len(active):
            break
        values = np.asarray(await scorer.score(state, graph, view), dtype=np.float64).round(_DECIMALS)
        bounds = np.searchsorted(state.owners, np.arange(len(active) + 1)).tolist()
        for chain, (start, stop) in zip(active.tolist(), pairwise(bounds), strict=True):
            best = start + int(values[start:stop].argmax())  # of equal scores the smallest node
            chains[chain].append(int(state.candidates[best]))
    return [tuple(nodes) for nodes in chains]


def frontier(
    graph: ChainGraph, question: ChainQuestion, chains: IntArray, allowed: BoolArray | None = None
) -> tuple[WalkState, IntArray]:
    """Return the state of the chains that can grow, and their rows in `chains` `[a, l]`, which are of one length."""
    owners, edges = graph.around(chains[:, -1])
    candidates = graph.neighbors[edges]
    keep = ~(chains[owners] == candidates[:, None]).any(axis=1)
    if allowed is not None:
        keep &= allowed[candidates]
    owners, edges, candidates = owners[keep], edges[keep], candidates[keep]
    counts = np.bincount(owners, minlength=len(chains))
    alive = np.flatnonzero(counts)
    state = WalkState(
        question=question,
        chains=chains[alive],
        owners=np.repeat(np.arange(len(alive)), counts[alive]),
        candidates=candidates,
        features=graph.features[edges],
    )
    return state, alive


SEED = "seed"  # Step of the passage at which a chain starts
CHAIN = "chain"  # Step of every further passage of a chain
WHOLE = "whole_chain"  # Step that lists all passages of a chain that contains the hit; its note names the chain


@dataclass(frozen=True)
class ChainResult:
    """The chains of a question."""

    graph: ChainGraph
    cosines: Similarities  # cosines of the question with all units
    seeds: Seeds  # where the chains start
    chains: Sequence[tuple[int, ...]]  # nodes of each, one chain per seed
    failure: str  # why the model did not find the keywords; empty if it did or was not asked

    @cached_property
    def steps(self) -> Mapping[int, tuple[int, int]]:
        """By node its chain and its step there: the earliest step, then the earliest chain."""
        steps: dict[int, tuple[int, int]] = {}
        for number, chain in enumerate(self.chains):
            for step, node in enumerate(chain):
                if node not in steps or step < steps[node][1]:
                    steps[node] = (number, step)
        return steps


@dataclass(frozen=True, slots=True)
class ChainReasons:
    """Paths of hits: the chain up to the passage, one step per passage."""

    view: View
    result: ChainResult
    with_whole_chains: bool = False

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Return the steps of the chain, or the cosine for a passage outside of chains."""
        positions = self.result.graph.positions
        node = int(np.searchsorted(positions, position))
        if node < len(positions) and positions[node] == position and node in self.result.steps:
            number, step = self.result.steps[node]
            return (*self.chain(number, step + 1), *(self._chain_steps(node) if self.with_whole_chains else ()))
        return (cosine_step(self.view, position, self.result.cosines.at(np.array([position]))[0]),)

    def _chain_steps(self, node: int) -> Iterator[PathStep]:
        """Yield every chain that contains a passage."""
        for number, chain in enumerate(self.result.chains, 1):
            if node in chain:
                positions = self.result.graph.positions[list(chain)].tolist()
                yield PathStep(WHOLE, tuple(map(self._id, positions)), f"chain of evidence {number}")

    def chain(self, number: int, length: int) -> tuple[PathStep, ...]:
        """Return a step per passage for the first ones of a chain, with the reason for each."""
        nodes = self.result.chains[number][:length]
        positions = self.result.graph.positions[list(nodes)].tolist()
        keywords = self.result.seeds.keywords[number]
        start = (
            f"holds {_quoted(keywords)} of the question"
            if keywords
            else "among the passages most similar to the question"
        )
        notes = [f"{start}, {self._cosine(positions[0])}"]
        notes += [
            f"{self._link(left, right)}, {self._cosine(position)}"
            for left, right, position in zip(nodes[:-1], nodes[1:], positions[1:], strict=True)
        ]
        passages = enumerate(zip(positions, notes, strict=True))
        return tuple(PathStep(CHAIN if at else SEED, (self._id(position),), note) for at, (position, note) in passages)

    def _link(self, left: int, right: int) -> str:
        """Describe the edge between two passages; both are allowed, and so is every keyword that both contain."""
        graph = self.result.graph
        structural, similarity, shared = graph.edge(left, right).tolist()
        parts = ["beside it in the document"] if structural else []
        if similarity:
            parts.append(f"cosine {similarity:.3f} with the one before")
        if shared:
            both = np.intersect1d(graph.keywords.of(left), graph.keywords.of(right)).tolist()
            parts.append(f"shares {_quoted([graph.keys[number] for number in both])}")
        return "; ".join(parts)

    def _cosine(self, position: int) -> str:
        return f"cosine {self.result.cosines.at(np.array([position]))[0]:.3f} with the question"

    def _id(self, position: int) -> str:
        return str(self.view.ids[position].decode())


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


@dataclass(frozen=True, slots=True)
class ChainLines:
    """Lines of a context that list which passages form a chain (IIER, section 4.5.1)."""

    async def lines(self, hits: Sequence[Hit], view: View) -> list[str]:  # noqa: ARG002 - the hits know
        """One line per chain with the numbers of its passages, from 1; a passage may be in several chains."""
        number = {hit.unit.id: rank for rank, hit in enumerate(hits, 1)}
        chains = {step.note: step.ids for hit in hits for step in hit.path if step.step == WHOLE}
        return [
            f"{name}: passages {', '.join(str(number[chunk]) for chunk in chains[name] if chunk in number)}"
            for name in sorted(chains, key=lambda name: int(name.rpartition(" ")[2]))
        ]


@dataclass(frozen=True, slots=True)
class EvidenceChains:
    """Ranks passages by evidence chains: greedy walks from few seeds that cover the question's keywords.

    Needs the `InteractionGraph` organizer; without it every chain is its seed alone. Passages outside of chains follow
    by cosine (`fill`), other units come after all passages. A filter restricts seeds and walks.

    The paper reads chain after chain (`order="chain"`, `similar_seeds=0`). The first five passages are then those of
    one chain while the second fact of the question is often in another, so that recall at five is below that of plain
    similarity. By default, therefore, the cosine of a passage is raised by its step in the chain, and the most similar
    passage starts a chain, too; chosen on the even questions of a development set of 2WikiMultihopQA, for all corpora.

    Attributes:
        scorer: Chooses the next passage of a chain.
        max_length: Maximum passages of a chain, including its seed.
        keywords: How the question's keywords are found: `model`, by one model call (by rules without a model), or
            `rules`.
        seed_match: How seeds match keywords: `strict`, by the keywords of a passage, as in the paper;
            `keyword_then_text`, also by its title, and by its text for keywords that no passage has.
        fallback_seeds: Number of most similar passages that start chains if no keyword is found; 0 as published, so
            that such a question has no chains.
        similar_seeds: Number of most similar passages that always start chains.
        order: `score`, or `chain`, `iterative` or `shuffle`, as in the paper.
        seed_lift: Added to the cosine similarity of a seed, with `order=score`.
        step_lift: Added to the first passage after a seed.
        decay: Factor for every further step.
        fill: Whether passages outside of chains follow. The paper's contexts contain only chains.
        seed: Random seed of the order `shuffle`.

    Raises:
        ConfigurationError: A setting makes no sense.
    """

    scorer: ChainScorer = field(default_factory=HeuristicScorer)
    max_length: int = setting(5, low=1, high=100)
    keywords: str = setting("model", choices=("model", "rules"))
    seed_match: str = setting("keyword_then_text", choices=("strict", "keyword_then_text"))
    fallback_seeds: int = setting(3, low=0, high=100)
    similar_seeds: int = setting(1, low=0, high=100)
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
        """Raise EmbedderMismatchError if the scorer was trained on vectors of another embedder."""
        check = getattr(self.scorer, "check_embedder", None)
        if check is not None:
            check(embedder)

    def prepare(self, view: View) -> None:
        """Build the vector index of a large pool."""
        SQIndex.prepare(view)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter; walks stay among them."""
        allowed = view.allowed(where)
        if not view.size:
            return ScoredRanking(np.zeros(0, dtype=np.float32), None, lambda _: ())
        result = await self._walk(query, view, where)
        if not self.fill:
            in_chain = np.zeros(view.size, dtype=bool)
            in_chain[result.graph.positions[list(result.steps)]] = True
            allowed = in_chain if allowed is None else allowed & in_chain
        reasons = ChainReasons(view, result, with_whole_chains=self.order == "chain")
        ranking: Ranking
        if self.order == "score" and allowed is None and result.graph.size == view.size:
            ranking = self._lifted(result, reasons)
        else:
            ranking = ScoredRanking(self._scores(view, result, query), allowed, reasons.path)
        return with_failure(ranking, "keywords", "found by rules", result.failure)

    async def chains(self, query: str, view: View, where: Filter | None = None) -> list[tuple[PathStep, ...]]:
        """Return the whole chains of a question, in the order of their seeds."""
        if not view.size:
            return []
        result = await self._walk(query, view, where)
        reasons = ChainReasons(view, result)
        return [reasons.chain(number, len(chain)) for number, chain in enumerate(result.chains)]

    async def gold_on_chains(self, questions: Sequence[Question], view: PoolView) -> list[float]:
        """Share of each question's gold passages that are on a chain, 0..1; see `sire eval`."""
        graph = ChainGraph.of(view)
        gold = GoldNodes.of(view, graph)
        ids = [name.decode() for name in view.ids[graph.positions]]
        shares = []
        for question in questions:
            on_chains = {step.ids[0] for chain in await self.chains(question.question, view) for step in chain}
            groups = gold.groups(question)
            shares.append(sum(any(ids[node] in on_chains for node in group) for group in groups) / len(groups))
        return shares

    async def _walk(self, query: str, view: View, where: Filter | None) -> ChainResult:
        vector, allowed = await view.embed_query(query), view.allowed(where)
        model = view.language_model if self.keywords == "model" else None
        model_keywords, failure = None, ""
        if model is not None:
            model_keywords, failure = await answer_or_reason(
                ask_keywords(query, model), "rules find the question's keywords"
            )
        cosines = await view.similarities(query, vector, where)
        graph, node_cosines, seeds, open_ = await asyncio.to_thread(
            self._prepare, query, model_keywords or (), cosines, view, allowed
        )
        question = ChainQuestion(query, vector, node_cosines, seeds.query_keywords, seeds.coverage)
        chains = await walk_chains(graph, view, question, seeds.nodes, self.scorer, self.max_length, open_)
        return ChainResult(graph, cosines, seeds, chains, failure)

    def _prepare(
        self, query: str, model_keywords: Sequence[str], cosines: Similarities, view: View, allowed: BoolArray | None
    ) -> tuple[ChainGraph, Similarities, Seeds, BoolArray | None]:
        graph = ChainGraph.of(view)
        open_ = None if allowed is None else allowed[graph.positions]
        finder = KeywordFinder(graph, PassageKeywords(view, graph.positions), open_, self.seed_match == "strict")
        keywords = list(dict.fromkeys(model_keywords or finder.keywords(query)))[:MAX_KEYWORDS]
        every_unit = graph.size == len(cosines)
        node_cosines = cosines if every_unit else KnownSimilarities(cosines.all()[graph.positions])
        seeds = find_seeds(keywords, finder, node_cosines, open_, self.fallback_seeds, self.similar_seeds)
        return graph, node_cosines, seeds, open_

    def _lift(self, step: int) -> float:
        """Added to the cosine of a passage at a step of a chain."""
        return self.step_lift * self.decay ** (step - 1) if step else self.seed_lift

    def _lifted(self, result: ChainResult, reasons: ChainReasons) -> LiftedRanking:
        """Passages by cosine plus lift, if all units are passages."""
        nodes = sorted(result.steps)
        lifts = np.array([self._lift(result.steps[node][1]) for node in nodes], dtype=np.float64)
        return LiftedRanking(result.cosines, reasons.path, 1.0, np.array(nodes, dtype=np.int64), lifts)

    def _scores(self, view: View, result: ChainResult, query: str) -> FloatArray:
        positions = result.graph.positions
        scores = np.full(view.size, -2.0, dtype=np.float32)  # other units: after every passage
        scores[positions] = 0.0
        scores += result.cosines.all()
        if self.order == "score":
            for node, (_, step) in result.steps.items():
                scores[positions[node]] += self._lift(step)
            return scores
        query_seed = int.from_bytes(hashlib.blake2b(query.encode(), digest_size=8).digest(), "little")
        rng = np.random.default_rng([self.seed, query_seed])
        groups = arrange_chains(result.chains, self.order, rng)
        nodes = list(dict.fromkeys(concatenated.from_iterable(groups)))
        scores[positions[nodes]] = 2.0 - np.arange(len(nodes)) / max(1, len(nodes))  # above every cosine
        return scores
