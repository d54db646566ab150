"""`sire add`, `sire update`, `sire delete`: changes of an index that is there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.changes import run_change
from sire_core.cli.options import IndexOptions, manifest_of
from sire_core.errors import IndexMissingError
from sire_core.index import Index

__all__ = ["add", "delete", "update"]


def add(
    folder: arguments.Folder,
    sources: arguments.Sources,
    embedder: arguments.Embedder = None,
    extractions: arguments.Extractions = None,
    workers: arguments.Workers = 8,
    max_failure_ratio: arguments.MaxFailureRatio = 0.1,
    as_json: arguments.AsJson = False,
) -> None:
    """Add documents to an index. Those that are there already and did not change are left alone.

    All recipes of the folder follow. A document that is there with another text is an error; `sire update` replaces it.
    """
    options = _existing(folder, embedder, extractions, workers, max_failure_ratio)
    run_change(options, Index.add, sources=sources, as_json=as_json)


def update(
    folder: arguments.Folder,
    sources: arguments.Sources,
    embedder: arguments.Embedder = None,
    extractions: arguments.Extractions = None,
    workers: arguments.Workers = 8,
    max_failure_ratio: arguments.MaxFailureRatio = 0.1,
    as_json: arguments.AsJson = False,
) -> None:
    """Replace documents by id, and add those that are new. Others stay; all recipes of the folder follow."""
    options = _existing(folder, embedder, extractions, workers, max_failure_ratio)
    run_change(options, Index.update, sources=sources, as_json=as_json)


def delete(
    folder: arguments.Folder,
    doc_ids: Annotated[list[str], typer.Argument(metavar="DOC_ID...", help="Ids of the documents to remove.")],
    embedder: arguments.Embedder = None,
    extractions: arguments.Extractions = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Remove documents and everything that was derived from them. With an unknown id nothing is removed."""
    options = _existing(folder, embedder, extractions)
    run_change(options, lambda index, _: index.delete(doc_ids), as_json=as_json)


def _existing(
    folder: Path, embedder: str | None, extractions: Path | None, workers: int = 8, max_failure_ratio: float = 0.1
) -> IndexOptions:
    """Options of a change; the index must be there, so that a typing error does not start a new one.

    Raises:
        IndexMissingError: There is no index.
    """
    if not manifest_of(folder).generation:
        raise IndexMissingError(f"There is no index in {folder}. Build one: sire index SRC... --to {folder}")
    return IndexOptions(
        folder=folder,
        embedder=embedder,
        extractions=extractions,
        workers=workers,
        max_failure_ratio=max_failure_ratio,
        writes=True,
    )
