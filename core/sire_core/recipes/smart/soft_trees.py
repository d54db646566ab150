"""The model: a graph network with memberships on nested levels per head, and what its soft trees save (SMART)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.smart.undirected import UndirectedGraph

__all__ = [
    "SoftTree",
    "SoftTrees",
    "positions",
    "soft_decoding_information",
    "soft_entropy",
    "soft_modularity_loss",
    "soft_mutual_information",
    "sparse_adjacency",
]

_TINY = 1e-12


def sparse_adjacency(size: int, edges: Tensor, weights: Tensor, *, normalized: bool = False) -> Tensor:
    """The symmetric matrix of a graph, sparse.

    Args:
        size: Number of vertices.
        edges: int64 `[m, 2]`, each edge once.
        weights: `[m]`.
        normalized: Divide every entry by the square root of the degrees of both its ends.
    """
    pairs = torch.cat([edges, edges.flip(1)]).T
    values = torch.cat([weights, weights])
    if normalized:
        degrees = torch.zeros(size, dtype=values.dtype).index_add_(0, pairs[0], values)
        values = values / (degrees[pairs[0]] * degrees[pairs[1]]).sqrt()
    return torch.sparse_coo_tensor(pairs, values, (size, size), check_invariants=False).coalesce()


def soft_decoding_information(
    adjacency: Tensor, degrees: Tensor, levels: Sequence[Tensor], parents: Sequence[Tensor] | None = None
) -> Tensor:
    """D of a soft tree, in bits: equal to the hard value where all memberships are 0 or 1.

    Args:
        adjacency: Sparse symmetric `[n, n]`.
        degrees: `[n]`, its row sums.
        levels: Memberships Y_m `[n, d_m]` of the vertices, the finest first; rows sum to 1.
        parents: R_m `[d_m, d_(m+1)]`, the parents of the clusters of each level but the highest; rows sum to 1. Left
            out, they follow from the memberships: the share of a cluster's volume that lies in each cluster above.
    """
    total = degrees.sum()
    volumes = [level.T @ degrees for level in levels]
    saved = torch.zeros((), dtype=degrees.dtype)
    for m, level in enumerate(levels):
        inner = (level * torch.sparse.mm(adjacency, level)).sum(0)
        own = volumes[m].clamp_min(_TINY).log2()
        if m + 1 == len(levels):
            above = total.log2()
        else:
            share = parents[m] if parents is not None else _shares(level, levels[m + 1], degrees)
            above = share @ volumes[m + 1].clamp_min(_TINY).log2()
        saved = saved + (inner / total * (above - own)).sum()
    return saved


def soft_modularity_loss(adjacency: Tensor, level: Tensor, balance: float | None = None) -> Tensor:
    """-Tr(Y'AY) + mu |Y'A1|^2 of one level, after equation (10) of SMART; less is better.

    Args:
        adjacency: Sparse symmetric `[n, n]`, raw or normalized.
        level: Memberships `[n, d]`.
        balance: mu; None is 1 / (sum of the matrix), with which the loss is minus modularity times that sum. The
            paper's 0.001 is lowest when all vertices are in one cluster.
    """
    sums = torch.sparse.mm(adjacency, torch.ones((level.shape[0], 1), dtype=level.dtype)).squeeze(1)
    factor = 1 / sums.sum() if balance is None else balance
    loss: Tensor = factor * ((level.T @ sums) ** 2).sum() - (level * torch.sparse.mm(adjacency, level)).sum()
    return loss


def soft_mutual_information(first: Tensor, second: Tensor, *, normalized: bool = False) -> Tensor:
    """What two soft partitions share, in bits, or normalized to 0 (independent) ... 1 (the same).

    Args:
        first: Memberships `[n, a]`; rows sum to 1.
        second: Memberships `[n, b]`; rows sum to 1.
        normalized: Divide by the mean of the entropies of both partitions' sizes.
    """
    joint = first.T @ second / len(first)
    one, two = first.mean(0), second.mean(0)
    ratio = joint.clamp_min(_TINY).log2() - one.clamp_min(_TINY).log2()[:, None] - two.clamp_min(_TINY).log2()[None]
    shared = (joint * ratio).sum()
    if not normalized:
        return shared
    return 2 * shared / (soft_entropy(one) + soft_entropy(two)).clamp_min(_TINY)


def soft_entropy(shares: Tensor) -> Tensor:
    """Entropy in bits of the last axis, whose entries sum to 1.

    Args:
        shares: `[..., d]`.
    """
    return -(shares * shares.clamp_min(_TINY).log2()).sum(-1)


def _shares(level: Tensor, above: Tensor, degrees: Tensor) -> Tensor:
    joint = (level * degrees[:, None]).T @ above
    return joint / joint.sum(1, keepdim=True).clamp_min(_TINY)


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
