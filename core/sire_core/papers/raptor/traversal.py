"""`TreeTraversal`: from the top of a tree of summaries down to passages (RAPTOR, section 3)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.extend import PathStep, ScoredRanking, best_first, check_settings, setting

if TYPE_CHECKING:
    from sire_core.extend import BoolArray, Filter, FloatArray, IntArray, Ranking, View

_PATH_BONUS = 2.0  # No two cosines differ by more: what is kept stands before all other units


@dataclass(frozen=True, slots=True)
class TreeTraversal:
    """Ranks by walking down the tree: of each layer, the nodes most similar to the question are kept.

    Of the layers below the top only children of kept nodes are looked at, and nodes without a parent. All kept nodes
    are the paper's context; here they come first, by cosine, and all other units behind them. Under a filter, a node
    whose parents are hidden counts as one without a parent.

    Attributes:
        traversal: Number of nodes that are kept per layer; None ranks the collapsed tree.
    """

    traversal: int | None = setting(None, low=1)

    def __post_init__(self) -> None:
        check_settings(self)

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter."""
        cosines = await view.cosines(query, await view.embed_query(query), where)
        edges, layers = await asyncio.to_thread(view.derived, "tree layers", lambda: _tree(view))
        allowed = view.allowed(where)
        on_path = self._kept(cosines, np.ones(view.size, dtype=bool) if allowed is None else allowed, edges, layers)
        scores = np.where(on_path, cosines + _PATH_BONUS, cosines).astype(np.float32)

        def explain(position: int) -> tuple[PathStep, ...]:
            way = f"kept in layer {layers[position]}" if on_path[position] else "not on the way down"
            note = f"{way}, cosine {cosines[position]:.3f} with the question"
            return (PathStep("traversal", (view.ids[position].decode(),), note),)

        return ScoredRanking(scores, allowed, explain)

    def _kept(self, cosines: FloatArray, allowed: BoolArray, edges: IntArray, layers: IntArray) -> BoolArray:
        """Nodes that are kept, `[size]`."""
        assert self.traversal is not None
        edges = edges[allowed[edges].all(axis=1)]
        is_open = allowed.copy()
        is_open[edges[:, 1]] = False
        on_path = np.zeros(len(cosines), dtype=bool)
        for layer in range(int(layers.max(initial=0)), -1, -1):
            is_open[edges[on_path[edges[:, 0]], 1]] = True
            on_path[best_first(np.where(is_open & (layers == layer), cosines, -np.inf), self.traversal)] = True
        return on_path


def _tree(view: View) -> tuple[IntArray, IntArray]:
    """Return positions of parents and children, `[edges, 2]`, and the layer of every unit, 0 for passages, `[size]`."""
    positions = view.places()
    pairs = [(positions[edge.source], positions[edge.target]) for edge in view.edges() if edge.kind == "child"]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    layers = np.zeros(view.size, dtype=np.int64)
    while len(edges):
        above = layers.copy()
        np.maximum.at(above, edges[:, 0], layers[edges[:, 1]] + 1)
        if np.array_equal(above, layers):
            break
        layers = above
    return edges, layers
