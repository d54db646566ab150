"""The trees of perspectives for people who want to look at them, or to work on with other tools: JSON and GraphML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sire_core.knowledge import MENTIONS
from sire_core.types import Unit, UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import View


def trees_to_json(view: View) -> list[dict[str, Any]]:
    """The trees of a pool's reports as JSON-serialisable values.

    Args:
        view: `Index.view()`.

    Returns:
        Per tree its name and the nodes right below its root; a node is a report's id, level, title and text, the nodes
        below it (`children`) and the names by id of the entities that stand right below it (`entities`).
    """
    reports, names = _reports(view), _names(view)
    nodes: dict[str, dict[str, Any]] = {
        unit.id: {"id": unit.id, "level": unit.level, "title": unit.title, "text": unit.text, "children": []}
        | {"entities": {}}
        for unit in reports.values()
    }
    below: set[str] = set()
    for edge in view.edges():
        if edge.source in nodes and edge.kind == "child":
            nodes[edge.source]["children"].append(nodes[edge.target])
            below.add(edge.target)
        elif edge.source in nodes and edge.kind == MENTIONS:
            nodes[edge.source]["entities"][edge.target] = names.get(edge.target, "")
    trees: dict[str, list[dict[str, Any]]] = {unit.tree: [] for unit in reports.values()}
    for name, node in nodes.items():
        if name not in below:
            trees[reports[name].tree].append(node)
    return [{"tree": name, "roots": trees[name]} for name in sorted(trees)]


def _reports(view: View) -> Mapping[str, Unit]:
    """All reports by id, in the order of the pool."""
    code = list(view.kind_names).index(UnitKind.REPORT.value)
    units = view.units([at for at, kind in enumerate(view.kinds.tolist()) if kind == code])
    return {unit.id: unit for unit in units}


def _names(view: View) -> Mapping[str, str]:
    """A name of every entity that some passage spells out."""
    names: dict[str, str] = {}
    for edge in view.edges():
        if edge.kind == MENTIONS and edge.metadata.get("names"):
            names.setdefault(edge.target, edge.metadata["names"][-1])
    return names


def to_networkx(view: View) -> Any:
    """The units of a pool and the edges between them.

    Nodes carry `kind` and `label` (title, name or the beginning of the text), edges `kind` and `weight`; all of them
    texts and numbers, so that `networkx.write_graphml` takes the graph.

    Args:
        view: `Index.view()`.

    Returns:
        A `networkx.DiGraph` whose nodes are ids. Entities without a unit are nodes, too.
    """
    import networkx as nx

    graph = nx.DiGraph()
    for unit in view.units(range(view.size)):
        graph.add_node(unit.id, kind=unit.kind.value, label=unit.title or unit.text[:80])
    for edge in view.edges():
        if edge.target not in graph:
            names = edge.metadata.get("names") or [""]
            graph.add_node(edge.target, kind="entity", label=names[-1])
        graph.add_edge(edge.source, edge.target, kind=edge.kind, weight=edge.weight)
    return graph
