"""RAPTOR's tree traversal: from the top layer down, the best nodes of each."""

import asyncio

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError
from sire_core.recipes import raptor
from sire_core.testing.contracts import broken_promises, check_filters, check_order
from sire_core.testing.doubles import HashEmbedder

QUESTION = "Who designed Corrow Lighthouse?"


def build(**settings):
    index = Index(recipe=raptor(max_cluster_tokens=120, stop_rule="none", **settings), embedder=HashEmbedder())
    index.build([Document(d.id, d.text, d.title, {"n": number}) for number, d in enumerate(demo_documents())])
    return index


def by_hand(view, question, kept_per_layer):
    """The walk in plain Python over the edges of the pool."""
    cosines = view.matrix @ question
    places = view.places()
    children = {}
    for edge in view.edges():
        children.setdefault(places[edge.source], []).append(places[edge.target])
    layer = {}

    def layer_of(node):
        if node not in layer:
            layer[node] = 1 + max(map(layer_of, children[node])) if node in children else 0
        return layer[node]

    nodes = list(range(view.size))
    below = {child for found in children.values() for child in found}
    kept = set()
    for number in range(max(map(layer_of, nodes)), -1, -1):
        reached = {child for node in kept for child in children.get(node, ())}
        frontier = [node for node in nodes if layer_of(node) == number and (node in reached or node not in below)]
        kept |= set(sorted(frontier, key=lambda node: (-cosines[node], node))[:kept_per_layer])
    return sorted(kept, key=lambda node: (-cosines[node], node))


@pytest.mark.parametrize("kept", [1, 3])
def test_the_context_is_the_best_of_each_layer(kept):
    with build(traversal=kept) as index:
        view = index.view()
        assert {unit.level for unit in view.units(range(view.size))} >= {0, 1}
        question = asyncio.run(HashEmbedder().embed([QUESTION], "query"))[0]
        wanted = by_hand(view, question, kept)
        hits = index.search(QUESTION, len(wanted), returns="units")
        assert [hit.unit.id for hit in hits] == [view.ids[node].decode() for node in wanted]
        assert hits[0].path[0].step == "traversal"
        assert {0, 1} <= {hit.unit.level for hit in hits}
        others = index.search(QUESTION, len(wanted) + 1, returns="units")[len(wanted) :]
        assert others[0].path[0].note.startswith("not on the way down")


@pytest.mark.parametrize("check", [check_order, check_filters], ids=lambda check: check.__name__)
def test_it_keeps_the_promises_of_a_ranker(check):
    assert broken_promises(lambda: raptor(traversal=2), [check]) == {}


def test_passages_are_reached_under_a_filter_that_hides_summaries_of_several():
    with build(traversal=2) as index:
        hits = index.search(QUESTION, 9, filter="n=1", returns="units")
        assert len({hit.doc_ids for hit in hits}) == 1
        (passage,) = (hit for hit in hits if hit.unit.kind.value == "chunk")
        assert passage.path[0].note.startswith("kept in layer 0")


def test_settings_of_the_other_rankers_are_refused():
    with pytest.raises(ConfigurationError, match="traversal"):
        raptor(traversal=2, ranker="bm25")
    with pytest.raises(ConfigurationError, match="traversal"):
        raptor(traversal=0)
