"""From `--recipe`, `--set` and `--ranker` to a recipe, for building and for searching what was built."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.protocols import Recipe
    from sire_core.storage.manifest import BuiltRecipe, Manifest

__all__ = ["parse_settings", "recipe_to_build", "recipe_to_search", "settings_had"]


def parse_settings(given: Sequence[str] | None) -> dict[str, Any]:
    """Read `key=value` words; a value is JSON, or else a string.

    Raises:
        ConfigurationError: A word has no `=` or no key, or a key is given twice.
    """
    settings: dict[str, Any] = {}
    for word in given or ():
        key, mark, value = word.partition("=")
        if not mark or not key.strip():
            raise ConfigurationError(f"--set takes key=value, for example --set depth=2, not {word!r}.")
        try:
            parsed = json.loads(value)
        except json.JSONDecodeError:
            parsed = value
        if key.strip() in settings:
            raise ConfigurationError(f"--set {key.strip()} is given twice; give it once, with the value that counts.")
        settings[key.strip()] = tuple(parsed) if isinstance(parsed, list) else parsed
    return settings


def recipe_to_build(name: str | None, settings: Mapping[str, Any], manifest: Manifest) -> Recipe | str | None:
    """The recipe that a build makes; settings that are not given are those that the folder's has, or the defaults.

    Args:
        name: `--recipe`.
        settings: `--set`.
        manifest: Of the folder.

    Returns:
        A name, or None for the folder's latest, when no setting is given.

    Raises:
        ConfigurationError: There is no such recipe or setting, or a value makes no sense.
    """
    if not settings and name is None:
        return None
    from sire_core.recipes.registry import DEFAULT_RECIPE, recipe_with

    known = name or (manifest.recipes[-1].name if manifest.recipes else DEFAULT_RECIPE)
    before: Mapping[str, Any] = next((b.config for b in reversed(manifest.recipes) if b.name == known), {})
    return recipe_with(known, settings, before) if settings else _named(known)


def recipe_to_search(
    name: str | None,
    settings: Mapping[str, Any],
    ranker: str | None,
    manifest: Manifest,
    beneath: Mapping[str, Any] | None = None,
) -> Recipe | str | None:
    """The recipe that a search means; settings that are not given are those that it was built with.

    Args:
        name: `--recipe`.
        settings: `--set`.
        ranker: `--ranker`.
        manifest: Of the folder.
        beneath: Settings that hold in every recipe that has them, where `settings` say nothing else.

    Returns:
        As `recipe_to_build`.

    Raises:
        ConfigurationError: As `recipe_to_build`; or a setting decides what is built, and that was not built.
    """
    given = {**settings, **({} if ranker is None else {"ranker": ranker})}
    if not (given or beneath) or not manifest.generation:
        return recipe_to_build(name, given, manifest)
    from sire_core.recipes.registry import factory_of, recipe_with

    if name is not None:
        _named(name)
    built = manifest.find(None, name or "")
    held = dict.fromkeys(found.name for found in manifest.recipes if factory_of(found.name))
    below = settings_had(tuple(held), beneath or {}).get(built.name, {})
    if not (given or below):
        return name
    if ranker is not None:
        _check_ranker(built.name)
    made = recipe_with(built.name, below, built.config)
    made = recipe_with(built.name, given, made.config) if given else made
    if not any(found.builds_like(made) for found in manifest.recipes):
        raise ConfigurationError(_not_built(built, {**below, **given}))
    return made


def settings_had(recipes: Sequence[str], given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings that each recipe has, of those that were given.

    Args:
        recipes: Names in the registry.
        given: Settings by name.

    Raises:
        ConfigurationError: No recipe has one of them.
    """
    from sire_core.recipes import recipe_by_name
    from sire_core.settings import UnknownSettingError

    known = {name: recipe_by_name(name).config for name in recipes}
    there = list(dict.fromkeys(key for config in known.values() for key in config))
    for key in given:
        if recipes and key not in there:
            raise UnknownSettingError(key, there, list(known))
    return {name: {key: value for key, value in given.items() if key in config} for name, config in known.items()}


def _named(name: str) -> str:
    """The name; an unknown one is an error now, not after the sources were read."""
    from sire_core.recipes import recipe_by_name

    return recipe_by_name(name).name


def _check_ranker(name: str) -> None:
    from sire_core.recipes import REGISTRY, recipe_by_name

    if "ranker" not in recipe_by_name(name).config:
        taking = [known for known in sorted(REGISTRY) if "ranker" in REGISTRY[known]().config]
        raise ConfigurationError(
            f"{name} ranks in its own way and takes no --ranker (these do: {', '.join(taking)}). "
            f"`sire recipes {name}` lists its settings, for --set."
        )


def _not_built(built: BuiltRecipe, given: Mapping[str, Any]) -> str:
    """Which of the settings decide what is built, and what to do for other ones."""
    from sire_core.recipes import recipe_by_name

    fixed = []
    for key, value in given.items():
        try:
            alone = recipe_by_name(built.name, **{**built.config, key: value})
        except ConfigurationError:  # it makes sense with the others only
            continue
        if not built.builds_like(alone):
            fixed.append(key)
    fixed = fixed or list(given)
    was = ", ".join(f"{key}={json.dumps(built.config.get(key))}" for key in fixed)
    words = " ".join(f"--set {key}={json.dumps(given[key])}" for key in fixed)
    return (
        f"{', '.join(fixed)} of {built.name} decides what is built, and the folder was built with {was}. Build it the "
        f"other way, too: sire index SRC... --to DIR --recipe {built.name} {words}; both can live in one folder."
    )
