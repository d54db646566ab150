"""Recipes of other packages, by entry points: found when a name is asked for, loaded when it is theirs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError, SireError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from sire_core.protocols import Recipe

GROUP = "sire_core.recipes"
"""The group of entry points; see `docs/extending`."""

_logger = logging.getLogger(__name__)
_warned: set[str] = set()


class PluginError(ConfigurationError):
    """A recipe that another package offers cannot be had; others work without it."""


def offered(taken: Collection[str]) -> list[str]:
    """Names of the recipes that installed packages offer; none of them is imported.

    Args:
        taken: Names of recipes that are known already.
    """
    return sorted(_entries(taken))


def plugged(name: str, taken: Collection[str]) -> Callable[..., Recipe] | None:
    """The function that makes a recipe of an installed package; None where none offers this name.

    Args:
        name: Its name.
        taken: Names of recipes that are known already.

    Raises:
        PluginError: It cannot be loaded, or several packages offer the name.
    """
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

    found: dict[str, dict[str, EntryPoint]] = {}
    for entry in entry_points(group=GROUP):
        if entry.name not in taken:
            found.setdefault(entry.name, {})[entry.value] = entry  # one path may stand on sys.path twice
        elif (about := f"{entry.name} {_package(entry)}") not in _warned:
            _warned.add(about)
            _logger.warning(
                "%s offers a recipe %r, which is the name of another one here; theirs is not used.",
                _package(entry),
                entry.name,
            )
    return {name: list(entries.values()) for name, entries in found.items()}


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value
