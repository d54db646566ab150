"""Sixty-four calls at once keep nine tenths of the ideal rate, and memory does not grow with the chunks."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc

import pytest

from sire_core.extraction.answers import ExtractionAnswer
from sire_core.extraction.model import ModelExtractor
from sire_core.models.openai_client import OpenAIChat
from sire_core.protocols import ChunkInContext, Completion, Prompt
from sire_core.types import Chunk

pytestmark = pytest.mark.slow

LATENCY = 0.2
CALLS = 64 * 60
# A process of its own: in this one the server's work would count as the client's.
SERVER = f"""
import sys
from sire_core.testing.scripted_server import ScriptedServer
answer = '{{"entities": [{{"id": "n1", "name": "Ann"}}], "facts": [{{"text": "Ann ran.", "entities": ["n1"]}}]}}'
with ScriptedServer(lambda call: answer, latency={LATENCY}) as server:
    print(server.base_url, flush=True)
    sys.stdin.read()
"""


def items(count: int) -> list[ChunkInContext]:
    return [ChunkInContext(Chunk(f"c{n}", f"d{n}", 0, f"Title {n}", f"Ann {n} ran. " * 20)) for n in range(count)]


async def rate(url: str) -> float:
    async with OpenAIChat("m", base_url=url, concurrency=64) as model:
        await model.complete(Prompt("warm", "up"))
        start, done = time.perf_counter(), 0
        async for batch in ModelExtractor(model).extract(items(CALLS)):
            done += sum(record.status == "ok" for record in batch)
        assert done == CALLS
        return CALLS / (time.perf_counter() - start)


async def test_64_concurrent_calls_keep_90_percent_of_the_ideal_rate() -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        # The best of three: other work on the machine can only make it slower.
        best = max([await rate(url) for _ in range(3)])
    finally:
        server.communicate("")
    ideal = 64 / LATENCY
    assert best >= 0.9 * ideal, f"{best:.0f} of {ideal:.0f} calls a second"


class Constant:
    """Answers at once and remembers nothing."""

    fingerprint = "constant"
    concurrency = 64
    answer = ExtractionAnswer.model_validate(
        {"entities": [{"id": "n1", "name": "Ann"}], "facts": [{"text": "Ann ran."}]}
    )

    async def complete(self, prompt: Prompt, **_: object) -> Completion:
        return Completion("", self.answer)


async def peak(count: int) -> int:
    chunks = items(count)
    tracemalloc.start()
    try:
        async for batch in ModelExtractor(Constant()).extract(chunks):
            assert all(record.facts for record in batch)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def test_memory_does_not_grow_with_the_number_of_chunks() -> None:
    await peak(500)
    small, large = await peak(2_000), await peak(20_000)
    assert large < 1.5 * small + 500_000
