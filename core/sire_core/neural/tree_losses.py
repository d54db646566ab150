"""What soft encoding trees save and share: differentiable, in bits (SMART)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = [
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
