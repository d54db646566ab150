"""A small HTTP/1.1 server on loopback, in a thread of its own, and the model servers upon it. Plain asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from typing_extensions import Self

__all__ = ["HttpRequest", "HttpResponse", "LoopbackServer", "ModelServer"]


_logger = logging.getLogger(__name__)

_MAX_BODY = 64 * 1024 * 1024
_MAX_HEAD = 64 * 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Method, path, body and headers (names in lower case) of a request."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response, and how its delivery goes wrong.

    Attributes:
        status: HTTP status.
        body: What is sent in one go.
        headers: More headers.
        deliver: `whole`, `half` (the connection closes in the middle of the body) or `reset` (nothing is sent).
        parts: Server-sent events, each sent when it is there, in the place of the body; closed early when the client
            goes. With `half` the connection closes after the last one, without the mark of an end.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    deliver: str = "whole"
    parts: AsyncGenerator[bytes, None] | None = None


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


class LoopbackServer:
    """Serves a handler at 127.0.0.1 from `start` (or `with`) to `stop`, at the latest until the process ends.

    A handler that raises answers 500 with the error, which is logged, too. With `tls` it speaks that.
    """

    def __init__(self, handler: Handler, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self._handler = handler
        self._tls = tls
        self.port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    def start(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="scripted-server", daemon=True)
        self._thread.start()
        if not ready.wait(10) or self._loop is None:
            raise OSError("the scripted server does not start")

    def stop(self) -> None:
        """Close every connection and end the thread."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(loop.stop)
            thread.join(10)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, ready: threading.Event) -> None:
        loop = asyncio.new_event_loop()
        try:
            serving = asyncio.start_server(self._connected, "127.0.0.1", self.port, backlog=512, ssl=self._tls)
            server = loop.run_until_complete(serving)
            self.port = server.sockets[0].getsockname()[1]
            self._loop = loop
            ready.set()
            loop.run_forever()
            server.close()
            for _ in range(3):  # under load connections are still being accepted while the first are dropped
                loop.run_until_complete(self._drop_connections())
        finally:
            ready.set()
            loop.close()

    async def _drop_connections(self) -> None:
        await _turns()  # connections that were accepted last get their task, which closes them
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in list(self._writers):
            writer.transport.abort()  # closing politely would wait for clients that do not read any more
        await _turns()  # transports finish closing

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Known from the first moment: a connection whose task has not begun when the server stops is closed, too."""
        self._writers.add(writer)
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                response = await self._answer(request)
                if response.deliver == "reset":
                    _reset(writer)
                    break
                if response.parts is not None:
                    if not await _send_parts(response, response.parts, reader, writer):
                        break
                    continue
                writer.write(_encode(response))
                await writer.drain()
                if response.deliver == "half":
                    break
        except (OSError, asyncio.IncompleteReadError) as error:
            _logger.debug("The client has gone in the middle of a request or an answer: %r", error)
        except Exception:
            _logger.exception("An answer broke off.")
        finally:
            writer.close()
            # The client may be gone, or the server stops now: then the connection is aborted in any case.
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
                self._writers.discard(writer)

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        """What the handler says; a handler that fails must show up at the client, not vanish in a thread."""
        try:
            return await self._handler(request)
        except Exception as error:
            _logger.exception("The handler failed at %s %s.", request.method, request.path)
            return HttpResponse(500, json.dumps({"error": {"message": f"the handler failed: {error!r}"}}).encode())


async def _turns() -> None:
    """Let the loop go round a few times: accepting and closing a connection take up to three turns."""
    for _ in range(5):
        await asyncio.sleep(0)


async def _read(reader: asyncio.StreamReader) -> HttpRequest | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None  # the client hangs up between requests, as it should
    except asyncio.LimitOverrunError as error:
        _logger.warning("A request with too long a head was refused: %s", error)
        return None
    lines = head.decode("latin-1").split("\r\n")
    method, path, _ = [*lines[0].split(" "), "", ""][:3]
    pairs = (line.partition(":") for line in lines[1:])
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs if name.strip()}
    said = headers.get("content-length", "")
    length = int(said) if said.isdigit() else 0
    if length > _MAX_BODY or len(head) > _MAX_HEAD:
        _logger.warning("%s %s was refused: %d bytes.", method, path, len(head) + length)
        return None
    return HttpRequest(method, path, await reader.readexactly(length), headers)


def _encode(response: HttpResponse) -> bytes:
    body = response.body if response.deliver == "whole" else response.body[: len(response.body) // 2]
    return _head(response, {"content-type": "application/json", "content-length": str(len(response.body))}) + body


def _head(response: HttpResponse, headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**headers, **response.headers}.items())
    return f"HTTP/1.1 {response.status} Scripted\r\n{lines}\r\n".encode("latin-1")


async def _send_parts(
    response: HttpResponse,
    parts: AsyncGenerator[bytes, None],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> bool:
    """Send events as they come; whether the connection may be used again."""
    writer.write(_head(response, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))
    async with contextlib.aclosing(parts):
        async for part in parts:
            if reader.at_eof():  # the client has gone
                return False
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
    if response.deliver == "half":
        return False
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class ModelServer(ABC):
    """An OpenAI-compatible server under `base_url`, from `start` (or `with`) to `stop`."""

    def __init__(self, port: int = 0) -> None:
        self._http = LoopbackServer(self._handle, port)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.port}/v1"

    def start(self) -> Self:
        self._http.start()
        return self

    def stop(self) -> None:
        self._http.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    async def _handle(self, request: HttpRequest) -> HttpResponse:
        """Answer a request."""
