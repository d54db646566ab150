"""Traps of LlamaIndex that concern several components, and those of the newer ones."""

import asyncio
import json
import time

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.node_parser import NodeParser
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import Document
from llama_index.core.tools import RetrieverTool

from llama_index_sire import (
    IRCoTQueryEngine,
    ReasoningWorkflow,
    SelfAskQueryEngine,
    SireNodeParser,
    SireRerank,
    SireRetriever,
    create_sire_tool,
)
from sire_core.testing.doubles import ScriptedModel
from support.adapter_results import longest_pause
from support.llama_index_models import ChatLLM, WordEmbedding, as_llama_index

THINK = json.dumps({"reasoning": "All is known.", "search": "DONE"})
READ = json.dumps({"answer": "Hathersay [1]", "citations": [1], "sufficient": True})


class SlowLLM(ChatLLM):
    """A model that is sync only, and takes its time."""

    def chat(self, messages, **kwargs):
        time.sleep(0.4)
        return super().chat(messages, **kwargs)


@pytest.mark.parametrize("component", ["parser", "engine", "workflow", "tool"])
async def test_trap_async_on_the_loop_nothing_holds_it_up(component, index_of, question):
    """LlamaIndex's async defaults call the sync methods on the loop; an agent then stands still."""
    documents = as_llama_index()[:4]
    slow = WordEmbedding(delay=0.4)
    await asyncio.to_thread(
        lambda: SireNodeParser(complete=True, recipe="raptor")(documents)
    )  # first-time imports do block
    if component == "parser":
        work = SireNodeParser(complete=True, recipe="raptor", llm=SlowLLM()).acall(documents)
    elif component == "tool":
        retriever = await SireRetriever.afrom_documents(documents, recipe="flat", embed_model=slow)
        await retriever.aretrieve("warm up")
        work = create_sire_tool(retriever).acall(query=question)
    else:
        index = index_of("flat")
        await index.asearch("warm up")
        engine = IRCoTQueryEngine(index, llm=SlowLLM(answer=THINK))
        work = engine.aquery(question) if component == "engine" else ReasoningWorkflow(engine).run(query=question)
    assert await longest_pause(work) < 0.35


async def test_trap_every_sync_method_works_inside_a_running_loop(tmp_path, documents, question):
    """A bare `asyncio.run` fails in notebooks and servers."""
    retriever = SireRetriever.from_documents(documents[:6], recipe="sirerag", persist_dir=tmp_path / "index")
    new = Document(id_="new", text="Something new about Hathersay.")
    assert retriever.insert(new).added == 1
    assert retriever.refresh(Document(id_="new", text="Something else.")).updated == 1
    assert retriever.delete("new").removed == 1
    retriever.persist(tmp_path / "index")
    assert SireRetriever.from_persist_dir(tmp_path / "index").retrieve(question)
    assert create_sire_tool(retriever).call(query=question).raw_output
    assert retriever.as_query_engine(llm=ChatLLM(answer="Yes.")).query(question).source_nodes
    nodes = SireNodeParser(recipe="raptor", persist_dir=str(tmp_path / "parser")).get_nodes_from_documents(documents)
    assert nodes
    for engine, answers in (
        (IRCoTQueryEngine, [THINK, READ]),
        (SelfAskQueryEngine, ["So the final answer is: ?", READ]),
    ):
        made = engine(retriever, llm=ScriptedModel(answers * 2))
        assert str(made.query(question)).startswith("Hathersay [1]")
        made.streaming = True
        assert "".join(made.query(question).response_gen).startswith("Hathersay [1]")


def test_trap_public_methods_are_left_to_llama_index():
    """They send events, resolve, deduplicate and trace."""
    for ours, base, names in (
        (SireNodeParser, NodeParser, ("get_nodes_from_documents", "aget_nodes_from_documents", "__call__", "acall")),
        (IRCoTQueryEngine, BaseQueryEngine, ("query", "aquery")),
        (SelfAskQueryEngine, BaseQueryEngine, ("query", "aquery")),
        (SireRerank, BaseNodePostprocessor, ("postprocess_nodes", "apostprocess_nodes")),
    ):
        for name in names:
            owner = next(cls for cls in ours.__mro__ if name in vars(cls))
            assert not owner.__module__.startswith("llama_index_sire"), (ours, name)
        assert issubclass(ours, base)


def test_trap_the_question_arrives_as_the_model_wrote_it(index_of):
    """`RetrieverTool` turns it into "input is ..."."""
    heard = []
    index = index_of()

    class Hearing:
        path = index.path

        search, snapshot = index.search, index.snapshot

        async def asearch(self, query, k, *, filter, returns, as_of):
            heard.append((query, k, filter))
            return await index.asearch(query, k, filter=filter, returns=returns)

    retriever = SireRetriever(Hearing())
    create_sire_tool(retriever)(query="who founded X?")
    create_sire_tool(retriever)("who founded X?")
    assert heard == [("who founded X?", 10, None)] * 2
    RetrieverTool.from_defaults(retriever, description="theirs")(input="who founded X?")
    assert heard[2][0] != "who founded X?"
