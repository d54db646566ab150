"""What a tree remembers between changes: its clusters, level by level, and how far they have drifted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sire_core.trees.upkeep import neighbors_together

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray

__all__ = ["Cluster", "Drift", "TreeLevel", "TreeState"]

_MOST_CHANGED = 0.25
"""Share of a level's nodes that may come or go before its clusters are made again."""

_LOOK_AGAIN = 0.05
"""Share of a level's nodes that may change before its drift is measured again."""

_TOLERANCE = 0.1
"""Loss of neighbours in common clusters, as a share of what there was, that is accepted beyond chance."""

_SAMPLE = 512


@dataclass(frozen=True, slots=True)
class Cluster:
    """Ids of the members in order, and the id of their summary; empty where there is nothing to say."""

    members: tuple[str, ...]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the clusters of a level are from fresh ones.

    Attributes:
        nodes: How many nodes were clustered when all clusters were made.
        changed: How many came or went since.
        touched: How many came, went or were replaced in their places since `now` was measured.
        built: Share of nodes whose nearest neighbour was in a cluster with them when all clusters were made.
        now: The same, as measured last.
    """

    nodes: int
    changed: int = 0
    touched: int = 0
    built: float = 1.0
    now: float = 1.0

    @classmethod
    def fresh(cls, vectors: FloatArray, clusters: Sequence[Sequence[int]]) -> Drift:
        """Of clusters that were just made."""
        share = neighbors_together(vectors, clusters, sample=_SAMPLE)
        return cls(len(vectors), built=share, now=share)

    def after(self, changed: int, replaced: int) -> Drift:
        """With more nodes that came or went, and that were replaced in their places."""
        return replace(self, changed=self.changed + changed, touched=self.touched + changed + replaced)

    def measure(self, vectors: FloatArray, clusters: Sequence[Sequence[int]]) -> Drift:
        """Look again, if much has changed since the last time."""
        if self.touched < _LOOK_AGAIN * self.nodes:
            return self
        return replace(self, touched=0, now=neighbors_together(vectors, clusters, sample=_SAMPLE))

    @property
    def too_far(self) -> bool:
        """Whether all clusters have to be made again."""
        return self.share >= 1

    @property
    def share(self) -> float:
        """How much of the drift that is accepted is used up; at 1 all clusters are made again."""
        chance = 0.5 / max(1, min(self.nodes, _SAMPLE)) ** 0.5
        lost = (1 - self.now / max(self.built, 1e-9)) / (_TOLERANCE + chance)
        return float(max(self.changed / max(1.0, _MOST_CHANGED * self.nodes), lost))


@dataclass(frozen=True, slots=True)
class TreeLevel:
    """The clusters of one level, in order."""

    clusters: tuple[Cluster, ...]
    drift: Drift


@dataclass(frozen=True, slots=True)
class TreeState:
    """All levels, lowest first.

    Attributes:
        levels: Levels that have clusters.
        embedder: Fingerprint of the embedder whose vectors were clustered.
    """

    levels: tuple[TreeLevel, ...] = ()
    embedder: str = ""

    @property
    def summaries(self) -> dict[str, int]:
        """Ids of all summaries with their level, from 1."""
        return {c.summary: number for number, level in enumerate(self.levels, 1) for c in level.clusters if c.summary}

    def edges(self, beside: TreeState) -> dict[tuple[str, str], None]:
        """(summary, member) of the clusters that another state of the tree does not have in the same way."""
        same = {cluster for level in beside.levels for cluster in level.clusters}
        changed = [cluster for level in self.levels for cluster in level.clusters if cluster not in same]
        return {(c.summary, member): None for c in changed if c.summary for member in c.members}

    def holds(self, summaries: Collection[str]) -> set[tuple[str, str]]:
        """(summary, member) of some summaries."""
        clusters = (c for level in self.levels for c in level.clusters if c.summary in summaries)
        return {(cluster.summary, member) for cluster in clusters for member in cluster.members}

    @property
    def drift(self) -> float:
        """The largest `Drift.share` of a level, rounded."""
        return round(max((level.drift.share for level in self.levels), default=0.0), 3)

    def as_json(self) -> dict[str, Any]:
        """JSON-serialisable."""
        levels = [
            {
                "clusters": [[cluster.summary, *cluster.members] for cluster in level.clusters],
                "drift": [getattr(level.drift, name) for name in Drift.__slots__],
            }
            for level in self.levels
        ]
        return {"levels": levels, "embedder": self.embedder}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> TreeState:
        """What `as_json` wrote; nothing at first."""
        levels = [
            TreeLevel(tuple(Cluster(tuple(row[1:]), row[0]) for row in level["clusters"]), Drift(*level["drift"]))
            for level in state.get("levels", ())
        ]
        return cls(tuple(levels), state.get("embedder", ""))
