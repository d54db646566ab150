"""The registry of recipes, and what they share."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.arguments import did_you_mean, named, unknown_name
from sire_core.errors import ConfigurationError, SireError
from sire_core.protocols.building import DEFAULT_PRESET
from sire_core.recipes.published import presets_of, register_published, with_presets, without_idle
from sire_core.recipes.reranking import RerankSettings
from sire_core.settings import UnknownSettingError, is_from_folder
from sire_core.storage.edge_notes import BLOCKS, register_edge_note

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from sire_core.protocols import Recipe
    from sire_core.storage.manifest import BuiltRecipe
    from sire_core.types import Edge

REGISTRY: dict[str, Callable[..., Recipe]] = {}
"""Factories by name, without those of other packages that nobody named yet; see `recipe_names`."""

DEFAULT_RECIPE = "sire"  # Recipe of a first build that names none

_GIVEN: dict[str, Recipe] = {}  # Recipe objects passed to `Index` in this process, by build key

_PLUGGED: dict[str, Callable[..., Recipe]] = {}  # Factories of `REGISTRY` that came from other packages

_WARNED: set[str] = set()  # Warnings about recipes of other packages that were logged

_logger = logging.getLogger(__name__)

Factory = TypeVar("Factory", bound=Callable[..., Any])


def register(factory: Factory) -> Factory:
    """Add a recipe factory to the registry under its function name; what is returned also takes `preset`.

    A `published.toml` in the factory's package is registered, too; see `register_published`.
    """
    package = factory.__module__.rpartition(".")[0]
    if package and (Path(factory.__globals__.get("__file__", "")).parent / "published.toml").is_file():
        register_published(factory.__name__, package)
    REGISTRY[factory.__name__] = made = with_presets(factory)
    return made


def recipe_names() -> list[str]:
    """Names of all recipes: those of the registry, and what installed packages offer by entry points."""
    return sorted({*REGISTRY, *offered(_taken())})


def _taken() -> list[str]:
    """Names that plug-ins cannot take: those of the registry that are not plug-ins."""
    return [name for name, make in REGISTRY.items() if make is not _PLUGGED.get(name)]


def factory_of(name: str) -> Callable[..., Recipe] | None:
    """Return the factory of a recipe, ours or a plug-in's; None if the name is unknown or the plug-in fails to load."""
    try:
        return _factory(name)
    except PluginError as error:
        _warn_once(error)
        return None


def _warn_once(error: ConfigurationError) -> None:
    if str(error) not in _WARNED:
        _WARNED.add(str(error))
        _logger.warning("%s", error)


def _factory(name: str) -> Callable[..., Recipe] | None:
    if name not in REGISTRY and (made := plugged(name, _taken())) is not None:
        REGISTRY[name] = _PLUGGED[name] = made
    return REGISTRY.get(name)


def remember(recipe: Recipe) -> None:
    """Keep a recipe object, so that this process finds it again when it opens the folder by name."""
    if any(is_from_folder(value) for value in recipe.config.values()):
        return  # made from what a folder says: nobody here said that
    organizers = [(organizer.name, organizer.settings()) for organizer in recipe.organizers]
    _GIVEN[_key(recipe.name, recipe.config, organizers)] = recipe


def recipe_as_built(built: BuiltRecipe, passed: Recipe | None = None) -> Recipe | None:
    """The recipe that an index folder names; None where it is not known in this process."""
    if passed is not None and built.builds_like(passed):
        return passed
    try:
        return _made(built)
    except PluginError as error:
        _warn_once(error)
        return None


def _made(built: BuiltRecipe) -> Recipe | None:
    """As `recipe_as_built`; raises `PluginError` where the package of a recipe that nobody gave fails."""
    passed = _GIVEN.get(_key(built.name, built.config, built.organizers))
    if passed is None:
        make = _factory(built.name)
        return None if make is None else _with_known_settings(make, built)
    try:
        make = REGISTRY.get(built.name)
        return passed if make is None else make(**dict(passed.config))  # in the words of this process
    except PluginError as error:
        _warn_once(error)
        return passed


def _with_known_settings(make: Callable[..., Recipe], built: BuiltRecipe) -> Recipe:
    """The recipe of a folder; settings that another version wrote and this one does not have are left to the log."""
    config = dict(built.config)
    if config.get("preset") not in presets_of(built.name):
        config.pop("preset", None)  # of another version; all that it stands for is stored, too
    try:
        return make(**config)
    except UnknownSettingError as error:
        unknown = {name: config.pop(name) for name in config.keys() - error.known}
        if any(value is not None for value in unknown.values()):
            _warn_once(
                ConfigurationError(
                    f"The index was built by another version: its recipe {built.name!r} has no longer the settings "
                    f"{unknown}. `sire index` on the same folder writes the settings of today."
                )
            )
    return make(**config)


