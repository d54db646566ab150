"""Training examples for scorers: labels from shortest paths between gold passages (IIER, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError, CorpusError
from sire_core.recipes.iier.graph import ChainGraph, GoldNodes, NodeCosines
from sire_core.recipes.iier.keywords import MAX_KEYWORDS, KeywordFinder
from sire_core.recipes.iier.neural import edge_features, pair_features, title_keywords
from sire_core.recipes.iier.rank import ChainQuestion, find_seeds, frontier, walk_chains
from sire_core.search.similarities import KnownSimilarities

if TYPE_CHECKING:
    from sire_core.corpus.benchmarks import Question
    from sire_core.protocols import BoolArray, FloatArray, IntArray, View
    from sire_core.recipes.iier.rank import EvidenceChains
    from sire_core.recipes.iier.scorers import ChainScorer
    from sire_core.search.view import PoolView

LOSSES = ("listwise", "bce")
"""`listwise`: softmax cross-entropy over the candidates of a decision, its right ones sharing the mass. `bce`: every
candidate alone."""

LABELS = ("all_shortest", "one_path")
"""`one_path` (the paper): the next node of the extracted path is right, every other one wrong, even other evidence.
`all_shortest`: every candidate is right that is one hop nearer to the target, and so is other evidence."""
UNREACHABLE = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Decision:
    """A chain that has to go on, and where to.

    Attributes:
        chain: Nodes so far, the first a passage of evidence.
        target: The passage of evidence that the path leads to.
        hops: From the chain's last node to the target, 1 or more.
        candidates: Neighbours of the last node that are not in the chain, ascending, `[c]`.
        positive: Which of them are right, `[c]`; at least one.
    """

    chain: tuple[int, ...]
    target: int
    hops: int
    candidates: IntArray
    positive: BoolArray


@dataclass(frozen=True, slots=True)
class PathLabels:
    """Decisions of one question.

    Attributes:
        decisions: In the order of the pairs of evidence, then along the path.
        unreachable: Ordered pairs of evidence without a path within the limit.
    """

    decisions: tuple[Decision, ...]
    unreachable: int


def hops_to(indptr: IntArray, neighbors: IntArray, target: int, limit: int | None = None) -> IntArray:
    """Hops from all nodes to a target in an undirected graph in compressed sparse rows, int32 `[n]`."""
    hops = np.full(len(indptr) - 1, UNREACHABLE, dtype=np.int32)
    hops[target] = 0
    border, reached = np.array([target], dtype=np.int64), 0
    while len(border) and (limit is None or reached < limit):
        reached += 1
        next_nodes = np.unique(np.concatenate([neighbors[indptr[node] : indptr[node + 1]] for node in border.tolist()]))
        border = next_nodes[hops[next_nodes] == UNREACHABLE]
        hops[border] = reached
    return np.asarray(hops)


def shortest_path(indptr: IntArray, neighbors: IntArray, hops: IntArray, start: int) -> tuple[int, ...]:
    """Shortest path to the target of `hops`; of several the one with the smallest node numbers."""
    path = [start]
    while hops[path[-1]]:
        around = neighbors[indptr[path[-1]] : indptr[path[-1] + 1]]
        path.append(int(around[hops[around] == hops[path[-1]] - 1].min()))
    return tuple(path)


def path_labels(
    indptr: IntArray,
    neighbors: IntArray,
    evidence: Sequence[int],
    labels: str = "all_shortest",
    *,
    max_hops: int | None = None,
) -> PathLabels:
    """Decisions along a shortest path between all ordered pairs of evidence (oracle I5)."""
    if labels not in LABELS:
        raise ConfigurationError(f"labels is one of {', '.join(LABELS)}, not {labels!r}.")
    if max_hops is not None and max_hops < 1:
        raise ConfigurationError(f"max_hops must be at least 1, not {max_hops}.")
    wanted = list(dict.fromkeys(evidence))
    distances = {target: hops_to(indptr, neighbors, target, max_hops) for target in wanted}
    decisions: list[Decision] = []
    unreachable = 0
    for start in wanted:
        for target in wanted:
            if start == target:
                continue
            hops = distances[target]
            if hops[start] == UNREACHABLE:
                unreachable += 1
                continue
            path = shortest_path(indptr, neighbors, hops, start)
            decisions += _along(path, indptr, neighbors, hops, wanted, labels)
    return PathLabels(tuple(decisions), unreachable)


def _along(
    path: Sequence[int], indptr: IntArray, neighbors: IntArray, hops: IntArray, evidence: Sequence[int], labels: str
) -> Iterator[Decision]:
    for step in range(1, len(path)):
        chain, last, following = tuple(path[:step]), path[step - 1], path[step]
        around = neighbors[indptr[last] : indptr[last + 1]]
        candidates = around[~np.isin(around, chain)]
        positive = step_labels(candidates, hops, int(hops[last]), evidence, following if labels == "one_path" else None)
        if not positive.all():
            yield Decision(chain, path[-1], int(hops[last]), candidates, positive)


def step_labels(
    candidates: IntArray, hops: IntArray, here: int, evidence: Sequence[int], following: int | None
) -> BoolArray:
    """Label candidates as correct or not.

    Args:
        candidates: `[c]`, none of them in the chain.
        hops: Hops to the target, `[n]`.
        here: Hops of the last node.
        evidence: Nodes of evidence.
        following: The only correct one (`one_path`); None: all one hop nearer, and evidence (`all_shortest`).
    """
    if following is not None:
        return np.asarray(candidates == following)
    return np.asarray((hops[candidates] == here - 1) | np.isin(candidates, evidence))


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A question with its gold passages.

    Attributes:
        question: The question with its features.
        seeds: First nodes of its chains.
        evidence: Nodes of its gold passages.
    """

    question: ChainQuestion
    seeds: Sequence[int]
    evidence: tuple[int, ...]


