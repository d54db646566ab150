import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError, ModelError
from sire_core.recipes import msrag
from sire_core.testing.hash_embedder import HashEmbedder
from sire_core.testing.scripted_model import ScriptedModel
from sire_core.testing.scripted_server import ScriptedServer

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


def test_a_model_reorders_only_what_it_saw(tmp_path):
    with Index(tmp_path / "i", recipe=msrag(rerank_pool=4), embedder=HashEmbedder()) as index:
        index.build(CORPUS)
        before = documents(index, 24)
    model = ScriptedModel(lambda call: "2#0" if "numbered passages" in call.instructions else "")
    with Index(tmp_path / "i", embedder=HashEmbedder(), language_model=model) as index:
        assert documents(index, 24) == [before[2], before[0], before[1], before[3], *before[4:]]
        hit = index.search("Who directed The Long Tide?", 1)[0]
    assert hit.path[-1].note == "place 1 after the language model looked"
    assert len(model.log) == 2
    assert "[3] " in model.log[0].data
    assert "[4] " not in model.log[0].data


def test_a_rerank_that_fails_leaves_the_votes_order_and_says_so(tmp_path, caplog):
    with Index(tmp_path / "i", recipe=msrag(), embedder=HashEmbedder()) as index:
        index.build(CORPUS)
        before = documents(index, 24)
    model = ScriptedModel([ModelError("the server is down")] * 2)
    with Index(tmp_path / "i", embedder=HashEmbedder(), language_model=model) as index:
        assert documents(index, 24) == before
        hit = index.search("Who directed The Long Tide?", 1)[0]
    assert hit.path[-1].step == "rerank"
    assert "failed, the order stays: the server is down" in hit.path[-1].note
    assert "the server is down" in caplog.text


def test_the_rerank_takes_a_model_of_its_own_and_no_other(tmp_path):
    index_model = ScriptedModel([])
    with ScriptedServer(lambda call: "2#0") as server:
        own = f"small@{server.base_url}"
        recipe = msrag(rerank_pool=4, rerank_model=own)
        with Index(tmp_path / "i", recipe=recipe, embedder=HashEmbedder()) as index:
            index.build(CORPUS)
            plain = documents(index, 4)
        with Index(
            tmp_path / "i", recipe=msrag(rerank="none"), embedder=HashEmbedder(), language_model=index_model
        ) as index:
            before = documents(index, 4)
        assert plain == [before[2], before[0], before[1], before[3]]
        assert len(server.log) == 1
    assert not index_model.log


@pytest.mark.parametrize(
    "settings", [{"vote": "loud"}, {"fusion": "hot"}, {"rerank": "maybe"}, {"rerank_pool": 0}, {"nothing": 1}]
)
def test_settings_that_do_not_exist_are_refused(settings):
    with pytest.raises(ConfigurationError):
        msrag(**settings)
