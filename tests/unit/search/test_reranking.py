"""A model looks again at the first hits: the same for every recipe that has the settings."""

import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError, ModelError
from sire_core.recipes import recipe_by_name
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from support.scripted_server import ScriptedServer

QUESTION = "Who directed The Long Tide?"
CORPUS = [
    Document("film", "The Long Tide is a film directed by Mira Vale.", "The Long Tide"),
    Document("vale", "Mira Vale married Anna Vale. Mira Vale painted Port Amber.", "Mira Vale"),
    Document("anna", "Anna Vale was a painter.", "Anna Vale"),
    Document("port", "Port Amber is a harbor.", "Port Amber"),
    *(Document(f"o{i}", f"Bridge number {i} spans the river Elm near mill {i}.", f"Bridge {i}") for i in range(20)),
]

recipes = pytest.mark.parametrize("recipe", ["msrag", "sire"])


def opened(folder, recipe, model=None, **settings):
    new = not folder.exists()
    index = Index(
        folder,
        recipe=recipe_by_name(recipe, **settings),
        embedder=HashEmbedder(),
        chunker=None,
        language_model=model,
    )
    if new:
        index.build(CORPUS)
    return index


def documents(index, k=24):
    return [hit.doc_ids[0] for hit in index.search(QUESTION, k)]


@recipes
def test_a_model_reorders_only_what_it_saw(tmp_path, recipe):
    with opened(tmp_path / "i", recipe, rerank="none") as index:
        before = documents(index)
    model = ScriptedModel(lambda call: "2#0" if "numbered passages" in call.instructions else "")
    with opened(tmp_path / "i", recipe, model, rerank="model", rerank_pool=4, rerank_named=3) as index:
        assert documents(index) == [before[2], before[0], before[1], before[3], *before[4:]]
        hit = index.search(QUESTION, 1)[0]
    assert hit.path[-1].note == "place 1 after the language model looked"
    assert len(model.log) == 2
    assert "Name the 3 passages" in model.log[0].instructions
    assert [passage["number"] for passage in model.log[0].fields["passages"]] == [0, 1, 2, 3]


@recipes
def test_a_rerank_that_fails_leaves_the_order_and_says_so(tmp_path, caplog, recipe):
    with opened(tmp_path / "i", recipe, rerank="none") as index:
        before = documents(index)
    model = ScriptedModel([ModelError("the server is down")] * 2)
    with opened(tmp_path / "i", recipe, model, rerank="model") as index:
        assert documents(index) == before
        hit = index.search(QUESTION, 1)[0]
    assert hit.path[-1].step == "rerank"
    assert "failed, the order stays: the server is down" in hit.path[-1].note
    assert "the server is down" in caplog.text


@recipes
def test_the_rerank_takes_a_model_of_its_own_and_no_other(tmp_path, recipe):
    index_model = ScriptedModel([])
    with opened(tmp_path / "i", recipe, index_model, rerank="none") as index:
        index_model.log.clear()
        before = documents(index, 4)
        assert not index_model.log
    with ScriptedServer(lambda call: "2#0") as server:
        settings = {"rerank": "model", "rerank_pool": 4, "rerank_model": f"small@{server.base_url}"}
        with opened(tmp_path / "i", recipe, index_model, **settings) as index:
            assert documents(index, 4) == [before[2], before[0], before[1], before[3]]
        assert len(server.log) == 1
    assert not index_model.log


def test_without_a_model_the_paper_s_default_changes_nothing_and_a_choice_is_an_error(tmp_path):
    with opened(tmp_path / "m", "msrag", rerank="none") as index:
        before = documents(index)
    with opened(tmp_path / "m", "msrag") as index:
        assert documents(index) == before
    with (
        opened(tmp_path / "s", "sire", rerank="model") as index,
        pytest.raises(ConfigurationError, match="needs a language model"),
    ):
        index.search(QUESTION, 3)


def test_sire_asks_no_model_unless_told(tmp_path):
    model = ScriptedModel([])
    with Index(tmp_path / "i", recipe="sire", embedder=HashEmbedder()) as index:
        index.build(CORPUS)
    with Index(tmp_path / "i", embedder=HashEmbedder(), language_model=model) as index:
        assert documents(index)
    assert not model.log


@recipes
@pytest.mark.parametrize(
    "settings",
    [
        {"rerank": "maybe"},
        {"rerank_pool": 0},
        {"rerank": "none", "rerank_pool": 7},
        {"rerank": "none", "rerank_named": 3},
        {"rerank": "none", "rerank_model": "m"},
        {"rerank": "model", "cross_encoder": "m"},
        {"rerank": "cross_encoder"},
    ],
)
def test_settings_without_meaning_or_effect_are_refused(recipe, settings):
    with pytest.raises(ConfigurationError):
        recipe_by_name(recipe, **settings)
