"""Pictures of the neighbourhood of an entity, a passage or a summary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from sire_core.explore.highlight import sentence_with
from sire_core.explore.paths import Names, with_distinct_labels
from sire_core.explore.picture import Link, Picture, PictureBuilder
from sire_core.search.explanation import text_below_title
from sire_core.search.snapshot import SearchSnapshot
from sire_core.types import Unit, UnitKind

_NEAR = 5  # Neighbours of a kind that are drawn at once: more make a picture that nobody can read
_NEIGHBOUR_LETTERS = 120


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
    passage_chunks = pool.indices[pool.indptr[position] : pool.indptr[position + 1]]
    owners = np.searchsorted(pool.indptr, np.flatnonzero(np.isin(pool.indices, passage_chunks)), side="right") - 1
    kinds = list(snapshot.view.kind_names)
    derived = np.unique(owners[snapshot.view.kinds[owners] != kinds.index(UnitKind.CHUNK.value)])
    visible: list[int] = (derived if names.allowed is None else derived[names.allowed[derived]]).tolist()
    return visible


def neighbour_picture(snapshot: SearchSnapshot, identifier: str) -> Picture | None:
    """Draw an entity, a passage or a derived unit with its neighbours; None if the id is unknown or hidden."""
    node = Names.of(snapshot).node(identifier)
    if node is None:
        return None
    picture = expanded(snapshot, Picture(f"{node.label} and its neighbours", (node,), ()), identifier)
    if node.kind != UnitKind.ENTITY.value:
        return picture
    names, builder = Names.of(snapshot), PictureBuilder.of(picture)
    passages = [
        position for position in map(names.position, (other.id for other in picture.nodes)) if position is not None
    ]
    passages = np.searchsorted(names.graph.chunk_positions, passages).tolist()
    for passage, entity in _entities(names, passages, _NEAR + 1):
        _mention(builder, names, passage, entity, forward=True)
    return with_distinct_labels(snapshot, builder.picture(picture.title))


def expanded(snapshot: SearchSnapshot, picture: Picture, identifier: str) -> Picture:
    """A picture with the first neighbours of one of its nodes; those of no room count as left out.

    Of an entity these are passages that mention it, those about it first; of a passage its entities and the units
    derived from it; of a derived unit its parents and children.
    """
    names, builder = Names.of(snapshot), PictureBuilder.of(picture, identifier)
    unit, position = names.unit(identifier), names.position(identifier)
    if unit is None or position is None or unit.kind is UnitKind.ENTITY:
        graph, mentions = names.graph, names.mentions(identifier)
        mentions = mentions[np.argsort(~graph.titles[mentions], kind="stable")]
        passages = [_passage_id(names, passage) for passage in dict.fromkeys(graph.passages[mentions].tolist())]
        for passage in builder.first(passages, _NEAR, identifier):
            _mention(builder, names, passage, identifier, forward=False)
    elif unit.kind is UnitKind.CHUNK:
        above = parents(snapshot).get(identifier, ())
        for name in builder.first(above, _NEAR, identifier):
            _add(builder, names, name, identifier, "part of")
        derived = [snapshot.view.ids[other].decode() for other in derived_from(snapshot, identifier)]
        for name in builder.first([name for name in derived if name not in above], _NEAR, identifier):
            _add(builder, names, name, identifier, "derived from it")
        mentioned = [entity for entity, _ in mentioned_entities(snapshot, identifier)]
        for entity in builder.first(mentioned, 2 * _NEAR - min(_NEAR, len(above) + len(derived)), identifier):
            _mention(builder, names, identifier, entity, forward=True)
    else:
        for name in builder.first(_made_from(snapshot, unit), 2 * _NEAR, identifier):
            _add(builder, names, name, identifier, "made from")
        for name in builder.first(parents(snapshot).get(identifier, ()), _NEAR, identifier):
            _add(builder, names, name, identifier, "part of")
    return with_distinct_labels(snapshot, builder.picture(picture.title))


def grown(snapshot: SearchSnapshot, picture: Picture, names: Iterable[str]) -> Picture:
    """A picture with the first neighbours of several of its nodes, one after the other; others are passed over."""
    for name in names:
        if any(node.id == name for node in picture.nodes):
            picture = expanded(snapshot, picture, name)
    return picture


def related(snapshot: SearchSnapshot, unit_id: str, n: int) -> dict[str, list[Unit]]:
    """By caption at most `n` visible units each that a unit was made from, is part of, or that were made from it."""
    names = Names.of(snapshot)
    unit = names.unit(unit_id)
    if unit is None:
        return {}
    if unit.kind is UnitKind.CHUNK:
        derived = [snapshot.view.ids[other].decode() for other in derived_from(snapshot, unit_id)]
        ids = {"Derived from it": derived}
    else:
        ids = {"Made from": _made_from(snapshot, unit), "Part of": list(parents(snapshot).get(unit_id, ()))}
    units_by_caption = {caption: [names.unit(name) for name in listed[:n]] for caption, listed in ids.items()}
    return {caption: [unit for unit in units if unit is not None] for caption, units in units_by_caption.items()}


def _made_from(snapshot: SearchSnapshot, unit: Unit) -> list[str]:
    return list(children(snapshot).get(unit.id, ()) or unit.chunk_ids)


def mentioned_entities(snapshot: SearchSnapshot, unit_id: str) -> list[tuple[str, str]]:
    """Ids and names of the entities of a passage, the rarest first."""
    names = Names.of(snapshot)
    passages = np.flatnonzero(names.graph.chunk_positions == names.position(unit_id)).tolist()
    spelled = [(entity, names.entity(entity, unit_id)) for _, entity in _entities(names, passages)]
    return [(entity, name) for entity, name in spelled if name]


def _entities(names: Names, passages: list[int], n: int | None = None) -> list[tuple[str, str]]:
    """The first `n` entities of some passages, shared ones first, then the rarest: ids of passage and entity."""
    graph = names.graph
    rows = np.flatnonzero(np.isin(graph.passages, passages))
    frequency = np.bincount(graph.entities[names.seen()], minlength=len(graph.entity_ids))
    shared = np.bincount(graph.entities[rows], minlength=len(graph.entity_ids))
    numbers = np.unique(graph.entities[rows])
    order = numbers[np.lexsort((frequency[numbers], -shared[numbers]))]
    return [
        (_passage_id(names, passage), graph.entity_ids[number])
        for number in order[:n].tolist()
        for passage in graph.passages[rows[graph.entities[rows] == number]].tolist()
    ]


def _mention(builder: PictureBuilder, names: Names, passage: str, entity: str, *, forward: bool) -> None:
    """Draw a passage and an entity that it mentions, with the sentence that does."""
    unit, spelled = names.unit(passage), names.entity(entity, passage)
    if unit is None or not spelled:
        return
    body = text_below_title(unit)
    text = sentence_with(body, spelled, _NEIGHBOUR_LETTERS) if spelled in body else "mentions it"
    if forward:
        _add(builder, names, entity, passage, text)
    else:
        _add(builder, names, passage, entity, text)


def _passage_id(names: Names, passage: int) -> str:
    return str(names.snapshot.view.ids[names.graph.chunk_positions[passage]].decode())


def _add(builder: PictureBuilder, names: Names, name: str, neighbour: str, reason: str) -> None:
    node = names.node(name, passage=neighbour)
    if node is not None and builder.add(node, neighbour):
        builder.link(Link(neighbour, name, reason, reason))
