"""The walk of evidence chains: its seeds, and from each one greedy path, all of them a step at a time (IIER 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sire_core.recipes.iier.chains import greedy_cover
from sire_core.recipes.iier.scorers import WalkState

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import BoolArray, FloatArray, IntArray, View
    from sire_core.recipes.iier.graph import ChainGraph
    from sire_core.recipes.iier.keywords import KeywordFinder
    from sire_core.recipes.iier.node_cosines import NodeCosines
    from sire_core.recipes.iier.scorers import ChainScorer

__all__ = ["ChainQuestion", "Seeds", "Walked", "find_seeds", "frontier", "walk_chains"]


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where chains start, and why.

    Attributes:
        nodes: Node of each seed.
        keywords: Keywords of the question that each was chosen for; none for a seed chosen by similarity.
        asked: All keywords of the question, at most 64.
        coverage: Bit set of the keywords that a node holds, uint64 `[n]`.
        fallback: Whether no passage holds any keyword, so that similarity alone chose.
    """

    nodes: Sequence[int]
    keywords: Sequence[Sequence[str]]
    asked: Sequence[str]
    coverage: NDArray[np.uint64]
    fallback: bool


def find_seeds(
    asked: Sequence[str],
    finder: KeywordFinder,
    cosines: NodeCosines,
    allowed: BoolArray | None,
    fallback: int = 3,
    similar: int = 0,
) -> Seeds:
    """Cover the question's keywords greedily; the most similar passages where there is nothing to cover.

    Args:
        asked: Keywords of the question, at most 64.
        finder: Knows who holds them.
        cosines: Of the question with every node.
        allowed: Nodes that may be seeds, `[n]`; None for all.
        fallback: How many seeds when no keyword is held by anybody.
        similar: So many of the most similar passages are seeds in any case, behind the others.
    """
    holders = [finder.holders(keyword) for keyword in asked]
    coverage = np.zeros(len(cosines), dtype=np.uint64)
    for number, nodes in enumerate(holders):
        coverage[nodes] |= np.uint64(1 << number)
    seeds, covers = greedy_cover(holders, cosines)
    keywords = [tuple(asked[number] for number in cover) for cover in covers]
    nearest = cosines.best(similar if seeds else max(fallback, similar), allowed)
    extra = [node for node in nearest.tolist() if node not in seeds]
    return Seeds([*seeds, *extra], [*keywords, *(() for _ in extra)], asked, coverage, not seeds)


_DECIMALS = 6
"""Scores are rounded to these before the best is taken, so that a batch's last bits decide nothing."""


@dataclass(frozen=True, slots=True)
class ChainQuestion:
    """A question as the walk sees it.

    Attributes:
        query: Its text.
        vector: Its unit-length vector, `[d]`.
        cosines: Its cosine with every node.
        keywords: Its keywords, at most 64.
        coverage: Bit set of the keywords that a node covers, uint64 `[n]`.
    """

    query: str
    vector: FloatArray
    cosines: NodeCosines
    keywords: Sequence[str]
    coverage: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Walked:
    """A chain: its nodes, the seed first, and the score with which each was taken (the seed's is its cosine)."""

    nodes: tuple[int, ...]
    scores: tuple[float, ...]


async def walk_chains(
    graph: ChainGraph,
    view: View,
    question: ChainQuestion,
    seeds: Sequence[int],
    scorer: ChainScorer,
    max_length: int,
    allowed: BoolArray | None = None,
) -> list[Walked]:
    """Walk from all seeds at once; every chain takes its best neighbour that is not in it yet.

    Args:
        graph: Where to walk.
        view: The pool, for scorers that read texts.
        question: What is asked.
        seeds: Where the chains start; chains may meet.
        scorer: Chooses the next node.
        max_length: Nodes of a chain at most, its seed included; 1 leaves the seeds alone.
        allowed: Nodes that may be walked through, `[n]`; None for all.

    Returns:
        One chain per seed, in the order of the seeds; shorter ones came to a dead end.
    """
    chains = [[seed] for seed in seeds]
    scores = [[float(question.cosines[seed])] for seed in seeds]
    active = np.arange(len(chains))
    while len(active) and len(chains[active[0]]) < max_length:
        state, alive = frontier(graph, question, np.array([chains[i] for i in active], dtype=np.int64), allowed)
        active = active[alive]
        if not len(active):
            break
        values = np.asarray(await scorer.score(state, graph, view), dtype=np.float64).round(_DECIMALS)
        bounds = np.searchsorted(state.owners, np.arange(len(active) + 1)).tolist()
        for chain, (start, stop) in zip(active.tolist(), pairwise(bounds), strict=True):
            place = start + int(values[start:stop].argmax())  # the first of equals: the smallest node
            chains[chain].append(int(state.candidates[place]))
            scores[chain].append(float(values[place]))
    return [Walked(tuple(nodes), tuple(values)) for nodes, values in zip(chains, scores, strict=True)]


def frontier(
    graph: ChainGraph, question: ChainQuestion, chains: IntArray, allowed: BoolArray | None = None
) -> tuple[WalkState, IntArray]:
    """What chains of one length could take next.

    Args:
        graph: Where to walk.
        question: What is asked.
        chains: Nodes so far, `[a, l]`.
        allowed: Nodes that may be taken, `[n]`; None for all.

    Returns:
        The state that scorers see, and which of `chains` are in it: those that have somewhere to go.
    """
    owners, edges = graph.around(chains[:, -1])
    candidates = graph.neighbors[edges]
    keep = ~(chains[owners] == candidates[:, None]).any(axis=1)
    if allowed is not None:
        keep &= allowed[candidates]
    owners, edges, candidates = owners[keep], edges[keep], candidates[keep]
    counts = np.bincount(owners, minlength=len(chains))
    alive = np.flatnonzero(counts)
    state = WalkState(
        query=question.query,
        question=question.vector,
        cosines=question.cosines,
        coverage=question.coverage,
        keywords=len(question.keywords),
        chains=chains[alive],
        owners=np.repeat(np.arange(len(alive)), counts[alive]),
        candidates=candidates,
        features=graph.features[edges],
    )
    return state, alive
