"""Serves the page of `sire explore`: read only, and for this machine by default."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from sire_core.errors import ConfigurationError
from sire_core.listening import listen
from sire_core.serve.page.guard import LOOPBACK, Guard, is_loopback

if TYPE_CHECKING:
    from sire_core.serve.page.explorer import Explorer

__all__ = ["serve"]


def serve(
    explorer: Explorer,
    port: int = 0,
    host: str = LOOPBACK[0],
    listening: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the page until interrupted.

    On loopback, requests that name another host or come from another origin (DNS rebinding) are refused. On any other
    address a token has to be shown, which is part of the address that `listening` is told.

    Args:
        explorer: What is shown.
        port: Port; 0 takes a free one.
        host: Address to listen on.
        listening: Told the address of the page as soon as it answers.

    Raises:
        ConfigurationError: The extra `explore` is not installed, or the port is taken.
        OSError: The address cannot be used.
    """
    try:
        import uvicorn
        from fastapi import FastAPI
        from fastapi.middleware.gzip import GZipMiddleware
        from nicegui import app as framework
        from nicegui import ui
    except ImportError as error:
        raise ConfigurationError('The page needs NiceGUI: pip install "sire-rag[explore]"') from error
    from sire_core.serve.page.pages import register

    app = FastAPI(openapi_url=None)
    register(explorer)
    # The bar that runs along while a file is uploaded has no name for those who cannot see it.
    framework.config.quasar_config["loadingBar"] = {"skipHijack": True}
    local = is_loopback(host)
    # The framework's generator of styles, which runs in the browser before anything is painted, is left out (the pages
    # have a few styles of their own), and so is compression on this machine: they were half of the first paint.
    ui.run_with(
        app,
        title=f"sire: {explorer.title}",
        dark=None,
        show_welcome_message=False,
        tailwind=False,
        gzip_middleware_factory=None if local else GZipMiddleware,
    )
    token = "" if local else secrets.token_urlsafe(16)
    guard = Guard(app, LOOPBACK if local else (), token)
    with listen(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        listening(f"http://{shown}:{listener.getsockname()[1]}/" + (f"?token={token}" if token else ""))
        # Its log goes to stderr; requests are not logged.
        settings = uvicorn.Config(guard, log_level="warning", ws="websockets-sansio")
        asyncio.run(uvicorn.Server(settings).serve(sockets=[listener]))
