"""Reads PDF files in a process of its own, whose time and memory are limited for each file.

A small PDF may unpack to gigabytes or loop without end, and only the parser knows; so none is parsed in the caller's
process. The process is started isolated: it imports nothing from the current folder or from `PYTHONPATH`, and sees none
of the caller's environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sire_core.errors import CorpusError
from sire_core.files.pdf import pdf_to_markdown

SECONDS, SECONDS_PER_MB = 10, 10
"""CPU time of a file."""
MEMORY, MEMORY_PER_BYTE = 256 << 20, 40
"""Bytes of memory of a file, beside what the process had before it."""
_WALL_TIME = 6
"""Times the CPU time after which a file is given up by the clock."""
_INHERITED = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables without which some systems cannot start Python."""
_START = (
    "import sys; sys.path += sys.argv[1:]; import sire_core.files.pdf_process as process; process.answer_requests()"
)
_OPEN = threading.local()


@contextmanager
def one_process() -> Iterator[None]:
    """Read all PDF files of a block with one process, which ends with the block."""
    if getattr(_OPEN, "process", None) is not None:
        yield
        return
    _OPEN.process = _PdfProcess()
    try:
        yield
    finally:
        _OPEN.process.close()
        _OPEN.process = None


def read_pdf(path: Path) -> tuple[str, str]:
    """Return title and Markdown of a file.

    Raises:
        CorpusError: The file cannot be parsed, or needs more time or memory than a document does.
    """
    find_spec("pypdfium2") or __import__("pypdfium2")  # the missing extra is named as for every other format
    with one_process():
        answer: dict[str, str] = _OPEN.process.read(path)
    if "error" in answer:
        raise CorpusError(answer["error"])
    return answer["title"], answer["text"]


class _PdfProcess:
    """The process, started when it is first needed and again after a file that ended it."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None

    def read(self, path: Path) -> dict[str, str]:
        """Title and text of a file, or an error."""
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
            process.stdin.write(json.dumps(str(path.resolve())).encode() + b"\n")
            process.stdin.flush()
            answer: dict[str, str] = json.loads(process.stdout.readline())
        except (OSError, ValueError):  # the process has ended, in the middle of a line or before it
            self.close()
            reason = f"the file needs more time ({seconds} seconds) or memory than a document does"
            raise CorpusError(f"{reason}; print it to a new PDF to read it") from None
        finally:
            timer.cancel()
        return answer

    def close(self) -> None:
        """End the process."""
        process, self._running = self._running, None
        if process is not None:
            process.kill()
            process.communicate()


def _start() -> subprocess.Popen[bytes]:
    """Start the process: isolated, in Python's own folder, with the packages that this process has imported."""
    origins = [find_spec(name) for name in (__name__.partition(".")[0], "pypdfium2")]
    folders = dict.fromkeys(str(Path(spec.origin).resolve().parent.parent) for spec in origins if spec and spec.origin)
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environment = {name: text for name, text in inherited.items() if all(map(os.path.isabs, text.split(os.pathsep)))}
    return subprocess.Popen(  # noqa: S603 (this interpreter and this module)
        [_interpreter(), "-I", "-c", _START, *folders],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=sys.prefix,
        env=environment,
    )


def _interpreter() -> str:
    """Path of Python; `sys.executable` is another program where Python is embedded, as in uWSGI."""
    if Path(sys.executable).stem.lower().startswith(("python", "pypy")):
        return sys.executable
    return str(Path(sys.prefix, "python.exe") if sys.platform == "win32" else Path(sys.prefix, "bin", "python3"))


def _seconds(size: int) -> int:
    return SECONDS + size * SECONDS_PER_MB // 1_000_000


def answer_requests() -> None:
    """Read the files whose paths come in lines of JSON, and answer each with a line, until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no answer
    for line in sys.stdin.buffer:
        path = Path(json.loads(line))
        answers.write(json.dumps(_read(path)).encode() + b"\n")
        answers.flush()


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = path.read_bytes()
        _limit(len(raw))
        title, text = pdf_to_markdown(raw)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 (the caller raises it: what a library raises is no interface)
        return {"error": str(error) if isinstance(error, CorpusError) else f"cannot be converted: {error}"}
    return {"title": title, "text": text}


def _limit(size: int) -> None:
    """Limit this process while it reads a file of so many bytes, beside what it has used so far."""
    if sys.platform == "win32":  # there, only the time is limited
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    limits = {
        resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime) + 1 + _seconds(size),
        resource.RLIMIT_AS: _address_space() + MEMORY + MEMORY_PER_BYTE * size,
        resource.RLIMIT_CORE: 0,
    }
    for limit, most in limits.items():
        highest = resource.getrlimit(limit)[1]
        within = most if highest == resource.RLIM_INFINITY else min(most, highest)
        resource.setrlimit(limit, (within, highest))


def _address_space() -> int:
    """Bytes of address space in use; an upper bound where the system does not tell."""
    import resource

    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 30
