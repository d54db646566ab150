"""Soft clusters of texts for summary trees (RAPTOR): fast by default, RAPTOR's own procedure on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.neighbor_updates import approximate_neighbors
from sire_core.algorithms.neighbors import nearest_neighbors, neighbor_graph
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Lists = tuple[NDArray[np.int64], NDArray[np.float64]]
    Clusters = list[NDArray[np.int64]]

__all__ = ["EXACT_BELOW", "NEIGHBORS", "clusters_within_limit", "soft_clusters", "split_by_tokens"]

NEIGHBORS = 8
"""Nearest neighbours that a row is joined with by default."""

EXACT_BELOW = 50_000
"""From so many rows on neighbours are looked for in nearby cells only: comparing all would be quadratic."""

_SMALLEST = 11  # As many texts as the reference's 10 dimensions plus one are a single cluster.


def soft_clusters(
    vectors: NDArray[np.float32],
    *,
    rng: np.random.Generator,
    method: str = "leiden",
    neighbors: int = NEIGHBORS,
    resolution: float = 0.015,
    join: float = 3.0,
    nearest: Lists | None = None,
) -> Clusters:
    """Group rows by similarity; a row may be in several clusters.

    `leiden` joins every row with its nearest neighbours, the nearer the heavier, and looks for sets of rows whose
    links are denser than `resolution` (Leiden, constant Potts model). A row then also joins other clusters to which it
    has enough links. Only the order of neighbours counts, not how large similarities are, so one setting serves every
    embedder and every size of corpus.

    Args:
        vectors: `[n, d]`.
        rng: Source of the seeds; the same state gives the same clusters for any number of threads.
        method: `leiden`, or `paper` for RAPTOR's UMAP and Gaussian mixtures (extra `paper`, some hundred times slower;
            ignores the settings below).
        neighbors: Nearest neighbours that a row is joined with.
        resolution: Mean link weight that holds a cluster together; larger means smaller clusters. Sets too small to
            contain anything less dense are split along their own mean.
        join: A row joins further clusters to which its mean link weight is at least `join` times the resolution.
        nearest: The neighbours as `nearest_neighbors` gives them, where they are known; `leiden` only.

    Returns:
        Ascending row numbers of each cluster, ordered by smallest member, then lexicographically. Every row occurs;
        no cluster has a single member unless `n` is 1; no two clusters are equal; 11 rows or fewer are one cluster.

    Raises:
        ConfigurationError: Unknown method, settings out of range, vectors that are not finite, or umap-learn missing.
    """
    if method not in ("leiden", "paper"):
        raise ConfigurationError(f"clustering must be leiden or paper, not {method!r}")
    if neighbors < 1 or resolution <= 0 or join <= 0:
        raise ConfigurationError("clustering needs neighbors >= 1, resolution > 0 and join > 0")
    n = len(vectors)
    if n <= _SMALLEST:
        return [np.arange(n, dtype=np.int64)] if n else []
    if method == "paper":
        from sire_core.trees.paper_clustering import paper_clusters

        closest = nearest_neighbors(vectors, 1)[0][:, 0]
        return _ordered(_without_singletons(paper_clusters(vectors, rng=rng), closest))
    find = nearest_neighbors if n < EXACT_BELOW else approximate_neighbors
    indices, similarities = nearest or find(vectors, neighbors)
    graph = neighbor_graph(indices, similarities)
    resolution = max(resolution, graph.sum() / (n * (n - 1)))
    hard = _without_singletons(_leiden(graph, resolution, rng), indices[:, 0])
    return _ordered(_with_joiners(hard, graph, join * resolution))


def split_by_tokens(
    cluster: Sequence[int] | NDArray[np.int64],
    tokens: Sequence[int] | NDArray[np.int64],
    vectors: NDArray[np.float32],
    limit: int,
    *,
    rng: np.random.Generator,
    method: str = "leiden",
    neighbors: int = NEIGHBORS,
) -> Clusters:
    """Split a cluster that is too long to be summarised in one go (RAPTOR).

    It is clustered again on its own, and so are its parts as long as they become shorter; what does not become shorter
    is cut in the order of its rows into the fewest parts.

    Args:
        cluster: Row numbers.
        tokens: Tokens of every row of `vectors`.
        vectors: `[n, d]`, all rows.
        limit: Most tokens of a cluster.
        rng: See `soft_clusters`.
        method: See `soft_clusters`.
        neighbors: See `soft_clusters`.

    Returns:
        Clusters within the limit, ordered as by `soft_clusters`; a row longer than the limit is alone in its cluster.

    Raises:
        ConfigurationError: The limit is not positive; and as `soft_clusters`.
    """
    if limit < 1:
        raise ConfigurationError(f"the token limit of a cluster must be at least 1, not {limit}")
    lengths = np.asarray(tokens, dtype=np.int64)
    waiting = [np.unique(np.asarray(cluster, dtype=np.int64))]
    done: Clusters = []
    while waiting:
        members = waiting.pop()
        total = lengths[members].sum()
        if total <= limit:
            done.append(members)
            continue
        parts = soft_clusters(vectors[members], rng=rng, method=method, neighbors=neighbors)
        rows = [members[part] for part in parts]
        if all(lengths[part].sum() < total for part in rows):
            waiting += rows
        else:
            done += _cut_in_order(members, lengths[members], limit)
    return _ordered([part for part in done if len(part)])


def clusters_within_limit(
    vectors: NDArray[np.float32],
    tokens: Sequence[int] | NDArray[np.int64],
    limit: int,
    *,
    rng: np.random.Generator,
    method: str = "leiden",
    nearest: Lists | None = None,
) -> Clusters:
    """Soft clusters, none longer than the limit: one level of a summary tree.

    Args:
        vectors: `[n, d]`.
        tokens: Tokens of every row.
        limit: Most tokens of a cluster.
        rng: See `soft_clusters`.
        method: See `soft_clusters`.
        nearest: See `soft_clusters`.

    Returns:
        As `split_by_tokens`, each cluster once, by the cluster it is a part of.

    Raises:
        ConfigurationError: As `soft_clusters` and `split_by_tokens`.
    """
    within: dict[tuple[int, ...], NDArray[np.int64]] = {}
    lengths = np.asarray(tokens, dtype=np.int64)  # once, not for every cluster
    for cluster in soft_clusters(vectors, method=method, rng=rng, nearest=nearest):
        for part in split_by_tokens(cluster, lengths, vectors, limit, method=method, rng=rng):
            within.setdefault(tuple(part.tolist()), part)
    return list(within.values())


def _leiden(graph: csr_array, resolution: float, rng: np.random.Generator) -> Clusters:
    from graspologic_native import leiden_csr

    n = graph.shape[0]
    seed = int(rng.integers(2**31))
    if graph.nnz == 0:
        return [np.array([row], dtype=np.int64) for row in range(n)]
    _, communities = leiden_csr(
        graph.indptr.astype(np.int64),
        graph.indices.astype(np.int32),
        graph.data,
        n,
        resolution=resolution,
        use_modularity=False,
        seed=seed,
    )
    # Isolated rows may be missing from the answer: each gets a label of its own.
    labels = np.array([communities.get(row, n + row) for row in range(n)], dtype=np.int64)
    return _groups(np.arange(n, dtype=np.int64), labels)


def _with_joiners(clusters: Clusters, graph: csr_array, density: float) -> Clusters:
    """Add to each cluster the rows whose mean link weight to its members is at least `density`."""
    from scipy.sparse import csr_array

    n = graph.shape[0]
    sizes = np.array([len(cluster) for cluster in clusters])
    labels = np.empty(n, dtype=np.int64)
    labels[np.concatenate(clusters)] = np.repeat(np.arange(len(clusters)), sizes)
    membership = csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, len(clusters)))
    links = (graph @ membership).tocoo()
    rows, columns = links.row, links.col
    # The margin keeps a sum of weights that only rounding separates from the bound on one side.
    joins = (links.data >= density * sizes[columns] - 1e-9) & (columns != labels[rows])
    return _groups(
        np.concatenate([np.arange(n), rows[joins].astype(np.int64)]), np.concatenate([labels, columns[joins]])
    )


def _groups(rows: NDArray[np.int64], labels: NDArray[np.int64]) -> Clusters:
    """Rows of each label, ascending."""
    order = np.lexsort((rows, labels))
    return np.split(rows[order], np.flatnonzero(np.diff(labels[order])) + 1)


def _without_singletons(clusters: Clusters, nearest: NDArray[np.int64]) -> Clusters:
    """Dissolve single members: each joins the first cluster of its nearest neighbour, or forms a pair with it."""
    merged = [cluster.tolist() for cluster in clusters if len(cluster) > 1]
    home: dict[int, int] = {}
    for number, cluster in enumerate(merged):
        for row in cluster:
            home.setdefault(row, number)
    for row in sorted(int(cluster[0]) for cluster in clusters if len(cluster) == 1):
        if row in home:
            continue
        neighbor = int(nearest[row])
        if neighbor not in home:
            home[neighbor] = len(merged)
            merged.append([neighbor])
        home[row] = home[neighbor]
        merged[home[row]].append(row)
    return [np.array(sorted(cluster), dtype=np.int64) for cluster in merged]


def _ordered(clusters: Clusters) -> Clusters:
    """Each distinct cluster once, by smallest member, then lexicographically."""
    distinct = sorted({tuple(cluster.tolist()) for cluster in clusters})
    return [np.array(cluster, dtype=np.int64) for cluster in distinct]


def _cut_in_order(members: NDArray[np.int64], lengths: NDArray[np.int64], limit: int) -> Clusters:
    """The fewest runs of members within the limit, and among those the most even ones."""
    fewest = len(_runs(lengths, limit))
    low, high = 1, limit
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if len(_runs(lengths, middle)) <= fewest else (middle + 1, high)
    return np.split(members, _runs(lengths, high)[1:])


def _runs(lengths: NDArray[np.int64], limit: int) -> list[int]:
    """Starts of the runs that greedy packing makes; an item over the limit is a run of its own."""
    starts = [0]
    total = 0
    for position, length in enumerate(lengths.tolist()):
        if position and total + length > limit:
            starts.append(position)
            total = 0
        total += length
    return starts
