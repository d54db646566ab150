"""Recursive clustering and summarising: the tree that RAPTOR and SiReRAG share (ALGORITHMS 1.1-1.3, 2.4.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.text import count_tokens
from sire_core.errors import ConfigurationError
from sire_core.types import Edge, Unit, UnitKind, unit_id

if TYPE_CHECKING:
    import numpy as np

    from sire_core.protocols import BuildView, FloatArray

__all__ = ["Tree", "TreeSettings", "cluster_units", "grow"]

_OFFICIAL_STOP = 11
"""RAPTOR's code stops when a level has at most reduction dimension + 1 nodes (ALGORITHMS 1.1.1)."""


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """How a tree grows.

    Attributes:
        depth: Summary levels above the leaves (RAPTOR and SiReRAG: 3).
        clustering: `leiden` (neighbour graph, fast) or `paper` (UMAP and Gaussian mixtures, the reference).
        max_cluster_tokens: A cluster with more text is clustered again on its own.
        summary_tokens: Length of a summary.
        stop_rule: `default` stops below two nodes or when a level does not shrink; `official` when a level has at most
            11 nodes; `none` never (the released SiReRAG code, which summarises a single summary again).
    """

    depth: int = 3
    clustering: str = "leiden"
    max_cluster_tokens: int = 3500
    summary_tokens: int = 200
    stop_rule: str = "default"

    def __post_init__(self) -> None:
        if self.depth < 0 or self.max_cluster_tokens < 1 or self.summary_tokens < 1:
            raise ConfigurationError("A tree needs depth >= 0, max_cluster_tokens >= 1 and summary_tokens >= 1.")
        if self.clustering not in ("leiden", "paper"):
            raise ConfigurationError(f"clustering is 'leiden' or 'paper', not {self.clustering!r}.")
        if self.stop_rule not in ("default", "official", "none"):
            raise ConfigurationError(f"stop_rule is 'default', 'official' or 'none', not {self.stop_rule!r}.")

    def as_mapping(self) -> Mapping[str, Any]:
        """The settings as JSON-serialisable values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Tree:
    """Summary units of all levels, lowest first, and a `child` edge from each to what it summarises."""

    units: tuple[Unit, ...] = ()
    edges: tuple[Edge, ...] = ()


async def grow(
    leaves: Sequence[Unit],
    kind: UnitKind,
    name: str,
    settings: TreeSettings,
    view: BuildView,
    *,
    also: Sequence[Sequence[int]] = (),
    joining: Mapping[int, Sequence[Unit]] | None = None,
) -> Tree:
    """Grow summaries over leaves, level by level.

    Args:
        leaves: Level 0, in corpus order.
        kind: Kind of the summary units.
        name: Name of the tree (`sim`, `rel`, `cross`).
        settings: How it grows.
        view: Vectors, summariser, randomness.
        also: Further clusters of leaves, as positions; summarised beside those that the leaves' vectors form.
        joining: By level, units that stand beside the new summaries of that level and are clustered with them.
    """
    joining = joining or {}
    units: list[Unit] = []
    edges: list[Edge] = []
    below = list(leaves)
    for level in range(1, settings.depth + 1):
        clusters = await _level_clusters(below, name, level, settings, view, also if level == 1 else ())
        layer = await _summarize(below, clusters, kind, name, level, settings, view)
        units.extend(unit for unit, _ in layer)
        edges.extend(Edge("child", unit.id, below[i].id) for unit, cluster in layer for i in cluster)
        below = [*{unit.id: unit for unit, _ in layer}.values(), *joining.get(level, ())]
        if not below:
            break
    distinct = {unit.id: unit for unit in units}
    return Tree(tuple(distinct.values()), tuple({(e.source, e.target): e for e in edges}.values()))


async def cluster_units(
    units: Sequence[Unit], vectors: FloatArray, settings: TreeSettings, rng: np.random.Generator
) -> list[list[int]]:
    """Clusters of units whose texts together stay within the token limit, as ascending positions.

    Args:
        units: What is clustered; the limit counts their texts.
        vectors: What decides who is similar, `[len(units), d]`.
        settings: Method and limit.
        rng: Randomness.
    """
    import asyncio

    from sire_core.algorithms.clustering import clusters_within_limit

    tokens = [count_tokens(unit.text) for unit in units]
    clusters = await asyncio.to_thread(
        clusters_within_limit, vectors, tokens, settings.max_cluster_tokens, rng=rng, method=settings.clustering
    )
    return [cluster.tolist() for cluster in clusters]


async def _level_clusters(
    nodes: Sequence[Unit],
    name: str,
    level: int,
    settings: TreeSettings,
    view: BuildView,
    also: Sequence[Sequence[int]],
) -> list[list[int]]:
    """Clusters of one level; none where the tree stops."""
    if _stops(len(nodes), settings.stop_rule):
        return []
    clusters = await cluster_units(nodes, await view.vectors(nodes), settings, view.rng("tree", name, str(level)))
    if settings.stop_rule == "default" and len(clusters) >= len(nodes):
        return []
    return [list(cluster) for cluster in dict.fromkeys(tuple(cluster) for cluster in (*clusters, *also))]


async def _summarize(
    nodes: Sequence[Unit],
    clusters: Sequence[Sequence[int]],
    kind: UnitKind,
    name: str,
    level: int,
    settings: TreeSettings,
    view: BuildView,
) -> list[tuple[Unit, Sequence[int]]]:
    """A summary of each cluster that has something to say, with the cluster."""
    if not clusters:
        return []
    stage = f"summaries of {name} level {level}"
    view.progress(stage, 0, len(clusters))
    members = [[nodes[i] for i in cluster] for cluster in clusters]
    written = await view.summarizer(settings.summary_tokens).summarize(members)
    view.progress(stage, len(clusters), len(clusters))
    return [
        (_summary(group, text, ranked, kind, name, level, view.fingerprint), cluster)
        for cluster, group, (text, ranked) in zip(clusters, members, written, strict=True)
        if text
    ]


def _stops(nodes: int, rule: str) -> bool:
    if rule == "official":
        return nodes <= _OFFICIAL_STOP
    return nodes < (1 if rule == "none" else 2)


def _summary(
    members: Sequence[Unit],
    text: str,
    ranked: Sequence[str],
    kind: UnitKind,
    name: str,
    level: int,
    fingerprint: str,
) -> Unit:
    by_id = {member.id: member for member in members}
    order = [by_id[found] for found in dict.fromkeys(ranked) if found in by_id]
    order += [member for member in members if member.id not in set(ranked)]
    chunk_ids = tuple(dict.fromkeys(chunk for member in order for chunk in member.chunk_ids))
    return Unit(
        # A summary of one summary may say the same of the same passages; it is still another unit.
        id=unit_id(kind.value, f"{fingerprint}:{level}", chunk_ids, text),
        kind=kind,
        text=text,
        chunk_ids=chunk_ids,
        level=level,
        tree=name,
        metadata={"children": len(members)},
    )
