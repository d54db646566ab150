"""A chat model that raises, `StopIteration` above all, ends a chain as an error and never holds it up."""

import asyncio
import threading

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

from langchain_sire import (
    SireRetriever,
    create_ircot_chain,
    create_ircot_graph,
    create_self_ask_chain,
    create_self_ask_graph,
)
from sire_core.errors import ModelError

QUESTION = "Who wrote it?"


def retriever():
    return SireRetriever.from_documents([Document(id="a", page_content="Petra Quillon wrote it.")], recipe="flat")


def model():
    return GenericFakeChatModel(messages=iter(["So Petra Quillon wrote it, it seems."]))


def in_time(run):
    """The exception of a call that has to end."""
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


async def _astream(chain):
    return [part async for part in chain.astream(QUESTION)]


WAYS = {
    "invoke": lambda chain: chain.invoke(QUESTION),
    "stream": lambda chain: list(chain.stream(QUESTION)),
    "batch": lambda chain: chain.batch([QUESTION, QUESTION]),
    "ainvoke": lambda chain: asyncio.run(chain.ainvoke(QUESTION)),
    "astream": lambda chain: asyncio.run(_astream(chain)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [create_ircot_chain, create_self_ask_chain])
def test_a_chain_ends(make, way):
    assert isinstance(in_time(lambda: WAYS[way](make(retriever(), model()))), ModelError)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("make", [create_ircot_graph, create_self_ask_graph])
def test_a_graph_ends(make, way):
    graph = make(retriever(), model())
    given = {"question": QUESTION}
    state = in_time(lambda: graph.invoke(given) if way == "invoke" else asyncio.run(graph.ainvoke(given)))
    assert state["stop"] == "model_failed"
    assert state["note"].startswith("the chat model failed")


def test_a_build_ends():
    failing = GenericFakeChatModel(messages=iter([]))
    documents = [Document(id="a", page_content="Petra Quillon wrote The Salt Lantern.")]
    error = in_time(lambda: SireRetriever.from_documents(documents, llm=failing, recipe="sirerag"))
    assert "StopIteration" in str(error)
