"""A question's evidence in the chain graph, and labels from shortest paths between it (IIER section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.corpus.benchmarks import Question
    from sire_core.protocols import BoolArray, IntArray, View
    from sire_core.recipes.iier.graph import ChainGraph
    from sire_core.storage.pool import Pool

__all__ = [
    "LABELS",
    "UNREACHABLE",
    "Decision",
    "GoldNodes",
    "PathLabels",
    "hops_to",
    "path_labels",
    "shortest_path",
    "step_labels",
]


@dataclass(frozen=True, slots=True)
class GoldNodes:
    """The nodes of every document and what their passages say.

    Attributes:
        nodes: Nodes by document id, ascending.
        texts: Text of every node's passage.
    """

    nodes: Mapping[str, Sequence[int]]
    texts: Sequence[str]

    @classmethod
    def of(cls, view: View, graph: ChainGraph, pool: Pool) -> GoldNodes:
        """Read them from the pool once; they are kept with its view."""

        def read() -> GoldNodes:
            nodes: dict[str, list[int]] = {}
            texts = []
            for node, position in enumerate(graph.positions.tolist()):
                unit, documents = pool.unit(position)
                texts.append(unit.text)
                for document in documents:
                    nodes.setdefault(document, []).append(node)
            return cls(nodes, texts)

        made: GoldNodes = view.derived("gold nodes", read)
        return made

    def groups(self, question: Question) -> list[Sequence[int]]:
        """Nodes of each piece of evidence; finding one of a group is finding the piece.

        Where the data set names passages inside a document (`metadata["evidence"]`: texts by document id, as pools of
        pages have them), every passage that was indexed as it is there is a group of its own; otherwise a document is
        one group.
        """
        named = question.metadata.get("evidence")
        named = named if isinstance(named, Mapping) else {}
        found: list[Sequence[int]] = []
        for document in question.supporting:
            own = self.nodes.get(document, ())
            texts = dict.fromkeys(text for text in named.get(document) or () if isinstance(text, str))
            said = [[node for node in own if self.texts[node] == text] for text in texts]
            found.extend([group for group in said if group] or [own])
        return found


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
    """Hops from every node to one, by breadth-first search over an undirected graph.

    Args:
        indptr: Edges of node i are `neighbors[indptr[i]:indptr[i + 1]]`, `[n + 1]`.
        neighbors: `[m]`; every edge is there from both ends.
        target: The node.
        limit: Nodes further away are not looked for; None for no limit.

    Returns:
        int32 `[n]`; `UNREACHABLE` where there is no path within the limit.
    """
    hops = np.full(len(indptr) - 1, UNREACHABLE, dtype=np.int32)
    hops[target] = 0
    border, reached = np.array([target], dtype=np.int64), 0
    while len(border) and (limit is None or reached < limit):
        reached += 1
        found = np.unique(np.concatenate([neighbors[indptr[node] : indptr[node + 1]] for node in border.tolist()]))
        border = found[hops[found] == UNREACHABLE]
        hops[border] = reached
    return np.asarray(hops)


def shortest_path(indptr: IntArray, neighbors: IntArray, hops: IntArray, start: int) -> tuple[int, ...]:
    """The path of least hops to the node that `hops` leads to; of several the one with the smallest node numbers.

    Args:
        indptr: See `hops_to`.
        neighbors: Ascending within a node.
        hops: From `hops_to`.
        start: Where the path starts; `hops[start]` is not `UNREACHABLE`.
    """
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
    """Decisions along a shortest path from every passage of evidence to every other one (oracle I5).

    Decisions that any answer, or none, would fit are left out.

    Args:
        indptr: See `hops_to`.
        neighbors: See `shortest_path`.
        evidence: Nodes; repeated ones count once.
        labels: One of `LABELS`.
        max_hops: Pairs further apart than this count as unreachable: what lies far away, no scorer can see.

    Raises:
        ConfigurationError: Unknown labels, or a limit below 1.
    """
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
    for place in range(1, len(path)):
        chain, last, following = tuple(path[:place]), path[place - 1], path[place]
        around = neighbors[indptr[last] : indptr[last + 1]]
        candidates = around[~np.isin(around, chain)]
        positive = step_labels(candidates, hops, int(hops[last]), evidence, following if labels == "one_path" else None)
        if not positive.all():
            yield Decision(chain, path[-1], int(hops[last]), candidates, positive)


def step_labels(
    candidates: IntArray, hops: IntArray, here: int, evidence: Sequence[int], following: int | None
) -> BoolArray:
    """Which candidates are right.

    Args:
        candidates: `[c]`, none of them in the chain.
        hops: To the target, from `hops_to`.
        here: Hops from the chain's last node.
        evidence: Passages of evidence; those among the candidates are right in `all_shortest`.
        following: The only right one (`one_path`); None: all that are one hop nearer, and evidence (`all_shortest`).
    """
    if following is not None:
        return np.asarray(candidates == following)
    return np.asarray((hops[candidates] == here - 1) | np.isin(candidates, evidence))
