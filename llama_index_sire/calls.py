"""Calls of LlamaIndex objects from async code: many integrations only call their sync twin, on the loop."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sire_core.models import sync as core

T = TypeVar("T")


async def call(
    sync: Callable[..., T], native: Callable[..., Awaitable[T]], *args: Any, is_async: bool | None = None
) -> T:
    """See `sire_core.models.sync.call`; without `is_async`, the method is looked at."""
    return await core.call(sync, native, *args, is_async=awaits(native) if is_async is None else is_async)


def awaits(method: Callable[..., Any]) -> bool:
    """True if an async method waits for anything."""
    function = inspect.unwrap(getattr(method, "__func__", method))
    code = getattr(function, "__code__", None)
    if code is None:
        return True
    return any(step.opname in ("GET_AWAITABLE", "GET_ANEXT") for step in dis.get_instructions(code))


def overrides(thing: object, base: type, name: str) -> bool:
    """True if a class has a method of its own in the place of a base's; LlamaIndex wraps inherited ones again."""
    return inspect.unwrap(getattr(type(thing), name)) is not inspect.unwrap(getattr(base, name))
