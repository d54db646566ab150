"""Views of the entities, one per kind of evidence: an extension of SMART, whose trees group relations only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.extend import distinct
from sire_core.papers.smart.encoding_tree import UndirectedGraph
from sire_core.papers.smart.perspectives import RELATIONS
from sire_core.papers.smart.statements import ROLE, TYPE, WORD

if TYPE_CHECKING:
    from sire_core.extend import DoubleArray, HashArray, Int32Array, IntArray
    from sire_core.papers.smart.entity_network import EntityNetwork


_OF_KIND = "relations of kind "
_NEAREST = 8  # similar entities that each is joined with
_WINDOW, _WIDTH = 4, 64  # adjacent rows that are compared; signs of a sketch
_MIN_COSINE, _DECIMALS = 0.3, 6
_ROWS_PER_BLOCK = 1024
_MAX_DEGREE = 32  # an entity with more neighbours is a hub, and sharing it does not count
_FAMILIES, _MIN_SHARE, _FAINT = 3, 0.1, 0.1  # families with a view, their share of the weight, weight of other families
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """The graph of one kind of evidence."""

    graph: UndirectedGraph  # over all entities
    joined: bool = True  # whether statements join its edges; else its edges join similar entities


def evidence_views(network: EntityNetwork) -> dict[str, EvidenceView]:
    """Return the views with at least one edge, by name."""
    graph, together = network.graph, _cooccurrence_graph(network)
    # Other views leave out pairs that are joined by these.
    joined = UndirectedGraph.from_edges(graph.size, np.concatenate([graph.edges, together.edges]))
    views = {
        RELATIONS: EvidenceView(graph),
        **{f"{_OF_KIND}{code:016x}": EvidenceView(view) for code, view in _families(network)},
        "passages": EvidenceView(together),
        "neighbours": EvidenceView(_shared_neighbours(graph, joined), joined=False),
        "roles": EvidenceView(_similar_entities(network, joined, (ROLE, TYPE)), joined=False),
        "descriptions": EvidenceView(_similar_entities(network, joined, (WORD, TYPE)), joined=False),
    }
    return {name: view for name, view in views.items() if len(view.graph.edges)}


def _families(network: EntityNetwork) -> Iterator[tuple[int, UndirectedGraph]]:
    """Yield the relations with little weight outside one family of predicates, for the largest families."""
    pairs = network.pairs
    families, family_numbers = np.unique(pairs["families"], return_inverse=True)
    weights = np.bincount(family_numbers, weights=pairs["weights"], minlength=len(families))
    weights[families == 0] = 0.0
    for family in np.argsort(-weights, kind="stable")[:_FAMILIES].tolist():
        if _MIN_SHARE * pairs["weights"].sum() <= weights[family] < pairs["weights"].sum():
            family_weights = np.where(family_numbers == family, 1.0, _FAINT) * pairs["weights"]
            yield int(families[family]), UndirectedGraph.from_edges(network.size, network.sides, family_weights)


def _cooccurrence_graph(network: EntityNetwork) -> UndirectedGraph:
    """Join entities that passages name together: each with the next three in the passage's order."""
    mentions, passage = network.mentions, np.repeat(np.arange(len(network.passages)), np.diff(network.ends))
    pairs = [
        np.stack([mentions[:-step], mentions[step:]], axis=1)[passage[:-step] == passage[step:]] for step in (1, 2, 3)
    ]
    return UndirectedGraph.from_edges(network.size, np.concatenate(pairs))


def _shared_neighbours(graph: UndirectedGraph, joined: UndirectedGraph) -> UndirectedGraph:
    """Join entities related to the same others, each with those it shares most with; hubs hardly count."""
    from scipy.sparse import csr_array

    starts, targets, _ = graph.rows()
    counts = np.diff(starts)
    scale = np.where((counts > 1) & (counts <= _MAX_DEGREE), 1.0 / np.sqrt(np.maximum(counts, 1)), 0.0)
    counted = scale[targets] > 0
    sources = np.repeat(np.arange(graph.size), counts)[counted]
    rows = csr_array((scale[targets[counted]], (sources, targets[counted])), shape=(graph.size, graph.size))
    shared = (rows @ rows.T).tocoo()
    upper = shared.row < shared.col
    return _nearest_of(joined, np.stack([shared.row[upper], shared.col[upper]], axis=1), shared.data[upper])


