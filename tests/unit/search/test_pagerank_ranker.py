import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spelled_lists import spelled_names

from sire_core import Document, Index
from sire_core.knowledge.entity_graph import EntityGraph
from sire_core.recipes import pagerank
from sire_core.testing.doubles import HashEmbedder

CHAIN = [
    Document("film", "The Long Tide is a film directed by Mira Vale.", "The Long Tide (film)", {"tenant": "a"}),
    Document("vale", "Mira Vale was a director, the daughter of Anna Vale.", "Mira Vale", {"tenant": "b"}),
    Document("anna", "Anna Vale was a painter in Port Amber.", "Anna Vale", {"tenant": "a"}),
    *(
        Document(f"o{i}", f"Bridge number {i} spans the river Elm near mill {i}.", f"Bridge {i}", {"tenant": "a"})
        for i in range(30)
    ),
]


@pytest.fixture(scope="module")
def index():
    with Index(recipe=pagerank(), embedder=HashEmbedder()) as made:
        made.build(CHAIN)
        yield made


def test_the_walk_reaches_what_shares_no_word_with_the_question(index):
    hits = index.search("Who made the long tide?", 3)
    assert hits[0].doc_ids == ("film",)
    assert {hit.doc_ids[0] for hit in hits} == {"film", "vale", "anna"}


def test_paths_name_the_entities_and_the_steps(index):
    hits = {hit.doc_ids[0]: hit for hit in index.search("Who made The Long Tide?", 3)}
    film, vale = hits["film"], hits["vale"]
    assert [step.step for step in film.path] == ["question", "entity", "vector:chunk"]
    assert film.path[0].note == "the question names The Long Tide (film)"
    assert [step.step for step in vale.path] == ["question", "passage", "entity", "vector:chunk"]
    assert vale.path[1].ids[0] == film.unit.id
    assert vale.path[2].note == "the passage names Mira Vale"


def test_filters_restrict_the_graph_that_is_walked(index):
    hits = index.search("Who made The Long Tide?", 40, filter={"tenant": "a"})
    alone = Index(recipe=pagerank(), embedder=HashEmbedder())
    alone.build([document for document in CHAIN if document.metadata["tenant"] == "a"])
    expected = alone.search("Who made The Long Tide?", 40)
    assert [hit.doc_ids for hit in hits] == [hit.doc_ids for hit in expected]
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], abs=1e-6)
    assert "Mira Vale was" not in repr(hits)


def test_questions_without_a_known_name_start_at_similar_passages(index):
    hits = index.search("bridge over a river near a mill", 5)
    assert all(hit.doc_ids[0].startswith("o") for hit in hits)


def test_entities_and_relations_come_behind_all_passages():
    with Index(recipe=pagerank(index_units=True), embedder=HashEmbedder()) as index:
        index.build(CHAIN)
        kinds = [hit.unit.kind.value for hit in index.search("Who made The Long Tide?", 1000, returns="units")]
    assert kinds[: len(CHAIN)] == ["chunk"] * len(CHAIN)
    assert {"entity", "relation"} <= set(kinds[len(CHAIN) :])


@settings(max_examples=25, deadline=None)
@given(
    mentions=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=20, unique=True),
    allowed=st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_a_filtered_walk_has_no_edge_at_a_forbidden_passage(mentions, allowed):
    passages = np.array([p for p, _ in mentions], dtype=np.int64)
    entities = np.array([e for _, e in mentions], dtype=np.int64)
    titles = entities == passages
    graph = EntityGraph(
        np.arange(5), passages, entities, titles, spelled_names([()] * len(mentions), titles), list("abcdef")
    )
    walk = graph.walk(5.0, 1.0, np.array(allowed))
    for passage in range(5):
        targets, probabilities = walk.graph.neighbors(passage)
        assert targets.tolist() == sorted(5 + e for p, e in mentions if p == passage and allowed[p])
        assert len(targets) == 0 or probabilities.sum() == pytest.approx(1)
    for entity in range(6):
        targets, _ = walk.graph.neighbors(5 + entity)
        assert targets.tolist() == sorted(p for p, e in mentions if e == entity and allowed[p])
        assert walk.mentions[entity] == len(targets)