async def known_questions(
    view: PoolView, questions: Sequence[Question], ranker: EvidenceChains
) -> tuple[KnownQuestion, ...]:
    """Prepare questions with gold documents: keywords by rules, the most similar passage of each document."""
    graph = ChainGraph.of(view)
    finder = KeywordFinder.of(view, graph, None, strict=ranker.seed_match == "strict")
    gold = GoldNodes.of(view, graph)
    result = []
    for question in questions:
        if not question.supporting:
            continue
        vector = await view.embed_query(question.question)
        cosines = NodeCosines(KnownSimilarities(graph.vectors @ vector))
        keywords = finder.keywords(question.question)[:MAX_KEYWORDS]
        seeds = find_seeds(keywords, finder, cosines, None, ranker.fallback_seeds, ranker.similar_seeds)
        evidence = [max(group, key=lambda node: (cosines[node], -node)) for group in gold.groups(question) if group]
        known = ChainQuestion(question.question, vector, cosines, seeds.query_keywords, seeds.coverage)
        result.append(KnownQuestion(known, seeds.nodes, tuple(dict.fromkeys(evidence))))
    return tuple(result)


async def match_rate(
    view: PoolView, questions: Sequence[KnownQuestion], scorer: ChainScorer, max_length: int = 5
) -> float:
    """Share of gold passages on chains, a mean over questions, 0-100; 0 without questions."""
    graph = ChainGraph.of(view)
    rates = []
    for known in questions:
        chains = await walk_chains(graph, view, known.question, known.seeds, scorer, max_length)
        on_chains = {node for chain in chains for node in chain}
        rates.append(sum(node in on_chains for node in known.evidence) / len(known.evidence))
    return 100 * sum(rates) / len(rates) if rates else 0.0


def without_shared_evidence(
    training: Sequence[KnownQuestion], held_out: Sequence[KnownQuestion]
) -> tuple[KnownQuestion, ...]:
    """Training questions that share no gold passage with a held-out one."""
    pages = {node for known in held_out for node in known.evidence}
    return tuple(known for known in training if pages.isdisjoint(known.evidence))


@dataclass(frozen=True, slots=True)
class TextStep:
    """A decision as texts, for the encoder.

    Attributes:
        question: The question.
        path: Concatenated passages of the chain.
        candidates: Candidates, `c` of them.
        edges: Weights of the edges to the candidates, float32 `[c, 3]`, see `graph.FEATURES`.
        positive: Which candidates are correct, `[c]`.
    """

    question: str
    path: str
    candidates: tuple[str, ...]
    edges: FloatArray
    positive: BoolArray


