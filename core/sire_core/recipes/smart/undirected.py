"""Undirected weighted graphs: what structural entropy and modularity are computed on (SMART)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import stable_order
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["UndirectedGraph"]

_INTEGER = 63  # bits of a number, without the sign


@dataclass(frozen=True, slots=True, eq=False)
class UndirectedGraph:
    """Vertices 0 to size - 1 and weighted edges, each stored once; no self-loops, no parallel edges.

    Make one with `from_edges`, which cleans what it is given.

    Attributes:
        size: Number of vertices; some may have no edge.
        edges: int64 `[m, 2]`, the smaller end first, rows in ascending order.
        weights: float64 `[m]`, positive.
    """

    size: int
    edges: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def from_edges(
        cls, size: int, edges: NDArray[np.int64], weights: NDArray[np.float64] | None = None
    ) -> UndirectedGraph:
        """Drop self-loops and add up the weights of parallel edges, whichever way round they are given.

        Args:
            size: Number of vertices.
            edges: `[m, 2]`, below `size`.
            weights: `[m]`, positive; 1 each when left out.

        Raises:
            ConfigurationError: A weight is not positive or not finite, a vertex does not exist, or shapes do not fit.
        """
        ends = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        values = np.ones(len(ends)) if weights is None else np.asarray(weights, dtype=np.float64)
        if size < 0 or values.shape != (len(ends),):
            raise ConfigurationError("A graph needs a size of at least 0 and one weight per edge.")
        if len(ends) and not 0 <= ends.min() <= ends.max() < size:
            raise ConfigurationError(f"Edges must join vertices 0 to {size - 1}.")
        if len(ends) and not (np.isfinite(values).all() and values.min() > 0):
            raise ConfigurationError("Weights of edges must be positive and finite; leave out edges without weight.")
        return cls._summed(size, ends, values)

    @classmethod
    def _summed(cls, size: int, ends: NDArray[np.int64], values: NDArray[np.float64]) -> UndirectedGraph:
        left, right = ends.T
        proper = left != right
        low, high = np.minimum(left, right)[proper], np.maximum(left, right)[proper]
        codes, order = _sorted(low * size + high, size * size)
        begins = np.diff(codes, prepend=-1) != 0
        sums = np.bincount(np.cumsum(begins) - 1, weights=values[proper][order]).astype(np.float64)
        return cls(size, np.stack(np.divmod(codes[begins], max(size, 1)), axis=1), sums)

    def degrees(self) -> NDArray[np.float64]:
        """Sum of the weights of every vertex's edges, `[n]`."""
        ends = self.edges.T.ravel()
        return np.bincount(ends, weights=np.tile(self.weights, 2), minlength=self.size).astype(np.float64)

    def volume(self) -> float:
        """Sum of all degrees: twice the weight of all edges."""
        return 2.0 * float(self.weights.sum())

    def with_weights(self, weights: NDArray[np.float64]) -> UndirectedGraph:
        """The same vertices with other weights of the same edges; edges of weight 0 are left out.

        Args:
            weights: `[m]`, at least 0.

        Raises:
            ConfigurationError: A weight is negative or not finite, or their number is wrong.
        """
        values = np.asarray(weights, dtype=np.float64)
        if values.shape != self.weights.shape or not np.isfinite(values).all() or (values < 0).any():
            raise ConfigurationError(f"Give one finite weight of at least 0 for each of the {len(self.weights)} edges.")
        kept = values > 0
        return UndirectedGraph(self.size, self.edges[kept], values[kept])

    def contracted(self, labels: NDArray[np.int64]) -> UndirectedGraph:
        """One vertex per label, joined by the weights between the labels; edges inside a label are left out.

        Args:
            labels: `[n]`, 0 to c - 1.
        """
        count = int(labels.max()) + 1 if len(labels) else 0
        return UndirectedGraph._summed(count, labels[self.edges], self.weights)

    def largest_component(self) -> NDArray[np.bool_]:
        """Which vertices the most vertices can be reached from, `[n]`; of equally large components the first."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        matrix = coo_array((self.weights, tuple(self.edges.T)), shape=(self.size, self.size))
        labels = connected_components(matrix, directed=False)[1]
        held: NDArray[np.bool_] = labels == np.bincount(labels).argmax() if self.size else labels.astype(np.bool_)
        return held

    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The symmetric matrix as compressed sparse rows: row starts, columns ascending within a row, weights."""
        # With the reversed edges first, columns are in order already: nothing has to be sorted but the rows.
        sources, targets = np.concatenate([self.edges[:, ::-1], self.edges]).T
        order = stable_order(sources)
        starts = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=self.size))]).astype(np.int64)
        return starts, targets[order], np.tile(self.weights, 2)[order]


def _sorted(codes: NDArray[np.int64], below: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Codes from 0 to less than a bound, ascending, and their places; equal ones stay in order."""
    bits = len(codes).bit_length()
    if below.bit_length() + bits > _INTEGER:
        order = np.argsort(codes, kind="stable")
        return codes[order], order
    # Numbers are sorted faster than places: each takes its place along in its lower bits.
    packed = np.sort(codes << bits | np.arange(len(codes)))
    return packed >> bits, packed & ((1 << bits) - 1)
