"""Python processes that import nothing from the current folder or the user's script; cores and memory settings."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

_RARE_COLLECTIONS = (20_000, 20, 50)
"""Thresholds of the garbage collector for a build: collections take a fifth of its time and free next to nothing."""
_M_MMAP_THRESHOLD = -3  # of glibc's mallopt
_LARGE_ARRAY_BYTES = 1 << 22

_START = (
    "import sys; from importlib import import_module; "
    "place = next((n for n, path in enumerate(sys.path) if path.endswith('-packages')), len(sys.path)); "
    "sys.path[place:place] = sys.argv[2:]; module, _, name = sys.argv[1].partition(':'); "
    "getattr(import_module(module), name)()"
)
"""This package is imported from the caller's folder, but no module of it before those of Python."""


def start_isolated(
    function: str, libraries: Sequence[str], env: Mapping[str, str], plugins: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """Start Python, in its own folder, to call one function of this package; pipes are its standard input and output.

    `function` is `module:name`. It imports `libraries` from where this process has them, and packages in the folders
    `plugins`; `env` has all of its environment variables, of which those of Python itself count for nothing.
    """
    origins = [find_spec(name) for name in (__name__.partition(".")[0], *libraries)]
    folders = dict.fromkeys(str(Path(spec.origin).resolve().parent.parent) for spec in origins if spec and spec.origin)
    return subprocess.Popen(  # noqa: S603 (this interpreter and this package)
        [_interpreter(), "-I", "-c", _START, function, *(folders | dict.fromkeys(plugins))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=sys.prefix,
        env=dict(env),
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


def tune_own_process() -> None:
    """Collect garbage rarely in a process that is ours, and let glibc return large arrays as soon as they are freed."""
    gc.set_threshold(*_RARE_COLLECTIONS)
    if sys.platform == "linux" and "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_ARRAY_BYTES)


def _interpreter() -> str:
    """Path of Python; `sys.executable` is another program where Python is embedded, as in uWSGI."""
    if Path(sys.executable).stem.lower().startswith(("python", "pypy")):
        return sys.executable
    return str(Path(sys.prefix, "python.exe") if sys.platform == "win32" else Path(sys.prefix, "bin", "python3"))


def usable_cores(root: Path = Path("/")) -> int:
    """Number of cores that this process may use: those of its affinity, within the quota of its control groups."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *_quotas(root)]))


def _quotas(root: Path) -> list[int]:
    """Whole cores that control groups allow, of this process's group and all above it."""
    try:
        groups = [line.split(":", 2) for line in (root / "proc/self/cgroup").read_text("utf-8").splitlines()]
    except OSError:
        return []
    quotas: list[int] = []
    for _, controllers, path in groups:
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        folder = top / path.strip("/")
        # In a container the path is one of the host, and the container's own group is the top.
        for group in dict.fromkeys([folder, *folder.parents, top]):
            if group.is_relative_to(top):
                quotas += _quota(group)
    return quotas


def _quota(group: Path) -> list[int]:
    """Cores that one group allows; nothing without a limit."""
    names = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
    texts = [(group / name).read_text("ascii") for name in names if (group / name).is_file()]
    with suppress(ValueError):  # `max`
        quota, period = map(int, " ".join(texts).split())
        return [quota // period] if quota > 0 and period > 0 else []
    return []
