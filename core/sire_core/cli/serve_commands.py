"""`sire explore` and `sire mcp`: an index to look at, and as tools for agents."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

from sire_core.cli import option_groups
from sire_core.cli.model_options import AnswerOptions, LimitOptions
from sire_core.cli.option_groups import grouped, option
from sire_core.cli.options import IndexOptions, SearchOptions, check_folder, open_index, parse_settings
from sire_core.cli.output import note
from sire_core.errors import ConfigurationError
from sire_core.settings import from_page

if TYPE_CHECKING:
    from sire_core.index import Index


@grouped
def explore(
    folder: option_groups.Folder,
    answering: AnswerOptions,
    port: Annotated[int, option("--port", "Port; 0 picks a free one.", min=0, max=65535)] = 8321,
    host: Annotated[
        str,
        option("--host", "Address to listen on. On any but the local machine's, a token is required."),
    ] = "127.0.0.1",
    allow: option_groups.Allow = None,
    embedder: option_groups.Embedder = None,
    settings: option_groups.SearchSettings = None,
) -> None:
    """Open an index as a local web page. Shows the paths to hits, documents, entities and trees.

    The page only reads the index and loads nothing from the internet. Values of --set apply to every search and every
    recipe that has the setting, unless the page sets another value. Needs the extra `explore`.

    Example: sire explore my-index
    """
    check_folder(folder)
    from sire_core.evaluate.made_questions import example_questions
    from sire_core.explore.web.explorer import Explorer
    from sire_core.explore.web.server import serve

    model = answering.model()
    search_settings = parse_settings(settings)

    def opened(recipe: str, on_page: Sequence[str]) -> Index:
        options = IndexOptions(
            folder=folder,
            recipe=recipe or None,
            settings=from_page(parse_settings(on_page)),
            defaults=search_settings,
            embedder=embedder,
            language_model=model,
            allow=allow,
        )
        return open_index(options)

    explorer = Explorer(opened, model, folder.resolve().name, example_questions)
    explorer.recipes()  # what is no index is an error now, not on the page
    if host not in ("127.0.0.1", "localhost", "::1"):
        note(f"Everyone who reaches {host} and has the address below can read this index.", "yellow")
    try:
        serve(explorer, port, host, lambda url: note(f"Exploring {folder} at {url} (Ctrl-C to stop)"))
    finally:
        explorer.close()


_LOOPBACK = "127.0.0.1"

Http = Annotated[
    int | None, option("--http PORT", "Serve over HTTP instead of stdio; 0 picks a free port.", min=0, max=65535)
]
HttpHost = Annotated[
    str,
    option("--host", "Address for --http. There is no authentication: change it only on a network that you trust."),
]
AllowedHost = Annotated[
    list[str] | None,
    option(
        "--allowed-host NAME", "Host name that clients use for --http; repeatable. Requests to other names are refused."
    ),
]
CiteKey = Annotated[
    str,
    option(
        "--cite-key KEY",
        "Metadata key, or template such as '{source}, page {page}', by which texts cite documents. "
        "Default: readable ids, else source, file name or title.",
    ),
]


@grouped
def mcp(
    folder: option_groups.Folder,
    searching: SearchOptions,
    answering: AnswerOptions,
    limits: LimitOptions,
    http: Http = None,
    host: HttpHost = _LOOPBACK,
    allowed_host: AllowedHost = None,
    allow: option_groups.Allow = None,
    cite_key: CiteKey = "",
) -> None:
    """Serve an index to agents over MCP.

    The tools are search, ask, explain, fetch, open and neighbors. For agents that run commands, see `sire skill`.

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
        server = make_server(index, model, limits.of_reasoning(), cite_key)
        if http is None:
            _leave_at_interrupt()
            asyncio.run(serve_stdio(server))
            return
        if host != _LOOPBACK:
            note(f"Everyone who reaches {host} can read this index.", "yellow")
        serving = serve_http(
            server, http, host, lambda url: note(f"Serving {folder} at {url}"), allowed_hosts=allowed_host or ()
        )
        asyncio.run(serving)


def _leave_at_interrupt() -> None:
    """End at once at Ctrl-C: a thread waits for the next line of the client, and would keep the process."""
    import os
    import signal

    def leave(*_: object) -> None:
        note("Interrupted.")
        os._exit(130)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # of the main thread, where it is not ignored
        signal.signal(signal.SIGINT, leave)
