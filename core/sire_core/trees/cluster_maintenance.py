"""Clusters of a changing corpus: new rows join the clusters of their neighbours. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.neighbors import largest_columns, nearest_neighbors, precise_cosines, whole_numbers
from sire_core.algorithms.vectors import unit_rows
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Members = Sequence[int] | NDArray[np.int64]

_BLOCK = 512  # Rows compared at once.
_SPARE = 4  # Candidates beyond those wanted that are scored precisely.
_UNIT = 1e-5  # What rounding leaves of the length of a vector of length one.


def place_rows(
    vectors: NDArray[np.float32],
    clusters: Sequence[Sequence[int]],
    shrunk: Collection[int] = (),
    *,
    neighbors: int = 8,
    resolution: float = 0.015,
    join: float = 3.0,
) -> list[list[int]]:
    """Put every row that is in no cluster into clusters, by the rules of `soft_clusters`.

    A row's nearest neighbours vote, each with the weight of its link in the neighbour graph. The row joins the cluster
    that gains most by it (constant Potts model: weight of the links minus `resolution` per member), or its nearest
    neighbour's if none gains, and every other cluster to which its mean link weight is at least `join` times the
    resolution. Clusters that do not gain or lose a row stay as they are.

    Args:
        vectors: float32 `[n, d]`.
        clusters: Members by row number.
        shrunk: Numbers of clusters that have lost rows; one with a single row left is dissolved.
        neighbors: See `soft_clusters`, as for the rest.
        resolution: Mean link weight that makes a cluster.
        join: Factor of the resolution for further clusters.
    """
    placed = [[] if number in shrunk and len(members) < 2 else list(members) for number, members in enumerate(clusters)]
    homes: dict[int, list[int]] = {}
    for number, members in enumerate(placed):
        for row in members:
            homes.setdefault(row, []).append(number)
    rows = [row for row in range(len(vectors)) if row not in homes]
    if not rows:
        return placed
    if len(vectors) == 1:
        return [*placed, rows]
    nearest, links = _links(vectors, np.array(rows, dtype=np.int64), neighbors)
    mean = sum(weight for votes in links for _, weight in votes) / len(rows)
    resolution = max(resolution, mean / (len(vectors) - 1))
    waiting = dict(zip(rows, zip(nearest, links, strict=True), strict=True))
    while waiting:
        joined = [_join_neighbors(row, votes, placed, homes, resolution, join) for row, (_, votes) in waiting.items()]
        if not any(joined):
            row, (partner, _) = next(iter(waiting.items()))
            _join_partner(row, partner, placed, homes)
        waiting = {row: votes_of_row for row, votes_of_row in waiting.items() if row not in homes}
    return [
        sorted(members) if len(members) > len(former) else members for members, former in _with_former(placed, clusters)
    ]


def _links(
    vectors: NDArray[np.float32], rows: NDArray[np.int64], neighbors: int
) -> tuple[list[int], list[list[tuple[int, float]]]]:
    """Return the nearest neighbour of each row, and its (neighbour, link weight) pairs, the nearest first."""
    unit = _unit_vectors(vectors)
    whole = whole_numbers(unit)
    indices, similarities = _nearest(unit, whole, rows, neighbors)
    others = np.unique(indices)
    theirs = _nearest(unit, whole, others, neighbors)[0]
    roots = np.sqrt(1.0 / np.arange(2, neighbors + 2))
    back = {
        other: dict(zip(neighbor_row, roots.tolist(), strict=False))
        for other, neighbor_row in _numbered_rows(others, theirs)
    }
    links = []
    for row, neighbor_row, cosines in zip(rows.tolist(), indices.tolist(), similarities.tolist(), strict=True):
        pairs = zip(neighbor_row, cosines, roots.tolist(), strict=False)
        links.append([(o, ((root + back[o].get(row, 0.0)) / 2) ** 2) for o, cosine, root in pairs if cosine > 0])
    return indices[:, 0].tolist(), links


def _unit_vectors(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return unit vectors; those of an index have length one already."""
    squares = np.einsum("ij,ij->i", vectors, vectors)
    return vectors if np.abs(squares - 1).max(initial=0.0) < _UNIT else unit_rows(vectors)


