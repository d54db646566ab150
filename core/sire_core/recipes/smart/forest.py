"""`TreeReports`: the nodes of one tree while reports are written from the leaves up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import chained_hashes, id_hashes
from sire_core.recipes.smart.nodes import report_nodes
from sire_core.recipes.smart.report_table import ReportTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.smart.encoding_tree import EncodingTree
    from sire_core.recipes.smart.entity_network import EntityNetwork
    from sire_core.recipes.smart.extractive_reports import Report
    from sire_core.recipes.smart.nodes import ReportNode
    from sire_core.recipes.smart.views import EvidenceView
    from sire_core.types import Unit

    Ints = NDArray[np.int64]

__all__ = ["TreeReports", "table_of"]


class TreeReports:
    """Which nodes of a tree have which report.

    Args:
        tree: The tree.
        number: Its number.
        network: Entities and statements.
        before: What was written before.
        view: What the tree groups.

    Attributes:
        nodes: The nodes.
        children: Nodes right below each.
        signatures: See `ReportTable`.
        known: Numbers of the same nodes in the table of before; -1 for those that are new or changed.
        units: Id of the report of each node, empty where there is none.
        codes: See `ReportTable`.
        reports: Reports that are written again, by node.
        handed: What new or changed nodes without a report know, by node: statements for the reports above them.
    """

    def __init__(
        self, tree: EncodingTree, number: int, network: EntityNetwork, before: ReportTable, view: EvidenceView
    ) -> None:
        self.nodes = report_nodes(tree.filled(), number, network, view)
        self.children = self.nodes.children()
        self.signatures = self.nodes.signatures(network)
        self.known = np.full(len(self.nodes), -1, dtype=np.int64)
        self.units = np.zeros(len(self.nodes), dtype="S24")
        self.codes = np.zeros(len(self.nodes), dtype=np.uint64)
        self.reports: dict[int, Report] = {}
        self.handed: dict[int, tuple[int, ...]] = {}
        self._network = network
        self._before = before

    def open(self, level: int) -> tuple[list[int], list[ReportNode]]:
        """Nodes of a level that are not as before, once all reports below are there."""
        numbers = np.flatnonzero(self.nodes.levels == level)
        below = [self.children[number] for number in numbers.tolist()]
        flat = np.array([child for found in below for child in found], dtype=np.int64)
        under = chained_hashes(self.codes[flat], np.array([len(found) for found in below], dtype=np.int64))
        both = np.stack([self.signatures[numbers], under], axis=1).ravel()
        self.signatures[numbers] = chained_hashes(both, np.full(len(numbers), 2, dtype=np.int64))
        known = self._before.find(self.signatures[numbers])
        self.known[numbers] = known
        found, kept = numbers[known >= 0], known[known >= 0]
        written = self._before.nodes[kept]
        self.units[found[written >= 0]] = self._before.reports[written[written >= 0]]
        self.codes[found] = self._before.codes[kept]
        todo = numbers[known < 0].tolist()
        return todo, self.nodes.some(todo, self.children, self._network)

    def close(self, units: Mapping[int, Unit | None]) -> None:
        """Take in what was written of a level.

        Args:
            units: Units of the reports of all nodes that were opened, by node; None where there is no report.
        """
        numbers = np.array(list(units), dtype=np.int64)
        self.units[numbers] = [b"" if unit is None else unit.id.encode() for unit in units.values()]
        picked = [np.array(self.given(number), dtype=np.int64) for number in units]
        flat = np.concatenate([*picked, np.empty(0, dtype=np.int64)])
        said = chained_hashes(self._network.statements.codes[flat], np.array([len(p) for p in picked], dtype=np.int64))
        self.codes[numbers] = id_hashes(self.units[numbers]) ^ said

    def given(self, number: int) -> tuple[int, ...]:
        """Statements that a new or changed node gives to the node above: those of its report, or all that it knows."""
        report = self.reports.get(number)
        return self.handed.get(number, ()) if report is None else report.statements

    def failed(self, number: int) -> None:
        """A node whose report could not be written: it is not known the next time."""
        self.signatures[number] = 0

    def kept_below(self, numbers: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """Statements that the nodes right below some nodes give to them, of those that are as before, by node."""
        wanted = [child for number in numbers for child in self.children[number]]
        kept = np.array([child for child in wanted if self.known[child] >= 0], dtype=np.int64)
        codes, counts = self._before.statements_of(self.known[kept])
        all_codes = self._network.statements.codes
        order = np.argsort(all_codes)
        places = order[np.searchsorted(all_codes[order], codes)].tolist() if len(codes) else []
        ends = np.cumsum(counts).tolist()
        return {
            child: tuple(places[start:end]) for child, start, end in zip(kept.tolist(), [0, *ends], ends, strict=False)
        }

    def standing(self) -> tuple[Ints, Ints]:
        """Nodes with a report and the nearest one below them; and nodes with a report and the vertices below it."""
        there = self.units != b""
        own = np.arange(len(there), dtype=np.int64)
        up = np.where(there, own, self.nodes.parents)
        for _ in range(int(self.nodes.levels.max(initial=0))):
            climbing = (up >= 0) & ~there[up]
            up = np.where(climbing, self.nodes.parents[up], up)
        nested = own[there & (self.nodes.parents >= 0)]
        above = up[self.nodes.parents[nested]]
        children = np.stack([above, nested], axis=1)[above >= 0]
        low = self.nodes.lowest
        nearest = np.where(low >= 0, up[low], -1) if len(up) else low
        vertices = np.flatnonzero(nearest >= 0)
        return children, np.stack([nearest[vertices], vertices], axis=1)

    def statements(self) -> tuple[NDArray[np.uint64], Ints]:
        """Codes of the statements that each node gives to the one above, and how many these are."""
        kept = np.flatnonzero(self.known >= 0)
        codes, counts = self._before.statements_of(self.known[kept])
        parts = [np.empty(0, dtype=np.uint64)] * len(self.nodes)
        ends = np.cumsum(counts).tolist()
        for node, start, end in zip(kept.tolist(), [0, *ends], ends, strict=False):
            parts[node] = codes[start:end]
        for number in (*self.reports, *self.handed):
            parts[number] = self._network.statements.codes[list(self.given(number))]
        return np.concatenate([*parts, np.empty(0, dtype=np.uint64)]), np.array([*map(len, parts)], dtype=np.int64)


def table_of(
    forest: Sequence[TreeReports], network: EntityNetwork, before: ReportTable, fresh: Mapping[str, Unit]
) -> ReportTable:
    """Everything to remember of reports.

    Args:
        forest: All trees, their reports written.
        network: Entities and statements.
        before: What was written before.
        fresh: Units that were made now, by id.
    """
    units = _joined([tree.units for tree in forest], "S24")
    reports, number = np.unique(units, return_inverse=True)
    if len(reports) and not reports[0]:  # nodes without one
        reports, number = reports[1:], number - 1
    sizes = [len(tree.nodes) for tree in forest]
    trees = np.zeros(len(reports), dtype=np.uint8)
    trees[number[number >= 0]] = np.repeat(np.arange(len(forest), dtype=np.uint8), sizes)[number >= 0]
    starts = np.cumsum([0, *sizes])[:-1].tolist()
    pairs = [tree.standing() for tree in forest]
    mentions = [(number[start + found[:, 0]], found[:, 1]) for start, (_, found) in zip(starts, pairs, strict=True)]
    said = [tree.statements() for tree in forest]
    shown = dict(zip(before.reports.tolist(), before.evidence.tolist(), strict=True))
    shown |= {name.encode(): str(unit.metadata.get("evidence", "")).encode() for name, unit in fresh.items()}
    return ReportTable(
        entities=network.ids,
        reports=reports,
        trees=trees,
        evidence=np.array([shown[name] for name in reports.tolist()], dtype="S24"),
        signatures=_joined([tree.signatures for tree in forest], np.uint64),
        nodes=number.astype(np.int64),
        codes=_joined([tree.codes for tree in forest], np.uint64),
        counts=_joined([counts for _, counts in said], np.int64),
        statements=_joined([codes for codes, _ in said], np.uint64),
        children=number[
            _joined([start + found for start, (found, _) in zip(starts, pairs, strict=True)], np.int64).reshape(-1, 2)
        ],
        mentions=_joined([np.stack(found, axis=1) for found in mentions], np.int64).reshape(-1, 2),
    )


def _joined(parts: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    """Arrays one after the other, also if there are none."""
    return np.concatenate(parts) if parts else np.empty(0, dtype=kind)
