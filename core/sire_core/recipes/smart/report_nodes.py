"""Nodes of trees that can have a report, what belongs to each, and the stored table of all reports (SMART)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import chained_hashes, id_hashes, positions_in, ranges, stable_order
from sire_core.knowledge import MENTIONS
from sire_core.recipes.smart.encoding_tree import first_members
from sire_core.storage.array_file import pack_arrays, unpack_arrays
from sire_core.types import Edge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.smart.encoding_tree import EncodingTree, Hashes, Ints
    from sire_core.recipes.smart.network import EntityNetwork, Statements
    from sire_core.recipes.smart.reports import Report
    from sire_core.recipes.smart.views import EvidenceView
    from sire_core.types import Unit

    Ids = NDArray[np.bytes_]

_DEGREE_SCALE = 1_000.0  # separates the degree from the weight in a hash
_KEY, _WEIGHT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, slots=True)
class ReportNode:
    """An internal node of a tree over entities, with at least two entities."""

    tree: int  # number of the tree
    level: int  # 1 for the finest clusters
    children: tuple[int, ...]  # numbers of the nodes right below, by their first vertices
    statements: tuple[int, ...]  # join entities of different children, or name one of a node of similar entities
    weights: dict[int, float]  # by vertex below the node, the weight of its edges to others below it
    around: Mapping[int, float] = field(default_factory=dict)  # others that two below it are related to

    @property
    def relevance(self) -> Mapping[int, float]:
        """Weights of all vertices that a statement on the node may name."""
        return {**self.around, **self.weights} if self.around else self.weights


@dataclass(frozen=True, slots=True)
class ReportNodes:
    """All such nodes of one tree, children before parents."""

    tree: int  # number of the tree
    levels: Ints  # level of each node, 1 for the finest, `[nodes]`
    parents: Ints  # the node right above, -1 where there is none, `[nodes]`
    lowest: Ints  # the node right above each vertex, -1 where there is none, `[n]`
    sizes: Ints  # vertices below each node, `[nodes]`
    vertices: Ints  # the vertices below node 0, ascending, then those below node 1, and so on
    weights: NDArray[np.float64]  # weight of these vertices' edges to others below the same node
    stated: Ints  # number of statements of each node, `[nodes]`
    statements: Ints  # their numbers: those of node 0, ascending, then those of node 1, and so on
    joined: bool = True  # whether statements join the vertices of a node; else these are similar

    def __len__(self) -> int:
        return len(self.levels)

    def children(self) -> list[list[int]]:
        """Return the nodes right below each node, by their first vertices."""
        children: list[list[int]] = [[] for _ in range(len(self))]
        first = self.vertices[np.cumsum(self.sizes) - self.sizes]
        for child in np.argsort(first, kind="stable").tolist():
            if self.parents[child] >= 0:
                children[self.parents[child]].append(child)
        return children

    def select(
        self, numbers: Sequence[int], children: Sequence[Sequence[int]], network: EntityNetwork
    ) -> list[ReportNode]:
        """Return nodes by number."""
        rows = None if self.joined or not numbers else network.graph.rows()
        ends, last = np.cumsum(self.sizes), np.cumsum(self.stated)
        nodes = []
        for number in numbers:
            inside = slice(int(ends[number] - self.sizes[number]), int(ends[number]))
            stated = slice(int(last[number] - self.stated[number]), int(last[number]))
            weights = dict(zip(self.vertices[inside].tolist(), self.weights[inside].tolist(), strict=True))
            statements = tuple(self.statements[stated].tolist())
            around = {} if rows is None else _shared_neighbors(self.vertices[inside], weights, rows)
            level = int(self.levels[number])
            nodes.append(ReportNode(self.tree, level, tuple(children[number]), statements, weights, around))
        return nodes

    def signatures(self, network: EntityNetwork) -> Hashes:
        """Hash everything that each node's report is made of, except for the reports below it."""
        weights = self.weights if self.joined else self.weights + _DEGREE_SCALE * network.graph.degrees()[self.vertices]
        bits = np.ascontiguousarray(weights).view(np.uint64)
        members = (network.keys ^ network.description_hashes)[self.vertices] * _KEY ^ bits * _WEIGHT
        statements = network.statements
        statement_hashes = statements.codes ^ chained_hashes(
            network.keys[statements.vertices], np.diff(statements.ends)
        )
        kind = np.uint64(self.tree * 1_000) + self.levels.astype(np.uint64)
        stated = chained_hashes(statement_hashes[self.statements], self.stated)
        parts = np.stack([kind, chained_hashes(members, self.sizes), stated], axis=1)
        return chained_hashes(parts.ravel(), np.full(len(self), parts.shape[1], dtype=np.int64))


