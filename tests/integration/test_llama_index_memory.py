"""`SireMemoryBlock`: evidence in the memory of LlamaIndex's agents."""

import gc
import json

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.schema import TextNode

from llama_index_sire import SireMemoryBlock, SireRetriever
from support.listening_llm import ListeningLLM

pytestmark = [
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince211"),
    # LlamaIndex's `Memory` never closes the connection of its store; it is collected here, not in another test.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collected():
    yield
    gc.collect()


@pytest.fixture(scope="module")
def retriever():
    texts = {"petra.md": "Petra Quillon was born in Varn Harbour.", "otto.md": "Otto Brack commanded a steamship."}
    nodes = [TextNode(text=text, metadata={"file_name": name}) for name, text in texts.items()]
    return SireRetriever.from_documents(nodes, recipe="flat", similarity_top_k=1)


def passages(text):
    block = text.split("<passages>\n")[1].split("\n</passages>")[0]
    return [json.loads(line)["document"] for line in block.splitlines()]


async def test_an_agent_reads_cited_passages_that_are_not_kept(retriever):
    llm = ListeningLLM(seen=[])
    memory = Memory.from_defaults(memory_blocks=[SireMemoryBlock(retriever=retriever)])
    agent = FunctionAgent(tools=[], llm=llm, system_prompt="Be brief.")
    assert "Varn Harbour" in str(await agent.run("Where was Petra Quillon born?", memory=memory))
    assert "Varn Harbour" in str(await agent.run("What did Otto Brack command?", memory=memory))
    assert [passages(text) for text in llm.seen] == [["petra.md"], ["otto.md"]]
    assert not any("<passages>" in str(message.content) for message in memory.get_all())


async def test_bounds_names_and_mistakes(retriever):
    message = [ChatMessage(role="user", content="Petra Quillon")]
    assert await SireMemoryBlock(retriever=retriever, max_tokens=1).aget(message) == ""
    assert await SireMemoryBlock(retriever=retriever).aget([]) == ""
    named = await SireMemoryBlock(retriever=retriever, cite_key="<{file_name}>").aget(message)
    assert passages(named) == ["<petra.md>"]
    with pytest.raises(ValueError, match="Expected a SireRetriever"):
        SireMemoryBlock(retriever="no retriever")
