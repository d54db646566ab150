"""The table of the papers' elements: every row is checked by a test that exists or a command with options that exist."""

import re
from pathlib import Path

import pytest
import typer

from sire_core.cli.app import app
from sire_core.cli.options import parse_settings
from sire_core.recipes import recipe_by_name

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/papers/elements.md").read_text(encoding="utf-8")
SECTIONS = {
    name.lower(): text for name, text in re.findall(r"^## (\w[\w-]*)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
}
RECIPES = {"sirerag": "sirerag", "indexrag": "indexrag", "ms-rag": "msrag", "iier": "iier", "smart": "smart"}
COMMANDS = typer.main.get_command(app).commands


def rows(section):
    lines = [line for line in SECTIONS[section].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def ticks(cell):
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("section", RECIPES)
def test_every_element_has_a_test_or_a_command(section):
    assert len(rows(section)) > 5
    for element, _, reach, whose, check in rows(section):
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


@pytest.mark.parametrize("section", RECIPES)
def test_settings_of_the_elements_are_settings_of_the_recipes(section):
    for element, _, reach, *_ in rows(section):
        for found in ticks(reach):
            if re.match(r"[a-z_]+=", found):
                settings = parse_settings(found.split())
                assert recipe_by_name(RECIPES[section], **settings).config.items() >= settings.items(), element
