"""`sire mcp`: an index as tools for agents."""

from __future__ import annotations

from typing import Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.models import DEFAULT_KEY, language_model
from sire_core.cli.options import IndexOptions, open_index
from sire_core.cli.output import note
from sire_core.errors import ConfigurationError

__all__ = ["mcp"]

_LOOPBACK = "127.0.0.1"


def mcp(
    folder: arguments.Folder,
    http: Annotated[
        int | None,
        typer.Option("--http", metavar="PORT", min=0, max=65535, help="Serve over HTTP; 0 takes a free port."),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Address for --http. Nobody is asked who they are: leave it unless the network is your own."
        ),
    ] = _LOOPBACK,
    recipe: arguments.RecipeName = None,
    embedder: arguments.Embedder = None,
    llm: Annotated[
        str | None, typer.Option("--llm", metavar="MODEL", help="Let this model answer questions, for the tool `ask`.")
    ] = None,
    base_url: arguments.BaseUrl = None,
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY,
) -> None:
    """Serve an index to agents over MCP: the tools search, ask and explain.

    Example, in the configuration of an agent: {"command": "sire", "args": ["mcp", "/path/to/my-index"]}
    """
    try:
        from sire_core.serve.mcp_server import make_server, serve_http, serve_stdio
    except ImportError as error:
        raise ConfigurationError(str(error)) from error
    import asyncio

    model = language_model(llm, base_url, api_key_env)
    with open_index(IndexOptions(folder=folder, recipe=recipe, embedder=embedder, language_model=model)) as index:
        server = make_server(index, model)
        if http is None:
            asyncio.run(serve_stdio(server))
            return
        if host != _LOOPBACK:
            note(f"Everyone who reaches {host} can read this index.", "yellow")
        asyncio.run(serve_http(server, http, host, lambda url: note(f"Serving {folder} at {url}")))
