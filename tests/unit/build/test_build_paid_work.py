"""What a model was paid for is not replaced by accident."""

import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError
from sire_core.testing.doubles import HashEmbedder, ScriptedModel

DOCUMENTS = [
    Document("a", "The Salt Lantern was directed by Petra Quillon.", title="The Salt Lantern"),
    Document("b", "Petra Quillon was born in Varn Harbour.", title="Petra Quillon"),
    Document("c", "Varn Harbour is a village on Corrow.", title="Varn Harbour"),
]


@pytest.fixture
def folder(tmp_path):
    index = Index(tmp_path / "index", recipe="sirerag", embedder=HashEmbedder(), language_model=ScriptedModel())
    index.build(DOCUMENTS)
    return tmp_path / "index"


def contents(folder):
    view = Index(folder, embedder=HashEmbedder()).view()
    return {unit.id for unit in view.units(range(view.size))}


@pytest.mark.parametrize("change", ["add", "update", "delete", "build"])
def test_a_change_without_the_model_is_refused_and_loses_nothing(folder, change):
    before = contents(folder)
    index = Index(folder, embedder=HashEmbedder())
    given = ["a"] if change == "delete" else [Document("d", "Corrow is an island.", title="Corrow")]
    with pytest.raises(ConfigurationError, match="Give the same language_model"):
        getattr(index, change)(given)
    assert contents(folder) == before


def test_a_second_recipe_without_the_model_stands_beside(folder):
    before = contents(folder)
    Index(folder, recipe="raptor", embedder=HashEmbedder()).build(DOCUMENTS)
    view = Index(folder, recipe="sirerag", embedder=HashEmbedder()).view()
    assert {unit.id for unit in view.units(range(view.size))} == before
