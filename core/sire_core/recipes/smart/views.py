"""Views of the entities of a corpus, one per kind of evidence: what perspectives are found in (SMART)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.grouping import distinct
from sire_core.recipes.smart.finding import RELATIONS
from sire_core.recipes.smart.traits import PART, TYPE, WORD
from sire_core.recipes.smart.undirected import UndirectedGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.smart.network_table import NetworkTable

    Ints = NDArray[np.int64]

__all__ = ["EvidenceView", "evidence_views"]

_OF_KIND = "relations of kind "
_NEAREST, _WINDOW, _WIDTH = 8, 4, 64
_LIKE, _DECIMALS = 0.3, 6
_BLOCK = 1024
_HUB = 32  # neighbours of an entity up to which two of them count as sharing it
_FAMILIES, _SHARE, _FAINT = 3, 0.1, 0.1
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """One kind of evidence.

    Attributes:
        graph: Over all entities.
        joined: Whether its edges are what statements join; else they join entities that are alike.
    """

    graph: UndirectedGraph
    joined: bool = True


def evidence_views(
    table: NetworkTable, mentions: Ints, graph: UndirectedGraph, names: Collection[str] | None = None
) -> dict[str, EvidenceView]:
    """The views that say anything of this corpus, by name.

    `relations`: what passages state of two entities; `relations of kind ...`: likewise, with most weight on one family
    of predicates; `passages`: named together; `neighbours`: related to the same others; `roles`: the same parts in
    relations; `descriptions`: described in the same words. Types count in the last two.

    Args:
        table: Rows of all passages.
        mentions: Vertex of every mention.
        graph: Relations between the vertices.
        names: The views wanted; None for all.
    """
    found = {RELATIONS: EvidenceView(graph)}
    wanted = (lambda _: True) if names is None else names.__contains__
    if names is None or any(name.startswith(_OF_KIND) for name in names):
        found |= {f"{_OF_KIND}{code:016x}": EvidenceView(view) for code, view in _families(table, mentions, graph)}
    if any(map(wanted, ("passages", "neighbours", "roles", "descriptions"))):
        together = _together(table, mentions, graph.size)
        found["passages"] = EvidenceView(together)
        # Who stands together has a view already: what else is alike is something new.
        known = UndirectedGraph.from_edges(graph.size, np.concatenate([graph.edges, together.edges]))
        if wanted("neighbours"):
            found["neighbours"] = EvidenceView(_shared_neighbours(graph, known), joined=False)
        for name, kind in (("roles", PART), ("descriptions", WORD)):
            if wanted(name):
                found[name] = EvidenceView(_alike(table, mentions, known, (kind, TYPE)), joined=False)
    return {name: view for name, view in found.items() if len(view.graph.edges) and wanted(name)}


def _families(table: NetworkTable, mentions: Ints, graph: UndirectedGraph) -> Iterator[tuple[int, UndirectedGraph]]:
    """The relations with little weight on all but one family of predicates, for the families that join most."""
    pairs = table.parts["pairs"]
    ends = _mention_ends(table)
    start = np.repeat(ends[:-1], pairs.counts)
    sides = np.stack([mentions[start + pairs["left"]], mentions[start + pairs["right"]]], axis=1)
    families, place = np.unique(pairs["families"], return_inverse=True)
    weights = np.bincount(place, weights=pairs["weights"], minlength=len(families))
    weights[families == 0] = 0.0
    for family in np.argsort(-weights, kind="stable")[:_FAMILIES].tolist():
        if _SHARE * pairs["weights"].sum() <= weights[family] < pairs["weights"].sum():
            own = np.where(place == family, 1.0, _FAINT) * pairs["weights"]
            yield int(families[family]), UndirectedGraph.from_edges(graph.size, sides, own)


def _together(table: NetworkTable, mentions: Ints, size: int) -> UndirectedGraph:
    """Entities that passages name together: each with those next to it in the passage's order."""
    counts = table.parts["named"].counts
    passage = np.repeat(np.arange(len(counts)), counts)
    pairs = [
        np.stack([mentions[:-step], mentions[step:]], axis=1)[passage[:-step] == passage[step:]] for step in (1, 2, 3)
    ]
    return UndirectedGraph.from_edges(size, np.concatenate(pairs))


def _shared_neighbours(graph: UndirectedGraph, known: UndirectedGraph) -> UndirectedGraph:
    """Entities that are related to the same others, each with those it shares most with; few share a hub's notice."""
    from scipy.sparse import csr_array

    starts, targets, _ = graph.rows()
    counts = np.diff(starts)
    scale = np.where((counts > 1) & (counts <= _HUB), 1.0 / np.sqrt(np.maximum(counts, 1)), 0.0)
    kept = scale[targets] > 0
    sources = np.repeat(np.arange(graph.size), counts)[kept]
    rows = csr_array((scale[targets[kept]], (sources, targets[kept])), shape=(graph.size, graph.size))
    shared = (rows @ rows.T).tocoo()
    upper = shared.row < shared.col
    return _nearest_of(known, np.stack([shared.row[upper], shared.col[upper]], axis=1), shared.data[upper])


