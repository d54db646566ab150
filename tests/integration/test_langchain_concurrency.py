"""Async that does not block, and what the adapter costs."""

import asyncio
import time

import pytest
from langchain_core.embeddings import Embeddings

from langchain_sire import SireRetriever
from sire_core.data import demo_documents
from sire_core.models.sync import run_sync
from sire_core.testing.doubles import HashEmbedder
from support.adapter_results import longest_pause


class SlowQueries(Embeddings):
    """A sync-only embedding model that takes 0.3 seconds for a question."""

    model = "slow"

    def embed_documents(self, texts):
        return run_sync(HashEmbedder().embed(texts)).tolist()

    def embed_query(self, text):
        time.sleep(0.3)
        return self.embed_documents([text])[0]


class SlowAsync(SlowQueries):
    async def aembed_query(self, text):
        await asyncio.sleep(0.3)
        return (await HashEmbedder().embed([text]))[0].tolist()


@pytest.fixture(params=[SlowQueries, SlowAsync])
def retriever(request):
    texts = [d.text for d in demo_documents()[:8]]
    return SireRetriever.from_texts(texts, request.param(), recipe="flat", k=2)


async def test_trap_four_concurrent_retrievals_take_the_time_of_one(retriever):
    start = time.perf_counter()
    found = await asyncio.gather(*(retriever.ainvoke("Who was it?") for _ in range(4)))
    assert time.perf_counter() - start < 0.6
    assert all(one == found[0] and len(one) == 2 for one in found)


async def test_a_ticking_task_keeps_its_beat(retriever):
    assert await longest_pause(retriever.ainvoke("Who was it?")) < 0.25  # the query itself takes 0.3 s


def test_the_adapter_adds_less_than_a_millisecond_at_k_20():
    texts = [d.text for d in demo_documents()]
    retriever = SireRetriever.from_texts(texts, recipe="flat", k=20)
    question = "Who commanded the Northern Wren?"

    def seconds(search):
        start = time.process_time()  # what other processes of the machine do is no matter
        search()
        return time.process_time() - start

    retriever.invoke(question)
    pairs = [
        (seconds(lambda: retriever.index.search(question, 20)), seconds(lambda: retriever.invoke(question)))
        for _ in range(100)
    ]
    core, adapter = (sorted(times)[10] for times in zip(*pairs, strict=True))
    assert adapter - core < 0.001, f"core {core * 1e3:.2f} ms, with LangChain {adapter * 1e3:.2f} ms"
