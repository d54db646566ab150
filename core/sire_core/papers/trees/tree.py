"""A summary tree: recursive clustering and summarising, kept up to date (RAPTOR; SiReRAG, section 4.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extend import Delta, Edge, Unit, UnitKind, check_settings, count_tokens, setting, unit_id
from sire_core.papers.trees.clustering import (
    clusters_within_limit,
    nearest_lists,
    neighbors_together,
    place_rows,
    split_by_tokens,
)

if TYPE_CHECKING:
    from sire_core.extend import BuildView, Change, FloatArray, IntArray, Runner


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

    def as_mapping(self) -> Mapping[str, Any]:
        """Return the settings as JSON-serialisable values."""
        return asdict(self)


def _difference(before: TreeState, after: TreeState, new_units: Mapping[str, Unit], name: str) -> Delta:
    remaining = after.summaries
    old, new = before.edges(), after.edges()
    return Delta(
        put_units=tuple(new_units.values()),
        drop_units=tuple(summary for summary in before.summaries if summary not in remaining),
        put_edges=tuple(Edge("child", *ends) for ends in new if ends not in old),
        drop_edges=tuple(Edge("child", *ends) for ends in old if ends not in new),
        state={"tree": after.as_json(), "figures": {f"drift_{name}": after.drift}},
    )


_OFFICIAL_STOP = 11  # RAPTOR's code stops when a level has at most reduction dimension + 1 nodes

_ONE_CLUSTER = 11  # Levels with at most this many nodes are one cluster

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
        stored: Mapping[str, Any] | None = None,
        full: bool = False,
        altered: Collection[str] = (),
        replacements: Mapping[str, str] | None = None,
        extra_clusters: Sequence[Sequence[int]] = (),
        joining: Mapping[int, Sequence[Unit | str]] | None = None,
    ) -> Delta:
        """Bring summaries over leaves up to date, level by level; without a stored state all of them are new.

        The state to store is `tree`; `figures` has the share of the accepted drift that is used up.
        """
        before = TreeState.from_json(stored or {})
        old_state = before if before.embedder == self.view.fingerprints[0] and not full else TreeState()
        joining = joining or {}
        levels: list[TreeLevel] = []
        new_units: dict[str, Unit] = {}
        below: Sequence[Unit | str] = list(leaves)
        succession = dict(replacements or {})
        for number in range(1, self.settings.depth + 1):
            old = (
                old_state.levels[number - 1]
                if number <= len(old_state.levels) and not (extra_clusters and number == 1)
                else None
            )
            leaf_changes = (altered, extra_clusters) if number == 1 else ((), ())
            level, written, succession = await self._write(number, below, old, succession, *leaf_changes)
            levels.append(level)
            new_units |= written
            summaries = dict.fromkeys(cluster.summary for cluster in level.clusters if cluster.summary)
            below = [*(new_units.get(summary, summary) for summary in summaries), *joining.get(number, ())]
            if not below:
                break
        while levels and not levels[-1].clusters:
            levels.pop()
        return _difference(before, TreeState(tuple(levels), self.view.fingerprints[0]), new_units, self.name)

    async def update(
        self,
        leaves: Sequence[Unit],
        change: Change,
        *,
        extra_clusters: Sequence[Sequence[int]] = (),
        joining: Mapping[int, Sequence[Unit | str]] | None = None,
    ) -> Delta:
        """Update a tree that is all that an organizer builds; see `grow`."""
        view, state = self.view, self.view.state()
        is_first = "tree" not in state
        # The id of a passage with copies stays the same when its copies change.
        copies = {unit.id: list(unit.chunk_ids) for unit in view.chunk_units if len(unit.chunk_ids) > 1}
        before = state.get("copies", {})
        tree = await self.grow(
            leaves,
            stored=state.get("tree"),
            full=len(change.added) == len(view.chunks),
            altered={unit for unit in (*before, *copies) if before.get(unit) != copies.get(unit)},
            extra_clusters=extra_clusters,
            joining=joining,
        )
        return replace(
            tree,
            drop_units=(*tree.drop_units, *((unit.id for unit in view.units()) if is_first else ())),
            drop_edges=(*tree.drop_edges, *(view.edges() if is_first else ())),
            state={**(tree.state or {}), "copies": copies},
        )

    async def _write(
        self,
        number: int,
        nodes: Sequence[Unit | str],
        old: TreeLevel | None,
        replacements: Mapping[str, str],
        altered: Collection[str] = (),
        extra_clusters: Sequence[Sequence[int]] = (),
    ) -> tuple[TreeLevel, dict[str, Unit], dict[str, str]]:
        """Bring one level up to date; new summaries by id, and their ids by those of the summaries they replace."""
        known_nodes = _Nodes(nodes, self.view)
        slots, drift = await self._clusters(number, known_nodes, old, replacements, extra_clusters)
        before = old.clusters if old else ()
        clusters = [Cluster(tuple(known_nodes.ids[row] for row in rows)) for _, rows in slots]
        if forgotten := self.view.forgotten():
            nodes_now = known_nodes.units(known_nodes.ids).items()
            altered = {*altered, *(node for node, unit in nodes_now if not forgotten.isdisjoint(unit.chunk_ids))}
        to_write = []
        for position, ((origin, _), cluster) in enumerate(zip(slots, clusters, strict=True)):
            is_same = origin >= 0 and before[origin].members == cluster.members and before[origin].summary
            if is_same and not any(member in altered for member in cluster.members):
                clusters[position] = before[origin]
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
            TreeLevel(tuple(clusters), drift),
            {unit.id: unit for unit in written if unit},
            {
                before[origin].summary: cluster.summary
                for (origin, _), cluster in zip(slots, clusters, strict=True)
                if origin >= 0 and before[origin].summary not in remaining
            },
        )

    async def _clusters(
        self,
        number: int,
        nodes: _Nodes,
        old: TreeLevel | None,
        replacements: Mapping[str, str],
        extra_clusters: Sequence[Sequence[int]],
    ) -> tuple[_OriginRows, Drift]:
        """Return clusters of the level and their drift; no clusters where the tree stops."""
        if _is_finished(len(nodes.ids), self.settings.stop_rule):
            return [], Drift(len(nodes.ids))
        vectors = await self.view.vectors(nodes.given)
        if old is not None and old.clusters and len(nodes.ids) > _ONE_CLUSTER:
            updated = await self._update_clusters(number, nodes, vectors, old, replacements)
            if updated is not None:
                return updated
        # `also` does not count for the rule that a level has to be smaller than what is below it.
        rng = self.view.rng("tree", self.name, str(number))
        units = nodes.units(nodes.ids)
        clusters = await cluster_units(
            [units[updated] for updated in nodes.ids], vectors, self.settings, rng, self.view.runner
        )
        if self.settings.stop_rule == "default" and len(clusters) >= len(nodes.ids):
            return [], Drift(len(nodes.ids))
        distinct = [list(rows) for rows in dict.fromkeys(tuple(rows) for rows in (*clusters, *extra_clusters))]
        origins = {cluster.members: position for position, cluster in enumerate(old.clusters)} if old else {}
        slots = [(origins.get(tuple(nodes.ids[row] for row in rows), -1), rows) for rows in distinct]
        return slots, Drift.fresh(vectors, clusters)

    async def _update_clusters(
        self, number: int, nodes: _Nodes, vectors: FloatArray, old: TreeLevel, replacements: Mapping[str, str]
    ) -> tuple[_OriginRows, Drift] | None:
        """Apply the old clusters to the nodes of today; None if they have drifted too far."""
        row_by_id = {node_id: position for position, node_id in enumerate(nodes.ids)}
        members = [
            [row_by_id.get(member, row_by_id.get(replacements.get(member, ""))) for member in cluster.members]
            for cluster in old.clusters
        ]
        stayed = [list(dict.fromkeys(position for position in rows if position is not None)) for rows in members]
        missing = {member for cluster in old.clusters for member in cluster.members if member not in row_by_id}
        removed = sum(replacements.get(member, "") not in row_by_id for member in missing)
        added = len(nodes.ids) - len({position for rows in stayed for position in rows})
        drift = old.drift.after(added + removed, len(missing) - removed)
        if drift.too_far:
            return None
        shrunk = [
            position
            for position, (former, current) in enumerate(zip(old.clusters, stayed, strict=True))
            if len(current) < len(former.members)
        ]
        placed = await asyncio.to_thread(place_rows, vectors, stayed, shrunk)
        slots = self._within_limit(number, nodes, vectors, old, placed)
        drift = drift.measure(vectors, [rows for _, rows in slots])
        grew = self.settings.stop_rule == "default" and len(slots) >= len(nodes.ids)
        return None if drift.too_far or grew else (slots, drift)

    def _within_limit(
        self, number: int, nodes: _Nodes, vectors: FloatArray, old: TreeLevel, placed: Sequence[Sequence[int]]
    ) -> _OriginRows:
        """Return the clusters that are left, each once; those that changed are split where they are too long."""
        changed = {
            position
            for position, rows in enumerate(placed)
            if position >= len(old.clusters) or tuple(nodes.ids[row] for row in rows) != old.clusters[position].members
        }
        tokens = nodes.tokens({row for position in changed for row in placed[position]})
        rng = self.view.rng("tree", self.name, str(number), "split")
        slots: _OriginRows = []
        new: _OriginRows = []
        for position, rows in enumerate(placed):
            origin = position if position < len(old.clusters) else -1
            if not rows or position not in changed or tokens[list(rows)].sum() <= self.settings.max_cluster_tokens:
                slots.append((origin, list(rows)))
                continue
            parts = split_by_tokens(
                rows, tokens, vectors, self.settings.max_cluster_tokens, rng=rng, method=self.settings.clustering
            )
            largest = max(range(len(parts)), key=lambda part: (len(parts[part]), -part))
            slots.append((origin, parts[largest].tolist()))
            new += [(-1, part.tolist()) for i, part in enumerate(parts) if i != largest]
        distinct = {tuple(rows): origin for origin, rows in reversed([*slots, *new]) if rows}
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
    tokens = [count_tokens(unit.text) for unit in units]
    method = settings.clustering
    nearest = await nearest_lists(vectors, runner) if method == "leiden" else None
    clusters = await asyncio.to_thread(
        clusters_within_limit, vectors, tokens, settings.max_cluster_tokens, rng=rng, method=method, nearest=nearest
    )
    return [cluster.tolist() for cluster in clusters]


def _is_finished(nodes: int, rule: str) -> bool:
    if rule == "official":
        return nodes <= _OFFICIAL_STOP
    return nodes < (1 if rule == "none" else 2)


_MAX_CHANGED = 0.25  # Share of a level's nodes that may change before its clusters are computed again

_REMEASURE_AFTER = 0.05  # Share of a level's nodes that may change before its drift is measured again

_TOLERANCE = 0.1  # Loss of neighbours in common clusters, as a share of what there was, that is accepted beyond chance

_SAMPLE = 512


@dataclass(frozen=True, slots=True)
class Cluster:
    """Ids of the members in order, and the id of their summary; empty if there is none."""

    members: tuple[str, ...]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """Distance of the clusters of a level from fresh ones."""

    nodes: int  # number of nodes when all clusters were made
    changed: int = 0  # number of nodes that came or went since
    touched: int = 0  # number of nodes that came, went or were replaced since `now` was measured
    built: float = 1.0  # share of nodes whose nearest neighbour was in a cluster with them when all clusters were made
    now: float = 1.0  # the same share, as measured last

    @classmethod
    def fresh(cls, vectors: FloatArray, clusters: Sequence[Sequence[int]]) -> Drift:
        """Measure clusters that were just made."""
        share = neighbors_together(vectors, clusters, sample=_SAMPLE)
        return cls(len(vectors), built=share, now=share)

    def after(self, changed: int, replaced: int) -> Drift:
        """Count more nodes that came or went, and that were replaced."""
        return replace(self, changed=self.changed + changed, touched=self.touched + changed + replaced)

    def measure(self, vectors: FloatArray, clusters: Sequence[Sequence[int]]) -> Drift:
        """Measure again if much has changed since the last time."""
        if self.touched < _REMEASURE_AFTER * self.nodes:
            return self
        return replace(self, touched=0, now=neighbors_together(vectors, clusters, sample=_SAMPLE))

    @property
    def too_far(self) -> bool:
        """True if all clusters have to be made again."""
        return self.share >= 1

    @property
    def share(self) -> float:
        """Share of the accepted drift that is used up; at 1 all clusters are made again."""
        chance = 0.5 / max(1, min(self.nodes, _SAMPLE)) ** 0.5
        lost = (1 - self.now / max(self.built, 1e-9)) / (_TOLERANCE + chance)
        return float(max(self.changed / max(1.0, _MAX_CHANGED * self.nodes), lost))


@dataclass(frozen=True, slots=True)
class TreeLevel:
    """The clusters of one level, in order."""

    clusters: tuple[Cluster, ...]
    drift: Drift


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
        """The largest `Drift.share` of a level, rounded."""
        return round(max((level.drift.share for level in self.levels), default=0.0), 3)

    def as_json(self) -> dict[str, Any]:
        """Return JSON-serialisable values."""
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
        """Read what `as_json` wrote; an empty state at first."""
        levels = [
            TreeLevel(tuple(Cluster(tuple(row[1:]), row[0]) for row in level["clusters"]), Drift(*level["drift"]))
            for level in state.get("levels", ())
        ]
        return cls(tuple(levels), state.get("embedder", ""))
