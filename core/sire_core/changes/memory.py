"""Memory of a process during a build: rarer garbage collections, and memory that returns to the system."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LARGE = 1000
"""Number of documents or passages of a change from which memory is trimmed, which takes some milliseconds."""

_RARE = (20_000, 20, 50)
_TRIM, _MAPPED = -1, -3  # `mallopt` parameters of glibc: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD
_LARGE_ARRAY = 1 << 22
_HIGHEST = 1 << 25  # The value to which glibc itself raises M_MMAP_THRESHOLD when large arrays are freed
_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []  # The thresholds to restore, once per running build
_mapping: list[None] = []  # One entry per running build whose arrays are mapped


@contextmanager
def rare_collections() -> Iterator[None]:
    """Run the garbage collector less often during a build.

    A build creates many objects that stay; collections take a fifth of its CPU time and free next to nothing. The
    thresholds are those of the process: the last running build restores them. A collector that is disabled, or runs
    even less often, is left as it is.
    """
    with _lock:
        first = gc.get_threshold()
        if not _before and 0 < first[0] < _RARE[0]:
            gc.set_threshold(*_RARE)
        _before.append(_before[0] if _before else first)
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before and gc.get_threshold() == _RARE:
                gc.set_threshold(*before)


@contextmanager
def mapped_arrays(*, large: bool) -> Iterator[None]:
    """Have glibc map every large array separately, so that its memory returns to the system when it is freed.

    Otherwise arrays of up to 32 MB fragment the heap by a fifth of the peak of a build of 10,000 passages. A small
    change is faster without.
    """
    if not large:
        yield
        return
    with _lock:
        _mapping.append(None)
        _mallopt(_MAPPED, _LARGE_ARRAY)
    try:
        yield
    finally:
        with _lock:
            _mapping.pop()
            if not _mapping:
                _mallopt(_MAPPED, _HIGHEST)
                _mallopt(_TRIM, 2 * _HIGHEST)


def _mallopt(name: int, value: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(name, value)


def trim_memory() -> None:
    """Return free memory to the system.

    glibc keeps the freed arrays of a stage for the thread that made them: hundreds of megabytes that the next stage, in
    other threads, cannot use.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
