"""`sire recipes`: what there is to choose from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.output import note, say, say_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sire_core.protocols import Recipe

__all__ = ["recipes"]

_MODEL = "with --llm"


def recipes(
    name: Annotated[
        str | None, typer.Argument(metavar="RECIPE", help="Explain every setting of this recipe.", show_default=False)
    ] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """List the recipes. Shows what each finds, and what it uses a model for.

    With RECIPE, explain one recipe: what it builds, what that costs, how it ranks, and its settings for --set with
    their defaults and meaning.
    """
    from sire_core.recipes import recipe_by_name

    made = [recipe_by_name(name)] if name else list(_all())
    if as_json:
        say_json([{"name": r.name, "summary": r.summary, "paper": r.paper, "settings": dict(r.config)} for r in made])
    elif name:
        _explain(made[0])
    else:
        _list(made)


def _all() -> Iterator[Recipe]:
    """Every recipe; one of another package that cannot be made is named on stderr."""
    from sire_core.recipes import recipe_by_name, recipe_names
    from sire_core.recipes.plugins import PluginError

    for name in recipe_names():
        try:
            yield recipe_by_name(name)
        except PluginError as error:  # noqa: PERF203 - a few
            note(f"{name}: left out. {error}", "yellow")


def _list(made: list[Recipe]) -> None:
    from sire_core.recipes.base import DEFAULT_RECIPE

    width = max(len(recipe.name) for recipe in made)
    work = {recipe.name: _with_model(recipe) for recipe in made}
    column = max(len(_MODEL), *map(len, work.values()))
    say(f"{'recipe':<{width}}  {_MODEL:<{column}}  what it finds", "bold")
    for recipe in made:
        say(f"{recipe.name:<{width}}  {work[recipe.name]:<{column}}  {recipe.summary}")
    say(
        f"\nNo recipe needs a model: without --llm, rules are used instead. The default is {DEFAULT_RECIPE}. "
        "Settings, costs and ranking of a recipe: sire recipes RECIPE"
    )


def _with_model(recipe: Recipe) -> str:
    """What a build asks a model for, where there is one."""
    writes = any(organizer.needs_summaries for organizer in recipe.organizers)
    found = [word for word, asks in (("extraction", recipe.needs_records), ("texts", writes)) if asks]
    return ", ".join(found) or "nothing"


def _explain(recipe: Recipe) -> None:
    first, *rest = recipe.describe().splitlines()
    say(first, "bold")
    for line in rest:
        say(line)
    for key, value in recipe.config.items():
        say(f"  {key}={json.dumps(value)}: {recipe.texts.get(key, '')}")
