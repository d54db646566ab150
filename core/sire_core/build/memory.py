"""What a build asks of the interpreter and the allocator: `rare_collections`, `mapped_arrays` and `trim_memory`."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["LARGE", "mapped_arrays", "rare_collections", "trim_memory"]

LARGE = 1000
"""Documents or passages of a change from which on memory is looked after: it takes some milliseconds each time."""

_RARE = (20_000, 20, 50)
_TRIM, _MAPPED = -1, -3
"""Names of glibc's `mallopt` for how much free memory it keeps, and from which size on it maps each array alone."""
_LARGE_ARRAY = 1 << 22
_HIGHEST = 1 << 25
"""What glibc raises the latter to by itself when arrays of this size are freed."""
_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []
"""The thresholds to put back, once for every build that is under way."""
_mapping: list[None] = []
"""One for every build under way whose arrays are mapped."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Have the interpreter look for cycles of objects less often, for as long as a build makes objects that stay.

    Every look goes through all of them, which takes a fifth of a build's CPU time and finds next to nothing. Thresholds
    are those of the process: the last build that ends puts them back. A collector that is switched off, or runs even
    less often, is left as it is.
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
    """Have glibc map every large array by itself, so that its memory is the system's again when it is freed.

    Otherwise arrays of up to 32 MB come to lie among others, and leave holes that nothing fits into: a fifth of what a
    build of 10,000 passages takes. Behind the build it is as glibc would have it by then.
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
        import ctypes

        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(name, value)


def trim_memory() -> None:
    """Have the allocator return free memory, where it can be asked to.

    The arrays of a stage leave holes that glibc keeps for the thread which made them: hundreds of megabytes that the
    next stage, in other threads, cannot use.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
