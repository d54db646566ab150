"""`sire check`: whether an index is what was written."""

from __future__ import annotations

from dataclasses import asdict

import typer

from sire_core.cli import arguments
from sire_core.cli.output import count, say, say_json

__all__ = ["check"]


def check(folder: arguments.Folder, as_json: arguments.AsJson = False) -> None:
    """Compare an index with its checksums. Says what to do where it is damaged.

    The exit code is 0 when all is as it was written, else 1. The index is only read, and may be in use.
    """
    from sire_core.storage.check import check_folder

    found = check_folder(folder)
    if as_json:
        say_json({"ok": not found, "findings": [asdict(finding) for finding in found]})
    elif found:
        say(f"{folder}: {count(len(found), 'finding')}.")
        for finding in found:
            say(f"{finding.file}: {finding.problem}")
            say(finding.advice, indent=4)
    else:
        say(f"{folder}: everything is as it was written.")
    if found:
        raise typer.Exit(1)
