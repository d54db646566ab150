"""`sire explore`: an index to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.groups import grouped
from sire_core.cli.models import AnswerOptions
from sire_core.cli.options import IndexOptions, check_folder, open_index
from sire_core.cli.output import note
from sire_core.cli.recipe_options import parse_settings
from sire_core.others import of_page

if TYPE_CHECKING:
    from sire_core.index import Index

__all__ = ["explore"]


@grouped
def explore(
    folder: arguments.Folder,
    answering: AnswerOptions,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 picks a free one.")] = 8321,
    host: Annotated[
        str,
        typer.Option("--host", help="Address to listen on. On any but the local machine's, a token is required."),
    ] = "127.0.0.1",
    allow: arguments.Allow = None,
    embedder: arguments.Embedder = None,
    settings: arguments.SearchSettings = None,
) -> None:
    """Open an index as a local web page. Shows the paths to hits, documents, entities and trees.

    The page only reads the index and loads nothing from the internet. Values of --set apply to every search and every
    recipe that has the setting, unless the page sets another value. Needs the extra `explore`.

    Example: sire explore my-index
    """
    check_folder(folder)
    from sire_core.serve.page.explorer import Explorer
    from sire_core.serve.page.server import serve

    model = answering.model()
    said = parse_settings(settings)

    def opened(recipe: str, on_page: Sequence[str]) -> Index:
        options = IndexOptions(
            folder=folder,
            recipe=recipe or None,
            settings=of_page(parse_settings(on_page)),
            beneath=said,
            embedder=embedder,
            language_model=model,
            allow=allow,
        )
        return open_index(options)

    explorer = Explorer(opened, model, folder.resolve().name)
    explorer.recipes()  # what is no index is an error now, not on the page
    if host not in ("127.0.0.1", "localhost", "::1"):
        note(f"Everyone who reaches {host} and has the address below can read this index.", "yellow")
    try:
        serve(explorer, port, host, lambda url: note(f"Exploring {folder} at {url} (Ctrl-C ends it)"))
    finally:
        explorer.close()
