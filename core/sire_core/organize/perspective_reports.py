"""From trees over entities to report units and the edges between them (ALGORITHMS 6.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sire_core.organize.extractive_reports import Report, extract_report
from sire_core.organize.knowledge_graph import MENTIONS
from sire_core.organize.report_nodes import ReportNode, report_nodes
from sire_core.protocols import Delta
from sire_core.types import Edge, Failure, Unit, UnitKind, unit_id

if TYPE_CHECKING:
    from sire_core.algorithms.encoding_tree import EncodingTree
    from sire_core.organize.entity_network import EntityNetwork
    from sire_core.organize.model_reports import Evidence
    from sire_core.protocols import BuildView, LanguageModel

__all__ = ["ReportWriter", "WrittenReports", "tree_name"]

_TEMPLATE_BELOW = 3
"""Clusters of fewer entities get a text by template instead of a call (ALGORITHMS 6.6)."""


def tree_name(tree: int) -> str:
    """What the units of a tree call it, counted from 1."""
    return f"perspective {tree + 1}"


@dataclass(slots=True)
class WrittenReports:
    """Units and edges of all reports.

    Attributes:
        units: By id, children before parents.
        edges: `child` from a report to those below it, `mentions` to entities that have no report in between.
        failures: Reports that the model could not write.
    """

    units: dict[str, Unit] = field(default_factory=dict)
    edges: dict[tuple[str, str, str], Edge] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def join(self, kind: str, source: str, target: str) -> None:
        """Add an edge, once."""
        self.edges[kind, source, target] = Edge(kind, source, target)

    def delta(self, view: BuildView, state: Mapping[str, Any]) -> Delta:
        """Only what differs from what is stored."""
        old_units = {unit.id: unit for unit in view.units()}
        old_edges = {(edge.kind, edge.source, edge.target): edge for edge in view.edges()}
        return Delta(
            put_units=tuple(unit for unit in self.units.values() if old_units.get(unit.id) != unit),
            drop_units=tuple(unit for unit in old_units if unit not in self.units),
            put_edges=tuple(edge for key, edge in self.edges.items() if key not in old_edges),
            drop_edges=tuple(edge for key, edge in old_edges.items() if key not in self.edges),
            state=state,
            failures=tuple(self.failures),
        )


class ReportWriter:
    """Writes reports from the leaves up.

    Args:
        network: Entities and what is stated of them.
        view: Language model, reports written before, fingerprint.
        report_tokens: Length of a report that a model writes.
        extract_tokens: Length of the sentences of a report without a model.
        context_tokens: Most tokens of what a model is shown for one report.
    """

    def __init__(
        self, network: EntityNetwork, view: BuildView, report_tokens: int, extract_tokens: int, context_tokens: int
    ) -> None:
        self._network = network
        self._view = view
        self._report_tokens = report_tokens
        self._extract_tokens = extract_tokens
        self._context_tokens = context_tokens
        self._written = WrittenReports()
        # Reports of before, by what they were written from.
        self._known = {unit.metadata["evidence"]: unit for unit in view.units() if "evidence" in unit.metadata}

    async def write(self, trees: Sequence[EncodingTree]) -> WrittenReports:
        """Reports on all clusters of all trees."""
        import asyncio

        forest = await asyncio.to_thread(
            lambda: [report_nodes(tree.filled(), number, self._network) for number, tree in enumerate(trees)]
        )
        reports: list[dict[int, Report]] = [{} for _ in forest]
        model = self._view.language_model
        for level in sorted({node.level for nodes in forest for node in nodes}):
            if model is None:
                for nodes, found in zip(forest, reports, strict=True):
                    await asyncio.to_thread(self._extract, nodes, level, found)
            else:
                await self._ask(model, forest, level, reports)
        for nodes, found in zip(forest, reports, strict=True):
            self._place(nodes, found)
        return self._written

    def _extract(self, nodes: Sequence[ReportNode], level: int, reports: dict[int, Report]) -> None:
        for number, node in enumerate(nodes):
            if node.level == level:
                self._template(number, node, reports)

    def _template(self, number: int, node: ReportNode, reports: dict[int, Report]) -> None:
        below = [statement for child in node.children if child in reports for statement in reports[child].statements]
        candidates = list(dict.fromkeys((*node.statements, *below)))
        report = extract_report(node, candidates, self._network, self._extract_tokens)
        if report is not None:
            reports[number] = report

    async def _ask(
        self,
        model: LanguageModel,
        forest: Sequence[Sequence[ReportNode]],
        level: int,
        reports: Sequence[dict[int, Report]],
    ) -> None:
        """Reports of one level: by template, as written before, or by the model."""
        from sire_core.organize.model_reports import ModelReports

        todo = [
            (tree, number, shown)
            for tree, nodes in enumerate(forest)
            for number, node in enumerate(nodes)
            if node.level == level and (shown := self._to_write(number, node, reports[tree])) is not None
        ]
        stage = f"reports of level {level}"
        self._view.progress(stage, 0, len(todo))
        writer = ModelReports(model, max_tokens=self._report_tokens)
        answers = await writer.write([shown for _, _, shown in todo])
        self._view.progress(stage, len(todo), len(todo))
        for (tree, number, _), answer in zip(todo, answers, strict=True):
            if isinstance(answer, Failure):
                self._written.failures.append(answer)
            else:
                reports[tree][number] = answer

    def _to_write(self, number: int, node: ReportNode, reports: dict[int, Report]) -> Evidence | None:
        """What to show the model of a node; None when its report needs no call, or there is nothing to report."""
        from sire_core.organize.model_reports import gather_evidence

        if len(node.weights) < _TEMPLATE_BELOW:
            self._template(number, node, reports)
            return None
        below = [reports[child] for child in node.children if child in reports]
        shown = gather_evidence(node, below, self._network, self._context_tokens)
        if shown is None:
            return None
        old = self._known.get(shown.digest)
        if old is None:
            return shown
        reports[number] = Report(old.title, old.text, shown.passages, shown.statements, shown.digest)
        return None

    def _place(self, nodes: Sequence[ReportNode], reports: Mapping[int, Report]) -> None:
        """Units of one tree's reports, and edges to the nearest reports and entities below."""
        beneath: list[tuple[list[str], list[int]]] = []
        for number, node in enumerate(nodes):
            below = list(dict.fromkeys(found for child in node.children for found in beneath[child][0]))
            alone = [*(vertex for child in node.children for vertex in beneath[child][1]), *node.alone]
            report = reports.get(number)
            if report is None or not report.text.strip():
                beneath.append((below, alone))
                continue
            unit = self._unit(node, report)
            self._written.units[unit.id] = unit
            for child in below:
                self._written.join("child", unit.id, child)
            for vertex in alone:
                self._written.join(MENTIONS, unit.id, self._network.ids[vertex])
            beneath.append(([unit.id], []))

    def _unit(self, node: ReportNode, report: Report) -> Unit:
        chunk_ids = dict.fromkeys(chunk for passage in report.passages for chunk in self._network.passages[passage])
        return Unit(
            # Two trees may say the same of the same passages; each keeps its own unit.
            id=unit_id(
                UnitKind.REPORT.value, f"{self._view.fingerprint}:{node.tree}:{node.level}", chunk_ids, report.text
            ),
            kind=UnitKind.REPORT,
            text=report.text,
            chunk_ids=tuple(chunk_ids),
            level=node.level,
            tree=tree_name(node.tree),
            title=report.title,
            metadata={"entities": len(node.weights), **({"evidence": report.evidence} if report.evidence else {})},
        )
