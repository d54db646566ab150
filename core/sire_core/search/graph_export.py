"""`to_networkx`: the edges of a pool for people who want to look at them, or to work on with other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sire_core.protocols import View

__all__ = ["to_networkx"]


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
