from sire_core import Document, Index
from sire_core.recipes import msrag
from sire_core.testing.doubles import HashEmbedder

CORPUS = [
    Document("film", "The Long Tide is a film directed by Mira Vale.", "The Long Tide"),
    Document("vale", "Mira Vale married Anna Vale. Mira Vale painted Port Amber.", "Mira Vale"),
    Document("anna", "Anna Vale was a painter.", "Anna Vale"),
    Document("port", "Port Amber is a harbor.", "Port Amber"),
    *(Document(f"o{i}", f"Bridge number {i} spans the river Elm near mill {i}.", f"Bridge {i}") for i in range(20)),
]


def built(**settings):
    index = Index(recipe=msrag(**settings), embedder=HashEmbedder())
    index.build(CORPUS)
    return index


def documents(index, k=4):
    return [hit.doc_ids[0] for hit in index.search("Who directed The Long Tide?", k)]


def test_neighbours_bring_passages_that_the_question_does_not_resemble():
    alone = {"entities": 1, "relations": 0, "chunks": 0, "vote": "count"}
    assert documents(built(**alone, entity_hops=0))[0] == "film"
    reached = documents(built(**alone, entity_hops=3, hop_decay=0.5))
    assert set(reached[:3]) >= {"film", "vale"}


def test_paths_list_the_votes():
    hit = built().search("Who directed The Long Tide?", 1)[0]
    steps = [step.step for step in hit.path]
    assert "vote:entity" in steps
    assert "vote:chunk" in steps
    assert steps[-1] == "vector:chunk"
    assert any("'The Long Tide'" in step.note for step in hit.path)


def test_without_graph_recall_the_order_is_that_of_the_passages_cosines():
    index = built(entities=0, relations=0)
    flat = Index(recipe="flat", embedder=HashEmbedder())
    flat.build(CORPUS)
    question = "Who directed The Long Tide?"
    expected = [hit.doc_ids for hit in flat.search(question, 10) if hit.score > 0]
    assert [hit.doc_ids for hit in index.search(question, len(expected))] == expected


def test_priority_puts_passages_of_entities_first():
    index = built(fusion="priority", entities=1, relations=0, chunks=3, entity_hops=0)
    assert documents(index, 1) == ["film"]
