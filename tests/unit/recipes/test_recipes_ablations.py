"""Rows of papers, and the figures that they print."""

import pytest

from sire_core.errors import ConfigurationError
from sire_core.recipes import ablations
from sire_core.recipes.ablations import ablations_of, recipes_with_ablations
from sire_core.recipes.registry import recipe_by_name


@pytest.mark.parametrize("name", recipes_with_ablations())
def test_every_row_is_a_recipe_with_settings_of_its_own(name):
    rows = ablations_of(name)
    assert len({row.label for row in rows}) == len(rows)
    made = [recipe_by_name(row.recipe, **row.settings) for row in rows]
    own = [repr((recipe.name, recipe.config, row.answer)) for recipe, row in zip(made, rows, strict=True)]
    assert len(set(own)) == len(rows)


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


def test_rows_come_from_the_file_of_a_package(tmp_path, monkeypatch):
    package = tmp_path / "toy_recipe"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "published.toml").write_text(
        '[presets.published]\nsplit_tokens = "null"\nskip_types = []\n\n'
        '[[rows]]\ntable = "T1"\nlabel = "toy"\nrecipe = "sirerag"\npreset = "published"\n'
        'settings = { variant = "B" }\npaper.musique = { EM = 39.1 }\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(ablations, "_PUBLISHED", {"toy": "toy_recipe"})
    monkeypatch.setattr(ablations, "ABLATIONS", {})
    monkeypatch.setattr(ablations, "CONTEXT", {})
    (row,) = ablations_of("toy")
    assert (row.recipe, row.figures("musique")) == ("sirerag", ("musique", {"EM": 39.1}))
    assert row.settings == {"split_tokens": None, "skip_types": (), "variant": "B"}
    (package / "published.toml").write_text('[[rows]]\ntable = "T1"\npreset = "other"\n')
    ablations.ABLATIONS.clear()
    with pytest.raises(ConfigurationError, match=r"published.toml of toy_recipe .*other"):
        ablations_of("toy")
