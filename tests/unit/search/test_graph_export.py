import networkx as nx
import pytest

from sire_core import Document, Index
from sire_core.explore.export import to_networkx
from sire_core.recipes import pagerank
from sire_core.testing.doubles import HashEmbedder

CORPUS = [
    Document("vale", "Mira Vale painted Anna Vale in Port Amber.", "Mira Vale"),
    Document("anna", "Anna Vale was a painter.", "Anna Vale (painter)"),
]


@pytest.mark.parametrize("units", [False, True])
def test_the_graph_survives_graphml(tmp_path, units):
    with Index(recipe=pagerank(index_units=units), embedder=HashEmbedder()) as index:
        index.build(CORPUS)
        view = index.view()
        graph = to_networkx(view)
        assert graph.number_of_edges() == len({(edge.source, edge.target) for edge in view.edges()})
    nx.write_graphml(graph, tmp_path / "graph.xml")
    again = nx.read_graphml(tmp_path / "graph.xml")
    assert dict(again.nodes(data=True)) == dict(graph.nodes(data=True))
    named = {data["label"]: node for node, data in again.nodes(data=True) if data["kind"] == "entity"}
    assert {"Mira Vale", "Anna Vale", "Port Amber"} <= set(named)
    naming = {again.nodes[node]["label"] for node in again.predecessors(named["Anna Vale"])}
    assert {"Mira Vale", "Anna Vale (painter)"} <= naming
