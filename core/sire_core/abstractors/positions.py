"""Where vertices are in the graph, as features for the network: the texts alone do not tell (ALGORITHMS 6.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.undirected import UndirectedGraph

__all__ = ["positions"]

_STEPS = 20


def positions(graph: UndirectedGraph, width: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Coordinates in which vertices are near that a random walk mixes soon: a diffusion map by subspace iteration.

    Args:
        graph: A graph in which every vertex has an edge.
        width: Most coordinates.
        rng: Start of the iteration.

    Returns:
        float32 `[n, at most width]`, the slowest modes first, of mean square 1 for a mode that does not decay.
    """
    from scipy.sparse import csr_array

    starts, targets, weights = graph.rows()
    roots = np.sqrt(graph.degrees())
    values = weights / (np.repeat(roots, np.diff(starts)) * roots[targets])
    walk = csr_array((values, targets, starts), shape=(graph.size, graph.size))
    steady = roots / np.linalg.norm(roots)
    basis = rng.standard_normal((graph.size, min(width, graph.size - 1)))
    for _ in range(_STEPS):
        basis -= np.outer(steady, steady @ basis)
        # Lazy steps: a mode that changes sign at every step is no neighborhood.
        basis = np.linalg.qr(basis + walk @ basis)[0]
    decay, turn = np.linalg.eigh(basis.T @ (walk @ basis))
    modes = (basis @ turn) / roots[:, None] * np.linalg.norm(roots)
    return np.asarray((modes * np.maximum(decay, 0.0))[:, ::-1], dtype=np.float32)
