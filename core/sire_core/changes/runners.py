"""Runners work on parts of a build: in a thread, in processes (`ProcessRunner`), or as tasks of a Ray cluster."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.changes.processes import ProcessRunner
from sire_core.errors import BuildError, ConfigurationError
from sire_core.isolated import usable_cores

if TYPE_CHECKING:
    from sire_core.protocols import Runner

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")

_PART = 256  # Items of a part where a runner does not say: so many passages are read at once
MIN_LETTERS = 2_000_000
"""Length of all texts of a build from which processes save more time than it takes to start them."""
_MANY_PASSAGES = 1000  # Number of passages from which memory is trimmed, which takes some milliseconds
_TRIES = 8  # Workers that a part may be lost with before the build gives up
_shared: dict[str, Any] = {}
"""In a worker: what the last tasks shared, by its reference. Fetched and unpacked once, not for every part."""


def trim_memory(passages: int) -> None:
    """Return free memory to the system after work on many passages.

    glibc keeps the freed arrays of a stage for the thread that made them: hundreds of megabytes that the next stage, in
    other threads, cannot use.
    """
    if passages > _MANY_PASSAGES and sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


class LocalRunner:
    """Works in a thread of this process, one part after the other."""

    part_size: int | None = None

    async def map(
        self, function: Callable[[S, P], R], shared: S, parts: Sequence[P]
    ) -> AsyncGenerator[tuple[int, R], None]:
        """See `sire_core.protocols.Runner`."""
        for number in range(len(parts)):
            # A part may be read only when it is asked for: not on the event loop, and not before its turn.
            yield number, await asyncio.to_thread(_one, function, shared, parts, number)


async def in_parts(
    runner: Runner,
    function: Callable[[S, Sequence[P]], R],
    shared: S,
    items: Sequence[P],
    progress: Callable[[int, int], None] | None = None,
    part_size: int | None = None,
) -> AsyncGenerator[R, None]:
    """Apply a function to parts of some items; what it gives, in the order of the parts."""
    size = part_size or runner.part_size or _PART
    parts: Sequence[Sequence[P]] = _Parts(items, size)
    early: dict[int, R] = {}
    number_yielded = 0
    say = progress if progress and len(parts) > 1 else lambda _done, _total: None
    say(0, len(items))
    async with aclosing(runner.map(function, shared, parts)) as results:
        async for number, result in results:
            early[number] = result
            say(min((number_yielded + len(early)) * size, len(items)), len(items))
            while number_yielded in early:
                yield early.pop(number_yielded)
                number_yielded += 1


def results_of(
    runner: Runner | None,
    function: Callable[[S, Sequence[P]], R],
    shared: S,
    items: Sequence[P],
    part_size: int | None = None,
) -> list[R]:
    """Results of `in_parts`, for a thread without an event loop; without a runner of that thread itself."""

    async def collect(runner: Runner) -> list[R]:
        return [result async for result in in_parts(runner, function, shared, items, part_size=part_size)]

    if runner is None or isinstance(runner, LocalRunner):
        results = [function(shared, part) for part in _Parts(items, part_size or _PART)]
    else:
        results = asyncio.run(collect(runner))
    trim_memory(len(items))
    return results


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


class RayRunner:
    """Parts as tasks of a Ray cluster, whose nodes have this package installed (extra `ray`).

    A part that a worker or a node was lost with is done again by others. What a language model is asked stays in this
    process: waiting for answers costs no processor, limits hold to the call, and what was paid for is stored here the
    moment it comes, whatever happens to workers.

    Args:
        address: As `ray.init` has it: `HOST:PORT` of a cluster that this machine is part of, `ray://HOST:PORT` of one
            that it is not; None uses the one that this process is connected to, that `RAY_ADDRESS` names or that was
            started on this machine, else begins one here.
        part_size: Passages or groups of a task.
    """

    def __init__(self, address: str | None = None, part_size: int = 512) -> None:
        if part_size < 1:
            raise ConfigurationError(f"part_size must be at least 1, not {part_size}.")
        self._address = address
        self.part_size: int | None = part_size

    async def map(
        self, function: Callable[[S, P], R], shared: S, parts: Sequence[P]
    ) -> AsyncGenerator[tuple[int, R], None]:
        """See `sire_core.protocols.Runner`."""
        if not parts:
            return
        ray = await asyncio.to_thread(self._connected)
        task = ray.remote(max_retries=_TRIES)(_work)
        held = await asyncio.to_thread(ray.put, shared)
        waiting: dict[asyncio.Future[R], tuple[int, Any]] = {}
        room = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        number = 0
        try:
            while number < len(parts) or waiting:
                while number < len(parts) and len(waiting) < room:
                    # In a list, so that it is not fetched for every part; see `_work`.
                    part = await asyncio.to_thread(parts.__getitem__, number)
                    reference = task.remote(function, held.hex(), [held], part)
                    waiting[asyncio.wrap_future(reference.future())] = (number, reference)
                    number += 1
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for future in done:
                    finished, _ = waiting.pop(future)
                    yield finished, _result(ray, future)
        finally:
            for future, (_, reference) in waiting.items():
                future.cancel()
                ray.cancel(reference)

    def _connected(self) -> Any:
        try:
            import ray
        except ImportError as error:
            raise ConfigurationError('runner="ray" needs Ray: pip install "sire-rag[ray]"') from error
        if not ray.is_initialized():
            address = self._address or os.environ.get("RAY_ADDRESS", "")
            try:
                _reach(address)
                ray.init(address=self._address, include_dashboard=None, log_to_driver=False, configure_logging=False)
            except (OSError, ValueError, ray.exceptions.RayError) as error:
                raise ConfigurationError(
                    f"Ray does not connect to the cluster at {address or 'this machine'} ({error}). Start one with "
                    "`ray start --head`; if it asks for a token, set the same RAY_AUTH_MODE and RAY_AUTH_TOKEN here. "
                    'Without an address and RAY_ADDRESS, runner="ray" joins the one that was started on this machine, '
                    "else it begins one."
                ) from error
        return ray


def _reach(address: str) -> None:
    """Raise when nobody listens at `[ray://]HOST:PORT`: Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _work(function: Callable[[S, P], R], key: str, held: Sequence[Any], part: P) -> R:
    import ray

    if key not in _shared:
        _shared.clear()
        _shared[key] = ray.get(held[0])
    return function(_shared[key], part)


