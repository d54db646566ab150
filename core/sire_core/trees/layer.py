"""One level of a summary tree: clusters of the nodes below, made or kept up, and a summary of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.text import count_tokens
from sire_core.trees.state import Cluster, Drift, TreeLevel
from sire_core.types import Unit, UnitKind, unit_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import BuildView, FloatArray, Runner
    from sire_core.trees.settings import TreeSettings

__all__ = ["Layer", "LayerWriter", "cluster_units"]

_OFFICIAL_STOP = 11
"""RAPTOR's code stops when a level has at most reduction dimension + 1 nodes."""

_ONE_CLUSTER = 11
"""So few nodes are one cluster; nothing is gained by keeping it up."""

_Slots = list[tuple[int, list[int]]]
"""Per cluster its number before the change (-1: it is new) and its members by row."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A level after a change.

    Attributes:
        level: Its clusters.
        written: New summaries by id.
        replacements: Their ids by those of the summaries whose clusters they are made from.
    """

    level: TreeLevel
    written: Mapping[str, Unit]
    replacements: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LayerWriter:
    """Clusters and summarises the levels of one tree.

    Attributes:
        kind: Kind of the summaries.
        name: Name of the tree.
        settings: How it grows.
        view: Vectors, summariser, randomness.
    """

    kind: UnitKind
    name: str
    settings: TreeSettings
    view: BuildView

    async def write(
        self,
        number: int,
        nodes: Sequence[Unit | str],
        old: TreeLevel | None,
        replacements: Mapping[str, str],
        altered: Collection[str] = (),
        also: Sequence[Sequence[int]] = (),
    ) -> Layer:
        """Bring one level up to date.

        Args:
            number: Of the level, from 1.
            nodes: What is clustered, in order: units, or ids of stored ones that did not change.
            old: The level before the change; None makes all clusters again.
            replacements: Ids of nodes by the ids of old nodes whose places they take.
            altered: Ids of nodes that are there as before, but stand on other passages now.
            also: Clusters that are summarised beside those that are found, as positions.
        """
        known = _Nodes(nodes, self.view)
        slots, drift = await self._clusters(number, known, old, replacements, also)
        before = old.clusters if old else ()
        clusters = [Cluster(tuple(known.ids[row] for row in rows)) for _, rows in slots]
        todo = []
        for place, ((origin, _), cluster) in enumerate(zip(slots, clusters, strict=True)):
            same = origin >= 0 and before[origin].members == cluster.members and before[origin].summary
            if same and not any(member in altered for member in cluster.members):
                clusters[place] = before[origin]
            else:
                todo.append(place)
        units = known.units({member for place in todo for member in clusters[place].members})
        written = await self._summarize([[units[m] for m in clusters[place].members] for place in todo], number)
        for place, unit in zip(todo, written, strict=True):
            clusters[place] = Cluster(clusters[place].members, unit.id if unit else "")
        staying = {cluster.summary for cluster in clusters}
        return Layer(
            TreeLevel(tuple(clusters), drift),
            {unit.id: unit for unit in written if unit},
            {
                before[origin].summary: cluster.summary
                for (origin, _), cluster in zip(slots, clusters, strict=True)
                if origin >= 0 and before[origin].summary not in staying
            },
        )

    async def _clusters(
        self,
        number: int,
        nodes: _Nodes,
        old: TreeLevel | None,
        replacements: Mapping[str, str],
        also: Sequence[Sequence[int]],
    ) -> tuple[_Slots, Drift]:
        """Clusters of the level and their drift; none where the tree stops."""
        if _stops(len(nodes.ids), self.settings.stop_rule):
            return [], Drift(len(nodes.ids))
        vectors = await self.view.vectors(nodes.given)
        if old is not None and old.clusters and len(nodes.ids) > _ONE_CLUSTER:
            found = await self._update_clusters(number, nodes, vectors, old, replacements)
            if found is not None:
                return found
        # `also` does not count for the rule that a level has to be smaller than what is below it.
        rng = self.view.rng("tree", self.name, str(number))
        units = nodes.units(nodes.ids)
        clusters = await cluster_units(
            [units[found] for found in nodes.ids], vectors, self.settings, rng, self.view.runner
        )
        if self.settings.stop_rule == "default" and len(clusters) >= len(nodes.ids):
            return [], Drift(len(nodes.ids))
        distinct = [list(rows) for rows in dict.fromkeys(tuple(rows) for rows in (*clusters, *also))]
        origins = {cluster.members: place for place, cluster in enumerate(old.clusters)} if old else {}
        slots = [(origins.get(tuple(nodes.ids[row] for row in rows), -1), rows) for rows in distinct]
        return slots, Drift.fresh(vectors, clusters)

    async def _update_clusters(
        self, number: int, nodes: _Nodes, vectors: FloatArray, old: TreeLevel, replacements: Mapping[str, str]
    ) -> tuple[_Slots, Drift] | None:
        """The old clusters with the nodes of today; None when they have drifted too far."""
        import asyncio

        from sire_core.trees.upkeep import place_rows

        row = {found: place for place, found in enumerate(nodes.ids)}
        members = [[row.get(m, row.get(replacements.get(m, ""))) for m in cluster.members] for cluster in old.clusters]
        stayed = [list(dict.fromkeys(place for place in rows if place is not None)) for rows in members]
        missing = {m for cluster in old.clusters for m in cluster.members if m not in row}
        gone = sum(replacements.get(m, "") not in row for m in missing)
        came = len(nodes.ids) - len({place for rows in stayed for place in rows})
        drift = old.drift.after(came + gone, len(missing) - gone)
        if drift.too_far:
            return None
        shrunk = [
            place
            for place, (was, now) in enumerate(zip(old.clusters, stayed, strict=True))
            if len(now) < len(was.members)
        ]
        placed = await asyncio.to_thread(place_rows, vectors, stayed, shrunk)
        slots = self._within_limit(number, nodes, vectors, old, placed)
        drift = drift.measure(vectors, [rows for _, rows in slots])
        grew = self.settings.stop_rule == "default" and len(slots) >= len(nodes.ids)
        return None if drift.too_far or grew else (slots, drift)

    def _within_limit(
        self, number: int, nodes: _Nodes, vectors: FloatArray, old: TreeLevel, placed: Sequence[Sequence[int]]
    ) -> _Slots:
        """The clusters that are left, each once; those that changed are split where they are too long."""
        from sire_core.trees.clustering import split_by_tokens

        changed = {
            place
            for place, rows in enumerate(placed)
            if place >= len(old.clusters) or tuple(nodes.ids[row] for row in rows) != old.clusters[place].members
        }
        tokens = nodes.tokens({row for place in changed for row in placed[place]})
        rng = self.view.rng("tree", self.name, str(number), "split")
        slots: _Slots = []
        new: _Slots = []
        for place, rows in enumerate(placed):
            origin = place if place < len(old.clusters) else -1
            if not rows or place not in changed or tokens[list(rows)].sum() <= self.settings.max_cluster_tokens:
                slots.append((origin, list(rows)))
                continue
            parts = split_by_tokens(
                rows, tokens, vectors, self.settings.max_cluster_tokens, rng=rng, method=self.settings.clustering
            )
            largest = max(range(len(parts)), key=lambda part: (len(parts[part]), -part))
            slots.append((origin, parts[largest].tolist()))
            new += [(-1, part.tolist()) for i, part in enumerate(parts) if i != largest]
        once = {tuple(rows): origin for origin, rows in reversed([*slots, *new]) if rows}
        return [(origin, list(rows)) for rows, origin in reversed(once.items())]

    async def _summarize(self, clusters: Sequence[Sequence[Unit]], number: int) -> list[Unit | None]:
        """A summary of each cluster that has something to say."""
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
        order = [by_id[found] for found in dict.fromkeys(ranked) if found in by_id]
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
    """What a level clusters; units that did not change are read from the store once they are wanted.

    Args:
        given: Units, or ids of stored ones.
        view: Reads these.
    """

    def __init__(self, given: Sequence[Unit | str], view: BuildView) -> None:
        self.given = given
        self.ids = [node if isinstance(node, str) else node.id for node in given]
        self._view = view
        self._units = {node.id: node for node in given if isinstance(node, Unit)}

    def units(self, ids: Collection[str]) -> Mapping[str, Unit]:
        """At least these units by id."""
        missing = [wanted for wanted in ids if wanted not in self._units]
        self._units.update((unit.id, unit) for unit in (self._view.units(missing) if missing else ()))
        return self._units

    def tokens(self, rows: Collection[int]) -> NDArray[np.int64]:
        """Lengths of some nodes, `[nodes]`; 0 for all others."""
        units = self.units({self.ids[row] for row in rows})
        tokens = np.zeros(len(self.ids), dtype=np.int64)
        for row in rows:
            tokens[row] = count_tokens(units[self.ids[row]].text)
        return tokens


async def cluster_units(
    units: Sequence[Unit], vectors: FloatArray, settings: TreeSettings, rng: np.random.Generator, runner: Runner
) -> list[list[int]]:
    """Clusters of units whose texts together stay within the token limit, as ascending positions.

    Args:
        units: What is clustered; the limit counts their texts.
        vectors: What decides who is similar, `[len(units), d]`.
        settings: Method and limit.
        rng: Randomness.
        runner: Finds the nearest neighbours.
    """
    import asyncio

    from sire_core.trees.clustering import clusters_within_limit
    from sire_core.trees.nearest import nearest_lists

    tokens = [count_tokens(unit.text) for unit in units]
    method = settings.clustering
    nearest = await nearest_lists(vectors, runner) if method == "leiden" else None
    clusters = await asyncio.to_thread(
        clusters_within_limit, vectors, tokens, settings.max_cluster_tokens, rng=rng, method=method, nearest=nearest
    )
    return [cluster.tolist() for cluster in clusters]


def _stops(nodes: int, rule: str) -> bool:
    if rule == "official":
        return nodes <= _OFFICIAL_STOP
    return nodes < (1 if rule == "none" else 2)
