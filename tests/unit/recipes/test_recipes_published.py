"""Rows of papers, and the figures that they print."""

import sys

import pytest

from sire_core.errors import ConfigurationError
from sire_core.recipes import published
from sire_core.recipes.published import ablations_of, presets_of, recipes_with_ablations
from sire_core.recipes.registry import recipe_by_name, recipe_with, split_settings


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
    with pytest.raises(ConfigurationError, match="msrag has no preset 'publshed'; it has ours, graph, published"):
        recipe_by_name("msrag", preset="publshed")
