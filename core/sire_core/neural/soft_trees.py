"""The model: a small graph network and, per head, memberships on nested levels (SMART)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.undirected import UndirectedGraph

__all__ = ["SoftTree", "SoftTrees", "positions"]

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


_LLOYD = 5  # passes of k-means
_SHARP = 5.0  # first memberships: with those of a plain mixture of Gaussians all clusters are nearly the same


class SoftTree(NamedTuple):
    """One head's soft tree.

    Attributes:
        levels: Memberships `[n, d_m]`, the finest first; rows sum to 1.
        parents: `[d_m, d_(m+1)]` per level but the highest; None where levels are independent of each other.
    """

    levels: list[Tensor]
    parents: list[Tensor] | None


class SoftTrees:
    """Two graph layers shared by all heads (GraphSAGE with weighted means), then one chain of matrices per head.

    A head starts from clusters of the encoded vertices, found by a few passes of k-means in the part of the features
    that it sees: from random matrices training ends where all memberships are the same.

    Attributes:
        weights: All parameters, in a fixed order.
    """

    def __init__(self, features: int, widths: tuple[int, int], *, assign: str, generator: torch.Generator) -> None:
        """Draw the encoder.

        Args:
            features: p, the number of features.
            widths: Of both graph layers.
            assign: `softmax` or `sigmoid`.
            generator: Of all random numbers.
        """
        self._assign, self._generator = assign, generator
        first, second = (features, widths[0]), widths
        self._encoder = [self._drawn(*shape) for shape in (first, first, second, second)]
        self._heads: list[list[Tensor]] = []
        self._masks: list[Tensor] = []
        self._nested = True
        self.weights = list(self._encoder)

    def add_heads(
        self, means: Tensor, features: Tensor, count: int, sizes: Sequence[int], *, blind: float, nested: bool
    ) -> None:
        """Start heads from clusters.

        Args:
            means: Sparse `[n, n]`: every row averages over the neighbors.
            features: `[n, p]`.
            count: Heads.
            sizes: Clusters of every level, the finest first.
            blind: Share of the encoded features that a head does not see, others for every head.
            nested: Whether every cluster has a learned parent (else levels are independent).
        """
        self._nested = nested
        with torch.no_grad():
            encoded = self._encode(means, features)
        for _ in range(count):
            mask = (torch.rand(encoded.shape[1], generator=self._generator) >= blind).float()
            centers, logits = self._clusters(encoded * mask, sizes[0])
            head = [*logits]
            for _, size in pairwise(sizes):
                above, upper = self._clusters(centers, size)
                scores = centers @ upper[0] + upper[1]
                head.append(scores if nested else self._pooling(scores))
                centers = above
            self._masks.append(mask)
            self._heads.append([matrix.clone().requires_grad_() for matrix in head])
            self.weights += self._heads[-1]

    def __call__(self, means: Tensor, features: Tensor, temperature: float) -> list[SoftTree]:
        """The soft trees of all heads.

        Args:
            means: Sparse `[n, n]`, as above; other vertices than those that the heads started from are fine.
            features: `[n, p]`.
            temperature: Of the softmax; small is sharp.
        """
        encoded = self._encode(means, features)
        return [
            self._tree(encoded * mask, head, temperature) for mask, head in zip(self._masks, self._heads, strict=True)
        ]

    def _encode(self, means: Tensor, features: Tensor) -> Tensor:
        own, near, own_two, near_two = self._encoder
        inner = torch.relu(features @ own + torch.sparse.mm(means, features @ near))
        encoded = inner @ own_two + torch.sparse.mm(means, inner @ near_two)
        normal: Tensor = torch.nn.functional.layer_norm(encoded, encoded.shape[1:])
        return normal

    def _tree(self, encoded: Tensor, head: list[Tensor], temperature: float) -> SoftTree:
        logits = encoded @ head[0] + head[1]
        levels = [self._members(logits / temperature)]
        if not self._nested:
            for matrix in head[2:]:
                logits = logits @ matrix
                levels.append(self._members(logits / temperature))
            return SoftTree(levels, None)
        parents = [torch.softmax(matrix / temperature, dim=1) for matrix in head[2:]]
        for parent in parents:
            levels.append(levels[-1] @ parent)
        return SoftTree(levels, parents)

    def _members(self, logits: Tensor) -> Tensor:
        if self._assign == "softmax":
            return torch.softmax(logits, dim=1)
        overlapping = torch.sigmoid(logits)
        return overlapping / overlapping.sum(1, keepdim=True).clamp_min(1e-12)

    def _clusters(self, points: Tensor, count: int) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Centers, and the matrix and offsets whose logits say how near a point is to each of them."""
        centers = points[torch.randperm(len(points), generator=self._generator)[:count]]
        if len(centers) < count:
            again = torch.randint(len(points), (count - len(centers),), generator=self._generator)
            centers = torch.cat([centers, points[again]])
        for _ in range(_LLOYD):
            nearest = torch.cdist(points, centers).argmin(1)
            sizes = torch.bincount(nearest, minlength=count)
            sums = torch.zeros_like(centers).index_add_(0, nearest, points)
            centers = torch.where(sizes[:, None] > 0, sums / sizes.clamp_min(1)[:, None], centers)
        spread = torch.cdist(points, centers).min(1).values.square().mean().clamp_min(1e-6) / _SHARP
        return centers, (centers.T / spread, -centers.square().sum(1) / (2 * spread))

    def _pooling(self, scores: Tensor) -> Tensor:
        """Averages the logits of the clusters below each cluster."""
        belongs = torch.nn.functional.one_hot(scores.argmax(1), scores.shape[1]).float()
        average: Tensor = belongs / belongs.sum(0).clamp_min(1)
        return average

    def _drawn(self, rows: int, columns: int) -> Tensor:
        drawn: Tensor = torch.randn((rows, columns), generator=self._generator) / rows**0.5
        return drawn.requires_grad_()