@dataclass(frozen=True, slots=True)
class Examples:
    """Candidates of decisions as feature rows, for the light scorer.

    Attributes:
        pair: `pair_features`, `[c, p]`.
        edge: `edge_features`, `[c, e]`.
        positive: Whether a candidate is correct, `[c]`.
        owners: Decision of every row, ascending from 0, `[c]`.
        unreachable: Number of pairs of evidence without a path.
    """

    pair: FloatArray
    edge: FloatArray
    positive: BoolArray
    owners: IntArray
    unreachable: int

    @property
    def decisions(self) -> int:
        """Number of decisions."""
        return int(self.owners[-1]) + 1


def make_examples(view: View, questions: Sequence[KnownQuestion], labels: str, max_hops: int | None) -> Examples:
    """Make feature rows from the shortest paths of questions."""
    graph = ChainGraph.of(view)
    titles = title_keywords(graph, view)
    decisions, unreachable = _labelled(graph, questions, labels, max_hops)
    parts = [_rows(graph, titles, known, decision) for known, decision in decisions]
    pairs, edges, positives = zip(*parts, strict=True)
    return Examples(
        np.concatenate(pairs),
        np.concatenate(edges),
        np.concatenate(positives),
        np.repeat(np.arange(len(parts)), [len(right) for right in positives]),
        unreachable,
    )


def text_steps(
    view: View,
    questions: Sequence[KnownQuestion],
    labels: str,
    max_hops: int | None,
    max_candidates: int,
    rng: np.random.Generator,
) -> tuple[tuple[TextStep, ...], int]:
    """Make texts from the shortest paths of questions, with the number of pairs without a path."""
    graph = ChainGraph.of(view)
    decisions, unreachable = _labelled(graph, questions, labels, max_hops)

    def texts(nodes: Sequence[int] | IntArray) -> tuple[str, ...]:
        return tuple(unit.index_text for unit in view.units(graph.positions[np.asarray(nodes)]))

    steps = []
    for known, decision in decisions:
        wrong = np.flatnonzero(~decision.positive)
        nearest_wrong = wrong[np.argsort(-known.question.cosines[decision.candidates[wrong]], kind="stable")]
        room = max(1, max_candidates - int(decision.positive.sum()))
        hard, rest = nearest_wrong[: (room + 1) // 2], nearest_wrong[(room + 1) // 2 :]
        drawn = rng.permutation(rest)[: room - len(hard)]
        rows = np.sort(np.concatenate((np.flatnonzero(decision.positive), hard, drawn)))
        chosen = decision.candidates[rows]
        edges = np.stack([graph.edge(decision.chain[-1], node) for node in chosen.tolist()])
        path = "\n".join(texts(decision.chain))
        steps.append(TextStep(known.question.query, path, texts(chosen), edges, decision.positive[rows]))
    return tuple(steps), unreachable


def _labelled(
    graph: ChainGraph, questions: Sequence[KnownQuestion], labels: str, max_hops: int | None
) -> tuple[list[tuple[KnownQuestion, Decision]], int]:
    """All decisions with their questions, and the number of pairs without a path."""
    decisions: list[tuple[KnownQuestion, Decision]] = []
    unreachable = 0
    for known in questions:
        paths = path_labels(graph.indptr, graph.neighbors, known.evidence, labels, max_hops=max_hops)
        unreachable += paths.unreachable
        decisions += [(known, decision) for decision in paths.decisions]
    if not decisions:
        raise CorpusError(
            "There is nothing to learn from: no question has two gold passages ('supporting') that the interaction "
            "graph joins within --max-hops. Give questions with two or more, a graph with more edges (a larger n_sim), "
            "or more hops."
        )
    return decisions, unreachable


def _rows(
    graph: ChainGraph, titles: IntArray, known: KnownQuestion, decision: Decision
) -> tuple[FloatArray, FloatArray, BoolArray]:
    state, _ = frontier(graph, known.question, np.array([decision.chain], dtype=np.int64))
    return pair_features(state, graph), edge_features(state, graph, titles), decision.positive
