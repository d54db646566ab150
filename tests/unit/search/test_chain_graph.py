"""The graph that queries walk on: from the organizer's note, or from its edges."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core import Index
from sire_core.algorithms.packed_words import join_words, split_words
from sire_core.corpus.media import split_media
from sire_core.corpus.readers import read_documents
from sire_core.data import demo_documents
from sire_core.errors import SnapshotExpiredError
from sire_core.recipes import flat, iier
from sire_core.search.chains.graph import ChainGraph
from sire_core.search.chains.keywords import PassageKeywords
from sire_core.testing.damage import forget_notes
from sire_core.testing.hash_embedder import HashEmbedder


@given(st.lists(st.text(st.characters(exclude_characters="\n")), max_size=8))
def test_words_come_back(words):
    assert split_words(join_words(words), len(words)) == words


def shown(view):
    graph = ChainGraph.of(view)
    words = PassageKeywords.of(view, graph.positions)
    arrays = {name: getattr(graph, name) for name in ChainGraph.__slots__}
    arrays = {name: found.tolist() if isinstance(found, np.ndarray) else found for name, found in arrays.items()}
    return arrays, words.titled("The Salt Lantern").tolist(), words.with_phrase("was born").tolist()


def test_a_graph_read_from_the_note_is_that_of_the_edges(tmp_path):
    with Index(tmp_path / "i", recipe=iier(), embedder=HashEmbedder()) as index:
        index.build(demo_documents())
        view = index.view()
        assert view.note("graph-1")
        noted = shown(view)
        assert all(noted)
        assert "edges" not in view.made
    assert forget_notes(tmp_path / "i")
    with Index(tmp_path / "i", recipe=iier(), embedder=HashEmbedder()) as index:
        view = index.view()
        assert view.note("graph-1") is None
        assert shown(view) == noted
        assert "edges" in view.made


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


def test_a_pool_without_a_graph_has_nodes_only():
    with Index(recipe=flat(), embedder=HashEmbedder()) as index:
        index.build(demo_documents())
        graph = ChainGraph.of(index.view())
        assert graph.size == index.view().size > 0
        assert not len(graph.neighbors)
        assert not graph.keys
        assert graph.edge(0, 1).tolist() == [0.0, 0.0, 0.0]


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
