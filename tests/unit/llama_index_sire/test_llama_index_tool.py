"""Tools for agents, and reasoning over retrievers that are not ours."""

import json

from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.tools import RetrieverTool

from llama_index_sire import (
    IRCoTQueryEngine,
    SireRetriever,
    create_sire_tool,
)
from sire_core.testing.doubles import ScriptedModel


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
    assert heard == [("who founded X?", 10, None)]
    RetrieverTool.from_defaults(retriever, description="theirs")(input="who founded X?")
    assert heard[1][0] != "who founded X?"


FOLLOW_UP = "Where was Petra Quillon born?"
READ = json.dumps({"answer": "Varn Harbour [1]", "citations": [1], "sufficient": True})
IRCOT = [
    json.dumps({"reasoning": "Petra Quillon directed it.", "search": FOLLOW_UP}),
    json.dumps({"reasoning": "Enough.", "search": "DONE"}),
    READ,
]


def test_recipe_k_and_filter_stand_in_the_trace(index_of, question):
    handler = LlamaDebugHandler(print_trace_on_end=False)
    retriever = SireRetriever(
        index_of("flat"), similarity_top_k=4, filters="kind=person", callback_manager=CallbackManager([handler])
    )
    IRCoTQueryEngine(retriever, k=4, llm=ScriptedModel(list(IRCOT))).query(question)
    searches = [begun for begun, _ in handler.get_event_pairs(CBEventType.RETRIEVE)]
    about = [found.payload[EventPayload.ADDITIONAL_KWARGS] for found in searches]
    assert [(found["recipe"], found["k"]) for found in about] == [("flat", 4)] * 2
    assert "person" in about[0]["filter"]
