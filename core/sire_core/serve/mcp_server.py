"""An index as a server of the Model Context Protocol, over stdio or HTTP."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from sire_core.errors import SireError
from sire_core.explore.web.server import listen
from sire_core.serve.tools import IndexTools
from sire_core.text.words import clean_value
from sire_core.version import __version__

try:
    from mcp import types
    from mcp.server import Server
    from mcp.server.stdio import stdio_server
    from mcp.server.transport_security import TransportSecuritySettings

    types.CallToolResult.model_fields["is_error"]  # version 1 spelled it otherwise
except (ModuleNotFoundError, KeyError) as error:
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] not in ("mcp", "mcp_types"):
        raise
    raise ImportError('The MCP server needs the MCP SDK, version 2: pip install "sire-rag[mcp]"') from error

if TYPE_CHECKING:
    from sire_core.index import Index
    from sire_core.protocols import LanguageModel
    from sire_core.reason.model_calls import ReasoningLimits

_LOOPBACK = ("127.0.0.1", "localhost", "::1")  # where the SDK itself checks hosts and origins
_PAGES = "Requests of web pages are refused. Start the server with --allowed-host NAME to allow those of that host."

_logger = logging.getLogger(__name__)


def make_server(
    index: Index,
    language_model: LanguageModel | None = None,
    limits: ReasoningLimits | Mapping[str, Any] | None = None,
    cite_key: str = "",
) -> Server:
    """Make a server with the tools `search`, `ask`, `explain`, `fetch`, `open` and `neighbors` over an index.

    What goes wrong in a call reaches the agent as a tool error with our message; anything unforeseen is logged, and the
    agent only learns that it happened. Steps of reasoning are reported as progress to clients that ask for it.

    Results are text alone: of clients that are given structured content beside it, some show a model only the one, some
    only the other and some both.

    Args:
        index: What is searched. Changes made to its folder by others are seen by the next call.
        language_model: Answers questions; without one `ask` says so.
        limits: What one question may cost: `ReasoningLimits`, or a mapping of these.
        cite_key: Metadata key or template by which texts cite documents, such as "source"; by default readable ids,
            else the source, file name or title.

    Raises:
        ConfigurationError: `limits` is neither, or `cite_key` cannot be read.
        IndexMissingError: There is no index.
    """
    tools = IndexTools(index, language_model, limits, cite_key)
    listed = _tool_list(tools)

    async def on_list_tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def on_call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        sent = 0

        async def tell(message: str) -> None:
            nonlocal sent
            sent += 1
            await context.session.report_progress(sent, message=clean_value(message))

        try:
            return _result(await tools.call(params.name, params.arguments or {}, tell))
        except SireError as error:
            return _result(str(error), is_error=True)
        except Exception:
            _logger.exception("The tool %s failed.", params.name)
            return _result("The server failed at this call; its log says why.", is_error=True)

    return Server(
        "sire",
        version=__version__,
        title="Document evidence",
        instructions=tools.introduction(),
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )


def _tool_list(tools: IndexTools) -> list[types.Tool]:
    """The tools as MCP clients see them."""
    hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return [
        types.Tool(
            name=spec.name,
            title=spec.title,
            description=spec.description,
            input_schema=spec.arguments.model_json_schema(),
            annotations=hints,
        )
        for spec in tools.specs()
    ]


async def serve_stdio(server: Server) -> None:
    """Serve one client over this process's stdin and stdout, until it hangs up.

    Meanwhile nothing else can get into the protocol: what is printed goes to stderr.
    """
    async with stdio_server() as (reading, writing):
        # The transport gives stdout back when it ends: what Python still held of prints would follow the protocol.
        with redirect_stdout(sys.stderr):
            await server.run(reading, writing, server.create_initialization_options())


async def serve_http(
    server: Server,
    port: int,
    host: str = "127.0.0.1",
    listening: Callable[[str], None] = lambda _: None,
    *,
    allowed_hosts: Sequence[str] = (),
) -> None:
    """Serve clients over streamable HTTP, until interrupted.

    On loopback, requests that name another host or come from another origin (DNS rebinding) are refused. Nobody is
    asked who they are: on any other address everyone who reaches it can read the index, but for web pages, whose
    requests are refused unless their host is allowed.

    Args:
        server: See `make_server`.
        port: Port; 0 takes a free one.
        host: Address to listen on.
        listening: Told the URL as soon as clients can connect.
        allowed_hosts: Names by which clients may reach the server, without ports; every other one is refused.

    Raises:
        ConfigurationError: The port is taken.
        OSError: The address cannot be used.
    """
    import uvicorn

    with listen(host, port) as listener:
        app = _app(server, host, allowed_hosts)
        address = f"[{host}]" if ":" in host else host
        listening(f"http://{address}:{listener.getsockname()[1]}/mcp")
        # Its log goes to stderr; requests are not logged.
        settings = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)
        await uvicorn.Server(settings).serve(sockets=[listener])


def _app(server: Server, host: str, allowed_hosts: Sequence[str]) -> Any:
    """The application, with a check of hosts and origins."""
    if allowed_hosts:
        names = [f"{name}{port}" for name in allowed_hosts for port in ("", ":*")]
        origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in names]
        security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=origins)
        return server.streamable_http_app(host=host, transport_security=security)
    app = server.streamable_http_app(host=host)
    return app if host in _LOOPBACK else _refusing_pages(app)


def _refusing_pages(app: Any) -> Any:
    """Refuse requests with an origin header: browsers send one, agents do not."""
    from starlette.responses import PlainTextResponse

    async def checked(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and any(name == b"origin" for name, _ in scope["headers"]):
            await PlainTextResponse(_PAGES, status_code=403)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return checked


def _result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    content = types.TextContent(type="text", text=clean_value(text))
    return types.CallToolResult(content=[content], is_error=is_error)