def _similar_entities(network: EntityNetwork, joined: UndirectedGraph, kinds: tuple[int, ...]) -> UndirectedGraph:
    """Join entities with similar features, each with its nearest; rare features count most."""
    from scipy.sparse import csr_array

    features = network.traits
    vertices = network.mentions[np.repeat(network.ends[:-1], features.counts) + features["places"]]
    used = np.isin(features["kinds"], kinds)
    codes, columns = np.unique(features["codes"][used], return_inverse=True)
    width = max(1, len(codes))
    owners, columns = np.divmod(np.unique(vertices[used] * width + columns), width)
    counts = np.maximum(np.bincount(columns, minlength=len(codes)), 1)
    weights = np.rint(
        np.log2(joined.size / counts)
    )  # whole numbers, which a small change of the corpus leaves as they are
    bag = csr_array((weights[columns], (owners, columns)), shape=(joined.size, len(codes)))
    vectors = np.asarray(bag @ _signs(codes), dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1)
    described = np.flatnonzero(lengths > 0)
    sums, lengths = vectors[described].astype(np.int32), lengths[described]  # sums of whole numbers: exact
    pairs = _adjacent_pairs(sums)
    blocks = np.array_split(pairs, len(pairs) // _ROWS_PER_BLOCK + 1)  # in the cache of a processor, not in memory
    products = [np.einsum("ij,ij->i", sums[block[:, 0]], sums[block[:, 1]]) for block in blocks]
    cosines = (np.concatenate(products) / (lengths[pairs[:, 0]] * lengths[pairs[:, 1]])).round(_DECIMALS)
    similar = cosines >= _MIN_COSINE
    return _nearest_of(joined, described[pairs[similar]], cosines[similar])


def _adjacent_pairs(sums: Int32Array) -> IntArray:
    """Return pairs of rows that are next to each other when rows are sorted by the signs of their coordinates."""
    bits = np.packbits(sums > 0, axis=1).view(np.uint64).ravel()
    pairs = [np.empty((0, 2), dtype=np.int64)]
    for shift in range(0, _WIDTH, 8):
        rotated = (bits << np.uint64(shift)) | (bits >> np.uint64(_WIDTH - shift) if shift else np.uint64(0))
        order = np.argsort(rotated, kind="stable")
        pairs += [np.stack([order[:-step], order[step:]], axis=1) for step in range(1, _WINDOW + 1)]
    first, second = np.sort(np.concatenate(pairs), axis=1).T
    codes = distinct(first * max(1, len(sums)) + second)
    return np.stack(np.divmod(codes, max(1, len(sums))), axis=1)


def _nearest_of(joined: UndirectedGraph, pairs: IntArray, values: DoubleArray) -> UndirectedGraph:
    """Join pairs that are not joined already, where one is among the nearest few of the other."""
    if len(joined.edges):
        related = joined.edges[:, 0] * joined.size + joined.edges[:, 1]
        codes = np.min(pairs, axis=1) * joined.size + np.max(pairs, axis=1) if len(pairs) else related[:0]
        positions = np.minimum(np.searchsorted(related, codes), len(related) - 1)
        pairs, values = pairs[related[positions] != codes], values[related[positions] != codes]
    both, twice = np.concatenate([pairs, pairs[:, ::-1]]), np.tile(values, 2)
    order = np.lexsort((both[:, 1], -twice, both[:, 0]))
    counts = np.bincount(both[:, 0], minlength=joined.size)
    rank = np.arange(len(both)) - (np.cumsum(counts) - counts)[both[order, 0]]
    is_near = np.zeros(len(both), dtype=np.bool_)
    is_near[order[rank < _NEAREST]] = True
    either = is_near[: len(pairs)] | is_near[len(pairs) :]
    # All weigh the same: what is rare, and so how much is alike, changes a little with every passage.
    return UndirectedGraph.from_edges(joined.size, pairs[either])


def _signs(codes: HashArray) -> DoubleArray:
    """Return a pseudo-random row of signs per hash: inner products of their sums approximate those of the bags."""
    mixed = codes * _MIX[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX[1]
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX[2]
    bits = (mixed[:, None] >> np.arange(_WIDTH, dtype=np.uint64)) & np.uint64(1)
    return np.where(bits == 1, 1.0, -1.0)
