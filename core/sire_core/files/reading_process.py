"""Converts files in a process of its own, whose time and memory are limited for each file.

A small file may unpack to gigabytes or loop without end, and only the parser knows; so no file of a format that a
library reads is parsed in the caller's process. The process is started isolated: it imports nothing from the current
folder or from `PYTHONPATH`, and sees none of the caller's environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sire_core.errors import CorpusError
from sire_core.files.conversion import Converted
from sire_core.files.converters import check_libraries, convert
from sire_core.files.reader_plugins import plugin_folders
from sire_core.isolated import start_isolated

SECONDS, SECONDS_PER_MB = 10, 10
"""CPU time of a file."""
MEMORY, MEMORY_PER_BYTE = 256 << 20, 40  # Bytes of memory of a file, beside what the process had before it
_MAX_ADDED = 2 << 30  # Bytes of memory beside `MEMORY` that the largest file may need
_MOST_KEPT = 512 << 20  # Bytes of address space with which a process goes on; what a file took is not always given back
_WALL_TIME = 30
"""Times the CPU time after which a file is given up by the clock: a busy machine gives a process a small share."""
_INHERITED = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables without which some systems cannot start Python."""
_SETTINGS = {"MALLOC_ARENA_MAX": "2"}  # Every thread of a library would reserve memory of its own
_LIBRARIES = ("pypdfium2", "docx", "pptx", "openpyxl", "kreuzberg", "olefile")
_OPEN = threading.local()


@contextmanager
def one_process() -> Iterator[None]:
    """Convert all files of a block with one process, which ends with the block."""
    if getattr(_OPEN, "process", None) is not None:
        yield
        return
    _OPEN.process = _ReadingProcess()
    try:
        yield
    finally:
        _OPEN.process.close()
        _OPEN.process = None


def convert_limited(path: Path, suffix: str, max_bytes: int) -> Converted:
    """Convert a file, within the time and memory that a document needs; see `convert`."""
    check_libraries(suffix)
    with one_process():
        answer: dict[str, Any] = _OPEN.process.read(path, suffix, max_bytes)
    if "error" in answer:
        raise CorpusError(answer["error"])
    return Converted(**{**answer, "unread": [(name, reason) for name, reason in answer["unread"]]})


class _ReadingProcess:
    """The process, started when it is first needed and again after a file that ended it."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None

    def read(self, path: Path, suffix: str, max_bytes: int) -> dict[str, Any]:
        """The conversion of a file, or an error."""
        seconds = _seconds(path.stat().st_size)
        if self._running is None or self._running.poll() is not None:
            self.close()
            self._running = _start()
        process = self._running
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(_WALL_TIME * seconds, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps([str(path.absolute()), suffix, max_bytes, seconds]).encode() + b"\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
        except (OSError, ValueError):  # the process has ended, in the middle of a line or before it
            self.close()
            reason = f"the file needs more time ({seconds} seconds) or memory than a document does"
            advice = "print it to a new PDF" if suffix == ".pdf" else "split it, or save it anew"
            raise CorpusError(f"{reason}; {advice} to read it") from None
        finally:
            timer.cancel()
        if answer.pop("ends"):
            self.close()
        return answer

    def close(self) -> None:
        """End the process."""
        process, self._running = self._running, None
        if process is not None:
            process.kill()
            process.communicate()


def _start() -> subprocess.Popen[bytes]:
    """Start the process, with nothing of this process's environment but what Python needs."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    paths = {name: text for name, text in inherited.items() if all(map(os.path.isabs, text.split(os.pathsep)))}
    return start_isolated(f"{__name__}:answer_requests", _LIBRARIES, {**_SETTINGS, **paths}, plugin_folders())


def _seconds(size: int) -> int:
    return SECONDS + size * SECONDS_PER_MB // 1_000_000


def answer_requests() -> None:
    """Read the files whose paths come in lines of JSON, and answer each with a line, until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no answer
    for line in sys.stdin.buffer:
        name, suffix, max_bytes, seconds = json.loads(line)
        answer = _converted(Path(name), suffix, max_bytes, seconds)
        answer["ends"] = _address_space() > _MOST_KEPT
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _converted(path: Path, suffix: str, max_bytes: int, seconds: int) -> dict[str, Any]:
    size = path.stat().st_size

    @contextmanager
    def unlimited() -> Iterator[None]:
        _limit(None, seconds)
        yield
        _limit(size, seconds)

    try:
        return asdict(convert(path, suffix, max_bytes, unlimited))
    except MemoryError:
        raise
    except CorpusError as error:
        return {"error": str(error)}
    except Exception as error:  # noqa: BLE001 (the caller raises it: what a library raises is no interface)
        return {"error": f"cannot be converted: {error}"}


def _limit(size: int | None, seconds: int) -> None:
    """Limit this process while it reads a file of `size` bytes, beside what it has used; None lifts that of memory."""
    if sys.platform == "win32":  # there, only the time is limited
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    limits = {
        resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime) + 1 + seconds,
        resource.RLIMIT_AS: _address_space() + MEMORY + min(_MAX_ADDED, MEMORY_PER_BYTE * (size or 0)),
        resource.RLIMIT_CORE: 0,
    }
    for limit, bound in limits.items():
        highest = resource.getrlimit(limit)[1]
        is_free = size is None and limit == resource.RLIMIT_AS
        within = highest if is_free else bound if highest == resource.RLIM_INFINITY else min(bound, highest)
        resource.setrlimit(limit, (within, highest))


def _address_space() -> int:
    """Bytes of address space in use; an upper bound where the system does not tell."""
    import resource

    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 30
