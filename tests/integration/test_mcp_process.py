"""`sire mcp` as a process: the SDK's own client over stdio and over HTTP."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from sire_core import Document, Index
from support.command import run, run_python
from support.scripted_server import ScriptedServer

SIRE = ["-c", "from sire_core.cli import main; main()"]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}
QUESTION = {"query": "Who founded Brackwater Press?", "k": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("mcp") / "ix"
    with Index(place, recipe="flat") as index:
        index.build(
            [
                Document("m-1", "Ada Holm founded Brackwater Press.", metadata={"year": 1901}),
                Document("m-2", "Brackwater Press stood in Lindle."),
                Document("m-3", "The Marl is a river."),
            ]
        )
    return place


def stdio(folder, *options):
    words = [*SIRE, "mcp", str(folder), *options]
    return stdio_client(StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ)))


@contextmanager
def http_server(folder, *options):
    """The command with --http 0; gives the process and the URL that it names."""
    words = [sys.executable, *SIRE, "mcp", str(folder), "--http", "0", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stderr.readline()
            while line and "http://" not in line:
                line = process.stderr.readline()
            yield process, line.split()[-1]
        finally:
            process.kill()


@pytest.fixture(scope="module")
def served(folder):
    """The process and the URL of a server."""
    with http_server(folder) as found:
        yield found


@pytest.fixture(scope="module")
def on_every_address(folder):
    """By options the URL of a server on all addresses."""
    with ExitStack() as servers:

        @cache
        def url(*options):
            found = servers.enter_context(http_server(folder, "--host", "0.0.0.0", *options))
            return found[1].replace("0.0.0.0", "127.0.0.1")

        yield url


EVERYTHING = (["search", "ask", "explain", "fetch", "open", "neighbors"], "Question: Who founded", True, "query: ")


async def ask_everything(server, mode="auto"):
    """How the first hit is cited, and: names of the tools, how an explanation and a refusal begin."""
    async with Client(server, mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search", QUESTION)
        explained = await client.call_tool("explain", QUESTION)
        refused = await client.call_tool("search", {"query": ""})
    explained, reason = explained.content[0].text, refused.content[0].text
    cited = re.match(r"\[(.*?)\] \(passage", found.content[0].text)[1]
    return cited, (names, explained[:21], refused.is_error, reason[:7])


@pytest.mark.quick(mode=["auto"])
@pytest.mark.parametrize("mode", ["legacy", "auto"])  # clients of before and after the 2026 protocol
async def test_over_stdio(folder, mode):
    assert await ask_everything(stdio(folder), mode) == ("m-1", EVERYTHING)


async def test_over_http(folder):
    with http_server(folder, "--cite-key", "{id} of {year}") as (process, url):
        assert url.startswith("http://127.0.0.1:")
        assert await ask_everything(url) == ("m-1 of 1901", EVERYTHING)
        answers = await asyncio.gather(*(search(url, f"river {number}") for number in range(4)))
        assert all(answers)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stdout.read() == ""
        assert "Traceback" not in process.stderr.read()


async def search(url, query):
    async with Client(url) as client:
        return (await client.call_tool("search", {"query": query})).content[0].text


def test_nothing_but_the_protocol_is_on_stdout(folder):
    calls = [
        INITIALIZE,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "search", "arguments": QUESTION}},
    ]
    # Whatever prints inside a call must not reach the client, C code included.
    noisy = (
        "import os, sire_core.index as i; search = i.Index.asearch\n"
        "async def loud(*a, **k):\n"
        "    print('NOISE'); os.write(1, b'NOISE'); return await search(*a, **k)\n"
        "i.Index.asearch = loud\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", noisy + SIRE[1], "mcp", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdin.write("".join(json.dumps(call) + "\n" for call in calls))
        process.stdin.flush()
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        out, err = process.communicate(timeout=30)
    assert [line["id"] for line in lines] == [1, 2]
    assert lines[1]["result"]["content"][0]["text"].startswith("[m-1]")
    assert out == ""
    assert err.count("NOISE") == 2
    assert process.returncode == 0


JUNK = [
    *(b"", b"not json", b"[]", b"null", b"\xff\xfe\x00", b'{"jsonrpc":"2.0"}', b"[" * 100_000),
    *(b'{"jsonrpc":"2.0","id":{},"method":5}', b'"' + b"x" * 3_000_000 + b'"', b'{"jsonrpc":"2.0","id":1e999}'),
]


@pytest.mark.quick(end=["interrupt in a call", "cancel and half a line"])
@pytest.mark.parametrize(
    "end", ["end of input", "interrupt", "interrupt in a call", "cancel and half a line", "terminate"]
)
def test_a_session_may_end_in_any_way(folder, end):
    """Idle or while a model answers; what came before on the line may be anything."""
    with ScriptedServer(latency=30.0) as model:
        words = [sys.executable, *SIRE, "mcp", str(folder), "--llm", "m", "--base-url", model.base_url]
        ask = {"name": "ask", "arguments": {"question": "Who founded Brackwater Press?"}}
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:

            def send(*calls):
                process.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **call}).encode() + b"\n" for call in calls))
                process.stdin.flush()

            def answer(number):
                while True:
                    line = json.loads(process.stdout.readline())
                    if line.get("id") == number:
                        return line["result"]

            send(INITIALIZE, {"method": "notifications/initialized"})
            answer(1)
            process.stdin.write(b"\n".join([*JUNK, b""]))
            send({"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": QUESTION}})
            assert answer(2)["content"][0]["text"].startswith("[m-1]")
            if end in ("interrupt in a call", "cancel and half a line", "terminate"):
                send({"id": 3, "method": "tools/call", "params": ask})
                until = time.monotonic() + 20
                while not model.received:
                    assert time.monotonic() < until, "the model was never asked"
                    time.sleep(0.01)
            if end == "cancel and half a line":
                send({"method": "notifications/cancelled", "params": {"requestId": 3}})
                send({"id": 4, "method": "tools/call", "params": {"name": "search", "arguments": QUESTION}})
                assert answer(4)["content"][0]["text"].startswith("[m-1]")
            if "interrupt" in end or end == "terminate":
                process.send_signal(signal.SIGINT if "interrupt" in end else signal.SIGTERM)
                expected = 130 if "interrupt" in end else -signal.SIGTERM
                assert process.wait(10) == expected
            else:
                process.stdin.write(b'{"jsonrpc":"2.0","id":9,"meth' if "half" in end else b"")
                process.stdin.close()
                assert process.wait(20) == 0
            assert b"Traceback" not in process.stderr.read()
            assert process.stdout.read() == b""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("{folder}/none",), "There is no index in"),
        (("{folder}", "-r", "nope"), "There is no recipe 'nope'"),
        (("{folder}", "--llm", "m", "--api-key-env", "NOT_SET_HERE"), "--api-key-env takes the name"),
        (("{folder}", "--base-url", "http://x"), "--base-url needs --llm MODEL"),
        (("{folder}", "--llm", "m", "--base-url", "localhost:1/v1"), "--base-url is an address with http://"),
        (("{folder}", "--host", "0.0.0.0"), "--host and --allowed-host need --http PORT"),
    ],
)
def test_what_stops_it_at_the_start(folder, options, message):
    done = run("mcp", *(word.format(folder=folder) for word in options), code=1)
    assert message in done.stderr
    assert done.stdout == ""


def test_a_taken_port_is_an_error_in_a_line(folder, served):
    assert "in use" in run("mcp", folder, "--http", urlsplit(served[1]).port, code=1).stderr


def status_of(url, headers):
    """The status that the server answers a greeting with; by the standard library, which every environment has."""
    try:
        with urlopen(Request(url, json.dumps(INITIALIZE).encode(), headers), timeout=30) as answer:
            return answer.status
    except HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize(
    ("lie", "statuses"),
    [({}, [200]), ({"Host": "evil.example"}, [403, 421]), ({"Origin": "http://evil.example"}, [403, 421])],
)
def test_other_hosts_and_origins_are_refused(served, lie, statuses):
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    assert status_of(served[1], {**headers, **lie}) in statuses


@pytest.mark.quick(options=[("--allowed-host", "agents.example")])
@pytest.mark.parametrize(
    ("options", "header", "status"),
    [
        ((), {}, (200,)),
        ((), {"Host": "agents.example"}, (200,)),
        ((), {"Origin": "http://evil.example", "Host": "evil.example"}, (403,)),
        (("--allowed-host", "agents.example"), {"Host": "agents.example:80"}, (200,)),
        (("--allowed-host", "agents.example"), {"Host": "agents.example", "Origin": "https://agents.example"}, (200,)),
        (("--allowed-host", "agents.example"), {"Host": "evil.example"}, (403, 421)),
        (("--allowed-host", "agents.example"), {"Host": "agents.example", "Origin": "http://evil.example"}, (403, 421)),
    ],
)
def test_web_pages_are_refused_on_other_addresses_too(on_every_address, options, header, status):
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    assert status_of(on_every_address(*options), {**headers, **header}) in status


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's table of sockets")
def test_it_listens_on_loopback_alone(served):
    process, url = served
    port = urlsplit(url).port
    rows = [line.split() for line in Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]]
    assert [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]


def test_without_the_sdk_one_line_says_what_to_install(folder):
    code = "import sys; sys.modules['mcp'] = None\n" + SIRE[1]
    done = run_python(code, "mcp", folder, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == 'error: The MCP server needs the MCP SDK, version 2: pip install "sire-rag[mcp]"'


def test_the_example_shows_what_an_agent_sees():
    path = Path(__file__).resolve().parents[2] / "examples" / "mcp_client.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "41 documents" in done.stdout
    assert "search(query, k, filter, as_of, max_tokens)\nask(query, k, filter, as_of, show_steps, via, " in done.stdout
    assert "explain(query, k, filter, as_of, doc_id)\nfetch(doc_id, start, length)" in done.stdout
    assert "[bruno-hask] " in done.stdout.split("What the agent reads:")[1]
    assert "A mistake: Cannot read the filter at character 5" in done.stdout
