"""From trees over entities to report units and the edges between them (SMART)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sire_core.protocols import BlockEdges, Delta
from sire_core.recipes.smart.extractive_reports import Report, extract_report
from sire_core.recipes.smart.forest import TreeReports, table_of
from sire_core.recipes.smart.recipe import REPORTS
from sire_core.recipes.smart.report_table import ReportTable, tree_name
from sire_core.types import Failure, Unit, UnitKind, unit_id

if TYPE_CHECKING:
    from sire_core.protocols import BuildView
    from sire_core.recipes.smart.encoding_tree import EncodingTree
    from sire_core.recipes.smart.entity_network import EntityNetwork
    from sire_core.recipes.smart.finding import Perspective
    from sire_core.recipes.smart.model_reports import ReportEvidence
    from sire_core.recipes.smart.nodes import ReportNode
    from sire_core.recipes.smart.views import EvidenceView

__all__ = ["ReportWriter", "tree_name"]

_TEMPLATE_BELOW = 3
"""Clusters of fewer entities get a text by template instead of a call."""
_Open = list[tuple[TreeReports, int, "ReportNode"]]


class ReportWriter:
    """Writes reports from the leaves up, those again whose evidence changed.

    Args:
        network: Entities and what is stated of them.
        view: Language model, reports written before, fingerprint.
        report_tokens: Maximum tokens of a report by a model.
        extract_tokens: Length of the sentences of a report without a model.
        context_tokens: Maximum tokens of the model's input for one report.
    """

    def __init__(
        self, network: EntityNetwork, view: BuildView, report_tokens: int, extract_tokens: int, context_tokens: int
    ) -> None:
        self._network = network
        self._view = view
        self._report_tokens = report_tokens
        self._extract_tokens = extract_tokens
        self._context_tokens = context_tokens
        note = view.notes([REPORTS]).get(REPORTS)
        self._before = ReportTable.of_units(view.units()) if note is None else ReportTable.from_note(note)
        self._evidence = self._before.by_evidence()
        self._numbers = {passage: number for number, found in enumerate(network.passages) for passage in found}
        self._fresh: dict[str, Unit] = {}
        self._views: Sequence[str] = ()
        self._failures: list[Failure] = []

    async def write(self, found: Sequence[Perspective], views: Sequence[EvidenceView]) -> ReportTable:
        """Reports on all clusters of all trees.

        Args:
            found: Trees over the entities.
            views: What each of them groups.
        """
        import asyncio

        self._views = [one.view for one in found]
        forest = await asyncio.to_thread(self._plant, [one.tree for one in found], views)
        highest = max((int(found.nodes.levels.max(initial=0)) for found in forest), default=0)
        for level in range(1, highest + 1):
            opened = await asyncio.to_thread(_opened, forest, level)
            if self._view.language_model is None:
                await asyncio.to_thread(self._extract, opened)
            else:
                await self._ask(opened, level)
            self._close(opened)
        return await asyncio.to_thread(table_of, forest, self._network, self._before, self._fresh)

    def delta(self, table: ReportTable, state: Mapping[str, Any], notes: Mapping[str, bytes | None]) -> Delta:
        """Only what differs from what is stored.

        Args:
            table: Of `write`.
            state: To be stored.
            notes: Likewise, beside the table.
        """
        old = set(self._before.reports.astype(str).tolist())
        stored = {unit.id: unit for unit in self._view.units([found for found in self._fresh if found in old])}
        now = set(table.reports.astype(str).tolist())
        return Delta(
            put_units=tuple(unit for unit in self._fresh.values() if stored.get(unit.id) != unit),
            drop_units=tuple(sorted(old - now)),
            in_blocks=BlockEdges(put=table, drop=self._before),
            state=state,
            notes={**notes, REPORTS: table.to_note()},
            failures=tuple(self._failures),
        )

    def _plant(self, trees: Sequence[EncodingTree], views: Sequence[EvidenceView]) -> list[TreeReports]:
        return [
            TreeReports(tree, number, self._network, self._before, view)
            for number, (tree, view) in enumerate(zip(trees, views, strict=True))
        ]

    def _extract(self, opened: _Open) -> None:
        below = _kept_below(opened)
        for tree, number, node in opened:
            self._template(tree, number, node, below)

    def _template(
        self, tree: TreeReports, number: int, node: ReportNode, below: Mapping[tuple[int, int], tuple[int, ...]]
    ) -> None:
        given = (below.get((node.tree, child)) or tree.given(child) for child in node.children)
        candidates = tuple(dict.fromkeys((*node.statements, *(found for part in given for found in part))))
        report = extract_report(node, candidates, self._network, self._extract_tokens)
        if report is None:
            tree.handed[number] = candidates
        else:
            tree.reports[number] = report

    async def _ask(self, opened: _Open, level: int) -> None:
        """Reports of one level: by template, as written before, or by the model."""
        import asyncio

        from sire_core.recipes.smart.model_reports import ModelReports

        model = self._view.language_model
        assert model is not None
        todo = await asyncio.to_thread(self._to_write, opened)
        stage = f"reports of level {level}"
        writer, say = ModelReports(model, max_tokens=self._report_tokens), partial(self._view.progress, stage)
        answers = await writer.write([shown for *_, shown in todo], say)
        for (tree, number, evidence), answer in zip(todo, answers, strict=True):
            if isinstance(answer, Failure):
                self._failures.append(answer)
                tree.failed(number)
                tree.handed[number] = evidence.statements
            else:
                tree.reports[number] = answer

    def _to_write(self, opened: _Open) -> list[tuple[TreeReports, int, ReportEvidence]]:
        """What to show the model of the nodes that need a call."""
        from sire_core.recipes.smart.model_reports import gather_evidence

        below = _kept_below(opened)
        kept = self._kept(opened, below)
        shown: list[tuple[TreeReports, int, ReportEvidence]] = []
        for tree, number, node in opened:
            if len(node.weights) < _TEMPLATE_BELOW:
                self._template(tree, number, node, below)
                continue
            parts = {child: tree.reports.get(child) or kept.get((node.tree, child)) for child in node.children}
            # What a part without a report knows, and so no report below says.
            bare = [child for child, part in parts.items() if part is None]
            handed = [found for child in bare for found in below.get((node.tree, child)) or tree.given(child)]
            whole = replace(node, statements=tuple(dict.fromkeys((*node.statements, *handed))))
            reports = [part for part in parts.values() if part is not None]
            found = gather_evidence(whole, reports, self._network, self._context_tokens)
            if found is None:
                tree.handed[number] = whole.statements
            else:
                shown.append((tree, number, found))
        return self._not_written(shown)

    def _not_written(
        self, shown: Sequence[tuple[TreeReports, int, ReportEvidence]]
    ) -> list[tuple[TreeReports, int, ReportEvidence]]:
        """Those whose evidence no stored report has; of the others the report is taken over."""
        digests = [evidence.digest for *_, evidence in shown]
        units = self._view.units(
            list(dict.fromkeys(self._evidence[found] for found in digests if found in self._evidence))
        )
        old = {unit.id: unit for unit in units}
        missing = []
        for (tree, number, evidence), found in zip(shown, digests, strict=True):
            if found in self._evidence:
                unit = old[self._evidence[found]]
                tree.reports[number] = Report(unit.title, unit.text, evidence.passages, evidence.statements, found)
            else:
                missing.append((tree, number, evidence))
        return missing

    def _kept(self, opened: _Open, below: Mapping[tuple[int, int], tuple[int, ...]]) -> dict[tuple[int, int], Report]:
        """Reports right below some nodes that are as before, by tree and node."""
        trees = {tree.nodes.tree: tree for tree, _, _ in opened}
        wanted = {(tree, child): trees[tree].units[child].decode() for tree, child in below if trees[tree].units[child]}
        units = {unit.id: unit for unit in self._view.units(list(dict.fromkeys(wanted.values())))} if wanted else {}
        found = {}
        for place, unit in ((place, units[name]) for place, name in wanted.items()):
            passages = tuple(dict.fromkeys(self._numbers[chunk] for chunk in unit.chunk_ids))
            evidence = str(unit.metadata.get("evidence", ""))
            found[place] = Report(unit.title, unit.text, passages, below[place], evidence)
        return found

    def _close(self, opened: _Open) -> None:
        """Make units of the reports of one level."""
        by_tree: dict[int, tuple[TreeReports, dict[int, Unit | None]]] = {}
        for tree, number, node in opened:
            _, units = by_tree.setdefault(node.tree, (tree, {}))
            report = tree.reports.get(number)
            units[number] = None
            if report is not None and report.text.strip():
                units[number] = unit = self._unit(node, report)
                self._fresh[unit.id] = unit
        for tree, units in by_tree.values():
            tree.close(units)

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
            metadata={
                "entities": len(node.weights),
                "view": self._views[node.tree],
                **({"evidence": report.evidence} if report.evidence else {}),
            },
        )


def _opened(forest: Sequence[TreeReports], level: int) -> _Open:
    """Nodes of a level whose reports are not as before."""
    return [(tree, number, node) for tree in forest for number, node in zip(*tree.open(level), strict=True)]


def _kept_below(opened: _Open) -> dict[tuple[int, int], tuple[int, ...]]:
    """What nodes right below some nodes give to them, of those that are as before, by tree and node."""
    numbers: dict[int, tuple[TreeReports, list[int]]] = {}
    for tree, number, _ in opened:
        numbers.setdefault(tree.nodes.tree, (tree, []))[1].append(number)
    return {
        (place, child): statements
        for place, (tree, found) in numbers.items()
        for child, statements in tree.kept_below(found).items()
    }
