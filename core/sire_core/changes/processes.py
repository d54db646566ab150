"""`ProcessRunner`: parts of a build in processes of this machine."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any, TypeVar

from sire_core.errors import BuildError, ConfigurationError
from sire_core.isolated import start_isolated, tune_own_process, usable_cores

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")

_logger = logging.getLogger(__name__)
_MAX_WORKERS_LOST = 3  # Workers that a part may be lost with before the build gives up
_HEAD = struct.Struct("<cQ")
_READY, _NEW_TASK, _NEW_PART, _RESULT, _RAISED, _FOREIGN = b"W", b"T", b"P", b"R", b"E", b"F"
_LIBRARIES = ("numpy", "scipy", "Stemmer", "markdown_it")
_SETTINGS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 20),  # of glibc: large arrays return to the system when they are freed
    "MALLOC_TRIM_THRESHOLD_": str(1 << 24),
}
_WATCH_SECONDS = 1.0


class ProcessRunner:
    """Works in processes of this machine; what they give is that of one process, bit by bit and in its order.

    A process is started when a part first needs it and ended by `close`, or when this process ends, however it does. It
    runs nothing of the user's script, so that no `__main__` guard is needed, and leaves Ctrl-C to this process. A part
    of a process that ended is done again by another one. What cannot be sent there is done here. There are `jobs` of
    them, by default one for each core that this process may use; a part has `part_size` passages or groups.
    """

    def __init__(self, jobs: int | None = None, part_size: int = 128) -> None:
        if part_size < 1 or (jobs is not None and jobs < 1):
            raise ConfigurationError(f"jobs and part_size must be at least 1, not {jobs} and {part_size}.")
        self.part_size: int | None = part_size
        self.jobs = jobs or usable_cores()
        self._free: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._workers = [_Worker() for _ in range(self.jobs)]
        for worker in self._workers:
            self._free.put(worker)
        # One thread more than workers packs a part, or unpacks a result, while they work.
        self._threads = ThreadPoolExecutor(self.jobs + 1, "sire-workers")
        self._here = threading.Lock()

    async def map(
        self, function: Callable[[S, P], R], shared: S, parts: Sequence[P]
    ) -> AsyncGenerator[tuple[int, R], None]:
        """See `sire_core.protocols.Runner`; results come in the order of the parts."""
        task = _Task(function, shared)
        loop = asyncio.get_running_loop()
        waiting: deque[asyncio.Future[R]] = deque()
        sent = 0
        try:
            while sent < len(parts) or waiting:
                while sent < len(parts) and len(waiting) < 2 * self.jobs:
                    waiting.append(loop.run_in_executor(self._threads, self._result, task, parts, sent))
                    sent += 1
                result = await waiting[0]
                waiting.popleft()
                yield sent - len(waiting) - 1, result
        finally:
            if waiting:  # an error, or nobody wants the rest
                task.is_dropped = True
                self.close()
                for future in waiting:
                    future.cancel()

    def close(self) -> None:
        """End the processes; the next part starts new ones."""
        for worker in self._workers:
            worker.end()

    def _result(self, task: _Task, parts: Sequence[Any], number: int) -> Any:
        """Result of a part, in a thread."""
        with self._here:
            part = parts[number]  # may be read only now, by code for one thread
        content = _packed(part) if task.content else b""
        kind, answer = self._answer(task, content) if content else (_FOREIGN, b"it cannot be pickled")
        if kind == _RAISED:
            raise pickle.loads(answer)  # noqa: S301 - of a process of ours
        if kind == _RESULT:
            return pickle.loads(answer)  # noqa: S301 - of a process of ours
        task.log_here(answer.decode())
        with self._here:
            return task.function(task.shared, part)

    def _answer(self, task: _Task, content: bytes) -> tuple[bytes, bytes]:
        """Kind and content of the answer to a part, of whichever worker is free."""
        code: int | None = None
        for _ in range(_MAX_WORKERS_LOST):
            worker = self._free.get()
            try:
                if not task.is_dropped:
                    return worker.answer(task, content)
            except _EndedError as error:
                code = error.code
            finally:
                self._free.put(worker)
            if task.is_dropped:
                raise asyncio.CancelledError
        raise BuildError(
            f"Worker processes ended {_MAX_WORKERS_LOST} times over the same part of the build (exit code {code}; -9 "
            "is what a system without memory does). Nothing was changed, and what models answered is stored. Build "
            "again with fewer processes (SIRE_JOBS=1 takes none) or more memory."
        )


class _EndedError(Exception):
    """A worker has ended."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


