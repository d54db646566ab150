from __future__ import annotations

import numpy as np
import pytest

from sire_core.errors import ConfigurationError, LimitExceededError, ModelError
from sire_core.models.openai.embedder import OpenAIEmbedder
from sire_core.models.openai.faults import RetryPolicy
from sire_core.models.usage import UsageLimits
from sire_core.protocols import Embedder
from sire_core.testing.doubles import HashEmbedder
from support.http_server import HttpResponse
from support.scripted_server import ScriptedServer

RETRY = RetryPolicy(max_retries=3, base=0.01, cap=0.05, seed=0)


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


async def test_a_model_that_changes_its_length_is_noticed() -> None:
    with ScriptedServer() as server:
        async with embedder(server) as model:
            await model.embed(["a"])
            server._embedder = HashEmbedder(32)
            with pytest.raises(ModelError, match="length 32, not 64"):
                await model.embed(["b"])


async def test_servers_that_know_no_base64_are_asked_for_numbers(monkeypatch) -> None:
    with ScriptedServer() as server:
        message = b'{"error": {"message": "encoding_format base64 is not supported"}}'
        broken(monkeypatch, server, [HttpResponse(400, message)])
        async with embedder(server) as model:
            assert (await model.embed(["a"])).shape == (1, 64)
            assert (await model.embed(["b"])).shape == (1, 64)
            assert model.meter.report().total.calls == 3


async def test_limits_hold_for_batches() -> None:
    with ScriptedServer(latency=0.01) as server:
        async with embedder(server, batch_size=1, limits=UsageLimits(max_calls=3)) as model:
            with pytest.raises(LimitExceededError, match="3 calls"):
                await model.embed([str(n) for n in range(10)])
        assert len(server.embedded) <= 3
