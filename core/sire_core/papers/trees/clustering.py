"""Soft clusters of texts for summary trees (RAPTOR): fast by default, RAPTOR's own procedure on request."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extend import (
    ConfigurationError,
    approximate_neighbors,
    in_parts,
    nearest_neighbors,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from sire_core.extend import BoolArray, DoubleArray, FloatArray, IntArray, Runner

    NeighborLists = tuple[IntArray, DoubleArray]
    Clusters = list[IntArray]

NEIGHBORS = 8  # Nearest neighbours that a row is joined with by default
_RESOLUTION, _JOIN = 0.015, 3.0  # mean link weight that makes a cluster; times this one a row joins others

EXACT_BELOW = 50_000
"""From this many rows on, neighbours are searched in nearby cells only; comparing all pairs would be quadratic."""

ONE_CLUSTER = 11  # As many texts as the reference's 10 dimensions plus one are a single cluster; its code stops there


def soft_clusters(
    vectors: FloatArray,
    *,
    rng: np.random.Generator,
    method: str = "leiden",
    neighbors: int = NEIGHBORS,
    nearest: NeighborLists | None = None,
) -> Clusters:
    """Group rows by similarity; a row may be in several clusters.

    `leiden` joins every row with its nearest neighbours, the nearer the heavier, and looks for sets of rows whose
    links are denser than `resolution` (Leiden, constant Potts model). A row then also joins other clusters to which it
    has enough links. Only the order of neighbours counts, not the size of similarities, so one setting serves every
    embedder and every size of corpus.

    Returns ascending row numbers of each cluster, ordered by smallest member, then lexicographically. Every row occurs;
    no cluster of `leiden` has a single member unless `n` is 1; no two clusters are equal; 11 rows or fewer are one
    cluster.

    Vectors are float32 `[n, d]`. `method="paper"` is RAPTOR's UMAP and Gaussian mixtures (extra `paper`, some hundred
    times slower; ignores the rest), whose clusters of a single text stay; sets too small to contain anything less dense
    are split along their own mean. A row joins further clusters to which its mean link weight is at least three times
    the resolution. `nearest` has the result of `nearest_neighbors` if it is known.
    """
    n = len(vectors)
    if n <= ONE_CLUSTER:
        return [np.arange(n, dtype=np.int64)] if n else []
    if method == "paper":
        return _ordered(paper_clusters(vectors, rng=rng))
    find = nearest_neighbors if n < EXACT_BELOW else approximate_neighbors
    indices, similarities = nearest or find(vectors, neighbors)
    graph = _neighbor_graph(indices, similarities)
    resolution = max(_RESOLUTION, graph.sum() / (n * (n - 1)))
    hard = _without_singletons(_leiden(graph, resolution, rng), indices[:, 0])
    return _ordered(_with_joiners(hard, graph, _JOIN * resolution))


def _neighbor_graph(indices: IntArray, similarities: DoubleArray) -> csr_array[np.float64]:
    """Join rows with their neighbours, `[n, k]` as from `nearest_neighbors`, in an undirected graph, CSR `[n, n]`.

    The r-th neighbour (from 1) weighs w = 1 / (r + 1), and 0 for a row that is not a neighbour or has no positive
    similarity. An edge weighs ((sqrt(w there) + sqrt(w back)) / 2) ** 2, between the mean and the minimum of both
    directions. By ranks and mutual liking, rows that are near to everything do not glue groups together, as they do
    when cosines are the weights.
    """
    from scipy.sparse import coo_array

    n, k = indices.shape
    keep = similarities > 0
    rows = np.broadcast_to(np.arange(n)[:, None], (n, k))[keep]
    roots = np.broadcast_to(np.sqrt(1.0 / np.arange(2, k + 2)), (n, k))[keep]
    directed = coo_array((roots, (rows, indices[keep])), shape=(n, n)).tocsr()
    graph: csr_array[np.float64] = ((directed + directed.T) / 2).tocsr()
    graph.sort_indices()
    graph.data **= 2
    return graph


def split_by_tokens(
    cluster: Sequence[int] | IntArray,
    tokens: Sequence[int] | IntArray,
    vectors: FloatArray,
    limit: int,
    *,
    rng: np.random.Generator,
    method: str = "leiden",
) -> Clusters:
    """Split a cluster that is too long to be summarised in one call (RAPTOR).

    The cluster is clustered again on its own, and so are its parts as long as they become shorter; the rest is cut in
    the order of its rows into the fewest parts.

    `tokens` are those of every row of `vectors`, float32 `[n, d]`.
    """
    lengths = np.asarray(tokens, dtype=np.int64)
    waiting = [np.unique(np.asarray(cluster, dtype=np.int64))]
    done: Clusters = []
    while waiting:
        members = waiting.pop()
        total = lengths[members].sum()
        if total <= limit:
            done.append(members)
            continue
        parts = soft_clusters(vectors[members], rng=rng, method=method)
        rows = [members[part] for part in parts]
        if all(lengths[part].sum() < total for part in rows):
            waiting += rows
        else:
            done += _cut_in_order(members, lengths[members], limit)
    return _ordered([part for part in done if len(part)])


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


def _groups(rows: IntArray, labels: IntArray) -> Clusters:
    """Return the rows of each label, ascending."""
    order = np.lexsort((rows, labels))
    return np.split(rows[order], np.flatnonzero(np.diff(labels[order])) + 1)


def _without_singletons(clusters: Clusters, nearest: IntArray) -> Clusters:
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


def _cut_in_order(members: IntArray, lengths: IntArray, limit: int) -> Clusters:
    """Return the fewest runs of members within the limit, and among those the most even ones."""
    fewest = len(_runs(lengths, limit))
    low, high = 1, limit
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if len(_runs(lengths, middle)) <= fewest else (middle + 1, high)
    return np.split(members, _runs(lengths, high)[1:])


def _runs(lengths: IntArray, limit: int) -> list[int]:
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
    parts = in_parts(runner, _neighbors_of_rows, vectors, range(len(vectors)))
    rows = [row async for part in parts for row in part]
    return np.stack([indices for indices, _ in rows]), np.stack([cosines for _, cosines in rows])


def _neighbors_of_rows(vectors: FloatArray, rows: Sequence[int]) -> list[tuple[IntArray, DoubleArray]]:
    """Return neighbours and cosines of some rows."""
    indices, cosines = nearest_neighbors(vectors, NEIGHBORS, np.asarray(rows, dtype=np.int64))
    return list(zip(indices, cosines, strict=True))


_BIC_SEED = 224
_MIXTURE_SEED = 0
_LOCAL_NEIGHBORS = 10
_DIMENSION = 10  # Dimensions that UMAP keeps; one point more, or fewer, are one cluster
_MIN_POSTERIOR = 0.1
_MAX_COMPONENTS = 50  # The largest mixture tried has one component less, and less than there are points


def soft_labels(posteriors: DoubleArray, *, repair: bool = True) -> BoolArray:
    """Return the components `[n, components]` that each point belongs to: those with a posterior above 0.1."""
    labels = np.asarray(posteriors > _MIN_POSTERIOR)
    if repair and posteriors.shape[1]:
        lost = np.flatnonzero(~labels.any(axis=1))
        labels[lost, posteriors[lost].argmax(axis=1)] = True
    return labels


def paper_clusters(vectors: FloatArray, *, rng: np.random.Generator, repair: bool = True) -> list[IntArray]:
    """Cluster as RAPTOR's code does: UMAP, Gaussian mixtures chosen by BIC, globally and then locally."""
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


