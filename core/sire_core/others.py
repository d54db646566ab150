"""Texts among the settings that the user of this process did not say: from an index folder, or typed into a page.

They stay marked from where they are read to where they would be used, so that one rule holds for all of them: others
choose among what a setting offers, and never name a host, a file or a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sire_core.errors import ConfigurationError

__all__ = ["FolderText", "PageText", "folder_text_error", "is_elsewhere", "of_folder", "of_page", "refuse_folder_text"]


class FolderText(str):
    """What only an index folder says, which may come from anybody; see `refuse_folder_text`."""

    __slots__ = ()


class PageText(str):
    """What a page or its address says; a setting takes it as one of its choices only (see `ResolvedSettings`)."""

    __slots__ = ()


def of_folder(config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as an index folder has them."""
    return {name: FolderText(value) if isinstance(value, str) else value for name, value in config.items()}


def of_page(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a page gives them."""
    return {name: PageText(value) if isinstance(value, str) else value for name, value in settings.items()}


def is_elsewhere(path: str) -> bool:
    """Whether a path leads to another machine, as Windows reads it: asking for such a file signs in there."""
    plain = path.replace("\\", "/")  # Windows takes either, and both mixed
    return plain.startswith(("//", "/??/"))


def refuse_folder_text(name: str, value: str) -> None:
    """Refuse to reach what a setting names where only an index folder says so.

    Args:
        name: The setting.
        value: What it names.

    Raises:
        ConfigurationError: Nobody in this process said it.
    """
    if isinstance(value, FolderText):
        raise folder_text_error(name, value)


def folder_text_error(name: str, value: str) -> ConfigurationError:
    """What to say of a setting that only an index folder names. Its text is quoted, and in no command to be copied."""
    return ConfigurationError(
        f"{name} names {str(value)!r}, but only this index folder says so, and a folder does not decide whom a search "
        f"asks or what it loads. If you know it, and want it to have your questions (a server has your key then, too), "
        f"say it yourself: --set {name}=..., or from Python Index(path, recipe=recipe_of(path, {name}=...)) with "
        f"recipe_of of sire_core.recipes, which keeps the other settings of the folder (recipe_of(path, NAME, ...) for "
        "another recipe than its latest). Else search without it, for example with --set rerank=none or --set "
        "scorer=heuristic."
    )
