"""A model that raises, `StopIteration` above all, ends chains, graphs, engines and builds as an error: none hangs."""

import asyncio
import threading

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from llama_index.core.llms.mock import MockLLM
from llama_index.core.schema import TextNode

import langchain_sire
import llama_index_sire
from langchain_sire import create_ircot_chain, create_ircot_graph, create_self_ask_chain, create_self_ask_graph
from llama_index_sire import IRCoTQueryEngine, ReasoningWorkflow, SelfAskQueryEngine
from sire_core.errors import ModelError

QUESTION = "Who wrote it?"
TEXT = "Petra Quillon wrote it."


class Exhausted(MockLLM):
    def complete(self, prompt, formatted=False, **kwargs):
        raise StopIteration

    def stream_complete(self, prompt, formatted=False, **kwargs):
        raise StopIteration

    async def acomplete(self, prompt, formatted=False, **kwargs):
        return self.complete(prompt)


def langchain(make):
    retriever = langchain_sire.SireRetriever.from_documents([Document(id="a", page_content=TEXT)], recipe="flat")
    return make(retriever, GenericFakeChatModel(messages=iter(["So Petra Quillon wrote it, it seems."])))


def llama_index(make):
    return make(llama_index_sire.SireRetriever.from_documents([TextNode(text=TEXT)], recipe="flat"), llm=Exhausted())


def in_time(run):
    """What a call that has to end returns or raises."""
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


async def astream(chain):
    return [part async for part in chain.astream(QUESTION)]


async def workflow(engine):
    return await ReasoningWorkflow(engine).run(query=QUESTION)


CHAINS = {
    "invoke": lambda chain: chain.invoke(QUESTION),
    "stream": lambda chain: list(chain.stream(QUESTION)),
    "batch": lambda chain: chain.batch([QUESTION, QUESTION]),
    "ainvoke": lambda chain: asyncio.run(chain.ainvoke(QUESTION)),
    "astream": lambda chain: asyncio.run(astream(chain)),
}
ENGINES = {
    "query": lambda engine: engine.query(QUESTION),
    "aquery": lambda engine: asyncio.run(engine.aquery(QUESTION)),
    "workflow": lambda engine: asyncio.run(workflow(engine)),
}
CALLS = [(langchain, make, way) for make in (create_ircot_chain, create_self_ask_chain) for way in CHAINS.values()]
CALLS += [(llama_index, make, way) for make in (IRCoTQueryEngine, SelfAskQueryEngine) for way in ENGINES.values()]


@pytest.mark.parametrize(("over", "make", "way"), CALLS)
def test_a_call_ends_with_an_error(over, make, way):
    assert isinstance(in_time(lambda: way(over(make))), ModelError)


@pytest.mark.parametrize("ask", [lambda g, given: g.invoke(given), lambda g, given: asyncio.run(g.ainvoke(given))])
@pytest.mark.parametrize("make", [create_ircot_graph, create_self_ask_graph])
def test_a_graph_says_it_in_its_state(make, ask):
    state = in_time(lambda: ask(langchain(make), {"question": QUESTION}))
    assert state["stop"] == "model_failed"
    assert state["note"].startswith("the chat model failed")


@pytest.mark.parametrize(
    ("kind", "documents", "model"),
    [
        (langchain_sire.SireRetriever, [Document(page_content=TEXT)], GenericFakeChatModel(messages=iter([]))),
        (llama_index_sire.SireRetriever, [TextNode(text=TEXT)], Exhausted()),
    ],
)
def test_a_build_ends(kind, documents, model):
    error = in_time(lambda: kind.from_documents(documents, llm=model, recipe="sirerag"))
    assert "StopIteration" in str(error)