def registered_recipe(built: BuiltRecipe) -> Recipe:
    """The recipe that a folder names."""
    failed: PluginError | None = None
    try:
        recipe = _made(built)
    except PluginError as error:
        recipe, failed = None, error
    if recipe is not None:
        return recipe
    why = f"This index holds the recipe {built.name!r}, which"
    if failed is not None:
        raise ConfigurationError(f"{why} cannot be made here. {failed}") from failed
    raise ConfigurationError(
        f"{why} is not known here. Pass it: Index(path, recipe=...), register the function that makes it "
        "(sire_core.recipes.register), or install the package that offers it."
    )


def _key(name: str, config: Mapping[str, Any], organizers: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    parts = [name, dict(config), [(organizer, dict(settings)) for organizer, settings in organizers]]
    return json.dumps(parts, sort_keys=True, default=str)


def recipe_by_name(name: str, **settings: Any) -> Recipe:
    """Look a recipe up.

    Raises:
        ConfigurationError: No recipe has this name, the package that offers it cannot be loaded, or a setting does not
            exist.
    """
    make = _factory(name)
    if make is None:
        raise unknown_name("recipe", name, recipe_names())
    try:
        return make(**settings)
    except UnknownSettingError as error:
        raise UnknownSettingError(error.name, error.known, [name]) from None


def check_recipe_name(name: str, folder: str | os.PathLike[str] | None) -> None:
    """Refuse a name that no recipe has: ours, a plug-in's, one given as an object in this process, or the folder's."""
    if name in REGISTRY or name in recipe_names() or any(name == recipe.name for recipe in _GIVEN.values()):
        return
    from sire_core.storage.index_files import read_manifest

    if name not in read_manifest(None if folder is None else Path(folder)).recipe_names:
        raise unknown_name("recipe", name, recipe_names())


def recipes_with(setting: str) -> list[str]:
    """Names of the recipes that have a setting."""
    return [name for name in recipe_names() if (make := factory_of(name)) and setting in make().config]


def recipe_with(name: str, chosen: Mapping[str, Any], others: Mapping[str, Any]) -> Recipe:
    """The recipe with these settings; other ones that would be idle beside them have their defaults."""
    replaced = "preset" in chosen and "preset" in others
    chosen = RerankSettings.spelled_out(chosen)  # a cross-encoder that `rerank` names replaces that of the others
    return without_idle(partial(recipe_by_name, name), chosen, {} if replaced else others)


def split_settings(recipes: Sequence[str], chosen: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings that each recipe has, of those that are given."""
    configs = {name: recipe_by_name(name).config for name in recipes}
    names = list(dict.fromkeys(key for config in configs.values() for key in config))
    for key in chosen:
        if recipes and key not in names:
            raise UnknownSettingError(key, names, list(configs))
    preset = chosen.get("preset", DEFAULT_PRESET)
    with_preset = [name for name in recipes if preset in presets_of(name)]
    if recipes and not with_preset:
        recipe_by_name(recipes[0], preset=preset)  # says which presets there are
    return {
        name: {
            key: value for key, value in chosen.items() if key in config and (key != "preset" or name in with_preset)
        }
        for name, config in configs.items()
    }


def _take_settings(
    arguments: Mapping[str, Any], folder: str | os.PathLike[str] | None, parameters: Collection[str]
) -> dict[str, Any]:
    """Arguments in which `recipe` has the settings of a recipe that were given beside it."""
    rest = {key: value for key, value in arguments.items() if key != "recipe_settings"}
    settings, recipe = arguments.get("recipe_settings") or {}, rest.get("recipe")
    if not isinstance(settings, Mapping):
        raise ConfigurationError(f"recipe_settings is a mapping of settings of the recipe, not {settings!r}.")
    settings = dict(settings)
    others = [key for key in rest if key not in parameters]
    if not (settings or others):
        return rest
    if not (recipe is None or isinstance(recipe, str)):
        if settings:
            raise ConfigurationError(f"Give the settings to the recipe: {recipe.name}({', '.join(settings)}=...).")
        return rest
    from sire_core.storage.folder import Folder
    from sire_core.storage.manifest import Manifest

    built = [] if folder is None else Manifest.from_json(Folder(folder).read_manifest()).recipes
    name = recipe or (built[-1].name if built else DEFAULT_RECIPE)
    config = recipe_by_name(name).config
    for key in others:
        if key in config:
            continue
        if owners := recipes_with(key):
            first = f"recipe={owners[0]!r}, {key}={rest[key]!r}"
            raise TypeError(f"{key!r} is a setting of {', '.join(owners)}, not of the recipe {name!r}; pass {first}.")
        hint = did_you_mean(key, [*parameters, *config])
        if hint and hint == did_you_mean(key, [word for word in config if word not in parameters]):
            raise TypeError(f"There is no argument or setting {key!r} of the recipe {name!r}; {hint}")
    settings |= {key: rest.pop(key) for key in others if key in config}
    if settings:
        is_built = any(one.name == name for one in built)
        rest["recipe"] = recipe_of(folder, name, **settings) if is_built else recipe_by_name(name, **settings)
    return rest


def split_arguments(
    called: str,
    arguments: Mapping[str, Any],
    names: Collection[str],
    fields: Collection[str],
    spellings: Mapping[str, str],
    folder_name: str,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of an index, with settings of its recipe in `recipe`, and those of a retriever over it.

    Args:
        called: The function that they were given to.
        arguments: As they were given.
        names: Proper names of arguments of an index.
        fields: Proper names of arguments of a retriever.
        spellings: Proper names by other words.
        folder_name: Which of `names` is the index folder.
    """
    folder = next((arguments[word] for word in arguments if spellings.get(word, word) == folder_name), None)
    chosen = _take_settings(arguments, folder, {*names, *fields, *spellings})
    values = named(called, chosen, (*names, *fields), spellings)
    split = [{name: v for name, v in values.items() if (name in fields) == is_field} for is_field in (False, True)]
    return split[0], split[1]


def recipe_of(folder: str | os.PathLike[str] | None, name: str = "", /, **settings: Any) -> Recipe:
    """A recipe of an index folder with the settings that it was built with, for `Index(folder, recipe=...)`.

    What the folder names of models, servers and files is not asked, loaded or read until it is said here:
    `recipe_of(folder, rerank_model="...")`. Where nothing was built, or without a folder, a recipe of the registry.

    Args:
        folder: The index folder.
        name: Which of its recipes; the default when left out.
        **settings: Settings with other values, or said again.

    Raises:
        ConfigurationError: It was not built here, is not known in this process, or has no such setting or value.
    """
    from sire_core.storage.folder import Folder
    from sire_core.storage.manifest import Manifest

    manifest = Manifest() if folder is None else Manifest.from_json(Folder(folder).read_manifest())
    if not manifest.recipes:
        return recipe_by_name(name or DEFAULT_RECIPE, **settings)
    recipe = registered_recipe(manifest.find(None, name))
    return recipe_with(recipe.name, settings, recipe.config) if settings else recipe


def _edges_of_block(key: str, note: bytes) -> Iterable[Edge]:
    """Edges of the knowledge graph, which several recipes share; naming a recipe loads none of its code."""
    from sire_core.knowledge.edge_columns import EdgeColumns

    return EdgeColumns.from_bytes(note).edges(key.split("/", 1)[0])


register_edge_note(BLOCKS, _edges_of_block)


GROUP = "sire_core.recipes"  # The group of entry points; see `docs/extending`


class PluginError(ConfigurationError):
    """A recipe that another package offers cannot be had; others work without it."""


def offered(taken: Collection[str]) -> list[str]:
    """Names of the recipes that installed packages offer; none of them is imported."""
    return sorted(_entries(taken))


def plugged(name: str, taken: Collection[str]) -> Callable[..., Recipe] | None:
    """The function that makes a recipe of an installed package; None where none offers this name."""
    entries = _entries(taken).get(name, [])
    if not entries:
        return None
    packages = " and ".join(map(_package, entries))
    if len(entries) > 1:
        raise PluginError(f"{packages} offer a recipe {name!r} each. Uninstall all but one of them.")
    make: Callable[..., Recipe]
    try:
        make = entries[0].load()
    except Exception as error:  # whatever somebody's module does when it is imported
        raise PluginError(
            f"The recipe {name!r} of {packages} cannot be loaded ({type(error).__name__}: {error}). Mend that package, "
            "or uninstall it if you do not need the recipe; other recipes work without it."
        ) from error

    def checked(**settings: Any) -> Recipe:
        try:
            recipe: Recipe = make(**settings)
        except SireError:
            raise
        except Exception as error:
            raise PluginError(
                f"The recipe {name!r} of {packages} cannot be made ({type(error).__name__}: {error}). Its settings "
                f"are those of its own function; given were: {', '.join(settings) or 'none'}."
            ) from error
        if recipe.name != name:  # a folder names it, and is read by that name
            raise PluginError(
                f"The entry point {name!r} of {packages} makes a recipe named {recipe.name!r}. Both have to be alike."
            )
        return recipe

    return checked


def _entries(taken: Collection[str]) -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points

    by_name: dict[str, dict[str, EntryPoint]] = {}
    for entry in entry_points(group=GROUP):
        if entry.name not in taken:
            by_name.setdefault(entry.name, {})[entry.value] = entry  # one path may stand on sys.path twice
        else:
            other = f"{_package(entry)} offers a recipe {entry.name!r}, which is the name of another one here"
            _warn_once(PluginError(f"{other}; theirs is not used."))
    return {name: list(entries.values()) for name, entries in by_name.items()}


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value
