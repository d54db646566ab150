"""`sire mcp`: an index as tools for agents."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.models import DEFAULT_KEY, language_model
from sire_core.cli.options import IndexOptions, open_index
from sire_core.cli.output import note
from sire_core.cli.recipe_options import parse_settings
from sire_core.errors import ConfigurationError

__all__ = ["mcp"]

_LOOPBACK = "127.0.0.1"


def mcp(  # noqa: PLR0917 - typer passes every option by name
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
    allow: Annotated[
        str | None,
        typer.Option("--allow", metavar="F", help="All that agents may see, as in --filter of sire query."),
    ] = None,
    recipe: arguments.RecipeName = None,
    settings: arguments.SearchSettings = None,
    embedder: arguments.Embedder = None,
    llm: Annotated[
        str | None, typer.Option("--llm", metavar="MODEL", help="Let this model answer questions, for the tool `ask`.")
    ] = None,
    base_url: arguments.BaseUrl = None,
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY,
    model_timeout: arguments.ModelTimeout = None,
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", min=0, help="Most requests to the model for one question.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=0, help="Most tokens, in and out, for one question.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="Most seconds for one question.")
    ] = None,
) -> None:
    """Serve an index to agents over MCP.

    The tools are search, ask, explain and fetch.

    Example, in the configuration of an agent: {"command": "sire", "args": ["mcp", "/path/to/my-index"]}
    """
    if http is None and host != _LOOPBACK:
        raise ConfigurationError("--host needs --http PORT: over stdio there is no address.")
    try:
        from sire_core.serve.mcp_server import make_server, serve_http, serve_stdio
    except ImportError as error:
        raise ConfigurationError(str(error)) from error
    import asyncio

    from sire_core.reason.limits import ReasoningLimits

    if find_spec("opentelemetry") is not None:  # spans go nowhere unless the process has a tracer provider
        from sire_core.telemetry import enable

        enable()
    model = language_model(llm, base_url, api_key_env, model_timeout=model_timeout)
    chosen = parse_settings(settings)
    options = IndexOptions(
        folder=folder, recipe=recipe, settings=chosen, embedder=embedder, language_model=model, allow=allow
    )
    with open_index(options) as index:
        limits = ReasoningLimits(max_calls=max_calls, max_tokens=max_tokens, timeout=timeout)
        server = make_server(index, model, limits)
        if http is None:
            asyncio.run(serve_stdio(server))
            return
        if host != _LOOPBACK:
            note(f"Everyone who reaches {host} can read this index.", "yellow")
        asyncio.run(serve_http(server, http, host, lambda url: note(f"Serving {folder} at {url}")))
