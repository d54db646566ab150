"""Weighted graphs as compressed sparse rows: the form in which walks and pushes are fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import row_pointers
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class CSRGraph:
    """A directed graph whose edges leaving a node are probabilities.

    Attributes:
        indptr: Edges of node i are `indptr[i]:indptr[i + 1]`, int64 `[n + 1]`.
        targets: Where the edges lead, int64, ascending within a node.
        probabilities: float64; they sum to 1 for every node that has edges.
    """

    indptr: NDArray[np.int64]
    targets: NDArray[np.int64]
    probabilities: NDArray[np.float64]

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.indptr) - 1

    @classmethod
    def from_edges(
        cls,
        size: int,
        sources: NDArray[np.int64],
        targets: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> CSRGraph:
        """Sort edges by source and divide their weights by the sum of each node.

        Args:
            size: Number of nodes.
            sources: `[m]`, below `size`.
            targets: `[m]`, below `size`.
            weights: `[m]`, positive.

        Raises:
            ConfigurationError: A weight is not positive or not finite, or a node does not exist.
        """
        if len(weights) and not (np.isfinite(weights).all() and weights.min() > 0):
            raise ConfigurationError("Weights of edges must be positive and finite.")
        if len(weights) and not (min(sources.min(), targets.min()) >= 0 and max(sources.max(), targets.max()) < size):
            raise ConfigurationError(f"Edges must join nodes 0 to {size - 1}.")
        order = np.lexsort((targets, sources))
        totals = np.bincount(sources, weights=weights, minlength=size)
        indptr = row_pointers(sources, size)
        return cls(
            indptr=indptr,
            targets=np.ascontiguousarray(targets[order], dtype=np.int64),
            probabilities=np.ascontiguousarray((weights / totals[sources])[order], dtype=np.float64),
        )

    def neighbors(self, node: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Where the edges of a node lead, and how probable each is."""
        place = slice(int(self.indptr[node]), int(self.indptr[node + 1]))
        return self.targets[place], self.probabilities[place]
