"""Pictures of the neighbourhood of an entity, a passage or a summary."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from sire_core.explore.paths import Names
from sire_core.explore.picture import Link, Node, Picture, PictureBuilder
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sire_core.search.snapshot import SearchSnapshot

_NEAR = 14
_FAR = 24


def children(snapshot: SearchSnapshot) -> Mapping[str, list[str]]:
    """Ids of the children of every summary and report; read once per snapshot."""

    def read() -> dict[str, list[str]]:
        children_by_id: dict[str, list[str]] = defaultdict(list)
        # A pool of passages alone has no trees; its edges need not be read.
        names = list(snapshot.view.kind_names)
        present = {names[number] for number in np.unique(snapshot.view.kinds).tolist()}
        trees = present - {UnitKind.CHUNK.value, UnitKind.ENTITY.value}
        for edge in snapshot.view.edges() if trees else ():
            if edge.kind == "child":
                children_by_id[edge.source].append(edge.target)
        return dict(children_by_id)

    below: Mapping[str, list[str]] = snapshot.view.derived("explore children", read)
    return below


def parents(snapshot: SearchSnapshot) -> Mapping[str, list[str]]:
    """Ids of the parents of every unit of a tree."""

    def turned() -> dict[str, list[str]]:
        parents_by_id: dict[str, list[str]] = defaultdict(list)
        for above, below in children(snapshot).items():
            for name in below:
                parents_by_id[name].append(above)
        return dict(parents_by_id)

    above: Mapping[str, list[str]] = snapshot.view.derived("explore parents", turned)
    return above


def derived_from(snapshot: SearchSnapshot, unit_id: str) -> list[int]:
    """Positions of the visible units that were derived from a passage."""
    names = Names.of(snapshot)
    position = names.position(unit_id)
    if position is None:
        return []
    pool = snapshot.view.pool
    own = pool.indices[pool.indptr[position] : pool.indptr[position + 1]]
    owners = np.searchsorted(pool.indptr, np.flatnonzero(np.isin(pool.indices, own)), side="right") - 1
    kinds = list(snapshot.view.kind_names)
    derived = np.unique(owners[snapshot.view.kinds[owners] != kinds.index(UnitKind.CHUNK.value)])
    visible: list[int] = (derived if names.allowed is None else derived[names.allowed[derived]]).tolist()
    return visible


def entity_picture(snapshot: SearchSnapshot, entity_id: str) -> Picture | None:
    """Draw an entity, passages that mention it and their other entities; None if the id is no entity's."""
    names = Names.of(snapshot)
    label = names.entity(entity_id)
    if not label:
        return None
    builder = PictureBuilder()
    builder.add(Node(entity_id, UnitKind.ENTITY.value, label))
    graph, mentions = names.graph, names.mentions(entity_id)
    # Passages about it come first.
    mentions = mentions[np.argsort(~graph.titles[mentions], kind="stable")]
    passages = list(dict.fromkeys(graph.passages[mentions].tolist()))
    for passage in passages[:_NEAR]:
        _add(builder, names, _passage_id(names, passage), entity_id, "mentions it")
    _others(builder, names, passages[:_NEAR], entity_id)
    return builder.picture(f"{label} and its neighbours")


def unit_picture(snapshot: SearchSnapshot, unit_id: str) -> Picture | None:
    """Draw a passage with its entities and derived units, or a derived unit with its parents and children.

    None if the id is unknown or hidden.
    """
    names = Names.of(snapshot)
    node, position = names.node(unit_id), names.position(unit_id)
    unit = names.unit(unit_id)
    if node is None or position is None or unit is None:
        return None
    builder = PictureBuilder()
    builder.add(node)
    below = children(snapshot).get(unit_id, ()) or (() if unit.kind is UnitKind.CHUNK else unit.chunk_ids)
    for name in list(below)[:_FAR]:
        _add(builder, names, name, unit_id, "made from" if unit.kind is not UnitKind.CHUNK else "")
    for name in parents(snapshot).get(unit_id, ())[:_NEAR]:
        _add(builder, names, name, unit_id, "part of")
    if unit.kind is UnitKind.CHUNK:
        for other in derived_from(snapshot, unit_id)[:_NEAR]:
            _add(builder, names, snapshot.view.ids[other].decode(), unit_id, "derived from it")
        _others(builder, names, [int(np.searchsorted(names.graph.chunk_positions, position))], "")
    return builder.picture(f"{node.label} and its neighbours")


def _others(builder: PictureBuilder, names: Names, passages: list[int], without: str) -> None:
    """Draw the entities of some passages, shared ones first, then the rarest."""
    graph = names.graph
    rows = np.flatnonzero(np.isin(graph.passages, passages))
    frequency = np.bincount(graph.entities[names.seen()], minlength=len(graph.entity_ids))
    shared = np.bincount(graph.entities[rows], minlength=len(graph.entity_ids))
    numbers = np.unique(graph.entities[rows])
    order = numbers[np.lexsort((frequency[numbers], -shared[numbers]))]
    for number in order[: _FAR + 1].tolist():
        entity = graph.entity_ids[number]
        if entity == without:
            continue
        for passage in graph.passages[rows[graph.entities[rows] == number]].tolist():
            _add(builder, names, entity, _passage_id(names, passage), "")


def _passage_id(names: Names, passage: int) -> str:
    return str(names.snapshot.view.ids[names.graph.chunk_positions[passage]].decode())


def _add(builder: PictureBuilder, names: Names, name: str, neighbour: str, reason: str) -> None:
    node = names.node(name, passage=neighbour)
    if node is not None and builder.add(node):
        builder.link(Link(neighbour, name, "", reason))
