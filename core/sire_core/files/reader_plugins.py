"""Readers of further formats, which installed packages offer as entry points of the group `sire_core.files`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from sire_core.errors import CorpusError

GROUP = "sire_core.files"


def plugin_suffix(name: str) -> str:
    """The suffix of a file name that a plug-in reads (`.1`, `.1.gz`); empty if none does."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes[-2:]]
    return next((suffix for suffix in ("".join(suffixes), "".join(suffixes[-1:])) if suffix in _entries()), "")


def plugin_module(suffix: str) -> str:
    """Name of the module that reads a suffix; empty for a suffix of no plug-in."""
    entry = _entries().get(suffix)
    return entry.module if entry else ""


def plugin_folders() -> list[str]:
    """Folders of the packages that offer readers."""
    return [str(_folder(entry)) for entry in _entries().values()]


def load_plugin(suffix: str) -> Callable[[Path], tuple[str, str]]:
    """The function that reads a suffix (path -> title and Markdown); `CorpusError` if it cannot be imported."""
    entry = _entries()[suffix]
    try:
        read: Callable[[Path], tuple[str, str]] = entry.load()
    except Exception as error:  # whatever a module of others does when it is imported
        package = entry.dist.name if entry.dist else entry.value
        reason = f"the reader of {suffix} in {package} cannot be loaded ({type(error).__name__}: {error})"
        raise CorpusError(f"{reason}; mend or uninstall that package") from error
    return read


def _entries() -> Mapping[str, EntryPoint]:
    """Entry points by suffix; looked up again when the path of modules or the current folder changes."""
    current = ""
    with suppress(OSError):  # a folder that is gone
        current = str(Path.cwd().resolve())
    return _entries_on(tuple(sys.path), current)


@lru_cache(maxsize=1)
def _entries_on(_path: tuple[str, ...], current: str) -> Mapping[str, EntryPoint]:
    entries = entry_points(group=GROUP)
    return {entry.name.lower(): entry for entry in entries if entry.dist and str(_folder(entry)) != current}


def _folder(entry: EntryPoint) -> Path:
    """Folder of a package; that in the current folder is a file of the user's documents, and never imported."""
    return Path(str(entry.dist.locate_file(""))).resolve() if entry.dist else Path()