def _shared_neighbors(vertices: Ints, weights: Mapping[int, float], rows: tuple[Ints, Ints, Any]) -> dict[int, float]:
    """Return other vertices that at least two of the vertices are related to, with the weight of these relations."""
    starts, targets, values = rows
    edges = ranges(starts[vertices], starts[vertices + 1] - starts[vertices])
    neighbors, positions, counts = np.unique(targets[edges], return_inverse=True, return_counts=True)
    sums = np.bincount(positions, weights=values[edges], minlength=len(neighbors))
    shared = zip(neighbors[counts > 1].tolist(), sums[counts > 1].tolist(), strict=True)
    return {vertex: weight for vertex, weight in shared if vertex not in weights}


def report_nodes(labels: Sequence[Ints], tree: int, network: EntityNetwork, view: EvidenceView) -> ReportNodes:
    """Return the nodes of one tree; a cluster with a single part is that part (contraction)."""
    finer = np.arange(network.size, dtype=np.int64)
    below = np.full(network.size, -1, dtype=np.int64)  # node of each cluster of the level below, where it has one
    lowest = below
    parents = np.empty(0, dtype=np.int64)
    rows = _NodeRows(network, view)
    for clusters in labels:
        above = clusters[first_members(finer)]
        has_node = np.bincount(above, minlength=int(clusters.max(initial=-1)) + 1) > 1
        numbers = np.where(has_node, len(parents) + np.cumsum(has_node) - 1, -1)
        rows.add(clusters, finer, above, has_node)
        parents = np.concatenate([parents, np.full(int(has_node.sum()), -1, dtype=np.int64)])
        joined = (below >= 0) & has_node[above]
        parents[below[joined]] = numbers[above[joined]]
        lowest = np.where((lowest < 0) & has_node[clusters], numbers[clusters], lowest)
        only_part = np.full(len(has_node), -1, dtype=np.int64)
        only_part[above] = below  # of a cluster with one part
        below, finer = np.where(has_node, numbers, only_part), clusters
    columns = rows.columns()
    if not view.joined:
        columns |= _naming_statements(network.statements, lowest, len(columns["levels"]))
    return ReportNodes(tree=tree, parents=parents, lowest=lowest, joined=view.joined, **columns)


def _naming_statements(all_statements: Statements, lowest: Ints, nodes: int) -> dict[str, Ints]:
    """Assign statements to the finest nodes whose vertices they name."""
    owners = np.repeat(np.arange(len(all_statements), dtype=np.int64), np.diff(all_statements.ends))
    above = lowest[all_statements.vertices]
    codes = np.unique((above * max(1, len(all_statements)) + owners)[above >= 0])
    owner_nodes, statements = np.divmod(codes, max(1, len(all_statements)))
    return {"stated": np.bincount(owner_nodes, minlength=nodes).astype(np.int64), "statements": statements}


