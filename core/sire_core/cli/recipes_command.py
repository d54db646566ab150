"""`sire recipes`: what there is to choose from."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.output import say, say_json

__all__ = ["recipes"]


def recipes(
    name: Annotated[
        str | None, typer.Argument(metavar="RECIPE", help="Explain every setting of this one.", show_default=False)
    ] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """List the recipes and their settings.

    For each: what it builds, what that costs, how it ranks, and its settings for --set with their defaults. With the
    name of a recipe also what every setting means.
    """
    from sire_core.recipes import REGISTRY, recipe_by_name

    made = [recipe_by_name(found) for found in ([name] if name else sorted(REGISTRY))]
    if as_json:
        say_json([{"name": r.name, "summary": r.summary, "paper": r.paper, "settings": dict(r.config)} for r in made])
        return
    for number, recipe in enumerate(made):
        first, *rest = recipe.describe().splitlines()
        say(("\n" if number else "") + first, "bold")
        for line in rest:
            say(line)
        values = {key: json.dumps(value) for key, value in recipe.config.items()}
        if name:
            for key, value in values.items():
                say(f"  {key}={value}: {recipe.texts.get(key, '')}")
        else:
            say(f"  settings: {', '.join(f'{key}={value}' for key, value in values.items())}")
