"""The recipe that is built when none is named: one, everywhere, and the one that finds both passages."""

import pytest

from sire_core.data import demo_documents
from sire_core.recipes.registry import registered_recipe
from sire_core.storage.manifest import BuiltRecipe
from support.indexes import indexed

QUESTION = "Who was the mother of the captain who commanded the steamship Northern Wren on her last voyage?"

pytestmark = pytest.mark.default_recipe


def test_an_index_builds_sire_and_finds_both_passages_first():
    with indexed(demo_documents()) as index:
        assert index.stats()["recipe"] == "sire"
        hits = index.search(QUESTION, 2)
    assert {hit.unit.title for hit in hits} == {"SS Northern Wren", "Aldous Brack"}


def test_a_setting_of_another_version_in_a_folder_is_named_and_left(caplog):
    built = BuiltRecipe("sire", {"turns": 2, "first": 9}, (), ())
    assert registered_recipe(built).config["first"] == 9
    assert "has no longer the settings {'turns': 2}" in caplog.text


@pytest.mark.parametrize("kind", ["", "the film ", "film ", "the movie ", "the motion picture "])
def test_a_word_before_a_name_does_not_hide_who_is_asked_for(kind):
    """`The Salt Road`, with salt and a lantern in it, and another director may stand between, no more."""
    with indexed(demo_documents(), recipe="sire") as index:
        question = f"Where was the director of {kind}The Salt Lantern born?"
        best = [hit.doc_ids[0] for hit in index.search(question, 4)]
        assert best[0] == "salt-lantern"
        assert "petra-quillon" in best
        shown = index.search(question, 10, filter={"kind": {"ne": "work"}})
        assert "salt-lantern" not in {hit.doc_ids[0] for hit in shown}
