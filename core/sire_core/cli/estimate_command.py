"""`sire estimate`: what a build by a model would cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.change_commands import with_documents
from sire_core.cli.changes import read_sources
from sire_core.cli.models import language_model
from sire_core.cli.options import IndexOptions, open_index
from sire_core.cli.output import say, say_json
from sire_core.cli.recipe_options import parse_settings
from sire_core.cli.spending import estimate_json, find_price

__all__ = ["estimate"]


def estimate(  # noqa: PLR0917 - typer passes every option by name
    sources: arguments.Sources,
    llm: Annotated[str, typer.Option("--llm", metavar="MODEL", help="The model to estimate for.")],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="DIR", help="An existing index folder: include its documents, and subtract what is stored."
        ),
    ] = None,
    recipe: arguments.RecipeName = None,
    settings: arguments.Settings = None,
    chunk_tokens: arguments.ChunkTokens = None,
    no_chunking: arguments.NoChunking = False,
    media: arguments.Media = False,
    extractions: arguments.Extractions = None,
    native: arguments.Native = False,
    prices: arguments.Prices = None,
    base_url: arguments.BaseUrl = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Estimate the cost of a build with a model.

    Shows the model calls, tokens and price of `sire index` with the same options, without calling the model. The number
    of calls for extraction is exact; for summaries it is a range. Retries and a paid embedder are not included.

    JSON: {"passages", "stored", "extraction", "summaries", "total"}, each of the last three with "calls",
    "input_tokens", "output_tokens" and "price" in US dollars as [lowest, highest]; "price" is null when it is unknown.
    """
    options = IndexOptions(
        folder=to,
        recipe=recipe,
        settings=parse_settings(settings),
        extractions=extractions,
        chunk_tokens=chunk_tokens,
        no_chunking=no_chunking,
        media=media,
        language_model=language_model(llm, base_url, asks=False),
        native=native,
        writes=True,
    )
    price = find_price(llm, prices)
    with open_index(options) as index:
        found = index.estimate(with_documents(index, read_sources(sources, options).documents), price)
    if as_json:
        say_json(estimate_json(found))
    else:
        say(found.describe())
