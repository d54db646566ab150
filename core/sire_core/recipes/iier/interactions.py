"""Edges of a chunk-interaction graph: neighbours in a document, in meaning, in keywords (IIER section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["keyword_pairs", "semantic_pairs", "structural_pairs"]

_BLOCK = 4096
"""Rows of the product of the keyword matrix with itself that are held at once."""


def structural_pairs(documents: Sequence[str], nodes: Sequence[int]) -> NDArray[np.int64]:
    """Pairs of nodes that follow one another in a document; never across documents (oracle I4).

    Args:
        documents: Document of every chunk, the chunks of one document in a row and in order.
        nodes: Node of every chunk. Copies of one passage are one node; a node is never joined to itself.

    Returns:
        Distinct pairs `[m, 2]`, the smaller node first, ascending.
    """
    pairs = {
        (min(nodes[i], nodes[i + 1]), max(nodes[i], nodes[i + 1]))
        for i in range(len(nodes) - 1)
        if documents[i] == documents[i + 1] and nodes[i] != nodes[i + 1]
    }
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def semantic_pairs(
    indices: NDArray[np.int64], similarities: NDArray[np.float64], links: str = "union"
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Undirected pairs from lists of nearest neighbours (oracle I3). Cosines that are not positive join nothing.

    Args:
        indices: Neighbours of every node, `[n, k]`.
        similarities: Their cosines, `[n, k]`; places without a neighbour hold a number that is not positive.
        links: `union`: one of both lists the other; `mutual`: both do.

    Returns:
        Pairs `[m, 2]`, the smaller node first, ascending; their cosines `[m]`; and who lists whom `[m]`: 1 the smaller
        node the larger one, 2 the other way round, 3 both.

    Raises:
        ConfigurationError: Unknown `links`.
    """
    if links not in ("union", "mutual"):
        raise ConfigurationError(f"Semantic edges are made by 'union' or 'mutual', not {links!r}.")
    size, width = indices.shape
    keep = similarities > 0
    rows = np.broadcast_to(np.arange(size)[:, None], (size, width))[keep]
    columns = indices[keep]
    codes = np.minimum(rows, columns) * max(size, 1) + np.maximum(rows, columns)
    pairs, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    listed = np.bincount(inverse, weights=np.where(rows < columns, 1, 2), minlength=len(pairs)).astype(np.int64)
    wanted = listed == 3 if links == "mutual" else listed > 0
    both = np.stack(np.divmod(pairs[wanted], max(size, 1)), axis=1)
    return both.astype(np.int64), similarities[keep][first[wanted]], listed[wanted]


def keyword_pairs(
    indptr: NDArray[np.int64], numbers: NDArray[np.int64], least: int = 3, cap: int | None = 200
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of nodes that share keywords, through an inverted index (oracle I1).

    Args:
        indptr: Keywords of node i are `numbers[indptr[i]:indptr[i + 1]]`, `[n + 1]`.
        numbers: Of the keywords, distinct within a node.
        least: Shared keywords that make a pair.
        cap: Keywords of more nodes than this are hubs and join nothing; None for no cap.

    Returns:
        Pairs `[m, 2]`, the smaller node first, ascending, and how many keywords they share, `[m]`.

    Raises:
        ConfigurationError: `least` or `cap` is below 1.
    """
    from scipy.sparse import csr_array

    if least < 1 or (cap is not None and cap < 1):
        raise ConfigurationError(f"Shared keywords and the cap must be at least 1, not {least} and {cap}.")
    count = len(indptr) - 1
    nodes = np.repeat(np.arange(count), np.diff(indptr))
    held = np.bincount(numbers)
    keep = held[numbers] <= (cap or count)
    ones = np.ones(int(keep.sum()), dtype=np.int32)
    has = csr_array((ones, (nodes[keep], numbers[keep])), shape=(count, len(held)))
    inverted = has.T.tocsr()
    found, counts = [np.zeros((0, 2), dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for start in range(0, count, _BLOCK):
        shared = (has[start : start + _BLOCK] @ inverted).tocoo()
        left, right = shared.coords[0].astype(np.int64) + start, shared.coords[1].astype(np.int64)
        wanted = (left < right) & (shared.data >= least)
        found.append(np.stack([left[wanted], right[wanted]], axis=1))
        counts.append(shared.data[wanted].astype(np.int64))
    pairs, shares = np.concatenate(found), np.concatenate(counts)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return pairs[order], shares[order]
