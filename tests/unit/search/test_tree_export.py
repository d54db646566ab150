import json

import networkx as nx

from sire_core import Index
from sire_core.data import demo_documents
from sire_core.explore.export import trees_to_json, trees_to_networkx
from sire_core.recipes import flat, smart
from sire_core.testing.doubles import HashEmbedder


def walk(nodes):
    for node in nodes:
        yield node
        yield from walk(node["children"])


def test_trees_survive_json_and_graphml_and_agree(tmp_path):
    with Index(recipe=smart(), embedder=HashEmbedder()) as index:
        index.build(list(demo_documents()))
        view = index.view()
        trees, graph = json.loads(json.dumps(trees_to_json(view))), trees_to_networkx(view)
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
    assert nx.is_directed_acyclic_graph(again)
    below = {node["id"]: {child["id"] for child in node["children"]} | set(node["entities"]) for node in nodes}
    assert {name: set(again.successors(name)) for name in below} == below


def test_a_pool_without_reports_has_no_trees():
    with Index(recipe=flat(), embedder=HashEmbedder()) as index:
        index.build(list(demo_documents())[:3])
        assert trees_to_json(index.view()) == []
        assert not trees_to_networkx(index.view())
