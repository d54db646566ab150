"""`sire backup`: a copy of an index that may be in use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.options import IndexOptions, check_folder, open_index
from sire_core.cli.output import say

__all__ = ["backup"]


def backup(
    folder: arguments.Folder,
    to: Annotated[Path, typer.Argument(metavar="NEW_DIR", help="The new folder; made when it is not there.")],
) -> None:
    """Copy an index, also one that is in use.

    The copy is the index as of the last commit, with all that was extracted and answered. An index that nobody uses may
    be copied and moved like any other folder.
    """
    check_folder(folder, to)
    with open_index(IndexOptions(folder=folder)) as index:
        index.save(to)
        say(f"{to}: a copy of {folder}, {index.stats()['documents']:,} documents.")
