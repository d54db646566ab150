"""`CrossTree`: clusters across both of SiReRAG's trees (SiReRAG, appendix A)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from sire_core.extend import BuildView, Change, Delta, OrganizerBase, Unit, UnitKind
from sire_core.papers.trees.similarity_tree import by_abstractiveness
from sire_core.papers.trees.tree import SummaryTree, TreeSettings


@dataclass(frozen=True, slots=True)
class CrossTree(OrganizerBase):
    """Summaries over chunks and aggregates together, level by level."""

    name: ClassVar[str] = "cross_tree"
    needs_summaries = True

    tree: TreeSettings = field(default_factory=TreeSettings)  # how the tree grows
    mode: str = "replace"  # `replace`: the only tree; `add`: beside the two trees, over all their summaries, too
    hierarchy: bool = False  # whether overviews join at level 1; see `SimilarityTree`

    @property
    def requires(self) -> tuple[str, ...]:
        """Aggregates are read, and in mode `add` the summaries of both trees."""
        return ("relatedness_tree",) if self.mode == "replace" else ("similarity_tree", "relatedness_tree")

    def settings(self) -> Mapping[str, Any]:
        """Return the settings that change what is built."""
        switch = {"hierarchy": True} if self.hierarchy else {}
        return {"tree": asdict(self.tree), "mode": self.mode, **switch}

    def describe(self) -> str:
        """Describe what is built, and what it costs."""
        return (
            f"Up to {self.tree.depth} levels of summaries over clusters of passages and aggregates together. Model "
            "calls: as many summaries as for both trees with a language model, none without."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring the summaries up to date; only those whose members changed are written again."""
        if not (change or (self.hierarchy and view.touched(change))):  # metadata says which passages are overviews
            return Delta()
        number = {chunk.id: i for i, chunk in enumerate(view.chunks)}
        levels: dict[int, list[Unit]] = {}
        for name in self.requires:
            units = view.required_units(name)
            for unit in sorted(units, key=lambda unit: (min(number[chunk] for chunk in unit.chunk_ids), unit.id)):
                levels.setdefault(unit.level, []).append(unit)
        aggregates = [unit for unit in levels.pop(0, []) if unit.kind is UnitKind.AGGREGATE]
        leaves, overviews = by_abstractiveness(view) if self.hierarchy else (view.chunk_units, [])
        if overviews:
            levels[1] = [*overviews, *levels.get(1, ())]
        nodes = [*leaves, *aggregates]
        tree = SummaryTree(UnitKind.CROSS_SUMMARY, "cross", self.tree, view)
        return await tree.grow(nodes, full=len(change.added) == len(view.chunks), joining=levels)
