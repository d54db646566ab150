"""Printing: results on stdout, progress and the rest on stderr; passage text never acts as markup or control."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from sire_core.atomic_files import replacing
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from rich.progress import Task

    from sire_core.evaluate.rows import EvalRow
    from sire_core.protocols import Progress

# Control characters except tab and newline: an escape sequence in a passage must not reach the terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def prepare_streams() -> None:
    """Let a stream that cannot encode a character write an escape instead of failing (C locale, old code pages)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str = "", style: str = "", *, indent: int = 0, hang: int = 0) -> None:
    """Print a result; on a terminal, lines go on at column `hang`, or where they start if that is further right."""
    _print(text, style, indent, sys.stdout, hang)


def on_terminal() -> bool:
    """True if results go to a person rather than to a file or a program."""
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


_WIDTH_OF_FILES = 100
_HIGHLIGHTS = {"word": "bold magenta", "name": "bold green"}
"""Colors of the terminal's own palette that are readable on light and on dark backgrounds."""


def say_marked(pieces: Sequence[tuple[str, str]], *, indent: int = 0) -> None:
    """Print a line of which some pieces are highlighted, each given with its highlight (`word`, `name` or none)."""
    pieces = [(_CONTROL.sub("\ufffd", text), kind) for text, kind in pieces]
    if not sys.stdout.isatty():
        say("".join(text for text, _ in pieces), indent=indent)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout)
    line = Text.assemble(*((text, _HIGHLIGHTS.get(kind, "")) for text, kind in pieces))
    for part in line.wrap(console, max(20, console.width - indent)):
        part.rstrip()
        console.print(Text(" " * indent) + part, soft_wrap=True)


def output_width() -> int:
    """Columns of the terminal that results go to; those of a common one if they go to a file or a program."""
    from rich.console import Console

    return Console(file=sys.stdout).width if on_terminal() else _WIDTH_OF_FILES


def bar(share: float, width: int = 24) -> str:
    """A share from 0 to 1 as a bar; whatever is above nothing shows."""
    full = min(width, max(round(width * share), 1 if share > 0 else 0))
    return "\u2588" * full + "\u2591" * (width - full)


def check_writable(option: str, path: Path) -> None:
    """Find out now, not after an hour's work, that a file can be neither made nor replaced here."""
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigurationError(f"{option} {path}: name a file in an existing folder that you may write to.")


def _print(text: str, style: str, indent: int, stream: TextIO, hang: int = 0) -> None:
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
        start = max(hang, len(line) - len(line.lstrip(" ")))
        wrapped = Text(line[start:]).wrap(console, max(20, console.width - start)) if line[start:] else [Text()]
        for number, part in enumerate(wrapped):
            beginning = " " * start if number else line[:start]
            console.print(Text(beginning + part.plain.rstrip(), style=style), soft_wrap=True)


_SECONDS_BETWEEN_LINES = 15.0


@contextmanager
def reporting() -> Iterator[Progress]:
    """Show progress while the block runs."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Task] = {}

        def move(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                number = bars.add_task(stage, total=total)
                tasks[stage] = next(task for task in bars.tasks if task.id == number)
            if tasks[stage].total != total or done < tasks[stage].completed:  # the stage comes again
                bars.reset(tasks[stage].id, total=total)
            bars.update(tasks[stage].id, completed=done)

        yield move


class _Lines:
    """A line at most every few seconds: logs of a scheduler stay short."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Say where a stage is, when it is time again."""
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            note(f"{stage}: {done:,} of {total:,}" if done else f"{stage}: starting, {total:,} to do")


def write_rows(path: str | Path, rows: Sequence[EvalRow]) -> None:
    """Write rows as a JSON list (`as_json`); the file is replaced in one step."""
    write_text(path, json.dumps([row.as_json() for row in rows], ensure_ascii=False, indent=1) + "\n")


def write_text(path: str | Path, text: str) -> None:
    """Write a file in one step."""
    path = Path(path)
    try:
        with replacing(path) as partial, partial.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigurationError(f"{path} cannot be written ({reason}); name a file in a folder you own.") from error