class _NodeRows:
    """Vertices and statements of nodes, level by level."""

    def __init__(self, network: EntityNetwork, view: EvidenceView) -> None:
        self._edges = view.graph.edges
        self._weights = view.graph.weights
        self._inner = np.zeros(network.size)
        stated = network.statements
        self._members = stated.vertices
        self._owners = np.repeat(np.arange(len(stated), dtype=np.int64), np.diff(stated.ends))
        self._parts: list[dict[str, NDArray[Any]]] = []

    def add(self, clusters: Ints, finer: Ints, above: Ints, has_node: NDArray[np.bool_]) -> None:
        """Add the nodes of the next level: clusters with `has_node`; `above` is the cluster of every finer cluster."""
        order = stable_order(clusters)
        order = order[has_node[clusters[order]]]
        owners, stated = self._stated(finer, above)
        self._weigh(clusters)
        self._parts.append(
            {
                "levels": np.full(int(has_node.sum()), len(self._parts) + 1, dtype=np.int64),
                "sizes": np.bincount(clusters, minlength=len(has_node))[has_node],
                "vertices": order,
                "weights": self._inner[order],
                "stated": np.bincount(stated, minlength=len(has_node))[has_node],
                "statements": owners,
            }
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Concatenate all levels."""
        empty = np.empty(0, dtype=np.int64)
        names = ("levels", "sizes", "vertices", "weights", "stated", "statements")
        return {name: np.concatenate([part[name] for part in self._parts] or [empty]) for name in names}

    def _weigh(self, clusters: Ints) -> None:
        """Add the weight of edges inside a cluster now: they are so at all higher levels."""
        inside = clusters[self._edges[:, 0]] == clusters[self._edges[:, 1]]
        ends = self._edges[inside].T.ravel()
        self._inner += np.bincount(ends, weights=np.tile(self._weights[inside], 2), minlength=len(clusters))
        self._edges, self._weights = self._edges[~inside], self._weights[~inside]

    def _stated(self, finer: Ints, above: Ints) -> tuple[Ints, Ints]:
        """Return statements that join parts which are apart one level below, and their clusters, by cluster."""
        begins = np.diff(self._owners, prepend=-1) > 0
        number = np.cumsum(begins) - 1
        parts = finer[self._members]
        same_part = parts == parts[begins][number]
        # What is in one part already is so at all higher levels.
        apart = np.bincount(number, weights=~same_part, minlength=int(begins.sum())) > 0
        is_open = apart[number]
        self._owners, self._members = self._owners[is_open], self._members[is_open]
        size, n_owners = len(above) + 1, int(self._owners.max(initial=-1)) + 1
        codes = np.sort(self._owners * size + parts[is_open])
        codes = codes[np.diff(codes, prepend=-1) > 0]
        joined_codes = np.sort(above[codes % size] * n_owners + codes // size)
        again = joined_codes[1:] == joined_codes[:-1]
        joined_codes = joined_codes[:-1][
            again & ~np.append(False, again)[:-1]
        ]  # those that are there repeatedly, once each
        return (joined_codes % n_owners, joined_codes // n_owners) if n_owners else (joined_codes, joined_codes)


_no_ids: Callable[[], Any] = partial(np.empty, 0, "S24")
_no_hashes: Callable[[], Any] = partial(np.empty, 0, np.uint64)
_no_numbers: Callable[[], Any] = partial(np.empty, 0, np.int64)
_no_pairs: Callable[[], Any] = partial(np.empty, (0, 2), np.int64)


def tree_name(tree: int) -> str:
    """Return the name of a tree in units, counted from 1."""
    return f"perspective {tree + 1}"


@dataclass(frozen=True, slots=True)
class ReportTable:
    """All reports, as they are stored."""

    entities: Ids = field(default_factory=_no_ids)  # ids of the entities, by vertex
    reports: Ids = field(default_factory=_no_ids)  # ids of the report units, ascending
    trees: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, dtype=np.uint8))  # of each report
    evidence: Ids = field(default_factory=_no_ids)  # digest of what the model was shown; empty without one
    signatures: Hashes = field(default_factory=_no_hashes)  # of what each node's report is made of; 0 for a failure
    nodes: Ints = field(default_factory=_no_numbers)  # report of each node, -1 where it has none
    codes: Hashes = field(default_factory=_no_hashes)  # of each node's report and what it passes on
    counts: Ints = field(default_factory=_no_numbers)  # of the statements that each node passes on
    statements: Hashes = field(default_factory=_no_hashes)  # their `Statements.codes`, node by node
    children: Ints = field(default_factory=_no_pairs)  # report and report below it, `[n, 2]`
    mentions: Ints = field(default_factory=_no_pairs)  # report and entity below it, `[n, 2]`

    def __iter__(self) -> Iterator[Edge]:
        """Yield the edges from reports to what is right below them, each once."""
        reports, entities = self.reports.astype(str).tolist(), self.entities.astype(str).tolist()
        for kind, pairs, below in (("child", self.children, reports), (MENTIONS, self.mentions, entities)):
            for report, number in np.unique(pairs, axis=0).tolist():
                yield Edge(kind, reports[report], below[number])

    def find(self, signatures: Hashes) -> Ints:
        """Return the nodes that have these signatures, -1 where none has."""
        return np.where(signatures != 0, positions_in(self.signatures, signatures), -1)

    def statements_of(self, nodes: Ints) -> tuple[Hashes, Ints]:
        """Return the statement codes that nodes pass on, concatenated, and the number of each node."""
        starts = np.cumsum(self.counts) - self.counts
        return self.statements[ranges(starts[nodes], self.counts[nodes])], self.counts[nodes]

    def by_evidence(self) -> dict[str, str]:
        """Return the ids of reports by a model, by the digest of what it was shown."""
        known = np.flatnonzero(self.evidence != b"")
        return dict(
            zip(self.evidence[known].astype(str).tolist(), self.reports[known].astype(str).tolist(), strict=True)
        )

    @classmethod
    def of_units(cls, units: Sequence[Unit]) -> ReportTable:
        """Build a table of which only the units are known."""
        ordered = sorted(units, key=lambda unit: unit.id)
        return cls(
            reports=np.array([unit.id for unit in ordered], dtype="S24"),
            evidence=np.array([unit.metadata.get("evidence", "") for unit in ordered], dtype="S24"),
        )

    def without(self, reports: Collection[str]) -> ReportTable:
        """Return a table in which some reports are there, and yet written again."""
        stale = np.isin(self.reports, np.array(sorted(reports), dtype="S24"))
        written = self.nodes >= 0
        again = np.zeros(len(self.nodes), dtype=bool)
        again[written] = stale[self.nodes[written]]
        return replace(
            self,
            evidence=np.where(stale, np.array(b"", dtype="S24"), self.evidence),
            signatures=np.where(again, np.uint64(0), self.signatures),
        )

    def to_note(self) -> bytes:
        """Serialize for the store."""
        arrays: dict[str, NDArray[Any]] = {part.name: getattr(self, part.name) for part in fields(self)}
        small = {name: array.astype(np.int32) for name, array in arrays.items() if array.dtype == np.int64}
        return pack_arrays({**arrays, **small})

    @classmethod
    def from_note(cls, note: bytes | None) -> ReportTable:
        """Read what `to_note` wrote; an empty table if there is no note."""
        if note is None:
            return cls()
        arrays = unpack_arrays(note)
        columns: dict[str, Any] = {part.name: arrays[part.name] for part in fields(cls)}
        return cls(
            **{name: array.astype(np.int64) if array.dtype == np.int32 else array for name, array in columns.items()}
        )


class TreeReports:
    """The reports of one tree while they are written from the leaves up."""

    def __init__(
        self, tree: EncodingTree, number: int, network: EntityNetwork, before: ReportTable, view: EvidenceView
    ) -> None:
        self.nodes = report_nodes(tree.filled(), number, network, view)  # the nodes of the tree
        self.children = self.nodes.children()  # nodes right below each
        self.signatures = self.nodes.signatures(network)  # see `ReportTable`
        self.known = np.full(len(self.nodes), -1, dtype=np.int64)  # node in the stored table, or -1
        self.units = np.zeros(len(self.nodes), dtype="S24")  # id of the report of each node, empty where there is none
        self.codes = np.zeros(len(self.nodes), dtype=np.uint64)  # see `ReportTable`
        self.reports: dict[int, Report] = {}  # reports that are written now, by node
        self.unreported: dict[int, tuple[int, ...]] = {}  # their statements go to the reports above
        self._network = network
        self._before = before

    def open_level(self, level: int) -> list[tuple[TreeReports, int, ReportNode]]:
        """Return the changed nodes of a level with their numbers; all reports below must be there."""
        numbers = np.flatnonzero(self.nodes.levels == level)
        below = [self.children[number] for number in numbers.tolist()]
        flat = np.array([child for children in below for child in children], dtype=np.int64)
        child_hashes = chained_hashes(self.codes[flat], np.array([*map(len, below)], dtype=np.int64))
        both = np.stack([self.signatures[numbers], child_hashes], axis=1).ravel()
        self.signatures[numbers] = chained_hashes(both, np.full(len(numbers), 2, dtype=np.int64))
        known = self._before.find(self.signatures[numbers])
        self.known[numbers] = known
        unchanged, stored_nodes = numbers[known >= 0], known[known >= 0]
        written = self._before.nodes[stored_nodes]
        self.units[unchanged[written >= 0]] = self._before.reports[written[written >= 0]]
        self.codes[unchanged] = self._before.codes[stored_nodes]
        changed = numbers[known < 0].tolist()
        nodes = self.nodes.select(changed, self.children, self._network)
        return [(self, number, node) for number, node in zip(changed, nodes, strict=True)]

    def store_units(self, units: Mapping[int, Unit | None]) -> None:
        """Store the units of the reports of changed nodes; None for a node without a report."""
        numbers = np.array(list(units), dtype=np.int64)
        self.units[numbers] = [b"" if unit is None else unit.id.encode() for unit in units.values()]
        picked = [np.array(self.passed_on(number), dtype=np.int64) for number in units]
        flat = np.concatenate([*picked, np.empty(0, dtype=np.int64)])
        codes = self._network.statements.codes[flat]
        statement_hashes = chained_hashes(codes, np.array([*map(len, picked)], dtype=np.int64))
        self.codes[numbers] = id_hashes(self.units[numbers]) ^ statement_hashes

    def passed_on(self, number: int) -> tuple[int, ...]:
        """Return the statements that a node passes on: those of its report, or all that it has."""
        if self.known[number] >= 0:
            codes = self._before.statements_of(self.known[number : number + 1])[0]
            positions = np.searchsorted(self._network.statements.codes, codes, sorter=self._statement_order)
            return tuple(self._statement_order[positions].tolist())
        report = self.reports.get(number)
        return self.unreported.get(number, ()) if report is None else report.statements

    @cached_property
    def _statement_order(self) -> Ints:
        """Numbers of the statements by code."""
        return np.argsort(self._network.statements.codes)

    def failed(self, number: int) -> None:
        """Mark a node whose report could not be written, so that the next build tries again."""
        self.signatures[number] = 0

    def report_edges(self) -> tuple[Ints, Ints]:
        """Return pairs of a node with a report and the nearest such node, or vertex, below it."""
        has_report = self.units != b""
        own = np.arange(len(has_report), dtype=np.int64)
        up = np.where(has_report, own, self.nodes.parents)
        for _ in range(int(self.nodes.levels.max(initial=0))):
            climbing = (up >= 0) & ~has_report[up]
            up = np.where(climbing, self.nodes.parents[up], up)
        nested = own[has_report & (self.nodes.parents >= 0)]
        above = up[self.nodes.parents[nested]]
        children = np.stack([above, nested], axis=1)[above >= 0]
        lowest = self.nodes.lowest
        nearest = np.where(lowest >= 0, up[lowest], -1) if len(up) else lowest
        vertices = np.flatnonzero(nearest >= 0)
        return children, np.stack([nearest[vertices], vertices], axis=1)

    def statements(self) -> tuple[NDArray[np.uint64], Ints]:
        """Return the codes of the statements that each node passes on, and their number per node."""
        unchanged = np.flatnonzero(self.known >= 0)
        codes, counts = self._before.statements_of(self.known[unchanged])
        parts = [np.empty(0, dtype=np.uint64)] * len(self.nodes)
        ends = np.cumsum(counts).tolist()
        for node, start, end in zip(unchanged.tolist(), [0, *ends], ends, strict=False):
            parts[node] = codes[start:end]
        for number in (*self.reports, *self.unreported):
            parts[number] = self._network.statements.codes[list(self.passed_on(number))]
        return np.concatenate([*parts, np.empty(0, dtype=np.uint64)]), np.array([*map(len, parts)], dtype=np.int64)


def table_of(
    forest: Sequence[TreeReports], network: EntityNetwork, before: ReportTable, new_units: Mapping[str, Unit]
) -> ReportTable:
    """Build the table to store, once all reports are written."""
    units = _concatenated([tree.units for tree in forest], "S24")
    reports, report_numbers = np.unique(units, return_inverse=True)
    if len(reports) and not reports[0]:  # nodes without one
        reports, report_numbers = reports[1:], report_numbers - 1
    sizes = [len(tree.nodes) for tree in forest]
    trees = np.zeros(len(reports), dtype=np.uint8)
    trees[report_numbers[report_numbers >= 0]] = np.repeat(np.arange(len(forest), dtype=np.uint8), sizes)[
        report_numbers >= 0
    ]
    starts = np.cumsum([0, *sizes])[:-1].tolist()
    pairs = [tree.report_edges() for tree in forest]
    mentions = [
        (report_numbers[start + edges[:, 0]], edges[:, 1]) for start, (_, edges) in zip(starts, pairs, strict=True)
    ]
    passed_on = [tree.statements() for tree in forest]
    evidence = dict(zip(before.reports.tolist(), before.evidence.tolist(), strict=True))
    evidence |= {name.encode(): str(unit.metadata.get("evidence", "")).encode() for name, unit in new_units.items()}
    return ReportTable(
        entities=network.ids,
        reports=reports,
        trees=trees,
        evidence=np.array([evidence[name] for name in reports.tolist()], dtype="S24"),
        signatures=_concatenated([tree.signatures for tree in forest], np.uint64),
        nodes=report_numbers.astype(np.int64),
        codes=_concatenated([tree.codes for tree in forest], np.uint64),
        counts=_concatenated([counts for _, counts in passed_on], np.int64),
        statements=_concatenated([codes for codes, _ in passed_on], np.uint64),
        children=report_numbers[
            _concatenated([start + edges for start, (edges, _) in zip(starts, pairs, strict=True)], np.int64).reshape(
                -1, 2
            )
        ],
        mentions=_concatenated([np.stack(edges, axis=1) for edges in mentions], np.int64).reshape(-1, 2),
    )


def _concatenated(parts: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    """Concatenate arrays; empty if there are none."""
    return np.concatenate(parts) if parts else np.empty(0, dtype=kind)
