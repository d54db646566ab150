"""Setting values that the user of this process did not write: from an index folder or a web page.

They stay marked from where they are read to where they are used, so that one rule holds for all of them: they choose
among what a setting offers, and never name a host, a file or a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from typing_extensions import Self


class UntrustedText(str):
    """A text value of a setting that the user of this process did not write."""

    __slots__ = ("origin",)
    origin: str

    def __new__(cls, text: str, origin: Literal["folder", "page"] = "folder") -> Self:
        """Mark a text."""
        made = super().__new__(cls, text)
        made.origin = origin
        return made


def from_folder(config: Mapping[str, Any]) -> dict[str, Any]:
    """Mark settings that were read from an index folder."""
    return {name: UntrustedText(value) if isinstance(value, str) else value for name, value in config.items()}


def from_page(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Mark settings that a web page sent."""
    return {name: UntrustedText(value, "page") if isinstance(value, str) else value for name, value in settings.items()}


def is_from_folder(value: object) -> bool:
    """Whether a value was read from an index folder."""
    return isinstance(value, UntrustedText) and value.origin == "folder"


def is_from_page(value: object) -> bool:
    """Whether a value was sent by a web page."""
    return isinstance(value, UntrustedText) and value.origin == "page"


def is_elsewhere(path: str) -> bool:
    """Whether Windows reads a path as one on another machine; opening such a file sends credentials there."""
    plain = path.replace("\\", "/")  # Windows accepts either, and both mixed
    return plain.startswith(("//", "/??/"))


def refuse_untrusted(name: str, value: str) -> None:
    """Raise if the value of a setting that names a host, a file or a model was read from an index folder."""
    if is_from_folder(value):
        raise untrusted_error(name, value)


def untrusted_error(name: str, value: str) -> ConfigurationError:
    """Return the error about a setting that only an index folder names."""
    return ConfigurationError(
        f"{name} names {str(value)!r}, but only this index folder says so, and a folder does not decide whom a search "
        f"asks or what it loads. If you know it, and want it to have your questions (a server has your key then, too), "
        f"say it yourself: --set {name}=..., or from Python Index(path, recipe=recipe_of(path, {name}=...)) with "
        f"recipe_of of sire_core.recipes, which keeps the other settings of the folder (recipe_of(path, NAME, ...) for "
        "another recipe than its latest). Else search without it, for example with --set rerank=none or --set "
        "scorer=heuristic."
    )
