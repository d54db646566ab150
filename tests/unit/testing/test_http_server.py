"""The loopback server of the tests: what goes wrong in it is seen."""

import asyncio
import http.client
import json
import logging
import socket
import threading

from support.http_server import HttpRequest, HttpResponse, LoopbackServer


async def _echo(request: HttpRequest) -> HttpResponse:
    if request.path == "/broken":
        raise OSError("the disk is full")
    return HttpResponse(body=request.body)


def ask(port, path, body=b"{}"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_a_failing_handler_shows_up_at_the_client_and_in_the_log(caplog):
    with LoopbackServer(_echo) as server:
        status, body = ask(server.port, "/broken")
        assert ask(server.port, "/fine", b"[1]") == (200, b"[1]")
    assert status == 500
    assert "the disk is full" in json.loads(body)["error"]["message"]
    assert "The handler failed at POST /broken." in caplog.text


def test_a_client_that_leaves_in_the_middle_is_noted_and_the_next_one_served(caplog):
    caplog.set_level(logging.DEBUG, "support.http_server")
    with LoopbackServer(_echo) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nhalf")
        assert ask(server.port, "/", b"[2]") == (200, b"[2]")
    assert "The client has gone" in caplog.text


def test_too_large_a_request_is_refused_with_a_warning(caplog):
    with LoopbackServer(_echo) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"POST /big HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n")
        assert client.recv(1) == b""
    assert "POST /big was refused" in caplog.text


def test_stopping_ends_a_handler_that_waits(caplog):
    reached = threading.Event()

    async def waiting(_: HttpRequest) -> HttpResponse:
        reached.set()
        await asyncio.sleep(60)
        return HttpResponse()

    with LoopbackServer(waiting) as server:
        client = socket.create_connection(("127.0.0.1", server.port))
        client.sendall(b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n")
        assert reached.wait(10)
    try:
        client.settimeout(10)
        assert client.recv(1) == b""
    except ConnectionResetError:
        pass  # aborted: gone all the same
    finally:
        client.close()
    assert not caplog.records
