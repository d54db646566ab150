"""Serves the page of `sire explore`: read only, for this machine by default; `Guard` checks who may talk to it."""

from __future__ import annotations

import asyncio
import errno
import hmac
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.explore.web.explorer import Explorer


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise `ConfigurationError` with advice if the port is in use."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise ConfigurationError(
            f"Port {port} of {host} is in use, perhaps by another sire. Name another port, or 0 for one that is free."
        ) from error


LOOPBACK = ("127.0.0.1", "localhost", "::1")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_COOKIE = "sire_token"
_POLICY = (
    b"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'self'; "
    b"form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
)


def is_loopback(host: str) -> bool:
    """True if only this machine can reach an address."""
    return host in LOOPBACK


_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.%]{2,60}\])(?::\d{1,5})?")


@dataclass(frozen=True, slots=True)
class Guard:
    """Refuses requests for other hosts and from other origins (DNS rebinding), and those without the token.

    A link elsewhere opens a page, but what its address asks for is left out: only this page, and a person who
    types an address, can make a search. Other requests from elsewhere (an image, a frame, a prefetch) are refused.
    """

    app: App  # What is guarded
    # Names by which the server may be called, without port; empty for any, which a token has to go with
    hosts: Collection[str] = LOOPBACK
    token: str = ""  # What has to be shown, once in the address (`?token=`) and then by a cookie; empty for none

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {bytes(name).lower(): bytes(value).decode("latin-1") for name, value in scope["headers"]}
        has_one_host = sum(bytes(name).lower() == b"host" for name, _ in scope["headers"]) == 1
        refusal = self._refusal(headers) if has_one_host else "A request names one host."
        if refusal:
            await _refuse(send, 403, refusal)
        elif self.token and not self._knows(scope, headers):
            await _refuse(send, 401, "The address with its ?token=... was printed when the page was started.")
        else:
            checked_scope = {**scope, "query_string": b""} if _from_elsewhere(headers) else scope
            await self.app(checked_scope, receive, self._sending(send))

    def _refusal(self, headers: MutableMapping[bytes, str]) -> str:
        host = headers.get(b"host", "")
        if not _HOST.fullmatch(host) or (self.hosts and _name(f"//{host}") not in self.hosts):
            return f"This page does not answer as {host!r}."
        origin = headers.get(b"origin")
        if origin is not None and _netloc(origin) != host:
            return f"This page takes nothing from {origin!r}."
        if _from_elsewhere(headers) and not _is_link(headers):
            return "This page is not part of another one."
        return ""

    def _knows(self, scope: Scope, headers: MutableMapping[bytes, str]) -> bool:
        tokens = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        try:
            cookie = SimpleCookie(headers.get(b"cookie", "")).get(_COOKIE)
        except CookieError:
            cookie = None
        return self._equals(tokens + ([cookie.value] if cookie else []))

    def _equals(self, tokens: Iterable[str]) -> bool:
        return any(hmac.compare_digest(token.encode(), self.token.encode()) for token in tokens)

    def _sending(self, send: Send) -> Send:
        cookie = f"{_COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/"

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = [*_HEADERS, *([(b"set-cookie", cookie.encode())] if self.token else [])]
                message = {**message, "headers": [*message.get("headers", ()), *headers]}
            await send(message)

        return sending


def _from_elsewhere(headers: MutableMapping[bytes, str]) -> bool:
    """True if another page made the browser ask. Browsers that do not say so (before 2023) may name that page."""
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    referer = headers.get(b"referer")
    return referer is not None and _netloc(referer) != headers.get(b"host", "")


def _is_link(headers: MutableMapping[bytes, str]) -> bool:
    """True if a person follows a link or types an address, in a window of its own."""
    return headers.get(b"sec-fetch-mode", "navigate") == "navigate" and (
        headers.get(b"sec-fetch-dest", "document") == "document"
    )


def _netloc(address: str) -> str:
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""


def _name(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


async def _refuse(send: Send, status: int, why: str) -> None:
    kind = [(b"content-type", b"text/plain; charset=utf-8"), *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": f"{why}\n".encode()})


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

        from sire_core.explore.web.pages import application
    except ImportError as error:
        raise ConfigurationError('The page needs Starlette and uvicorn: pip install "sire-rag[explore]"') from error
    local = is_loopback(host)
    token = "" if local else secrets.token_urlsafe(16)
    guard = Guard(application(explorer), LOOPBACK if local else (), token)
    with listen(host, port) as listener:
        shown_host = f"[{host}]" if ":" in host else host
        listening(f"http://{shown_host}:{listener.getsockname()[1]}/" + (f"?token={token}" if token else ""))
        # Its log goes to stderr; requests are not logged.
        settings = uvicorn.Config(guard, log_level="warning", ws="none", timeout_graceful_shutdown=5)
        asyncio.run(uvicorn.Server(settings).serve(sockets=[listener]))
