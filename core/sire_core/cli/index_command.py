"""`sire index`: documents into an index folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.changes import run_change
from sire_core.cli.options import IndexOptions, parse_settings
from sire_core.index import Index

__all__ = ["index"]


def index(  # noqa: PLR0917 - typer passes every option by name
    sources: arguments.Sources,
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The index folder; made when it is not there.")],
    recipe: arguments.RecipeName = None,
    settings: arguments.Settings = None,
    embedder: arguments.Embedder = None,
    chunk_tokens: Annotated[
        int | None, typer.Option("--chunk-tokens", min=1, help="Longest passage, in words and signs. Default: 512.")
    ] = None,
    no_chunking: Annotated[bool, typer.Option("--no-chunking", help="Take every document as one passage.")] = False,
    extractions: arguments.Extractions = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of every random choice. Default: 0.")] = None,
    workers: arguments.Workers = 8,
    max_failure_ratio: arguments.MaxFailureRatio = 0.1,
    as_json: arguments.AsJson = False,
) -> None:
    """Index documents: DIR then holds exactly what is in SRC.

    The same command again goes on where it was interrupted, or says that nothing changed. With another recipe it adds
    that recipe to the folder; recipes share passages, vectors and extraction.

    Example: sire index papers/ notes.jsonl --to my-index --recipe sirerag
    """
    options = IndexOptions(
        folder=to,
        recipe=recipe,
        settings=parse_settings(settings or ()),
        embedder=embedder,
        extractions=extractions,
        chunk_tokens=chunk_tokens,
        no_chunking=no_chunking,
        seed=seed,
        workers=workers,
        max_failure_ratio=max_failure_ratio,
        writes=True,
    )
    run_change(options, Index.build, sources=sources, as_json=as_json)
