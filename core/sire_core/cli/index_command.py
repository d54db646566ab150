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
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The index folder; created if it does not exist.")],
    reading: ReadingOptions,
    spending: SpendingOptions,
    recipe: arguments.RecipeName = None,
    settings: arguments.Settings = None,
    embedder: arguments.Embedder = None,
    chunk_tokens: arguments.ChunkTokens = None,
    no_chunking: arguments.NoChunking = False,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Random seed. Default: 0.")] = None,
    runner: arguments.Runner = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Index documents. Adds new documents and updates those with a known id.

    Nothing is removed: to remove documents that are no longer in SRC, use `sire sync`. To resume an interrupted build,
    run the same command again. With another --recipe, that recipe is added to the folder; recipes share passages,
    vectors and extraction.

    With --llm, the expected cost is shown and you are asked before anything is spent. Every answer is stored as it
    arrives, so a resumed build pays only for the rest.

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
