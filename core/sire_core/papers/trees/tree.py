"""A summary tree: recursive clustering and summarising, kept up to date (RAPTOR; SiReRAG, section 4.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extend import Delta, Edge, Unit, UnitKind, check_settings, count_tokens, setting, unit_id
from sire_core.papers.trees.clustering import (
    ONE_CLUSTER,
    nearest_lists,
    place_rows,
    soft_clusters,
    split_by_tokens,
)

if TYPE_CHECKING:
    from sire_core.extend import BuildView, FloatArray, IntArray, Runner


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """Settings of a tree of summaries.

    Attributes:
        depth: Summary levels above the leaves (RAPTOR and SiReRAG: 3).
        clustering: `leiden` (neighbour graph, fast) or `paper` (UMAP and Gaussian mixtures, the reference).
        max_cluster_tokens: A cluster with more tokens is split further.
        summary_tokens: Maximum tokens of a summary.
        stop_rule: `default` stops below two nodes or when a level does not shrink; `official` when a level has at most
            11 nodes; `none` never (the released SiReRAG code, which summarises a single summary again).
    """

    depth: int = setting(3, low=0)
    clustering: str = setting("leiden", choices=("leiden", "paper"))
    max_cluster_tokens: int = setting(3500, low=1)
    summary_tokens: int = setting(200, low=1)
    stop_rule: str = setting("default", choices=("default", "official", "none"))

    def __post_init__(self) -> None:
        check_settings(self)


_OriginRows = list[tuple[int, list[int]]]
"""Per cluster its number before the change (-1: it is new) and its members by row."""


@dataclass(frozen=True, slots=True)
class SummaryTree:
    """Clusters and summarises nodes level by level; keeps what a change leaves as it is."""

    kind: UnitKind  # kind of the summaries
    name: str  # name of the tree
    settings: TreeSettings  # how the tree grows
    view: BuildView  # vectors, summariser, randomness

    async def grow(
        self,
        leaves: Sequence[Unit | str],
        *,
        full: bool,
        replacements: Mapping[str, str] | None = None,
        extra_clusters: Sequence[Sequence[int]] = (),
        joining: Mapping[int, Sequence[Unit | str]] | None = None,
    ) -> Delta:
        """Bring summaries over leaves up to date, level by level; `full` makes all clusters anew.

        `replacements` are leaves by those that they replace. The state to store is `tree`; `figures` has the share of
        the accepted changes after which all clusters of a level are made anew.
        """
        before = TreeState.from_json(self.view.state().get("tree", {}))
        follow = before.embedder == self.view.fingerprints[0] and not full
        chunks, forgotten = {chunk.id for chunk in self.view.chunks}, self.view.forgotten()
        stored = {
            unit.id: unit
            for unit in self.view.units(list(before.summaries))
            if chunks.issuperset(unit.chunk_ids) and forgotten.isdisjoint(unit.chunk_ids)
        }
        levels: list[TreeLevel] = []
        new_units: dict[str, Unit] = {}
        below: Sequence[Unit | str] = list(leaves)
        succession = dict(replacements or {})
        for number in range(1, self.settings.depth + 1):
            extra = extra_clusters if number == 1 else ()
            old = before.levels[number - 1] if follow and number <= len(before.levels) and not extra else TreeLevel()
            level, written, succession = await self._write(number, below, old, stored, succession, extra)
            levels.append(level)
            new_units |= written
            summaries = dict.fromkeys(cluster.summary for cluster in level.clusters if cluster.summary)
            below = [*(new_units.get(summary, summary) for summary in summaries), *(joining or {}).get(number, ())]
            if not below:
                break
        while levels and not levels[-1].clusters:
            levels.pop()
        after = TreeState(tuple(levels), self.view.fingerprints[0])
        old_edges, edges = before.edges(), after.edges()
        return Delta(
            put_units=tuple(new_units.values()),
            drop_units=tuple(summary for summary in before.summaries if summary not in after.summaries),
            put_edges=tuple(Edge("child", *ends) for ends in edges if ends not in old_edges),
            drop_edges=tuple(Edge("child", *ends) for ends in old_edges if ends not in edges),
            state={"tree": after.as_json(), "figures": {f"drift_{self.name}": after.drift}},
        )

    async def _write(
        self,
        number: int,
        nodes: Sequence[Unit | str],
        old: TreeLevel,
        stored: Mapping[str, Unit],
        replacements: Mapping[str, str],
        extra_clusters: Sequence[Sequence[int]],
    ) -> tuple[TreeLevel, dict[str, Unit], dict[str, str]]:
        """Bring one level up to date; new summaries by id, and their ids by those of the summaries they replace."""
        known_nodes = _Nodes(nodes, self.view)
        slots, counts = await self._clusters(number, known_nodes, old, replacements, extra_clusters)
        clusters = [Cluster(tuple(known_nodes.ids[row] for row in rows)) for _, rows in slots]
        to_write = []
        for position, ((origin, _), cluster) in enumerate(zip(slots, clusters, strict=True)):
            former = old.clusters[origin] if origin >= 0 else None
            if former and set(former.members) == set(cluster.members) and known_nodes.cited_by(former, stored):
                clusters[position] = former
            else:
                to_write.append(position)
        units = known_nodes.units({member for position in to_write for member in clusters[position].members})
        written = await self._summarize(
            [[units[m] for m in clusters[position].members] for position in to_write], number
        )
        for position, unit in zip(to_write, written, strict=True):
            clusters[position] = Cluster(clusters[position].members, unit.id if unit else "")
        remaining = {cluster.summary for cluster in clusters}
        return (
            TreeLevel(tuple(clusters), *counts),
            {unit.id: unit for unit in written if unit},
            {
                old.clusters[origin].summary: cluster.summary
                for (origin, _), cluster in zip(slots, clusters, strict=True)
                if origin >= 0 and old.clusters[origin].summary not in remaining
            },
        )

    async def _clusters(
        self,
        number: int,
        nodes: _Nodes,
        old: TreeLevel,
        replacements: Mapping[str, str],
        extra_clusters: Sequence[Sequence[int]],
    ) -> tuple[_OriginRows, tuple[int, int]]:
        """Return clusters of the level, none where the tree stops, with the node counts of `TreeLevel`."""
        made_now = (len(nodes.ids), 0)
        if _is_finished(len(nodes.ids), self.settings.stop_rule):
            return [], made_now
        vectors = await self.view.vectors(nodes.given)
        if old.clusters and len(nodes.ids) > ONE_CLUSTER:
            changed, stayed = _stayed(nodes.ids, old, replacements)
            if TreeLevel((), old.nodes, changed).drift < 1:
                slots = await asyncio.to_thread(self._updated, number, nodes, vectors, old, stayed)
                if self.settings.stop_rule != "default" or len(slots) < len(nodes.ids):
                    return slots, (old.nodes, changed)
        # `extra_clusters` do not count for the rule that a level has to be smaller than what is below it.
        rng = self.view.rng("tree", self.name, str(number))
        units = nodes.units(nodes.ids)
        clusters = await cluster_units(
            [units[name] for name in nodes.ids], vectors, self.settings, rng, self.view.runner
        )
        if self.settings.stop_rule == "default" and len(clusters) >= len(nodes.ids):
            return [], made_now
        distinct = [list(rows) for rows in dict.fromkeys(tuple(rows) for rows in (*clusters, *extra_clusters))]
        origins = {cluster.members: position for position, cluster in enumerate(old.clusters)}
        return [(origins.get(tuple(nodes.ids[row] for row in rows), -1), rows) for rows in distinct], made_now

    def _updated(
        self, level: int, nodes: _Nodes, vectors: FloatArray, old: TreeLevel, stayed: Sequence[Sequence[int]]
    ) -> _OriginRows:
        """Return the old clusters with the nodes of today, each once; those that changed are split if too long."""
        placed = place_rows(vectors, stayed)
        before = {cluster.members for cluster in old.clusters}
        changed = [rows for rows in placed if tuple(nodes.ids[row] for row in rows) not in before]
        tokens = nodes.tokens({row for rows in changed for row in rows})
        rng = self.view.rng("tree", self.name, str(level), "split")
        limit, method = self.settings.max_cluster_tokens, self.settings.clustering
        slots: _OriginRows = []
        for origin, rows in enumerate(placed):
            parts = [part.tolist() for part in split_by_tokens(rows, tokens, vectors, limit, rng=rng, method=method)]
            largest = max(range(len(parts)), key=lambda part: len(parts[part]), default=0)
            origins = {largest: origin} if origin < len(stayed) else {}
            slots += [(origins.get(number, -1), part) for number, part in enumerate(parts)]
        distinct = {tuple(rows): origin for origin, rows in reversed(slots)}
        return [(origin, list(rows)) for rows, origin in reversed(distinct.items())]

    async def _summarize(self, clusters: Sequence[Sequence[Unit]], number: int) -> list[Unit | None]:
        """Write a summary of each cluster; None for one without text."""
        if not clusters:
            return []
        stage = f"summaries of {self.name} level {number}"
        written = await self.view.summarizer(self.settings.summary_tokens, stage).summarize(clusters)
        return [
            self._summary(members, text, ranked, number) if text else None
            for members, (text, ranked) in zip(clusters, written, strict=True)
        ]

    def _summary(self, members: Sequence[Unit], text: str, ranked: Sequence[str], number: int) -> Unit:
        by_id = {member.id: member for member in members}
        order = [by_id[member_id] for member_id in dict.fromkeys(ranked) if member_id in by_id]
        order += [member for member in members if member.id not in set(ranked)]
        chunk_ids = tuple(dict.fromkeys(chunk for member in order for chunk in member.chunk_ids))
        return Unit(
            # A summary of one summary may say the same of the same passages; it is still another unit.
            id=unit_id(self.kind.value, f"{self.view.fingerprint}:{number}", chunk_ids, text),
            kind=self.kind,
            text=text,
            chunk_ids=chunk_ids,
            level=number,
            tree=self.name,
            metadata={"children": len(members)},
        )


class _Nodes:
    """The nodes of a level; units that did not change are read from the store when they are needed."""

    def __init__(self, nodes: Sequence[Unit | str], view: BuildView) -> None:
        self.given = nodes
        self.ids = [node if isinstance(node, str) else node.id for node in nodes]
        self._view = view
        self._units = {node.id: node for node in nodes if isinstance(node, Unit)}

    def units(self, ids: Collection[str]) -> Mapping[str, Unit]:
        missing = [wanted for wanted in ids if wanted not in self._units]
        self._units.update((unit.id, unit) for unit in (self._view.units(missing) if missing else ()))
        return self._units

    def cited_by(self, cluster: Cluster, summaries: Mapping[str, Unit]) -> bool:
        """True if the summary of a cluster cites all chunks of its members; passages may have got further copies."""
        units = [self._units[member] for member in cluster.members if member in self._units]
        cited = summaries[cluster.summary].chunk_ids if cluster.summary in summaries else ()
        return bool(cited) and {chunk for unit in units for chunk in unit.chunk_ids}.issubset(cited)

    def tokens(self, rows: Collection[int]) -> IntArray:
        """Return the lengths of some nodes, `[nodes]`; 0 for all others."""
        units = self.units({self.ids[row] for row in rows})
        tokens = np.zeros(len(self.ids), dtype=np.int64)
        for row in rows:
            tokens[row] = count_tokens(units[self.ids[row]].text)
        return tokens


async def cluster_units(
    units: Sequence[Unit], vectors: FloatArray, settings: TreeSettings, rng: np.random.Generator, runner: Runner
) -> list[list[int]]:
    """Return clusters of units, as ascending positions, whose texts together stay within the token limit."""
    lengths = np.array([count_tokens(unit.text) for unit in units], dtype=np.int64)
    limit, method = settings.max_cluster_tokens, settings.clustering
    nearest = await nearest_lists(vectors, runner) if method == "leiden" else None

    def within_limit() -> list[list[int]]:
        clusters = soft_clusters(vectors, method=method, rng=rng, nearest=nearest)
        parts = [split_by_tokens(cluster, lengths, vectors, limit, method=method, rng=rng) for cluster in clusters]
        return [list(rows) for rows in dict.fromkeys(tuple(part.tolist()) for split in parts for part in split)]

    return await asyncio.to_thread(within_limit)


def _is_finished(nodes: int, rule: str) -> bool:
    if rule == "official":
        return nodes <= ONE_CLUSTER
    return nodes < (1 if rule == "none" else 2)


_MAX_CHANGED = 0.25  # Share of a level's nodes that may change before its clusters are computed again


def _stayed(ids: Sequence[str], old: TreeLevel, replacements: Mapping[str, str]) -> tuple[int, list[list[int]]]:
    """Return how many nodes changed since all clusters were made, and the rows of each; a last one leaves."""
    rows = {name: row for row, name in enumerate(ids)}
    members = {member for cluster in old.clusters for member in cluster.members}
    now = {member: rows.get(member, rows.get(replacements.get(member, ""), -1)) for member in members}
    changed = sum(row < 0 for row in now.values()) + len(set(rows.values()).difference(now.values()))
    stayed = [list(dict.fromkeys(now[member] for member in c.members if now[member] >= 0)) for c in old.clusters]
    return old.changed + changed, [
        left if len(left) > 1 or len(left) == len(cluster.members) else []
        for left, cluster in zip(stayed, old.clusters, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Ids of the members in order, and the id of their summary; empty if there is none."""

    members: tuple[str, ...]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class TreeLevel:
    """The clusters of one level, in order."""

    clusters: tuple[Cluster, ...] = ()
    nodes: int = 0  # number of nodes when all clusters were made
    changed: int = 0  # number of nodes that came or went since

    @property
    def drift(self) -> float:
        """Share of the accepted changes that is used up; at 1 all clusters are made again."""
        return self.changed / max(1.0, _MAX_CHANGED * self.nodes)


