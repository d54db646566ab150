"""What a large build has freed goes back to the system."""

from __future__ import annotations

import sys
from contextlib import suppress

__all__ = ["give_back"]


def give_back() -> None:
    """Have the allocator return free memory, where it can be asked to.

    The arrays of a stage leave holes that glibc keeps for the thread which made them: hundreds of megabytes that the
    next stage, in other threads, cannot use.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
