"""Printing: results on stdout, everything else on stderr; passage text never acts as markup or terminal control."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from sire_core.algorithms.wording import count

__all__ = ["bar", "can_be_written", "count", "kinds", "note", "prepare_streams", "say", "say_json", "some"]

# Control characters except tab and newline: an escape sequence in a passage must not reach the terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def prepare_streams() -> None:
    """Let a stream that cannot encode a character write an escape instead of failing (C locale, old code pages)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str = "", style: str = "", *, indent: int = 0) -> None:
    """Print a result.

    Args:
        text: Taken literally. On a terminal long lines are broken between words, elsewhere they stay whole.
        style: A rich style such as `bold`, for terminals only.
        indent: Spaces in front of every line.
    """
    _print(text, style, indent, sys.stdout)


def on_terminal() -> bool:
    """Whether results go to a person rather than to a file or a program."""
    return sys.stdout.isatty()


def say_part(text: str, style: str = "") -> None:
    """Print a part of a result that goes on on the same line. For terminals, which break the line where it is full."""
    from rich.console import Console
    from rich.text import Text

    Console(file=sys.stdout).print(Text(_CONTROL.sub("\ufffd", text), style=style), end="", soft_wrap=True)
    sys.stdout.flush()


def note(text: str, style: str = "") -> None:
    """Print what is not a result: what was read, warnings, errors."""
    _print(text, style, 0, sys.stderr)


def say_json(value: Any) -> None:
    """Print a JSON value, alone on stdout."""
    # Escapes of the stream's error handler would not be JSON.
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(value, ensure_ascii=not utf8, indent=1) + "\n")
    # Here, not when the interpreter ends: a closed pipe is noticed where it can be handled.
    sys.stdout.flush()


def kinds(units: Mapping[str, int]) -> str:
    """Units by kind behind their number, for example ` (31 aggregates, 1 chunk)`; nothing where there are none."""
    words = {kind: kind.replace("_", " ") for kind in sorted(units)}
    parts = [count(units[kind], word, f"{word[:-1]}ies" if word.endswith("y") else "") for kind, word in words.items()]
    return f" ({', '.join(parts)})" if parts else ""


def bar(share: float, width: int = 24) -> str:
    """A share from 0 to 1 as a bar; whatever is above nothing shows."""
    full = min(width, max(round(width * share), 1 if share > 0 else 0))
    return "\u2588" * full + "\u2591" * (width - full)


def some(items: Sequence[str], shown: int = 5) -> str:
    """The first items of a list and how many more there are."""
    more = f", and {len(items) - shown:,} more" if len(items) > shown else ""
    return ", ".join(items[:shown]) + more


def can_be_written(path: Path) -> bool:
    """Whether a file can be made or replaced here; found out now, not after an hour's work."""
    return path.absolute().parent.is_dir() and not path.is_dir() and os.access(path.absolute().parent, os.W_OK)


def _print(text: str, style: str, indent: int, stream: TextIO) -> None:
    margin = " " * indent
    lines = [margin + line if line else "" for line in _CONTROL.sub("\ufffd", text).split("\n")]
    if not stream.isatty():
        stream.write("\n".join(lines) + "\n")
        stream.flush()
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream)
    for line in lines:
        # Continuation lines start where the first one does.
        start = len(line) - len(line.lstrip(" "))
        wrapped = Text(line[start:]).wrap(console, max(20, console.width - start)) if line else [Text()]
        for part in wrapped:
            console.print(Text(line[:start] + part.plain.rstrip(), style=style), soft_wrap=True)
