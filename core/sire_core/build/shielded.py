"""`run_shielded`: work that must finish before the writer's lock is released."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["run_shielded"]

T = TypeVar("T")


async def run_shielded(function: Callable[[], T]) -> T:
    """Run blocking work in a thread; a cancellation takes effect only when the work is done.

    A thread cannot be stopped: otherwise a second writer could begin while this one still commits.
    """
    import asyncio

    work = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise
