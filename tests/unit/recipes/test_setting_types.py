"""`setting_types.py` declares what the recipes declare; run this file as a script to write it anew."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sire_core.recipes
from sire_core import Index
from sire_core.recipes import REGISTRY, recipe_by_name
from sire_core.recipes.published import presets_of
from sire_core.settings import ResolvedSettings

OURS = [name for name, factory in sorted(REGISTRY.items()) if factory.__module__.startswith("sire_core.")]
FILE = Path(sire_core.recipes.__file__).with_name("setting_types.py")
HEAD = '''"""Settings of all recipes as typed keywords; written by `tests/unit/recipes/test_setting_types.py`."""

from __future__ import annotations

from typing import Literal, TypedDict

from sire_core.protocols import Ranker
'''
ALSO = {"base": " | Ranker", "rerank": ""}
"""Types of values beside the choices of a field; `rerank` takes the name of a cross-encoder, which is a `str`."""


def declared(name: str) -> dict[str, str]:
    """The type of each setting of a recipe, as source."""
    parts: list[tuple] = []
    original = ResolvedSettings.__init__

    def record(self, given, *components):
        parts.extend(components)
        original(self, given, *components)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ResolvedSettings, "__init__", record)
        config = recipe_by_name(name).config
    types = {key: _source(field) for part in parts for key, field in part.fields().items()}
    types["preset"] = f"Literal[{', '.join(repr(preset) for preset in presets_of(name))}]".replace("'", '"')
    return {key: types[key] for key in config}


def _source(field) -> str:
    choices = field.metadata.get("choices")
    also = ALSO.get(field.name)
    if choices and also != "":
        literal = "Literal[" + ", ".join(f'"{choice}"' for choice in choices) + "]"
        return str(field.type).replace("str", literal) + (also or "")
    return re.sub(r"tuple\[(\w+), \.\.\.\]", r"tuple[\1, ...] | list[\1]", str(field.type))


def _class(head: str, docstring: str, types: dict[str, str]) -> str:
    lines = [f"    {key}: {kind}" for key, kind in sorted(types.items())]
    return "\n".join(["", "", f"class {head}, total=False):", f'    """{docstring}"""', "", *lines, ""])


def source() -> str:
    """The file with the settings of all recipes."""
    kinds: dict[str, list[str]] = {}
    for name in OURS:
        for key, kind in declared(name).items():
            kinds.setdefault(key, []).append(kind)
    types = {key: _union(of_recipes) for key, of_recipes in kinds.items()}
    of_index = {key: types.pop(key) for key in types.keys() & inspect.signature(Index).parameters.keys()}
    beside = "Settings of all recipes but those that are called like arguments of `Index`."
    body = _class("RecipeSettings(TypedDict", beside, types)
    return formatted(HEAD + body + _class("AnyRecipeSettings(RecipeSettings", "Settings of all recipes.", of_index))


def _union(kinds: list[str]) -> str:
    """Types as one, with one `Literal` that has the choices of all."""
    plain = dict.fromkeys(
        kind for kinds_of in kinds for kind in re.sub(r"Literal\[.*?\]", "", kinds_of).split(" | ") if kind
    )
    choices = dict.fromkeys(choice for kind in kinds for choice in re.findall(r'"[^"]*"', kind))
    literal = [f"Literal[{', '.join(choices)}]"] if choices else []
    return " | ".join([*literal, *sorted(plain, key=lambda kind: kind == "None")])


def formatted(text: str) -> str:
    """`ruff format`, for lines that are too long."""
    command = [str(Path(sys.executable).with_name("ruff")), "format", "--line-length=120", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def test_typed_keywords_are_those_of_the_recipes():
    assert FILE.read_text() == source(), f"Run python {__file__}."


if __name__ == "__main__":
    FILE.write_text(source())