def _result(ray: Any, future: asyncio.Future[R]) -> R:
    """A task's result; what our own code raised there is raised as it was."""
    try:
        return future.result()
    except ray.exceptions.RayTaskError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, Exception) and not isinstance(cause, ray.exceptions.RayError):
            raise cause from error
        raise _lost(cause or error) from error  # a task that was cancelled, with Ctrl+C for example
    except ray.exceptions.RayError as error:
        raise _lost(error) from error


def _lost(error: BaseException) -> BuildError:
    return BuildError(
        f"Ray did not finish a part of the build ({type(error).__name__}: {str(error)[:500]}). Nothing was changed, "
        "and what models answered is stored. See to the cluster (`ray status`; workers that run out of memory take a "
        "smaller part_size) and build again."
    )


def resolve_runner(runner: Runner | str | None, letters: int = 0) -> Runner:
    """Return the runner that `Index` is given by name; None takes processes for a build that is worth it.

    A build of many `letters` is, where there are cores for it; any other stays in this process.
    """
    if runner is None:
        jobs = _jobs() if letters >= MIN_LETTERS else 1
        return ProcessRunner(jobs) if jobs > 1 else LocalRunner()
    if not isinstance(runner, str):
        return runner
    if runner == "local":
        return LocalRunner()
    name, _, jobs_text = runner.partition(":")
    if name == "processes" and (not jobs_text or jobs_text.isdecimal()):
        return ProcessRunner(int(jobs_text) if jobs_text else _jobs())
    if runner == "ray" or runner.startswith("ray://"):
        return RayRunner(None if runner == "ray" else runner)
    raise ConfigurationError(
        f"runner is 'local', 'processes', 'processes:N', 'ray', 'ray://HOST:PORT' or a Runner, not {runner!r}."
    )


@contextmanager
def open_runner(runner: Runner | str | None, letters: int = 0) -> Iterator[Runner]:
    """A runner for the time of a build; see `resolve_runner`. Its processes end with the block."""
    resolved = resolve_runner(runner, letters)
    try:
        yield resolved
    finally:
        if isinstance(resolved, ProcessRunner):
            resolved.close()


def _jobs() -> int:
    """Number of processes of a build: `SIRE_JOBS`, or one for each core that this process may use."""
    text = os.environ.get("SIRE_JOBS", "").strip()
    if text and not (text.isdecimal() and int(text)):
        raise ConfigurationError(f"SIRE_JOBS is a number of processes of at least 1, not {text!r}.")
    return int(text) if text else usable_cores()
