"""`SimilarityTree`: RAPTOR's tree over chunks, the left tree of SiReRAG (ALGORITHMS 1, 2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sire_core.organize.tree import TreeSettings, grow
from sire_core.protocols import Delta
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import BuildView, Change

__all__ = ["SimilarityTree"]


@dataclass(frozen=True, slots=True)
class SimilarityTree:
    """Clusters of similar chunks, summarised recursively.

    Attributes:
        tree: How the tree grows.
    """

    tree: TreeSettings = field(default_factory=TreeSettings)

    @property
    def name(self) -> str:
        """Short name."""
        return "similarity_tree"

    @property
    def requires(self) -> tuple[str, ...]:
        """Reads chunks only."""
        return ()

    @property
    def needs_records(self) -> bool:
        """Reads no extraction records."""
        return False

    @property
    def needs_summaries(self) -> bool:
        """Writes summaries."""
        return True

    def settings(self) -> Mapping[str, Any]:
        """Settings that change what is built."""
        return {"tree": self.tree.as_mapping()}

    def describe(self) -> str:
        """What is built, and what it costs."""
        return (
            f"Up to {self.tree.depth} levels of summaries over clusters of similar passages; "
            "with a language model about 60-135 summary calls per 1,000 passages, without one no calls."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Cluster the corpus anew after any change; summaries that come out the same keep their id and vector."""
        if not change:
            return Delta()
        grown = await grow(view.chunk_units, UnitKind.SIM_SUMMARY, "sim", self.tree, view)
        return Delta(
            put_units=grown.units,
            drop_units=tuple(unit.id for unit in view.units()),
            put_edges=grown.edges,
            drop_edges=tuple(view.edges()),
        )
