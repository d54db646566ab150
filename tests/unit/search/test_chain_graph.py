"""The graph that queries walk on."""

import json
from dataclasses import astuple
from itertools import pairwise

import numpy as np
import pytest

from sire_core import Index
from sire_core.corpus.media import split_media
from sire_core.corpus.readers import read_documents
from sire_core.data import demo_documents
from sire_core.errors import SnapshotExpiredError
from sire_core.recipes import iier
from sire_core.recipes.iier import INTERACTS
from sire_core.recipes.iier.graph import FEATURES, ChainGraph, PassageKeywords
from sire_core.testing.doubles import HashEmbedder


def shown(view):
    graph = ChainGraph.of(view)
    words = PassageKeywords(view, graph.positions)
    arrays = {name: getattr(graph, name) for name in ChainGraph.__slots__}
    arrays |= {name: astuple(arrays[name]) for name in ("keywords", "postings")}
    arrays = {name: json.dumps(found, default=np.ndarray.tolist) for name, found in arrays.items()}
    return arrays, words.titled("The Salt Lantern").tolist(), words.with_phrase("was born").tolist()


def test_the_graph_is_read_as_arrays_and_its_edges_say_the_same(tmp_path):
    with Index(tmp_path / "i", recipe=iier(), embedder=HashEmbedder()) as index:
        index.build(demo_documents())
        view = index.view()
        graph = ChainGraph.of(view)
        assert "edges" not in view.made
        place = {view.ids[position].decode(): node for node, position in enumerate(graph.positions)}
        edges = [edge for edge in view.edges() if edge.kind == INTERACTS]
    assert 2 * len(edges) == len(graph.neighbors) > 0
    for edge in edges:
        found = [float(edge.metadata.get(name, 0)) for name in FEATURES]
        assert graph.edge(place[edge.source], place[edge.target]).tolist() == pytest.approx(found)


def test_a_snapshot_reads_the_graph_of_its_own_generation(tmp_path):
    documents = demo_documents()
    first, second = (Index(tmp_path / "i", recipe=iier(), embedder=HashEmbedder()) for _ in range(2))
    with first as index, second as reader:
        index.build(documents[1:])
        wanted = shown(index.view())
        held, passing = index.snapshot(), reader.view()
        index.add(documents[:1])
        assert shown(held.view) == wanted
        with pytest.raises(SnapshotExpiredError, match="snapshot"):
            shown(passing)


def test_tables_and_images_of_a_page_are_nodes_between_their_neighbours(tmp_path):
    (tmp_path / "boats.html").write_text(
        "<html><body><h1>Boats</h1><p>The boats of the isles are listed here.</p>"
        "<table><tr><th>Name</th><th>Year</th></tr><tr><td>Wren</td><td>1879</td></tr></table>"
        "<p>They carried mail.</p><img src='wren.png' alt='The Wren at the quay'><p>None is left.</p></body></html>"
    )
    found = split_media(read_documents(tmp_path).documents)
    assert (found.tables, found.images) == (1, 1)
    with Index(recipe=iier(use_sim=False, use_kw=False), embedder=HashEmbedder()) as index:
        index.build(found.documents)
        view = index.view()
        graph = ChainGraph.of(view)
        texts = [unit.text for unit in view.units(graph.positions)]
    order = [
        next(i for i, text in enumerate(texts) if part in text) for part in ("listed", "1879", "mail", "quay", "left")
    ]
    assert len(texts) == 5
    joined = {(i, int(j)) for i in range(5) for j in graph.neighbors[graph.indptr[i] : graph.indptr[i + 1]]}
    assert joined == {pair for one, two in pairwise(order) for pair in ((one, two), (two, one))}
    assert (graph.features[:, 0] == 1).all()
