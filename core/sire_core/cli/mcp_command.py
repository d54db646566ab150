"""`sire mcp`: an index as tools for agents."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.groups import grouped
from sire_core.cli.models import AnswerOptions, LimitOptions
from sire_core.cli.options import SearchOptions, open_index
from sire_core.cli.output import note
from sire_core.errors import ConfigurationError

__all__ = ["mcp"]

_LOOPBACK = "127.0.0.1"


@grouped
def mcp(
    folder: arguments.Folder,
    searching: SearchOptions,
    answering: AnswerOptions,
    limits: LimitOptions,
    http: Annotated[
        int | None,
        typer.Option(
            "--http", metavar="PORT", min=0, max=65535, help="Serve over HTTP instead of stdio; 0 picks a free port."
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Address for --http. There is no authentication: change it only on a network that you trust."
        ),
    ] = _LOOPBACK,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            metavar="NAME",
            help="Host name that clients use for --http; repeatable. Requests to other names are refused.",
        ),
    ] = None,
    allow: arguments.Allow = None,
) -> None:
    """Serve an index to agents over MCP.

    The tools are search, ask, explain and fetch.

    Example, in the MCP configuration of an agent: {"command": "sire", "args": ["mcp", "/path/to/my-index"]}
    """
    if http is None and (host != _LOOPBACK or allowed_host):
        raise ConfigurationError("--host and --allowed-host need --http PORT: over stdio there is no address.")
    try:
        from sire_core.serve.mcp_server import make_server, serve_http, serve_stdio
    except ImportError as error:
        raise ConfigurationError(str(error)) from error
    import asyncio

    if find_spec("opentelemetry") is not None:  # spans go nowhere unless the process has a tracer provider
        from sire_core.telemetry import enable

        enable()
    model = answering.model()
    limits.need_model(model)
    with open_index(searching.options(folder, model, allow)) as index:
        server = make_server(index, model, limits.of_reasoning())
        if http is None:
            asyncio.run(serve_stdio(server))
            return
        if host != _LOOPBACK:
            note(f"Everyone who reaches {host} can read this index.", "yellow")

        def listening(url: str) -> None:
            note(f"Serving {folder} at {url}")

        asyncio.run(serve_http(server, http, host, listening, allowed_hosts=allowed_host or ()))
