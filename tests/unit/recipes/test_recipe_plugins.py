"""Recipes of other packages: installed distributions with an entry point, found by name and loaded when named."""

import importlib
import json
import shutil
import sys
from functools import partial

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError
from sire_core.recipes import REGISTRY, recipe_by_name, recipe_names, recipe_of
from sire_core.recipes.registry import factory_of
from support.command import run

SOURCE = """
from sire_core.trees.similarity_tree import SimilarityTree
from sire_core.trees.tree import TreeSettings
from sire_core.protocols import Recipe
from sire_core.search.vectors.flat import Flat

def lonely(depth=1):
    tree = SimilarityTree(TreeSettings(depth=depth))
    return Recipe("lonely", "one level of summaries", "", (tree,), Flat(), config={"depth": depth},
                  texts={"depth": "Levels."})

def flat():
    raise AssertionError("the recipe of this name is sire's own")

def fails():
    return 1 / 0

def misnamed():
    return Recipe("other", "", "", (), Flat())
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Lays a distribution onto `sys.path`, as an installer does: a module, and its metadata."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    before = set(REGISTRY)

    def put(name, source, **recipes):
        (site / f"{name}.py").write_text(source)
        about = site / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{recipe} = {name}:{function}" for recipe, function in recipes.items()]
        (about / "entry_points.txt").write_text("\n".join(["[sire_core.recipes]", *lines, ""]))

    yield put
    for name in set(REGISTRY) - before:
        del REGISTRY[name]
    for module in ("theirs", "broken", "second"):
        sys.modules.pop(module, None)


def test_an_installed_recipe_is_indexed_searched_and_listed_by_its_name(install, tmp_path, caplog):
    install("theirs", SOURCE, lonely="lonely")
    assert "lonely" in recipe_names()
    assert "theirs" not in sys.modules  # nothing of it runs before it is asked for
    (tmp_path / "docs").mkdir()
    for document in demo_documents():
        (tmp_path / "docs" / f"{document.id}.md").write_text(f"# {document.title}\n\n{document.text}\n")
    run("index", tmp_path / "docs", "--to", tmp_path / "ix", "-r", "lonely", "--set", "depth=2")
    (found,) = json.loads(run("recipes", "lonely", "--json").stdout)
    assert found["settings"] == {"depth": 1}
    assert "depth=1: Levels." in run("recipes", "lonely").stdout
    assert "one level of summaries" in run("recipes").stdout
    REGISTRY.pop("lonely")  # another process knows of it by its entry point alone
    assert len(json.loads(run("query", tmp_path / "ix", "Who?", "-k", 3, "--json").stdout)) == 3
    with Index(tmp_path / "ix") as index:
        assert index.recipe_name == "lonely"
        index.add([Document("new", "Zora Quill was born in Port Ansel.")])
        assert index.stats()["documents"] == len(list(demo_documents())) + 1
    assert "lonely" in recipe_names()
    assert not caplog.records  # its name is its own, also when it is in use


def test_a_broken_package_breaks_nothing_else_and_is_named(install, tmp_path, caplog):
    install("broken", "raise RuntimeError('built for another version')", lost="lost")
    assert recipe_by_name("flat").name == "flat"
    with pytest.raises(ConfigurationError, match=r"'lost' of broken cannot be loaded \(RuntimeError: built for"):
        recipe_by_name("lost")
    shown = run("recipes")
    assert "lost: left out." in shown.stderr
    assert "flat " in shown.stdout
    assert factory_of("lost") is None
    assert factory_of("lost") is None
    assert [record.message.count("lost") for record in caplog.records] == [1]


def test_a_folder_that_holds_the_recipe_of_a_broken_package_is_searched_by_its_others(install, tmp_path):
    install("theirs", SOURCE, lonely="lonely")
    for recipe in ("lonely", "flat"):
        Index(tmp_path / "ix", recipe=recipe).update(demo_documents())
    REGISTRY.pop("lonely")
    sys.modules.pop("theirs")
    (tmp_path / "site" / "theirs.py").write_text("import nothing_of_this_name")
    assert len(json.loads(run("query", tmp_path / "ix", "Who?", "-r", "flat", "-k", 2, "--json").stdout)) == 2
    add = partial(Index(tmp_path / "ix", recipe="flat").add, [Document("new", "Zora Quill.")])
    cause = r"'lonely', which cannot be made here\. The recipe 'lonely' of theirs cannot be loaded \(ModuleNotFound.*"
    with pytest.raises(ConfigurationError, match=rf"{cause}Index\.drop_recipe\('lonely'\)"):  # never dropped
        add()
    with pytest.raises(ConfigurationError, match=f"{cause}Mend that package"):
        recipe_of(tmp_path / "ix", "lonely")
    shutil.rmtree(tmp_path / "site" / "theirs-1.0.dist-info")
    importlib.invalidate_caches()
    with pytest.raises(
        ConfigurationError, match=r"'lonely', which is not known here.*install the package.*drop_recipe"
    ):
        add()
    with pytest.raises(ConfigurationError, match=r"'lonely', which is not known here.*install the package"):
        recipe_of(tmp_path / "ix", "lonely")


def test_names_that_are_taken_or_wrong(install, caplog):
    install("theirs", SOURCE, flat="flat", misnamed="misnamed", fails="fails", twice="lonely")
    install("second", SOURCE, twice="flat")
    assert recipe_by_name("flat").paper == REGISTRY["flat"]().paper
    assert recipe_names().count("flat") == 1
    assert "theirs offers a recipe 'flat'" in caplog.text
    with pytest.raises(ConfigurationError, match="makes a recipe named 'other'"):
        recipe_by_name("misnamed")
    with pytest.raises(ConfigurationError, match=r"'fails' of theirs cannot be made \(ZeroDivisionError"):
        recipe_by_name("fails")
    with pytest.raises(ConfigurationError, match=r"(theirs and second|second and theirs) offer a recipe 'twice' each"):
        recipe_by_name("twice")
