"""`run_shielded`: work that must be over before the writer's lock is let go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["run_shielded"]

T = TypeVar("T")


async def run_shielded(function: Callable[[], T]) -> T:
    """Run blocking work in a thread; a cancellation takes effect when the work is done, not before.

    A thread cannot be stopped. Were the cancellation not held back, a second writer could begin while this one still
    commits.
    """
    import asyncio

    work = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise
