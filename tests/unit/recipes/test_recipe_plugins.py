"""Recipes by name: plugins and presets."""

import importlib
import json
import shutil
import sys
from functools import partial

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError
from sire_core.recipes import REGISTRY, published, recipe_by_name, recipe_names, recipe_of
from sire_core.recipes.published import ablations_of, presets_of, recipes_with_ablations
from sire_core.recipes.registry import factory_of, recipe_with, split_settings
from support import plugins
from support.command import run

SOURCE = """
from sire_core.papers.trees.similarity_tree import SimilarityTree
from sire_core.papers.trees.tree import TreeSettings
from sire_core.protocols import Recipe
from sire_core.search.vectors.flat import Flat

def lonely(depth=1):
    tree = SimilarityTree(TreeSettings(depth=depth))
    return Recipe("lonely", "one level of summaries", "", (tree,), ranker=Flat(), config={"depth": depth},
                  texts={"depth": "Levels."})

def flat():
    raise AssertionError("the recipe of this name is sire's own")

def fails():
    return 1 / 0

def misnamed():
    return Recipe("other", "", "", ranker=Flat())
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Lays a distribution onto `sys.path`, as an installer does: a module, and its metadata."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    before = set(REGISTRY)

    def put(name, source, **recipes):
        lines = [f"{recipe} = {name}:{function}" for recipe, function in recipes.items()]
        plugins.install(site, name, source, "sire_core.recipes", lines)

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


@pytest.mark.parametrize("name", recipes_with_ablations())
def test_every_row_is_a_recipe_with_settings_of_its_own(name):
    rows = ablations_of(name)
    assert len({row.label for row in rows}) == len(rows)
    trained = [row for row in rows if row.needs == "checkpoint"]
    for row in trained:
        with pytest.raises(ConfigurationError, match="sire train-chains DATASET --to FILE"):
            recipe_by_name(row.recipe, **row.settings)
    rest = [row for row in rows if row not in trained]
    made = [recipe_by_name(row.recipe, **row.settings) for row in rest]
    own = {
        repr((recipe.name, {**recipe.config, "preset": ""}, row.answer)) for recipe, row in zip(made, rest, strict=True)
    }
    assert len(own) == len(rest)


@pytest.mark.parametrize("name", recipes_with_ablations())
def test_printed_averages_are_averages(name):
    for row in ablations_of(name):
        sets = [row.paper[name] for name in ("musique", "2wiki", "hotpotqa") if "average" in row.paper]
        for metric, average in row.paper.get("average", {}).items():
            values = [figures[metric] for figures in sets]
            printed = 0.051 if all(isinstance(value, int) for value in values) else 0.011  # in whole points
            assert sum(values) / len(values) == pytest.approx(average, abs=printed)


def test_figures_are_found_by_the_name_of_the_data_set():
    row = next(row for row in ablations_of("sirerag") if row.label.startswith("E:"))
    assert row.figures("2WikiMultiHopQA-dev") == ("2wiki", {"EM": 53.5, "F1": 59.93})
    assert row.figures("hotpot_dev_distractor") == ("hotpotqa", {"EM": 56.6, "F1": 71.84})
    assert row.figures("my own set") == ("average", {"EM": 48.3, "F1": 59.7})
    hierarchy = next(row for row in ablations_of("sirerag") if row.table == "T2")
    assert hierarchy.figures("QuALITY") == ("quality", {"accuracy": 78.76})
    assert hierarchy.figures("musique") == ("", {})


def test_recipes_without_a_paper_have_none():
    with pytest.raises(ConfigurationError, match="sirerag"):
        ablations_of("flat")


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Write the `published.toml` of a package with the recipe `toy`."""
    package = tmp_path / "toy_recipe"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(published, "_PACKAGES", {"toy": "toy_recipe"})
    monkeypatch.setattr(published, "PUBLISHED", {})
    monkeypatch.delitem(sys.modules, "toy_recipe", raising=False)
    return (package / "published.toml").write_text


def test_rows_come_from_the_file_of_a_package(toy):
    toy(
        'context = 7\n[presets.published]\nsplit_tokens = "null"\nskip_types = []\n\n'
        '[[rows]]\ntable = "T1"\nlabel = "toy"\npreset = "published"\n'
        'settings = { variant = "B" }\npaper.musique = { EM = 39.1 }\n'
    )
    (row,) = ablations_of("toy")
    assert (row.recipe, row.figures("musique")) == ("toy", ("musique", {"EM": 39.1}))
    assert row.settings == {"preset": "published", "variant": "B"}
    assert presets_of("toy") == {"ours": {}, "published": {"split_tokens": None, "skip_types": ()}}
    assert published.published_of("toy").context == 7


def test_a_row_of_a_preset_that_is_not_there_is_an_error(toy):
    toy('[[rows]]\ntable = "T1"\npreset = "other"\n')
    with pytest.raises(ConfigurationError, match=r"published.toml of toy_recipe .*other"):
        ablations_of("toy")


def test_a_preset_is_settings_by_name_and_others_change_it():
    made = recipe_by_name("msrag", preset="published", hop_decay=0.5)
    assert made.config["preset"] == "published"
    assert (made.config["vote"], made.config["hop_decay"]) == ("count", 0.5)
    assert recipe_by_name("msrag", **made.config) == made
    assert recipe_by_name("msrag", preset="ours") == recipe_by_name("msrag")
    # The published fusion by votes has no effect in the row without a rerank: what the preset says of it is left out.
    assert recipe_by_name("indexrag", preset="published", stage1="chunks").config["split_tokens"] == 1024


def test_a_preset_replaces_that_of_an_index_and_single_settings_change_it():
    built = recipe_by_name("msrag", preset="published").config
    assert recipe_with("msrag", {"preset": "ours"}, built) == recipe_by_name("msrag")
    changed = recipe_with("msrag", {"hop_decay": 0.5}, built).config
    assert (changed["preset"], changed["vote"], changed["hop_decay"]) == ("published", "count", 0.5)


def test_a_preset_goes_to_the_recipes_that_have_it():
    split = split_settings(["sire", "msrag"], {"preset": "published", "hop_decay": 0.5})
    assert split == {"sire": {}, "msrag": {"preset": "published", "hop_decay": 0.5}}
    with pytest.raises(ConfigurationError, match="sire has no preset 'published'; it has ours"):
        split_settings(["sire", "flat"], {"preset": "published"})
    with pytest.raises(
        ConfigurationError, match="msrag has no preset 'publshed'; it has ours, graph, published, workable"
    ):
        recipe_by_name("msrag", preset="publshed")
