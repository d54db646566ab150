"""Crossing between sync and async code."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union

from sire_core.errors import SireError

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_WORKERS = 64
"""Threads for blocking work. A worker may itself call `run_sync`, so there must be more of them than nested calls."""


def run_sync(coroutine: Awaitable[T]) -> T:
    """Run a coroutine to its end from sync code and return its result.

    All calls of a process share one loop, so that HTTP connections, semaphores and caches made by one call serve the
    next. The coroutine sees a copy of the caller's context variables. Works in a thread that runs a loop of its own
    (notebooks, web servers), which is blocked meanwhile, and after `os.fork`. Interrupting the wait (Ctrl-C) cancels
    the coroutine and waits until it has cleaned up; a second interrupt does not wait.

    There is deliberately no shortcut that steps the coroutine in the calling thread: code that asks for the running
    loop halfway would fail after half of its effects.
    """
    bridge = _bridge()
    if bridge.thread is threading.current_thread():
        _discard(coroutine)
        raise SireError(
            "a sync method was called from inside the event loop that would have to run it; "
            "use the async method (the same name with an `a` in front, or `await`)"
        )
    call = _Call(coroutine)
    try:
        bridge.loop.call_soon_threadsafe(call.start, bridge.loop)
        call.wait(bridge.thread)
    except BaseException:
        # Callbacks run in the order they were handed over: `cancel` finds the task, or there will never be one.
        bridge.loop.call_soon_threadsafe(call.cancel, bridge.loop)
        call.wait(bridge.thread)
        raise
    try:
        if call.error is not None:
            raise call.error
        return call.value  # type: ignore[return-value]  # without an error there is a value
    finally:
        del call  # an error's traceback refers to this frame: break the cycle


def serves_sync_call() -> bool:
    """True if the running code serves a `run_sync` call: it is on the package's own loop, not on a loop of the user's.

    Adapters ask, because a framework's async connections belong to the loop of the user.
    """
    bridge = _current
    return bridge is not None and bridge.thread is threading.current_thread()


async def call(sync: Callable[..., T], native: Callable[..., Awaitable[T]], *args: Any, is_async: bool = True) -> T:
    """Call an object of a framework the way its caller came.

    A sync call of ours uses the object's sync method in a worker thread: its async connections belong to the loop of
    the user. An async call uses the async method, unless `is_async` says that this only calls the sync one on the loop.
    """
    if serves_sync_call() or not is_async:
        with contextlib.suppress(NotImplementedError):  # a class that is async only; one that is neither raises below
            return await in_thread(sync, *args)
    return await native(*args)


async def call_streaming(
    sync: Callable[[], Generator[T, None, None]],
    native: Callable[[], Awaitable[AsyncIterator[T]]],
    *,
    is_async: bool = True,
) -> AsyncGenerator[T, None]:
    """`call` for methods that give one thing after the other."""
    if serves_sync_call() or not is_async:
        begun = False
        try:
            async with contextlib.aclosing(iterate_in_thread(sync)) as walk:
                async for item in walk:
                    begun = True
                    yield item
        except NotImplementedError:
            if begun:
                raise
        else:
            return
    items = await native()
    try:
        async for item in items:
            yield item
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


class _Call(Generic[T]):
    """One coroutine on its way to the loop, and its outcome on the way back."""

    __slots__ = ("_awaitable", "_done", "_finished", "_task", "error", "value")

    def __init__(self, awaitable: Awaitable[T]) -> None:
        self._awaitable = awaitable
        self._task: asyncio.Task[None] | None = None
        self.value: T | None = None
        self.error: BaseException | None = None
        self._finished = False
        self._done = threading.Lock()
        self._done.acquire()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin; in the loop's thread. The callback, and so the task, has the caller's context."""
        self._task = loop.create_task(self._drive())

    async def _drive(self) -> None:
        try:
            self.value = await self._awaitable
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread; a SystemExit must not stop the loop
            self.error = error
        self._finish()

    def _finish(self) -> None:
        self._finished = True
        self._done.release()

    def cancel(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop; in the loop's thread."""
        if self._task is None:
            _discard(self._awaitable)
            self._finish()
        else:
            loop.call_soon(self._task.cancel)  # after its first step, so that `_drive` sees it

    def wait(self, thread: threading.Thread) -> None:
        """Block until the call is done. On Windows an interrupt is only seen when a wait ends, hence the time limit."""
        # The flag decides, not the lock: an interrupt may fall right after the lock was taken.
        while not self._finished:
            if not self._done.acquire(timeout=0.5) and not thread.is_alive():
                raise SireError("the event loop of sire_core has ended; the interpreter is shutting down")


def _discard(awaitable: Awaitable[Any]) -> None:
    """Close a coroutine that will not run, so that Python does not warn about it."""
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()


class _Bridge:
    """The loop and its thread."""

    __slots__ = ("loop", "thread")

    def __init__(self) -> None:
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(ThreadPoolExecutor(_WORKERS, thread_name_prefix="sire-worker"))
        self.thread = threading.Thread(target=self._serve, name="sire-loop", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while not self.loop.is_closed():
            # A SystemExit in somebody's background task must not take down the loop with all who wait for it.
            with contextlib.suppress(BaseException):
                self.loop.run_forever()


_lock = threading.Lock()
_current: _Bridge | None = None
_abandoned: list[Any] = []


def _bridge() -> _Bridge:
    global _current  # noqa: PLW0603 - one loop per process is the point
    bridge = _current
    if bridge is not None:
        return bridge
    with _lock:
        if _current is None:
            _current = _Bridge()
        return _current


def _after_fork() -> None:
    """Forget the parent's loop in a child: its thread was not copied, and its sockets still belong to the parent."""
    global _current, _lock  # noqa: PLW0603 - as above; the lock may have been held by a thread that is gone
    _lock = threading.Lock()
    if _current is not None:
        _abandoned.append(_current)  # kept: closing it would touch the parent's selector
        _current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    """Call a user's function in a worker thread."""
    import asyncio

    def guarded() -> T:
        try:
            return function(*args)
        except StopIteration as error:
            called = function.func if isinstance(function, partial) else function  # without its arguments: a prompt
            name = getattr(called, "__qualname__", type(called).__name__)
            raise RuntimeError(f"{name} raised StopIteration") from error

    return await asyncio.to_thread(guarded)


class _End:
    """Comes after the last item."""


async def iterate_in_thread(make: Callable[[], Generator[T, None, None]]) -> AsyncGenerator[T, None]:
    """The items of a sync generator that runs in a worker thread, each as soon as it is there.

    When this generator is closed early, the other is closed after its next item; nobody waits for that.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    items: asyncio.Queue[Union[T, _End]] = asyncio.Queue()
    left = threading.Event()

    def work() -> None:
        with contextlib.closing(make()) as walk:
            for item in walk:
                if left.is_set():
                    return
                loop.call_soon_threadsafe(items.put_nowait, item)

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # seen, even if nobody waits for it any more
        items.put_nowait(_End())

    working = asyncio.create_task(in_thread(work))
    working.add_done_callback(ended)
    try:
        while not isinstance(item := await items.get(), _End):
            yield item
        await working
    finally:
        left.set()


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
