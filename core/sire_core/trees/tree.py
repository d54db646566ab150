"""Recursive clustering and summarising: the tree that RAPTOR and SiReRAG share (SiReRAG, section 4.2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sire_core.protocols import Delta
from sire_core.trees.layer import LayerWriter
from sire_core.trees.state import TreeLevel, TreeState
from sire_core.types import Edge, Unit, UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import BuildView
    from sire_core.trees.settings import TreeSettings

__all__ = ["Tree", "altered_leaves", "as_delta", "duplicates", "grow"]


@dataclass(frozen=True, slots=True)
class Tree:
    """What a change does to a tree: summaries, and `child` edges from each to what it summarises.

    Attributes:
        put_units: Summaries that are new.
        drop_units: Ids of those that are gone.
        put_edges: Edges that are new.
        drop_edges: Edges that are gone.
        state: For the next change.
        figures: For `Index.stats`: how much of the accepted drift is used up (0: just made, 1: will be made again).
    """

    put_units: tuple[Unit, ...] = ()
    drop_units: tuple[str, ...] = ()
    put_edges: tuple[Edge, ...] = ()
    drop_edges: tuple[Edge, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)


async def grow(
    leaves: Sequence[Unit | str],
    kind: UnitKind,
    name: str,
    settings: TreeSettings,
    view: BuildView,
    *,
    known: Mapping[str, Any] | None = None,
    full: bool = False,
    altered: Collection[str] = (),
    replacements: Mapping[str, str] | None = None,
    also: Sequence[Sequence[int]] = (),
    joining: Mapping[int, Sequence[Unit | str]] | None = None,
) -> Tree:
    """Bring summaries over leaves up to date, level by level; without a past, all of them are new.

    New nodes join the clusters of their neighbours, and only clusters that gain, lose or change a node are summarised
    again. A level whose clusters have drifted too far is clustered again (`Drift`).

    Args:
        leaves: Level 0, in corpus order: units, or ids of stored ones that did not change.
        kind: Kind of the summary units.
        name: Name of the tree (`sim`, `rel`, `cross`).
        settings: How it grows.
        view: Vectors, summariser, randomness.
        known: `Tree.state` before the change; None at first.
        full: Make all clusters and summaries again.
        altered: Ids of leaves that are there as before, but stand on other passages now.
        replacements: Ids of new leaves by the ids of those whose places in clusters they take.
        also: Further clusters of leaves, as positions; summarised beside those that the leaves' vectors form.
        joining: By level, units that stand beside the new summaries of that level and are clustered with them.
    """
    before = TreeState.from_json(known or {})
    past = before if before.embedder == view.fingerprints[0] and not full else TreeState()
    joining = joining or {}
    writer = LayerWriter(kind, name, settings, view)
    levels: list[TreeLevel] = []
    put: dict[str, Unit] = {}
    below: Sequence[Unit | str] = list(leaves)
    succession = dict(replacements or {})
    for number in range(1, settings.depth + 1):
        old = past.levels[number - 1] if number <= len(past.levels) and not (also and number == 1) else None
        first = (altered, also) if number == 1 else ((), ())
        layer = await writer.write(number, below, old, succession, *first)
        levels.append(layer.level)
        put |= layer.written
        succession = dict(layer.replacements)
        summaries = dict.fromkeys(cluster.summary for cluster in layer.level.clusters if cluster.summary)
        below = [*(put.get(found, found) for found in summaries), *joining.get(number, ())]
        if not below:
            break
    while levels and not levels[-1].clusters:
        levels.pop()
    return _difference(before, TreeState(tuple(levels), view.fingerprints[0]), put, name)


def _difference(before: TreeState, after: TreeState, put: Mapping[str, Unit], name: str) -> Tree:
    stays = after.summaries
    old, new = before.edges(after), after.edges(before)
    # Two clusters of one level may have the same summary: what one lets go, the other may hold.
    was, holds = (state.holds({summary for summary, _ in (*old, *new)}) for state in (before, after))
    return Tree(
        put_units=tuple(put.values()),
        drop_units=tuple(summary for summary in before.summaries if summary not in stays),
        put_edges=tuple(Edge("child", *ends) for ends in new if ends not in was),
        drop_edges=tuple(Edge("child", *ends) for ends in old if ends not in holds),
        state=after.as_json(),
        figures={f"drift_{name}": after.drift},
    )


def duplicates(nodes: Sequence[Unit]) -> dict[str, list[str]]:
    """Passages of the chunk units that stand on more than one: their ids do not tell when these change."""
    return {unit.id: list(unit.chunk_ids) for unit in nodes if unit.kind is UnitKind.CHUNK and len(unit.chunk_ids) > 1}


def as_delta(tree: Tree, view: BuildView, *, first: bool, copies: Mapping[str, Sequence[str]]) -> Delta:
    """What an organizer does that has nothing but a tree.

    Args:
        tree: Grown.
        view: Of the organizer.
        first: Whether nothing was known of the tree: whatever stands under the organizer's name goes.
        copies: From `duplicates`.
    """
    return Delta(
        put_units=tree.put_units,
        drop_units=(*tree.drop_units, *((unit.id for unit in view.units()) if first else ())),
        put_edges=tree.put_edges,
        drop_edges=(*tree.drop_edges, *(view.edges() if first else ())),
        state={"tree": tree.state, "copies": copies, "figures": tree.figures},
    )


def altered_leaves(state: Mapping[str, Any], copies: Mapping[str, Sequence[str]]) -> set[str]:
    """Ids of chunk units whose passages are not those of the stored state."""
    before = state.get("copies", {})
    return {found for found in (*before, *copies) if before.get(found) != copies.get(found)}