@dataclass(frozen=True, slots=True)
class TreeState:
    """All levels, lowest first."""

    levels: tuple[TreeLevel, ...] = ()  # levels that have clusters
    embedder: str = ""  # fingerprint of the embedder whose vectors were clustered

    @property
    def summaries(self) -> dict[str, int]:
        """Ids of all summaries with their level, from 1."""
        return {c.summary: number for number, level in enumerate(self.levels, 1) for c in level.clusters if c.summary}

    def edges(self) -> dict[tuple[str, str], None]:
        """Return (summary, member) of all clusters, each once."""
        clusters = [cluster for level in self.levels for cluster in level.clusters if cluster.summary]
        return {(cluster.summary, member): None for cluster in clusters for member in cluster.members}

    @property
    def drift(self) -> float:
        """The largest drift of a level, rounded."""
        return round(max((level.drift for level in self.levels), default=0.0), 3)

    def as_json(self) -> dict[str, Any]:
        """Return JSON-serialisable values."""
        levels = [
            {
                "clusters": [[cluster.summary, *cluster.members] for cluster in level.clusters],
                "nodes": level.nodes,
                "changed": level.changed,
            }
            for level in self.levels
        ]
        return {"levels": levels, "embedder": self.embedder}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> TreeState:
        """Read what `as_json` wrote; an empty state at first."""
        levels = [
            TreeLevel(
                tuple(Cluster(tuple(row[1:]), row[0]) for row in level["clusters"]),
                level.get("nodes", 0),
                level.get("changed", 0),
            )
            for level in state.get("levels", ())
        ]
        return cls(tuple(levels), state.get("embedder", ""))
