"""Writes files that appear whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a path to write to, which replaces a file in one step when the block ends without an error."""
    partial = file.with_name(f".{file.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        partial.unlink(missing_ok=True)  # so that nothing is written through a link
        yield partial
        partial.replace(file)
    finally:
        with suppress(OSError):  # a read-only file system refuses even that
            partial.unlink()
