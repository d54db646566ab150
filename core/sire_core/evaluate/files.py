"""Results as files that are replaced in one step."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from sire_core.errors import ConfigurationError

__all__ = ["Jsonable", "write_rows", "write_text"]


class Jsonable(Protocol):
    """A result that can be written."""

    def as_json(self) -> dict[str, Any]:
        """JSON-serialisable values."""


def write_rows(path: str | Path, rows: Sequence[Jsonable]) -> None:
    """Write rows as a JSON list (`as_json`); the file is replaced in one step.

    Raises:
        ConfigurationError: The file cannot be written.
    """
    write_text(path, json.dumps([row.as_json() for row in rows], ensure_ascii=False, indent=1) + "\n")


def write_text(path: str | Path, text: str) -> None:
    """Write a file in one step.

    Raises:
        ConfigurationError: The file cannot be written.
    """
    path = Path(path)
    partial = ""
    try:
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(partial).chmod(0o644)  # mkstemp makes files that only their owner can read
        Path(partial).replace(path)
    except OSError as error:
        if partial:
            Path(partial).unlink(missing_ok=True)
        reason = error.strerror or error
        raise ConfigurationError(f"{path} cannot be written ({reason}); name a file in a folder you own.") from error
