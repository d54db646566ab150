"""What a build asks of the interpreter and of the allocator: `rare_collections` and `give_back`."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["give_back", "rare_collections"]

_RARE = (20_000, 20, 50)
_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []
"""The thresholds to put back, once for every build that is under way."""


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


def give_back() -> None:
    """Have the allocator return free memory, where it can be asked to.

    The arrays of a stage leave holes that glibc keeps for the thread which made them: hundreds of megabytes that the
    next stage, in other threads, cannot use.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
