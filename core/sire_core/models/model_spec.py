"""Options behind the name of a model: `onnx:NAME?max_length=256&query_prompt=...`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote

from sire_core.errors import ConfigurationError

__all__ = ["join_options", "split_options"]


def split_options(text: str, **kinds: Callable[[str], Any]) -> tuple[str, dict[str, Any]]:
    """Split a name from the options behind its question mark.

    Args:
        text: `NAME?key=value&key=value`, values quoted as in an address.
        kinds: Reads the value of an option, by its name.

    Raises:
        ConfigurationError: An option is unknown, or its value cannot be read.
    """
    name, _, rest = text.partition("?")
    try:
        pairs = parse_qsl(rest, keep_blank_values=True, strict_parsing=True) if rest else []
        return name, {key: kinds[key](value) for key, value in pairs}
    except (KeyError, ValueError) as error:
        known = ", ".join(f"{key}=..." for key in kinds)
        raise ConfigurationError(f"In {text!r} only {known} may follow the question mark, joined by &.") from error


def join_options(name: str, options: Mapping[str, Any]) -> str:
    """The reverse of `split_options`; options that are None or 0 are left out."""
    given = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in options.items() if value not in (None, 0))
    return f"{name}?{given}" if given else name
