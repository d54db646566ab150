"""The names that a question spells out are those that a linker of all names finds, in its order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core import Document, Index
from sire_core.extraction.titles import TitleLinker
from sire_core.knowledge.edge_columns import IdPositions
from sire_core.knowledge.entity_graph import EntityGraph, SpelledNames
from sire_core.recipes import msrag, pagerank
from sire_core.recipes.msrag.graph import Incidence, RelationGraph
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import digest

WORDS = ("The", "Tide", "tide", "Long", "of", "&", "and", "Ann", "II", "Oﬃce", "Office", "Count", "1912", "?")
NAME = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
TITLE = st.one_of(
    NAME, NAME.map("{} (film)".format), NAME.map("{} (1912)".format), NAME.map("{}, Count of Ann".format), st.just(" ")
)
MENTION = st.tuples(st.lists(TITLE, max_size=2, unique=True), st.booleans())


@settings(max_examples=300, deadline=None)
@given(mentions=st.lists(MENTION, max_size=12), question=st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join))
def test_few_names_tell_what_all_names_tell(mentions, question):
    names = [tuple(found) for found, _ in mentions]
    titles = np.array([title for _, title in mentions], dtype=bool)
    named = {}
    for mention in sorted(range(len(names)), key=lambda number: not titles[number]):
        for name in names[mention]:
            named.setdefault(name, []).append(mention)
    expected = {name: named[name] for name in TitleLinker(list(named)).mentions(question)}
    found = SpelledNames.of(names, titles).said(question)
    assert list(found.items()) == list(expected.items())


@given(pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_pairs_as_arrays_are_the_same_incidence(pairs):
    arrays = Incidence.from_arrays(*np.array(pairs, dtype=np.int64).reshape(-1, 2).T, 10)
    relations_of = {e: sorted({r for r, other in pairs if other == e}) for _, e in pairs}
    entities_of = {r: sorted({e for other, e in pairs if other == r}) for r, _ in pairs}
    assert dict(arrays.relations_of) == relations_of
    assert dict(arrays.entities_of) == entities_of
    assert len(arrays.entities_of) == len(entities_of)
    for number in range(10):
        assert arrays.relations_of.get(number, ()) == relations_of.get(number, ())


def test_ids_are_found_where_they_are_and_nowhere_else():
    ids = np.array([digest(str(number)) for number in range(50)], dtype="S24")
    places = IdPositions(ids)
    assert places.find(ids[::-1]).tolist() == list(range(49, -1, -1))
    assert places.find(np.array([digest("other")], dtype="S24")).tolist() == [-1]
    assert IdPositions(ids[:0]).find(ids[:2]).tolist() == [-1, -1]


CORPUS = [
    Document("film", "The Long Tide is a film directed by Mira Vale.", "The Long Tide (film)"),
    Document("book", "The Long Tide is a novel by Mira Vale and Anna Vale.", "The Long Tide (novel)"),
    Document("vale", "Mira Vale was a director. Her mother was Anna Vale.", "Mira Vale"),
    Document("anna", "Anna Vale was a painter in Port Amber.", "Anna Vale"),
]


@pytest.mark.parametrize("recipe", [pagerank(), pagerank(index_units=True), msrag()], ids=["edges", "units", "msrag"])
def test_the_graph_of_a_pool_is_what_its_edges_say(recipe):
    with Index(recipe=recipe, embedder=HashEmbedder()) as index:
        index.build(CORPUS)
        view = index.view()
        graph, relations = EntityGraph.of(view), RelationGraph.of(view)
        edges = [edge for edge in view.edges() if edge.kind == "mentions"]
        passage = [view.ids[place].decode() for place in graph.chunk_positions.tolist()]
        relates = {(edge.source, edge.target) for edge in view.edges() if edge.kind == "relates"}
    found = {
        (passage[p], graph.entity_ids[e]): (graph.names.names(number), bool(graph.titles[number]))
        for number, (p, e) in enumerate(zip(graph.passages.tolist(), graph.entities.tolist(), strict=True))
    }
    expected = {(e.source, e.target): (e.metadata["names"], bool(e.metadata.get("title"))) for e in edges}
    assert found == expected
    assert list(graph.passages) == sorted(graph.passages)
    named = graph.link("Is The Long Tide by Anna Vale?")
    assert list(named.values())[-1] == "Anna Vale"
    ids = [found.decode() for found in view.ids.tolist()]
    joined = {(ids[r], ids[e]) for r, ends in relations.incidence.entities_of.items() for e in ends}
    assert joined == {(relation, end) for relation, end in relates if end in set(ids)}
