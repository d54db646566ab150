"""Faults of model servers over real HTTP: nothing lost, nothing bad kept, limits kept, the next run repairs."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sire_core import Document, Index, UsageLimits
from sire_core.errors import ConfigurationError, LimitExceededError, ModelError
from sire_core.extraction.model_extractor import ModelExtractor
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.embedder import OpenAIEmbedder
from sire_core.models.openai.faults import RetryPolicy
from sire_core.protocols import ChunkInContext, Embedder, Prompt
from sire_core.testing.doubles import HashEmbedder, ScriptedCall
from sire_core.types import Chunk
from support.faults import always, at_calls, by_chance, first
from support.http_server import HttpRequest, HttpResponse, LoopbackServer
from support.scripted_server import ScriptedServer

RETRY = RetryPolicy(max_retries=3, base=0.01, cap=0.05, seed=0)
SILENT = ("stall", "timeout")
MENDED = ("fenced", "trailing_comma")
REPAIRED = ("garbage", "wrong_schema", "empty")
CUT = ("half_answer",)  # twice: what it finished is used, see test_model_build_failures.py
REPEATED = ("half_body", "stall", "reset", "not_json", "rate_limit", "rate_limit_date", "server_error", "timeout")
REFUSED = ("refusal", "content_filter")
IN_TRANSIT = ("half_body", "stall", "reset", "timeout")
"""Faults that are tried over both HTTP clients; what a body says is read alike over both."""


def client(server: ScriptedServer, **settings) -> OpenAIChat:
    return OpenAIChat("m", **{"base_url": server.base_url, "retry": RETRY, "concurrency": 4, **settings})


def patience(fault: str) -> dict[str, object]:
    """Who waits for a silent server waits little, and not often; all others are not hurried on a busy machine."""
    return {"timeout": 1.0, "retry": replace(RETRY, max_retries=1)} if fault in SILENT else {}


def documents(count: int) -> list[Document]:
    return [
        Document(f"d{n}", f"Ann {n} met Bob in Paris. It was sold in 19{n:02d}.", f"Title {n}") for n in range(count)
    ]


def items(count: int) -> list[ChunkInContext]:
    return [ChunkInContext(Chunk(f"c{n}", d.id, 0, d.title, d.text)) for n, d in enumerate(documents(count))]


def index_of(folder: Path, model: OpenAIChat, **options) -> Index:
    """An index that asks for every passage once: nothing else in it is written by a model."""
    options = {"recipe": "sire", "embedder": HashEmbedder(), "max_failure_ratio": 1.0, **options}
    return Index(folder, language_model=model, **options)


def of_faults(*faults: str) -> pytest.MarkDecorator:
    default = pytest.mark.quick(transport=["default"])
    return pytest.mark.parametrize(
        "fault", [fault if fault in IN_TRANSIT else pytest.param(fault, marks=default) for fault in faults]
    )


@pytest.mark.usefixtures("transport")
@of_faults(*MENDED, *REPAIRED, *CUT, *REPEATED)
def test_a_fault_once_per_prompt_loses_nothing(tmp_path, fault: str) -> None:
    with (
        ScriptedServer(faults=first(fault)) as server,
        index_of(tmp_path / "ix", client(server, **patience(fault))) as index,
    ):
        report = index.build(documents(6))
        assert report.failures == ()
        assert report.calls == server.received == (6 if fault in MENDED else 12)
        assert index.build(documents(6)).calls == 0


@pytest.mark.usefixtures("transport")
@of_faults(*REPAIRED, *REPEATED, *REFUSED)
def test_a_fault_for_ever_is_listed_not_kept_and_repaired_by_the_next_build(tmp_path, fault: str) -> None:
    with (
        ScriptedServer(faults=always(fault, lambda call: "Title 3" in call.data)) as server,
        index_of(tmp_path / "ix", client(server, **patience(fault))) as index,
    ):
        report = index.build(documents(6))
        assert [failure.where for failure in report.failures] == ["d3#0"]
        assert len(reason := report.failures[0].reason) > 10
        assert "cancel" not in reason.lower(), "of a task of ours"
        assert (report.added, index.stats()["failed"]) == (6, 1)
        tries = 1 if fault in REFUSED else 2 if fault in (*REPAIRED, *SILENT) else 1 + RETRY.max_retries
        assert server.received == 5 + tries
        assert index.search("Title 3", 1)[0].doc_ids == ("d3",), "by the passage itself"
        again = index.build(documents(6))
        assert ([failure.where for failure in again.failures], again.generation) == (["d3#0"], report.generation)
        assert server.received == 5 + 2 * tries
        server.faults = lambda _: None
        mended = index.build(documents(6))
        assert (mended.failures, mended.generation) == ((), report.generation + 1)
        assert server.received == 6 + 2 * tries
        assert (index.build(documents(6)).calls, index.stats()["failed"]) == (0, 0)


@pytest.mark.parametrize("limit", [0, 1, 7, 23])
def test_limits_hold_to_the_call_among_faults_and_concurrency(tmp_path, limit: int) -> None:
    plan = by_chance({"garbage": 0.2, "server_error": 0.2, "rate_limit": 0.1, "reset": 0.1}, seed=limit)
    with ScriptedServer(faults=plan, latency=0.002, retry_after=0.01) as server:
        limited = index_of(
            tmp_path / "ix", client(server, concurrency=16), workers=16, limits=UsageLimits(max_calls=limit)
        )
        with limited as index, pytest.raises(LimitExceededError, match="goes on from here"):
            index.build(documents(40))
        assert server.received == limit
        answered = [entry for entry in server.log if entry.status == 200 and not entry.fault]
        server.faults = lambda _: None
        with index_of(tmp_path / "ix", client(server)) as index:
            assert index.build(documents(40)).failures == ()
        assert server.received == limit + 40 - len(answered)


async def test_retry_after_is_honoured_by_everyone_at_once() -> None:
    with ScriptedServer(faults=at_calls({1: "rate_limit"}), retry_after=0.3) as server:
        async with client(server, concurrency=4) as model:
            loop = asyncio.get_running_loop()
            start = loop.time()
            await model.complete(Prompt("x", "first"))
            assert loop.time() - start >= 0.3


async def test_a_wait_beyond_reason_fails_at_once() -> None:
    with ScriptedServer(faults=always("rate_limit"), retry_after=4000) as server:
        async with client(server) as model:
            with pytest.raises(ModelError, match="asks to wait 4000 s"):
                await model.complete(Prompt("x", "y"))
            assert server.received == 1


async def test_concurrency_adapts_to_what_the_server_bears() -> None:
    def crowded(call: ScriptedCall):
        return "rate_limit" if call.active > 5 else None

    with ScriptedServer(faults=crowded, latency=0.01, retry_after=0.02) as server:
        async with client(server, concurrency=32, retry=RetryPolicy(max_retries=30, base=0.01, cap=0.05)) as model:
            found = [record async for batch in ModelExtractor(model).extract(items(150)) for record in batch]
    assert [record.status for record in found] == ["ok"] * 150
    refused = [entry for entry in server.log if entry.status == 429]
    # Without adaptation most requests of 32 at a time would be refused again and again.
    assert len(refused) < 150


async def test_a_chosen_format_is_not_changed() -> None:
    with ScriptedServer(formats=()) as server:
        async with client(server, structured="json_schema") as model:
            found = [record async for batch in ModelExtractor(model).extract(items(1)) for record in batch]
        assert found[0].status == "failed"
        assert "not supported" in found[0].reason
        assert server.received == 1


async def test_images_travel_as_data_urls() -> None:
    with ScriptedServer() as server:
        async with client(server) as blind, client(server, vision=True) as model:
            with pytest.raises(ConfigurationError, match="vision=True"):
                await blind.complete(Prompt("Describe.", "", (b"\xff\xd8x",)))
            await model.complete(Prompt("Describe.", "a photo", (b"\x89PNG....", b"\xff\xd8....")))
        parts = server.log[0].call.body["messages"][1]["content"]
        urls = [part["image_url"]["url"][:22] for part in parts[1:]]
        assert urls == ["data:image/png;base64,", "data:image/jpeg;base64"]
        assert server.log[0].call.data == "a photo"


def test_one_client_serves_many_event_loops() -> None:
    with ScriptedServer() as server:
        model = client(server)

        async def once() -> str:
            text = (await model.complete(Prompt("x", "hello"))).text
            await model.aclose()
            return text

        assert [asyncio.run(once()) for _ in range(3)] == ["hello"] * 3


async def test_a_cancelled_call_leaves_the_client_usable() -> None:
    with ScriptedServer(latency=0.2) as server:
        async with client(server, timeout=5, concurrency=1) as model:
            task = asyncio.create_task(model.complete(Prompt("x", "slow")))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await model.complete(Prompt("x", "again"))).text == "again"
            assert model.meter.report().total.calls == 2


@pytest.mark.usefixtures("transport")
async def test_a_server_that_does_not_run_is_said_at_once_and_one_that_restarts_is_waited_for() -> None:
    slow = replace(RETRY, base=60.0, cap=60.0)
    for address, why in (("127.0.0.1:9", "refused"), ("nowhere.invalid", "no such host")):
        async with OpenAIChat("m", base_url=f"http://{address}/v1", retry=slow) as nobody:
            with pytest.raises(ModelError, match=f"{address}: .*{why}"):
                await asyncio.wait_for(nobody.complete(Prompt("x")), 10)
            with pytest.raises(ModelError, match=why):
                async for _ in nobody.stream(Prompt("x")):
                    pass
        async with OpenAIEmbedder("m", base_url=f"http://{address}/v1", retry=slow) as nobody:
            with pytest.raises(ModelError, match=why):
                await nobody.embed(["x"])
    with ScriptedServer() as server:
        async with client(server) as model:
            await model.complete(Prompt("x"))
            server.stop()
            with pytest.raises(ModelError, match="failed 4 times"):
                await model.complete(Prompt("y"))


@pytest.mark.usefixtures("transport")
async def test_a_certificate_that_nobody_vouches_for_is_said_at_once_and_may_be_trusted(tmp_path, monkeypatch) -> None:
    async def answer(_: HttpRequest) -> HttpResponse:
        return HttpResponse(body=b'{"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}')

    certificate, key = tmp_path / "own.pem", tmp_path / "key.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost".split()
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate")
    subprocess.run(["openssl", *words, "-keyout", key, "-out", certificate], check=True, capture_output=True)

    async def plain(reader, writer):
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with OpenAIChat("m", base_url=f"https://127.0.0.1:{port}/v1", retry=RETRY) as wrong:
            with pytest.raises(ModelError, match="does not speak TLS; base_url may begin with http://"):
                await wrong.complete(Prompt("x"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with LoopbackServer(answer, tls=tls) as server:
        own = OpenAIChat("m", base_url=f"https://localhost:{server.port}/v1", retry=replace(RETRY, base=60.0, cap=60.0))
        with pytest.raises(
            ModelError, match=r"certificate is not trusted \(self.signed certificate\); set SSL_CERT_FILE"
        ):
            await asyncio.wait_for(own.complete(Prompt("x")), 10)
        await own.aclose()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        async with OpenAIChat("m", base_url=f"https://localhost:{server.port}/v1", retry=RETRY) as trusting:
            assert (await trusting.complete(Prompt("x"))).text == "hello"


async def test_missing_key_and_missing_package(monkeypatch) -> None:
    async with OpenAIChat("m") as model:
        with pytest.raises(ConfigurationError, match=r"(?i)key|credential"):
            await model.complete(Prompt("x"))
    assert "secret" not in repr(OpenAIChat("m", api_key="secret"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"pip install \"sire-rag\[openai\]\""):
        OpenAIChat("m")


def test_the_fingerprint_names_what_changes_answers_and_not_the_address() -> None:
    one = OpenAIChat("m", base_url="http://a/v1").fingerprint
    assert one == OpenAIChat("m", base_url="http://b/v1", concurrency=3, timeout=1).fingerprint == "openai:m"
    assert OpenAIChat("m", extra_body={"top_p": 0.1}).fingerprint != one
    assert OpenAIChat("m", revision="q4").fingerprint == "openai:m:q4"


def embedder(server: ScriptedServer, **settings) -> OpenAIEmbedder:
    return OpenAIEmbedder("m", base_url=server.base_url, retry=RETRY, **settings)


async def test_vectors_come_in_order_batched_by_count_and_tokens() -> None:
    texts = [f"word{n} " * (1 + n % 5) for n in range(50)]
    with ScriptedServer() as server:
        async with embedder(server, batch_size=8, batch_tokens=30) as model:
            with pytest.raises(ConfigurationError, match="dimension"):
                _ = model.dimension
            found = await model.embed(texts)
            assert model.dimension == 64
            assert isinstance(model, Embedder)
    assert np.array_equal(found, await HashEmbedder(64).embed(texts))
    assert found.dtype == np.float32
    assert all(len(batch) <= 8 for batch in server.embedded)
    assert sorted(text for batch in server.embedded for text in batch) == sorted(texts)
    assert model.meter.report().stages["embed"].calls == len(server.embedded) > 7


async def test_dimensions_prefixes_and_empty_texts() -> None:
    with ScriptedServer() as server:
        async with embedder(server, dimensions=16, query_prefix="query: ") as model:
            assert model.dimension == 16
            assert (await model.embed(["", "a b"], "document")).shape == (2, 16)
            await model.embed(["who"], "query")
            assert (await model.embed([])).shape == (0, 16)
            with pytest.raises(ConfigurationError, match="kind"):
                await model.embed(["x"], "passage")
            fingerprint = model.fingerprint
        assert server.embedded == [[" ", "a b"], ["query: who"]]
    assert fingerprint not in {OpenAIEmbedder("m").fingerprint, OpenAIEmbedder("m", dimensions=16).fingerprint}
    assert OpenAIEmbedder("m").spec == "openai:m"
    assert OpenAIEmbedder("text-embedding-3-small").dimension == 1536


def broken(monkeypatch, server: ScriptedServer, responses: list[HttpResponse | None]) -> None:
    """Answer the first requests with these responses; None leaves one to the server."""
    real = server._embed

    async def embed(body):
        response = responses.pop(0) if responses else None
        return response or await real(body)

    monkeypatch.setattr(server, "_embed", embed)


async def test_transient_faults_are_repeated(monkeypatch) -> None:
    with ScriptedServer() as server:
        broken(
            monkeypatch,
            server,
            [
                HttpResponse(500),
                HttpResponse(429, headers={"retry-after": "0.05"}),
                HttpResponse(deliver="reset"),
                None,
            ],
        )
        async with embedder(server) as model:
            assert (await model.embed(["a"])).shape == (1, 64)
            assert model.meter.report().total.calls == 4


async def test_servers_that_know_no_base64_are_asked_for_numbers(monkeypatch) -> None:
    with ScriptedServer() as server:
        message = b'{"error": {"message": "encoding_format base64 is not supported"}}'
        broken(monkeypatch, server, [HttpResponse(400, message)])
        async with embedder(server) as model:
            assert (await model.embed(["a"])).shape == (1, 64)
            assert (await model.embed(["b"])).shape == (1, 64)
            assert model.meter.report().total.calls == 3
