"""The table of the papers' elements: every row is checked by a test that exists or a command with options that exist."""

import re
from pathlib import Path

import pytest
import typer

from sire_core.cli.app import app
from sire_core.cli.options import parse_settings
from sire_core.errors import ConfigurationError
from sire_core.recipes import recipe_by_name
from sire_core.recipes.published import presets_of, published_of, recipes_with_ablations

ROOT = Path(__file__).resolve().parents[2]
RECIPES = [name for name in recipes_with_ablations() if published_of(name).elements]
COMMANDS = typer.main.get_command(app).commands


def ticks(cell):
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_element_has_a_test_or_a_command(recipe):
    assert len(published_of(recipe).elements) > 5
    for element, _, reach, whose, check in published_of(recipe).elements:
        assert whose, element
        assert ticks(check), element
        for found in ticks(check):
            if found.startswith("sire "):
                continue
            file, _, name = found.partition("::")
            text = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert not name or re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), found
        for command in [found for found in ticks(reach) + ticks(check) if found.startswith("sire ")]:
            words = command.split()
            known = {option for parameter in COMMANDS[words[1]].params for option in parameter.opts}
            assert {word for word in words if word.startswith("-")} <= known, command


@pytest.mark.parametrize("recipe", RECIPES)
def test_settings_of_the_elements_are_settings_of_the_recipes(recipe):
    for element, _, reach, *_ in published_of(recipe).elements:
        for found in ticks(reach):
            if re.match(r"[a-z_]+=", found):
                settings = parse_settings(found.split())
                if settings.get("scorer") == "neural":
                    with pytest.raises(ConfigurationError, match="sire train-chains DATASET --to FILE"):
                        recipe_by_name(recipe, **settings)
                    continue
                assert recipe_by_name(recipe, **settings).config.items() >= settings.items(), element


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_setting_of_the_published_preset_is_an_element(recipe):
    named = set()
    for _, _, reach, *_ in published_of(recipe).elements:
        for found in ticks(reach):
            if re.match(r"[a-z_]+=", found):
                named |= set(parse_settings(found.split()).items())
    assert set(presets_of(recipe)["published"].items()) <= named


def test_the_page_has_the_table_of_every_paper():
    page = (ROOT / "docs/papers/elements.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- elements of (\w+) -->", page)) == RECIPES
    names: dict = {}
    exec((ROOT / "docs/settings_tables.py").read_text(encoding="utf-8"), names)
    text = names["on_page_markdown"](page)
    assert all(f"| {row[0]} |" in text for recipe in RECIPES for row in published_of(recipe).elements)
