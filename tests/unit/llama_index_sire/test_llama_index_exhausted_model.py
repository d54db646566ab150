"""A model that raises `StopIteration` ends engines and workflows as an error and never holds them up."""

import asyncio
import threading

import pytest
from llama_index.core.llms.mock import MockLLM
from llama_index.core.schema import TextNode

from llama_index_sire import IRCoTQueryEngine, ReasoningWorkflow, SelfAskQueryEngine, SireRetriever
from sire_core.errors import ModelError


class Exhausted(MockLLM):
    def complete(self, prompt, formatted=False, **kwargs):
        raise StopIteration

    def stream_complete(self, prompt, formatted=False, **kwargs):
        raise StopIteration

    async def acomplete(self, prompt, formatted=False, **kwargs):
        return self.complete(prompt)


def in_time(run):
    found = []

    def work():
        try:
            found.append(run())
        except Exception as error:  # noqa: BLE001 - it is what the test looks at
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it hangs"
    return found[0]


async def workflow(engine):
    return await ReasoningWorkflow(engine).run(query="Who?")


WAYS = {
    "query": lambda engine: engine.query("Who?"),
    "aquery": lambda engine: asyncio.run(engine.aquery("Who?")),
    "workflow": lambda engine: asyncio.run(workflow(engine)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", [IRCoTQueryEngine, SelfAskQueryEngine])
def test_it_ends(engine, way):
    retriever = SireRetriever.from_documents([TextNode(id_="a", text="Petra Quillon wrote it.")], recipe="flat")
    error = in_time(lambda: WAYS[way](engine(retriever, llm=Exhausted())))
    assert isinstance(error, ModelError)
    assert "StopIteration" in str(error)