class _Task:
    """A function and what all of its parts share, as a worker reads them."""

    def __init__(self, function: Callable[..., Any], shared: Any) -> None:
        self.function, self.shared = function, shared
        self.is_dropped = False
        self._is_logged = False
        self.content = _packed((function, shared))

    def log_here(self, error: str) -> None:
        """Log, once, that parts are done in this process."""
        if not self._is_logged:
            self._is_logged = True
            _logger.warning("%s runs in this process: %s", self.function.__qualname__, error)


def _packed(value: Any) -> bytes:
    """A value as bytes; empty if it cannot be sent."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001 - anything may be raised by objects of the user
        return b""


class _Worker:
    """A process that is started when it is first needed, and again after it ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._task: _Task | None = None

    def answer(self, task: _Task, part: bytes) -> tuple[bytes, bytes]:
        process = self._process
        if process is None or process.poll() is not None:
            try:
                process = start_isolated(f"{__name__}:answer_parts", _LIBRARIES, {**os.environ, **_SETTINGS})
            except OSError as failure:
                return _FOREIGN, f"a worker process cannot be started ({failure})".encode()
            self._process, self._task = process, None
        try:
            if task.is_dropped:  # by a thread that could not see this process yet
                raise EOFError  # noqa: TRY301 - as if it had ended
            assert process.stdin is not None
            assert process.stdout is not None
            if self._task is not task:
                _send(process.stdin, _NEW_TASK, task.content)
                kind, error = _receive(process.stdout)
                if kind != _READY:
                    return kind, error
                self._task = task
            _send(process.stdin, _NEW_PART, part)
            return _receive(process.stdout)
        except (OSError, EOFError, ValueError) as error:
            self.end()
            raise _EndedError(process.returncode) from error

    def end(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # of a message that was not read
                    pipe.close()  # type: ignore[union-attr] # both are pipes


def _send(pipe: IO[bytes], kind: bytes, content: bytes) -> None:
    pipe.write(_HEAD.pack(kind, len(content)))
    pipe.write(content)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> tuple[bytes, bytes]:
    kind, length = _HEAD.unpack(_read(pipe, _HEAD.size))
    return kind, _read(pipe, length)


def _read(pipe: IO[bytes], length: int) -> bytes:
    content = pipe.read(length)
    if len(content) < length:
        raise EOFError
    return content


def answer_parts() -> None:
    """Do, as a worker, what comes as messages until the input ends: tasks, and parts of the last task."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the build decides
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no answer
    task: tuple[Callable[[Any, Any], Any], Any] | None = None
    tune_own_process()
    with suppress(EOFError, BrokenPipeError):
        while True:
            kind, content = _receive(sys.stdin.buffer)
            if kind == _NEW_TASK:
                try:
                    task = pickle.loads(content)  # noqa: S301 - of the process that started this one
                    _send(answers, _READY, b"")
                except Exception as error:  # noqa: BLE001 - of what the user's objects import
                    _send(answers, _FOREIGN, repr(error).encode("utf-8", "replace"))
            elif task is not None:
                _send(answers, *_answered(*task, content))


def _answered(function: Callable[[Any, Any], Any], shared: Any, content: bytes) -> tuple[bytes, bytes]:
    try:
        part = pickle.loads(content)  # noqa: S301 - of the process that started this one
    except Exception as error:  # noqa: BLE001 - of what the user's objects import
        return _FOREIGN, repr(error).encode("utf-8", "replace")
    try:
        packed = _packed(function(shared, part))
    except Exception as error:  # noqa: BLE001 - raised by the process that started this one
        packed = _packed(error)
        try:
            pickle.loads(packed)  # noqa: S301 - just made
        except Exception:  # noqa: BLE001 - of an exception of the user
            packed = _packed(BuildError(f"A worker process failed with {error!r}."))
        return _RAISED, packed
    return (_RESULT, packed) if packed else (_FOREIGN, b"its result cannot be pickled")


def _end_with(parent: int) -> None:
    """End this process, in the middle of a part, when the one that started it has ended."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)
