"""The tool in LangChain's `create_agent`: with a scripted chat model, and with `ChatOpenAI` over real HTTP."""

import pytest
from langchain_core.callbacks import BaseCallbackHandler

from langchain_sire import SireRetriever, create_sire_tool
from sire_core.data import demo_questions
from support.langchain_demo import ScriptedAgent, as_langchain

create_agent = pytest.importorskip("langchain.agents", reason="langchain is a development dependency").create_agent

QUESTION = demo_questions()[0].question
TOOL = "search_documents"


def _wants(number=1, **arguments):
    return {"name": TOOL, "args": arguments, "id": str(number), "type": "tool_call"}


@pytest.fixture(scope="module")
def retriever():
    return SireRetriever.from_documents(as_langchain(), k=3)


def _asked(question=QUESTION):
    return {"messages": [{"role": "user", "content": question}]}


def test_the_retriever_run_is_inside_the_tool_run(retriever):
    runs, parents = {}, {}

    class Spy(BaseCallbackHandler):
        def on_tool_start(self, serialized, text, *, run_id, parent_run_id=None, **kwargs):
            runs["tool"] = run_id

        def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, **kwargs):
            parents[query] = parent_run_id

    model = ScriptedAgent(turns=[[_wants(query=QUESTION)], "Done."], seen=[])
    create_agent(model, [create_sire_tool(retriever)]).invoke(_asked(), {"callbacks": [Spy()]})
    assert parents == {QUESTION: runs["tool"]}
