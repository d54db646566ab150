"""`sire recipes`: what there is to choose from."""

from __future__ import annotations

import json

from sire_core.cli import arguments
from sire_core.cli.output import say, say_json

__all__ = ["recipes"]


def recipes(as_json: arguments.AsJson = False) -> None:
    """List the recipes and their settings.

    For each: what it builds, what that costs, how it ranks, and its settings for --set with their defaults.
    """
    from sire_core.recipes import REGISTRY

    made = [REGISTRY[name]() for name in sorted(REGISTRY)]
    if as_json:
        say_json([{"name": r.name, "summary": r.summary, "paper": r.paper, "settings": dict(r.config)} for r in made])
        return
    for number, recipe in enumerate(made):
        first, *rest = recipe.describe().splitlines()
        say(("\n" if number else "") + first, "bold")
        for line in rest:
            say(line)
        settings = ", ".join(f"{key}={json.dumps(value)}" for key, value in recipe.config.items())
        say(f"  settings: {settings}")
