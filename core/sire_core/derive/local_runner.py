"""`LocalRunner`: parts of a derivation's work in this process; `in_parts` cuts work into parts, for any runner."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from sire_core.protocols import Runner

__all__ = ["LocalRunner", "in_parts", "mapped"]

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

_PART = 2048
"""Items of a part where a runner does not say: so many passages are read at once."""


class LocalRunner:
    """Works in a thread of this process, one part after the other."""

    part_size: int | None = None

    async def map(
        self, function: Callable[[S, P], R], shared: S, parts: Sequence[P]
    ) -> AsyncGenerator[tuple[int, R], None]:
        """See `sire_core.protocols.Runner`."""
        import asyncio

        for number in range(len(parts)):
            # A part may be read only when it is asked for: not on the event loop, and not before its turn.
            yield number, await asyncio.to_thread(_one, function, shared, parts, number)


async def in_parts(
    runner: Runner,
    function: Callable[[S, Sequence[P]], R],
    shared: S,
    items: Sequence[P],
    progress: Callable[[int, int], None] | None = None,
) -> AsyncGenerator[R, None]:
    """Apply a function to parts of some items; what it gives, in the order of the parts."""
    size = runner.part_size or _PART
    parts: Sequence[Sequence[P]] = _Parts(items, size)
    early: dict[int, R] = {}
    given = 0
    say = progress if progress and len(parts) > 1 else lambda _done, _total: None
    say(0, len(items))
    async with aclosing(runner.map(function, shared, parts)) as found:
        async for number, result in found:
            early[number] = result
            say(min((given + len(early)) * size, len(items)), len(items))
            while given in early:
                yield early.pop(given)
                given += 1


async def mapped(
    runner: Runner,
    function: Callable[[S, Sequence[P]], Sequence[T]],
    shared: S,
    items: Sequence[P],
    progress: Callable[[int, int], None] | None = None,
) -> list[T]:
    """Apply a function from parts of some items to lists, and join these in order; see `in_parts`."""
    return [found async for part in in_parts(runner, function, shared, items, progress) for found in part]


def _one(function: Callable[[S, P], R], shared: S, parts: Sequence[P], number: int) -> R:
    return function(shared, parts[number])


class _Parts(Sequence[Sequence[P]]):
    """Items cut into parts, each of which is taken from them when it is asked for."""

    def __init__(self, items: Sequence[P], size: int) -> None:
        self._items, self._size = items, size

    def __len__(self) -> int:
        return (len(self._items) + self._size - 1) // self._size

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < len(self):
            raise IndexError(number)  # or a runner that iterates over its parts would never come to their end
        return self._items[number * self._size : (number + 1) * self._size]
