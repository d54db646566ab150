"""The graph that queries walk on: from the organizer's note, or from its edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core import Index
from sire_core.algorithms.packed_words import join_words, split_words
from sire_core.data import demo_documents
from sire_core.errors import SnapshotExpiredError
from sire_core.recipes import flat, iier
from sire_core.search.chains.graph import ChainGraph
from sire_core.search.chains.keywords import PassageWords
from sire_core.testing.forgetting import forget_notes
from sire_core.testing.hash_embedder import HashEmbedder


@given(st.lists(st.text(st.characters(exclude_characters="\n")), max_size=8))
def test_words_come_back(words):
    assert split_words(join_words(words), len(words)) == words


def shown(view):
    graph = ChainGraph.of(view)
    words = PassageWords.of(view, graph.positions)
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
