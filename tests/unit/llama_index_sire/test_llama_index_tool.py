"""Tools for agents, and reasoning over retrievers that are not ours."""

import json

from llama_index.core.tools import RetrieverTool

from llama_index_sire import (
    SireRetriever,
    create_sire_tool,
)


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
