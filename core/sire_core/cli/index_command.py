"""`sire index`: documents into an index folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.change_commands import approval, with_documents
from sire_core.cli.changes import run_change
from sire_core.cli.groups import grouped
from sire_core.cli.models import SpendingOptions
from sire_core.cli.options import IndexOptions, ReadingOptions
from sire_core.cli.recipe_options import parse_settings
from sire_core.index import Index

__all__ = ["index"]


@grouped
def index(  # noqa: PLR0917 - typer passes every option by name
    sources: arguments.Sources,
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The index folder; made when it is not there.")],
    reading: ReadingOptions,
    spending: SpendingOptions,
    recipe: arguments.RecipeName = None,
    settings: arguments.Settings = None,
    embedder: arguments.Embedder = None,
    chunk_tokens: arguments.ChunkTokens = None,
    no_chunking: arguments.NoChunking = False,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of every random choice. Default: 0.")] = None,
    runner: arguments.Runner = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Index documents. What DIR holds already stays; documents with a known id are updated.

    The same command again goes on where it was interrupted, or says that nothing changed. With another recipe it adds
    that recipe to the folder; recipes share passages, vectors and extraction. `sire sync` also removes what is no
    longer in SRC.

    With --llm it shows what that will cost and asks before it spends. Every answer is kept the moment it comes: an
    interrupted build pays only for the rest.

    Example: sire index papers/ notes.jsonl --to my-index --recipe sirerag
    """
    options = IndexOptions(
        folder=to,
        recipe=recipe,
        settings=parse_settings(settings),
        embedder=embedder,
        extractions=reading.extractions,
        chunk_tokens=chunk_tokens,
        no_chunking=no_chunking,
        media=reading.media,
        language_model=spending.model(),
        native=spending.native,
        seed=seed,
        workers=spending.workers,
        max_failure_ratio=reading.max_failure_ratio,
        writes=True,
        runner=runner,
    )
    run_change(options, Index.update, sources=sources, as_json=as_json, approve=approval(spending, with_documents))
