"""Progress on stderr: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sire_core.cli.output import note

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from sire_core.protocols import Progress

__all__ = ["reporting"]

_SECONDS_BETWEEN_LINES = 15.0


@contextmanager
def reporting() -> Iterator[Progress]:
    """Show progress while the block runs.

    Yields:
        The callback that an `Index` calls as `progress(stage, done, total)`.
    """
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
        yield _Bars(bars)


class _Bars:
    """One bar per stage; a stage that comes again starts again."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}
        self._totals: dict[str, tuple[int, int]] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Move the bar of a stage."""
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total)
        before, known = self._totals.get(stage, (0, total))
        if known != total or done < before:
            self._bars.reset(self._tasks[stage], total=total)
        self._totals[stage] = (done, total)
        self._bars.update(self._tasks[stage], completed=done)


class _Lines:
    """A line at most every few seconds: logs of a scheduler stay short."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Say where a stage is, when it is time again."""
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            note(f"{stage}: {done:,} of {total:,}")