def _nearest(
    unit: NDArray[np.float32], whole: NDArray[np.float32], rows: NDArray[np.int64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return what `nearest_neighbors` returns for some rows, with vectors that are prepared once for several calls."""
    k = min(k, len(unit) - 1)
    indices = np.empty((len(rows), k), dtype=np.int64)
    similarities = np.empty((len(rows), k), dtype=np.float64)
    for start in range(0, len(rows), _BLOCK):
        own = rows[start : start + _BLOCK]
        product = whole[own] @ whole.T
        product[np.arange(len(own)), own] = -np.inf
        columns = largest_columns(product, min(k + _SPARE, len(unit) - 1))
        scores = precise_cosines(unit, own, columns)
        order = np.lexsort((columns, -scores))[:, :k]
        indices[start : start + _BLOCK] = np.take_along_axis(columns, order, axis=1)
        similarities[start : start + _BLOCK] = np.take_along_axis(scores, order, axis=1)
    return indices, similarities


def _with_former(
    placed: list[list[int]], clusters: Sequence[Sequence[int]]
) -> Iterator[tuple[list[int], Sequence[int]]]:
    """Pair each cluster with its former members; new ones with none."""
    return zip(placed, [*clusters, *([()] * (len(placed) - len(clusters)))], strict=True)


def _numbered_rows(numbers: NDArray[np.int64], lists: NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
    return zip(numbers.tolist(), lists.tolist(), strict=True)


def _join_neighbors(
    row: int,
    votes: list[tuple[int, float]],
    clusters: list[list[int]],
    homes: dict[int, list[int]],
    resolution: float,
    join: float,
) -> bool:
    """Put a row where its neighbours are; wait while more of its links lead to rows that have no cluster."""
    weights: dict[int, float] = {}
    for other, weight in votes:
        for home in homes.get(other, ()):
            weights[home] = weights.get(home, 0.0) + weight
    gains = {home: weight - resolution * len(clusters[home]) for home, weight in weights.items()}
    best = min(gains, key=lambda home: (-gains[home], home), default=-1)
    nowhere = sum(weight for other, weight in votes if other not in homes)
    if best < 0 or gains[best] <= 0 or weights[best] < nowhere:
        return False
    further = [
        other
        for other, weight in weights.items()
        if other != best and weight >= join * resolution * len(clusters[other]) - 1e-9
    ]
    homes[row] = [best, *sorted(further)]
    for home in homes[row]:
        clusters[home].append(row)
    return True


def _join_partner(row: int, partner: int, clusters: list[list[int]], homes: dict[int, list[int]]) -> None:
    """Put a row into the first cluster of its nearest neighbour, or both into a new one."""
    if partner not in homes:
        homes[partner] = [len(clusters)]
        clusters.append([partner])
    homes[row] = homes[partner][:1]
    clusters[homes[row][0]].append(row)


def neighbors_together(
    vectors: NDArray[np.float32], clusters: Iterable[Members], *, neighbors: int = 1, sample: int | None = None
) -> float:
    """Return the share of (row, one of its nearest rows) pairs that share a cluster, 0 to 1; 1 if there are no pairs.

    Fresh clusters keep most neighbours together. When rows come and go and the clusters stay, the share falls.

    Args:
        vectors: float32 `[n, d]`.
        clusters: Members by row number; rows in no cluster count as apart from all others.
        neighbors: Nearest rows of each row that count.
        sample: Number of evenly spread rows that are measured; None measures all.
    """
    if neighbors < 1:
        raise ConfigurationError(f"neighbors must be at least 1, not {neighbors}.")
    if len(vectors) < 2:
        return 1.0
    homes: list[set[int]] = [set() for _ in range(len(vectors))]
    for number, cluster in enumerate(clusters):
        for member in cluster:
            homes[int(member)].add(number)
    count = min(len(vectors), sample or len(vectors))
    rows = np.arange(count, dtype=np.int64) * len(vectors) // count
    nearest = nearest_neighbors(vectors, min(neighbors, len(vectors) - 1), rows)[0]
    together = [
        not homes[row].isdisjoint(homes[other])
        for row, neighbor_rows in zip(rows.tolist(), nearest.tolist(), strict=True)
        for other in neighbor_rows
    ]
    return sum(together) / len(together)
