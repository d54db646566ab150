"""`Walk`: random walks over passages and entities; the ranking that a walk gives, and the paths of its hits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.pagerank import personalized_pagerank
from sire_core.search.ranking import LiftedRanking, ScoredRanking
from sire_core.types import PathStep

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.graphs import CSRGraph
    from sire_core.knowledge.entity_graph import EntityGraph
    from sire_core.protocols import BoolArray, FloatArray, IntArray, Ranking, Similarities, View

    Floats = NDArray[np.float64]

_BACK = 3
"""Maximum steps from a passage back to a start."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A graph over passages (the first nodes) and entities (the nodes after them).

    Attributes:
        graph: The graph.
        passages: Number of passages.
        mentions: Passages that name each entity, `[entities]`; 0 for those that no allowed passage names.
    """

    graph: CSRGraph
    passages: int
    mentions: IntArray

    def mass(self, entities: Floats, passages: Floats, damping: float, threshold: float = 1e-9) -> Floats:
        """PageRank of all nodes, `[nodes]`; zeros if nothing has a starting weight.

        Args:
            entities: Starting weight of every entity, `[entities]`.
            passages: Starting weight of every passage, `[passages]`.
            damping: Probability of following an edge instead of restarting.
            threshold: Precision; see `personalized_pagerank`.
        """
        seeds = np.concatenate((passages, entities))
        if seeds.sum() <= 0:
            return np.zeros(self.graph.size)
        return personalized_pagerank(self.graph, seeds, damping, threshold=threshold).scores


def min_max(values: FloatArray, allowed: BoolArray | None = None) -> Floats:
    """Scale values to 0 to 1; all 1 if they are equal.

    Args:
        values: `[n]`.
        allowed: Which count, `[n]`; others become 0. None means all.
    """
    scaled = np.zeros(len(values))
    rows = np.arange(len(values)) if allowed is None else np.flatnonzero(allowed)
    if len(rows):
        least, most = float(values[rows].min()), float(values[rows].max())
        scaled[rows] = (values[rows] - least) / (most - least) if most > least else 1.0
    return scaled


def walk_ranking(
    paths: WalkPaths, scores: Floats, cosines: Similarities, allowed: BoolArray | None, cosine_weight: float
) -> Ranking:
    """Rank passages by a score, the highest scaled to 1, plus their cosine; all other units come after them by cosine.

    Args:
        paths: Explains the hits.
        scores: Of every passage, `[passages]`.
        cosines: Of the whole pool.
        allowed: Units that may appear, `[size]`; None for all.
        cosine_weight: Weight of the cosine.
    """
    scaled = scores / (float(scores.max(initial=0.0)) or 1.0)
    passages = paths.graph.chunk_positions
    if allowed is None and len(passages) == len(cosines):
        reached = np.flatnonzero(scaled)
        return LiftedRanking(cosines, paths.path, cosine_weight, reached, scaled[reached])
    all_cosines = cosines.all()
    ranked = all_cosines - 2.0  # after every passage
    ranked[passages] = (scaled + cosine_weight * all_cosines[passages]).astype(np.float32)
    return ScoredRanking(ranked, allowed, paths.path)


class WalkPaths:
    """Paths of hits: the strongest steps of a walk from its start to a passage.

    Args:
        view: The pool.
        graph: The mentions.
        walk: The graph that was walked.
        starts: Why a walk starts at an entity, by entity number.
        mass: PageRank of all nodes, `[nodes]`.
        cosines: Of the whole pool.
    """

    def __init__(
        self,
        view: View,
        graph: EntityGraph,
        walk: Walk,
        starts: Mapping[int, str],
        mass: Floats,
        cosines: Similarities,
    ) -> None:
        self.graph = graph
        self._view = view
        self._walk = walk
        self._starts = starts
        self._mass = mass
        self._cosines = cosines
        self._known: dict[int, tuple[int, ...]] = {}

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Return steps by entities and passages, then the cosine."""
        kind = self._view.kind_names[self._view.kinds[position]]
        note = f"cosine {self._cosines.at(np.array([position]))[0]:.3f} with the question"
        own = PathStep(f"vector:{kind}", (self._id(position),), note)
        passage = int(np.searchsorted(self.graph.chunk_positions, position))
        is_passage = passage < self._walk.passages and self.graph.chunk_positions[passage] == position
        return (*self._towards(passage), own) if is_passage else (own,)

    def _towards(self, passage: int) -> tuple[PathStep, ...]:
        """Steps from the start of the walk to a passage."""
        nodes = [passage]
        while len(nodes) <= _BACK and not self._is_start(nodes[-1]):
            before = self._strongest(nodes[-1], other=nodes[-2] if len(nodes) > 1 else -1)
            if before is None:
                break
            nodes.append(before)
        if len(nodes) > _BACK and not self._is_start(nodes[-1]):
            nodes.pop()  # a name without a reason explains nothing
        nodes.reverse()
        size = self._walk.passages
        steps = [
            self._step(source, target)
            for source, target in pairwise(nodes)
            if target == passage or target >= size or source < size  # the step that follows says what it names
        ]
        if len(nodes) > 1 and self._is_start(nodes[0]):
            number = nodes[0] - self._walk.passages
            steps.insert(0, PathStep("question", (self.graph.entity_ids[number],), self._starts[number]))
        return tuple(steps)

    def _is_start(self, node: int) -> bool:
        return node - self._walk.passages in self._starts

    def _step(self, source: int, target: int) -> PathStep:
        ids = (self._node_id(source), self._node_id(target))
        if target >= self._walk.passages:
            if source >= self._walk.passages:
                return PathStep("entity", ids, "a relation or a similar name joins both")
            return PathStep("passage", ids, "this passage names the next entity")
        if source < self._walk.passages:
            return PathStep("passage", ids, "the passage beside it in the document")
        name = self.graph.name_in(target, source - self._walk.passages)
        return PathStep("entity", ids, f"the passage names {name or 'the entity'}")

    def _strongest(self, node: int, other: int) -> int | None:
        """The neighbour that contributes most to a node."""
        return next((sender for sender in self._senders(node) if sender != other), None)

    def _senders(self, node: int) -> tuple[int, ...]:
        """The two neighbours that contribute most to a node, best first; cached, as a hub leads to many hits."""
        if node not in self._known:
            neighbors, _ = self._walk.graph.neighbors(node)
            reached = neighbors[self._mass[neighbors] > 0]
            sent = np.array([self._sent(neighbor, node) for neighbor in reached.tolist()])
            self._known[node] = tuple(reached[np.argsort(-sent, kind="stable")[:2]].tolist())
        return self._known[node]

    def _sent(self, neighbor: int, node: int) -> float:
        targets, probabilities = self._walk.graph.neighbors(neighbor)
        return float(self._mass[neighbor] * probabilities[np.searchsorted(targets, node)])

    def _node_id(self, node: int) -> str:
        if node >= self._walk.passages:
            return self.graph.entity_ids[node - self._walk.passages]
        return self._id(int(self.graph.chunk_positions[node]))

    def _id(self, position: int) -> str:
        return str(self._view.ids[position].decode())
