"""Who does the work of a build that falls into parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Protocol, TypeVar

__all__ = ["Runner"]

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")


class Runner(Protocol):
    """Applies pure functions to parts of work: here, or on other machines."""

    @property
    def part_size(self) -> int | None:
        """Items of a part; None does all in one go, in this process."""

    def map(self, function: Callable[[S, P], R], shared: S, parts: Sequence[P]) -> AsyncGenerator[tuple[int, R], None]:
        """Apply a function of a module to every part.

        Args:
            function: Pure: a part may be worked on twice when a worker is lost.
            shared: Its first argument, sent once.
            parts: Its second arguments, of which a bounded number is under way at once.

        Yields:
            Number of a part and its result, as they are ready. What the function raises is raised.
        """