def _reduce_dimensions(vectors: FloatArray, neighbors: int, rng: np.random.Generator) -> DoubleArray:
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


def _mixture(points: DoubleArray, repair: bool) -> list[IntArray]:
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


def _fit(points: DoubleArray, components: int, seed: int) -> Any:
    from sklearn.mixture import GaussianMixture

    try:
        return GaussianMixture(n_components=components, random_state=seed).fit(points)
    except ValueError:
        # A component collapsed onto equal points. A floor under its variance keeps it usable.
        floor = 1e-3 * float(points.var() or 1.0)
        return GaussianMixture(n_components=components, random_state=seed, covariance_type="diag", reg_covar=floor).fit(
            points
        )


_SUREST = 1e-9  # Weight of the link to the nearest row where no cosine is positive


def place_rows(vectors: FloatArray, clusters: Sequence[Sequence[int]]) -> list[list[int]]:
    """Put every row that is in no cluster where most of its links lead, and into clusters that it is closely linked to.

    Rows are linked as for `soft_clusters`. A row waits while more of its links lead to other
    waiting rows; where all of them wait, those that are linked are a new cluster. Other clusters stay as they are.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    placed = [list(members) for members in clusters]
    n = len(vectors)
    waiting = np.setdiff1d(np.arange(n), np.concatenate([np.empty(0, dtype=np.int64), *clusters]))
    if len(waiting) == n == 1:
        return [*placed, [0]]
    nearest = nearest_neighbors(vectors, NEIGHBORS, waiting)[0]
    indices, similarities = np.zeros((n, nearest.shape[1]), dtype=np.int64), np.zeros((n, nearest.shape[1]))
    rows = np.union1d(waiting, nearest)
    indices[rows], similarities[rows] = nearest_neighbors(vectors, NEIGHBORS, rows)
    surest = csr_array((np.full(len(waiting), _SUREST), nearest[:, 0], np.arange(len(waiting) + 1)), (len(waiting), n))
    links = _neighbor_graph(indices, similarities)[waiting] + surest
    while len(waiting):
        sizes = np.array([len(members) for members in placed], dtype=np.int64)
        members = np.concatenate([np.empty(0, dtype=np.int64), *placed]).astype(np.int64)
        homes = csr_array(
            (np.ones(len(members)), (members, np.repeat(np.arange(len(placed)), sizes))), shape=(n, 1 + len(placed))
        )
        votes = (links @ homes).tocsr()
        first, heaviest = np.ravel(votes.argmax(axis=1)), votes.max(axis=1).toarray().ravel()
        is_sure = (heaviest > 0) & (heaviest >= links[:, waiting].sum(axis=1).ravel())
        if not is_sure.any():
            parts = connected_components(links[:, waiting], directed=False)[1]
            return [*placed, *(waiting[parts == part].tolist() for part in range(parts.max() + 1))]
        votes = votes[is_sure].tocoo()
        row, home = waiting[is_sure][votes.row], votes.col
        joins = votes.data >= _JOIN * _RESOLUTION * np.append(sizes, 1)[home] - 1e-9
        joins |= home == first[is_sure][votes.row]
        for number, joined in zip(home[joins].tolist(), row[joins].tolist(), strict=True):
            placed[number] = sorted([*placed[number], joined])
        waiting, links = waiting[~is_sure], links[~is_sure]
    return placed
