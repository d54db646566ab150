"""`sire index`: documents into an index folder."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.changes import run_change
from sire_core.cli.models import DEFAULT_KEY, approve_cost, find_price, language_model
from sire_core.cli.options import IndexOptions, parse_settings
from sire_core.index import Index

__all__ = ["index"]


def index(  # noqa: PLR0917 - typer passes every option by name
    sources: arguments.Sources,
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The index folder; made when it is not there.")],
    recipe: arguments.RecipeName = None,
    settings: arguments.Settings = None,
    embedder: arguments.Embedder = None,
    chunk_tokens: arguments.ChunkTokens = None,
    no_chunking: arguments.NoChunking = False,
    extractions: arguments.Extractions = None,
    llm: arguments.Llm = None,
    base_url: arguments.BaseUrl = None,
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY,
    native: arguments.Native = False,
    max_calls: arguments.MaxCalls = None,
    max_tokens: arguments.MaxTokens = None,
    prices: arguments.Prices = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Pay for --llm without asking.")] = False,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of every random choice. Default: 0.")] = None,
    workers: arguments.Workers = 8,
    max_failure_ratio: arguments.MaxFailureRatio = 0.1,
    as_json: arguments.AsJson = False,
) -> None:
    """Index documents: DIR then holds exactly what is in SRC.

    The same command again goes on where it was interrupted, or says that nothing changed. With another recipe it adds
    that recipe to the folder; recipes share passages, vectors and extraction.

    With --llm it shows what that will cost and asks before it spends. Every answer is kept the moment it comes: an
    interrupted build pays only for the rest.

    Example: sire index papers/ notes.jsonl --to my-index --recipe sirerag
    """
    model = language_model(
        llm, base_url, api_key_env, native=native, max_calls=max_calls, max_tokens=max_tokens, workers=workers
    )
    options = IndexOptions(
        folder=to,
        recipe=recipe,
        settings=parse_settings(settings or ()),
        embedder=embedder,
        extractions=extractions,
        chunk_tokens=chunk_tokens,
        no_chunking=no_chunking,
        language_model=model,
        native=native,
        seed=seed,
        workers=workers,
        max_failure_ratio=max_failure_ratio,
        writes=True,
    )
    approve = None if llm is None else partial(approve_cost, price=find_price(llm, prices), yes=yes)
    run_change(options, Index.build, sources=sources, as_json=as_json, approve=approve)
