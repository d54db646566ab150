"""`sire reembed`: the same index with the vectors of another embedder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.change_commands import approval, existing_index, with_documents
from sire_core.cli.changes import report_json
from sire_core.cli.groups import grouped
from sire_core.cli.models import SpendingOptions, say_usage
from sire_core.cli.options import ReadingOptions, manifest_of, open_index
from sire_core.cli.output import say, say_json
from sire_core.cli.progress import reporting
from sire_core.errors import IndexLockedError, StorageError

__all__ = ["reembed"]


@grouped
def reembed(
    folder: arguments.Folder,
    embedder: Annotated[
        str,
        typer.Option(
            "--embedder",
            metavar="SPEC",
            help="The new one: `lexical`, `st:NAME_OR_FOLDER`, `openai:MODEL` or `file:PATH`.",
        ),
    ],
    spending: SpendingOptions,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Write a new folder, and leave DIR as it is.")
    ] = None,
    extractions: arguments.Extractions = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Change the embedder of an index.

    Nothing is read or extracted again. All recipes are built again over new vectors in a folder beside DIR, which then
    takes its place. An interrupted run leaves DIR as it was, and the same command goes on. Recipes that a model made
    need the same --llm: summaries of clusters that are other ones now are asked for.

    Example: sire reembed my-index --embedder st:all-MiniLM-L6-v2
    """
    options = existing_index(folder, embedder, spending, None, ReadingOptions(extractions=extractions))
    approve = approval(spending, with_documents)
    target = to or folder.with_name(f".{folder.resolve().name}.reembed")
    generation = manifest_of(folder).generation
    if approve is not None:
        with open_index(options) as index:
            approve(index, ())
    with reporting() as progress, open_index(options, progress) as index:
        report = index.reembed(target, embedder)
    if to is None:
        _take_place(folder, target, generation)
    if as_json:
        say_json(report_json(report, manifest_of(to or folder).recipes[-1].name))
    else:
        say(f"{to or folder}: embedded with {manifest_of(to or folder).embedder}.")
    say_usage(report)


def _take_place(folder: Path, new: Path, generation: int) -> None:
    """Put the new folder in the place of the old one.

    Raises:
        StorageError: The index was changed meanwhile.
        IndexLockedError: Somebody writes to it.
    """
    if manifest_of(folder).generation != generation:
        raise StorageError(f"{folder} was changed meanwhile. Run the same command again: it does only the rest.")
    place = folder.resolve()
    old = place.with_name(f".{place.name}.before")
    try:
        place.rename(old)
    except OSError as error:
        raise IndexLockedError(
            f"{folder} cannot be replaced ({error}). Close what uses it; the new index is in {new}."
        ) from error
    new.rename(place)
    shutil.rmtree(old)
