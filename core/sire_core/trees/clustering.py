"""Soft clusters of texts for summary trees (RAPTOR): fast by default, RAPTOR's own procedure on request."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.neighbors import approximate_neighbors, nearest_neighbors, neighbor_graph
from sire_core.derive.runners import mapped
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from sire_core.protocols import FloatArray, Runner

    NeighborLists = tuple[NDArray[np.int64], NDArray[np.float64]]
    Clusters = list[NDArray[np.int64]]

NEIGHBORS = 8
"""Nearest neighbours that a row is joined with by default."""

EXACT_BELOW = 50_000
"""From this many rows on, neighbours are searched in nearby cells only; comparing all pairs would be quadratic."""

_ONE_CLUSTER = 11  # As many texts as the reference's 10 dimensions plus one are a single cluster.


def soft_clusters(
    vectors: NDArray[np.float32],
    *,
    rng: np.random.Generator,
    method: str = "leiden",
    neighbors: int = NEIGHBORS,
    resolution: float = 0.015,
    join: float = 3.0,
    nearest: NeighborLists | None = None,
) -> Clusters:
    """Group rows by similarity; a row may be in several clusters.

    `leiden` joins every row with its nearest neighbours, the nearer the heavier, and looks for sets of rows whose
    links are denser than `resolution` (Leiden, constant Potts model). A row then also joins other clusters to which it
    has enough links. Only the order of neighbours counts, not the size of similarities, so one setting serves every
    embedder and every size of corpus.

    Returns ascending row numbers of each cluster, ordered by smallest member, then lexicographically. Every row occurs;
    no cluster has a single member unless `n` is 1; no two clusters are equal; 11 rows or fewer are one cluster.

    Args:
        vectors: float32 `[n, d]`.
        rng: Source of the seeds; the same state gives the same clusters for any number of threads.
        method: `leiden`, or `paper` for RAPTOR's UMAP and Gaussian mixtures (extra `paper`, some hundred times slower;
            ignores the settings below).
        neighbors: Nearest neighbours that a row is joined with.
        resolution: Mean link weight that makes a cluster; larger means smaller clusters. Sets too small to contain
            anything less dense are split along their own mean.
        join: A row joins further clusters to which its mean link weight is at least `join` times the resolution.
        nearest: Indices and cosines of `nearest_neighbors` if they are known; `leiden` only.
    """
    if method not in ("leiden", "paper"):
        raise ConfigurationError(f"clustering must be leiden or paper, not {method!r}")
    if neighbors < 1 or resolution <= 0 or join <= 0:
        raise ConfigurationError("clustering needs neighbors >= 1, resolution > 0 and join > 0")
    n = len(vectors)
    if n <= _ONE_CLUSTER:
        return [np.arange(n, dtype=np.int64)] if n else []
    if method == "paper":
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
    """Split a cluster that is too long to be summarised in one call (RAPTOR).

    The cluster is clustered again on its own, and so are its parts as long as they become shorter; the rest is cut in
    the order of its rows into the fewest parts.

    Args:
        cluster: Row numbers.
        tokens: Tokens of every row of `vectors`.
        vectors: float32 `[n, d]`, all rows.
        limit: Maximum tokens of a cluster.
        rng: See `soft_clusters`, as for the rest.
        method: `leiden` or `paper`.
        neighbors: Nearest neighbours.
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
    nearest: NeighborLists | None = None,
) -> Clusters:
    """Return soft clusters that are no longer than `limit` tokens, each once: one level of a summary tree.

    See `soft_clusters` and `split_by_tokens`.
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
    """Return the rows of each label, ascending."""
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
    """Return each distinct cluster once, by smallest member, then lexicographically."""
    distinct = sorted({tuple(cluster.tolist()) for cluster in clusters})
    return [np.array(cluster, dtype=np.int64) for cluster in distinct]


def _cut_in_order(members: NDArray[np.int64], lengths: NDArray[np.int64], limit: int) -> Clusters:
    """Return the fewest runs of members within the limit, and among those the most even ones."""
    fewest = len(_runs(lengths, limit))
    low, high = 1, limit
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if len(_runs(lengths, middle)) <= fewest else (middle + 1, high)
    return np.split(members, _runs(lengths, high)[1:])


def _runs(lengths: NDArray[np.int64], limit: int) -> list[int]:
    """Return the starts of the runs of greedy packing; an item over the limit is a run of its own."""
    starts = [0]
    total = 0
    for position, length in enumerate(lengths.tolist()):
        if position and total + length > limit:
            starts.append(position)
            total = 0
        total += length
    return starts


async def nearest_lists(vectors: FloatArray, runner: Runner) -> NeighborLists | None:
    """Find exact neighbour lists through the build's runner; None if clustering finds its own in this process."""
    if runner.part_size is None or not NEIGHBORS < len(vectors) < EXACT_BELOW:
        return None
    rows = await mapped(runner, _neighbors_of_rows, vectors, range(len(vectors)))
    return np.stack([indices for indices, _ in rows]), np.stack([cosines for _, cosines in rows])


