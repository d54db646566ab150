"""Trees and graphs: traversal and export."""

import json

import networkx as nx
import pytest

from sire_core import Document
from sire_core.data import demo_documents
from sire_core.explore.export import to_networkx, trees_to_json
from sire_core.recipes import flat, pagerank, raptor, smart
from sire_core.testing.doubles import HashEmbedder
from support.indexes import indexed


def walk(nodes):
    for node in nodes:
        yield node
        yield from walk(node["children"])


def test_trees_survive_json_and_graphml_and_agree(tmp_path):
    with indexed(list(demo_documents()), recipe=smart(), embedder=HashEmbedder()) as index:
        view = index.view()
        trees, graph = json.loads(json.dumps(trees_to_json(view))), to_networkx(view)
        reports = index.stats()["kinds"]["report"]
    assert [tree["tree"] for tree in trees] == ["perspective 1", "perspective 2", "perspective 3"]
    nodes = [node for tree in trees for node in walk(tree["roots"])]
    assert len(nodes) == reports == len({node["id"] for node in nodes})
    assert any(node["children"] for node in nodes)
    assert all(child["level"] < node["level"] for node in nodes for child in node["children"])
    assert "Corrow" in {name for node in nodes for name in node["entities"].values()}
    nx.write_graphml(graph, tmp_path / "trees.xml")
    again = nx.read_graphml(tmp_path / "trees.xml")
    assert dict(again.nodes(data=True)) == dict(graph.nodes(data=True))
    below = {node["id"]: {child["id"] for child in node["children"]} | set(node["entities"]) for node in nodes}
    down = {(source, target) for source, target, kind in again.edges(data="kind") if kind in ("child", "mentions")}
    assert {name: {target for source, target in down if source == name} for name in below} == below


def test_a_pool_without_reports_has_no_trees():
    with indexed(list(demo_documents())[:3], recipe=flat(), embedder=HashEmbedder()) as index:
        assert trees_to_json(index.view()) == []


QUESTION = "Who designed Corrow Lighthouse?"


def test_passages_are_reached_under_a_filter_that_hides_summaries_of_several():
    documents = [Document(d.id, d.text, d.title, {"n": number}) for number, d in enumerate(demo_documents())]
    recipe = raptor(max_cluster_tokens=120, stop_rule="none", traversal=2)
    with indexed(documents, recipe=recipe, embedder=HashEmbedder()) as index:
        hits = index.search(QUESTION, 9, filter="n=1", returns="units")
        first, *_, last = index.search(QUESTION, 99, returns="units")
    assert len({hit.doc_ids for hit in hits}) == 1
    (passage,) = (hit for hit in hits if hit.unit.kind.value == "chunk")
    assert passage.path[0].note.startswith("kept in layer 0")
    assert first.path[0].step == "traversal"
    assert last.path[0].note.startswith("not on the way down")


CORPUS = [
    Document("vale", "Mira Vale painted Anna Vale in Port Amber.", "Mira Vale"),
    Document("anna", "Anna Vale was a painter.", "Anna Vale (painter)"),
]


@pytest.mark.parametrize("units", [False, True])
def test_the_graph_survives_graphml(tmp_path, units):
    with indexed(CORPUS, recipe=pagerank(index_units=units), embedder=HashEmbedder()) as index:
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