def _alike(table: NetworkTable, mentions: Ints, known: UndirectedGraph, kinds: tuple[int, ...]) -> UndirectedGraph:
    """Entities with like traits: each with those whose traits are most like its own, rare traits counting most."""
    from scipy.sparse import csr_array

    traits = table.parts["traits"]
    start = np.repeat(_mention_ends(table)[:-1], traits.counts)
    chosen = np.isin(traits["kinds"], kinds)
    codes, columns = np.unique(traits["codes"][chosen], return_inverse=True)
    width = max(1, len(codes))
    owners, columns = np.divmod(np.unique(mentions[(start + traits["places"])[chosen]] * width + columns), width)
    counts = np.maximum(np.bincount(columns, minlength=len(codes)), 1)
    weights = np.rint(
        np.log2(known.size / counts)
    )  # whole numbers, which a small change of the corpus leaves as they are
    bag = csr_array((weights[columns], (owners, columns)), shape=(known.size, len(codes)))
    vectors = np.asarray(bag @ _signs(codes), dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1)
    some = np.flatnonzero(lengths > 0)
    unit = vectors[some] / lengths[some, None]
    pairs = _candidates(unit)
    blocks = np.array_split(pairs, len(pairs) // _BLOCK + 1)  # in the cache of a processor, not in memory
    products = [np.einsum("ij,ij->i", unit[block[:, 0]], unit[block[:, 1]]) for block in blocks]
    cosines = np.concatenate(products).round(_DECIMALS)
    near = cosines >= _LIKE
    return _nearest_of(known, some[pairs[near]], cosines[near])


def _candidates(unit: NDArray[np.float64]) -> Ints:
    """Pairs of rows that stand next to each other when rows are sorted by the signs of their coordinates.

    Sorted again with every eighth coordinate first: rows that are much alike stand together in some of these orders,
    equal ones in all. Work grows with n log n.
    """
    bits = np.packbits(unit > 0, axis=1).view(np.uint64).ravel()
    found = [np.empty((0, 2), dtype=np.int64)]
    for turn in range(0, _WIDTH, 8):
        turned = (bits << np.uint64(turn)) | (bits >> np.uint64(_WIDTH - turn) if turn else np.uint64(0))
        order = np.argsort(turned, kind="stable")
        found += [np.stack([order[:-step], order[step:]], axis=1) for step in range(1, _WINDOW + 1)]
    pairs = np.sort(np.concatenate(found), axis=1)
    codes = distinct(pairs[:, 0] * max(1, len(unit)) + pairs[:, 1])
    return np.stack(np.divmod(codes, max(1, len(unit))), axis=1)


def _nearest_of(known: UndirectedGraph, pairs: Ints, values: NDArray[np.float64]) -> UndirectedGraph:
    """Pairs that are not known anyway, where one is among the nearest few of the other."""
    if len(known.edges):
        related = known.edges[:, 0] * known.size + known.edges[:, 1]
        codes = np.min(pairs, axis=1) * known.size + np.max(pairs, axis=1) if len(pairs) else related[:0]
        place = np.minimum(np.searchsorted(related, codes), len(related) - 1)
        pairs, values = pairs[related[place] != codes], values[related[place] != codes]
    both, twice = np.concatenate([pairs, pairs[:, ::-1]]), np.tile(values, 2)
    order = np.lexsort((both[:, 1], -twice, both[:, 0]))
    counts = np.bincount(both[:, 0], minlength=known.size)
    rank = np.arange(len(both)) - (np.cumsum(counts) - counts)[both[order, 0]]
    kept = np.zeros(len(both), dtype=np.bool_)
    kept[order[rank < _NEAREST]] = True
    either = kept[: len(pairs)] | kept[len(pairs) :]
    # All weigh the same: what is rare, and so how much is alike, changes a little with every passage.
    return UndirectedGraph.from_edges(known.size, pairs[either])


def _signs(codes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """A pseudo-random row of signs for each hash: inner products of sums of them are nearly those of the bags."""
    mixed = codes * _MIX[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX[1]
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX[2]
    bits = (mixed[:, None] >> np.arange(_WIDTH, dtype=np.uint64)) & np.uint64(1)
    return np.where(bits == 1, 1.0, -1.0)


def _mention_ends(table: NetworkTable) -> Ints:
    return np.concatenate([[0], np.cumsum(table.parts["named"].counts)]).astype(np.int64)