def _neighbors_of_rows(vectors: FloatArray, rows: Sequence[int]) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return neighbours and cosines of some rows."""
    indices, cosines = nearest_neighbors(vectors, NEIGHBORS, np.asarray(rows, dtype=np.int64))
    return list(zip(indices, cosines, strict=True))


_BIC_SEED = 224
_MIXTURE_SEED = 0
_LOCAL_NEIGHBORS = 10
_DIMENSION = 10
"""Dimensions that UMAP keeps; one point more, or fewer, are one cluster."""
_MIN_POSTERIOR = 0.1
_MAX_COMPONENTS = 50
"""The largest mixture tried has one component less, and less than there are points."""


def soft_labels(posteriors: NDArray[np.float64], *, repair: bool = True) -> NDArray[np.bool_]:
    """Return the components `[n, components]` that each point belongs to: those with a posterior above 0.1.

    `repair` gives points without any such component their most probable one; the reference loses these points.
    """
    labels = np.asarray(posteriors > _MIN_POSTERIOR)
    if repair and posteriors.shape[1]:
        lost = np.flatnonzero(~labels.any(axis=1))
        labels[lost, posteriors[lost].argmax(axis=1)] = True
    return labels


def paper_clusters(
    vectors: NDArray[np.float32], *, rng: np.random.Generator, repair: bool = True
) -> list[NDArray[np.int64]]:
    """Cluster as RAPTOR's code does: UMAP, Gaussian mixtures chosen by BIC, globally and then locally.

    UMAP has a seed of `rng`; the mixtures keep the reference's seeds (224 to choose, 0 to fit). Single members and
    repetitions may occur; without `repair` (see `soft_labels`) a row may be missing.
    """
    n = len(vectors)
    # Equal rows leave UMAP nothing but noise to spread.
    if n <= _DIMENSION + 1 or (vectors == vectors[0]).all():
        return [np.arange(n, dtype=np.int64)] if n else []
    clusters = []
    neighbors = int(np.sqrt(n - 1))
    for group in _mixture(_reduce_dimensions(vectors, neighbors, rng), repair):
        if len(group) <= _DIMENSION + 1 or (vectors[group] == vectors[group[0]]).all():
            clusters.append(group)
            continue
        points = _reduce_dimensions(vectors[group], _LOCAL_NEIGHBORS, rng)
        clusters += [group[part] for part in _mixture(points, repair)]
    return clusters


def _reduce_dimensions(vectors: NDArray[np.float32], neighbors: int, rng: np.random.Generator) -> NDArray[np.float64]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It warns that its neural variant lacks TensorFlow.
            from umap import UMAP
    except ImportError as error:
        raise ConfigurationError('clustering="paper" needs umap-learn: pip install "sire-rag[paper]"') from error
    n = len(vectors)
    model = UMAP(
        n_neighbors=max(2, min(neighbors, n - 1)),
        n_components=min(_DIMENSION, n - 2),
        metric="cosine",
        random_state=int(rng.integers(2**31)),
        n_jobs=1,  # A seeded UMAP runs on one thread anyway, and warns unless it is set.
    )
    with warnings.catch_warnings():
        # Disconnected or duplicate points make UMAP warn; the result is used as it is, like the reference's.
        warnings.simplefilter("ignore")
        return np.asarray(model.fit_transform(vectors), dtype=np.float64)


def _mixture(points: NDArray[np.float64], repair: bool) -> list[NDArray[np.int64]]:
    """Return the members of each component of the mixture with the least BIC, without empty components."""
    from threadpoolctl import threadpool_limits

    # One thread: sums of the k-means start then have one order, and these matrices are too small to share anyway.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # Fits that stop at the iteration limit, or start from fewer distinct points than components, are legitimate.
        warnings.simplefilter("ignore")
        candidates = range(1, max(2, min(_MAX_COMPONENTS, len(points))))
        best = min(candidates, key=lambda count: float(_fit(points, count, _BIC_SEED).bic(points)))
        posteriors = _fit(points, best, _MIXTURE_SEED).predict_proba(points)
    labels = soft_labels(posteriors, repair=repair)
    return [np.flatnonzero(column).astype(np.int64) for column in labels.T if column.any()]


def _fit(points: NDArray[np.float64], components: int, seed: int) -> Any:
    from sklearn.mixture import GaussianMixture

    try:
        return GaussianMixture(n_components=components, random_state=seed).fit(points)
    except ValueError:
        # A component collapsed onto equal points. A floor under its variance keeps it usable.
        floor = 1e-3 * float(points.var() or 1.0)
        return GaussianMixture(n_components=components, random_state=seed, covariance_type="diag", reg_covar=floor).fit(
            points
        )
