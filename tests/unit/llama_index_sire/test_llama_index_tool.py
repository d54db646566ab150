"""Tools for agents, and reasoning over retrievers that are not ours."""

import json

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool, RetrieverTool

from llama_index_sire import (
    IRCoTQueryEngine,
    SelfAskQueryEngine,
    SingleQueryEngine,
    SireRetriever,
    create_sire_answer_tool,
    create_sire_tool,
)
from llama_index_sire.tool import cite
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError, QueryError
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


def test_schema_says_the_arguments_of_a_search(index_of):
    tool = create_sire_tool(SireRetriever(index_of()), name="look_up", description="Looks things up.")
    assert isinstance(tool, FunctionTool)
    assert (tool.metadata.name, tool.metadata.description) == ("look_up", "Looks things up.")
    schema = tool.metadata.get_parameters_dict()
    assert list(schema["properties"]) == ["query", "k", "filter", "as_of"]
    assert schema["required"] == ["query"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"query": "x", "input": "y"},
            "input: Extra inputs are not permitted. The arguments are query, k, filter, as_of.",
        ),
        ({}, "query: Field required. The arguments"),
        ({"query": "x", "k": "many"}, "k: Input should be a valid integer"),
        ({"query": "x", "k": 51}, "k: Input should be less than or equal to 50"),
        ({"query": "  "}, "is empty"),
    ],
)
async def test_arguments_that_make_no_sense_raise_in_our_words(index_of, given, words):
    tool = create_sire_tool(index_of("flat"))
    with pytest.raises(QueryError) as caught:
        tool.call(**given)
    with pytest.raises(QueryError) as awaited:
        await tool.acall(**given)
    for message in (str(caught.value), str(awaited.value)):
        assert words in message
        assert "pydantic" not in message


async def test_text_is_cited_and_nodes_are_the_raw_output(index_of, question):
    retriever = SireRetriever(index_of(), similarity_top_k=4)
    tool = create_sire_tool(retriever)
    done = tool.call(query=question)
    assert [n.node_id for n in done.raw_output] == [n.node_id for n in retriever.retrieve(question)]
    assert done.content == cite(done.raw_output)
    blocks = done.content.split("\n\n[")
    assert len(blocks) == 4
    assert "bruno-hask" in blocks[0].split("]")[0]
    assert "sire_" not in done.content
    again = await tool.acall(query=question)
    assert again.content == done.content
    assert not done.is_error


def test_k_and_filter_of_a_call(index_of, question):
    retriever = SireRetriever(index_of("flat"), similarity_top_k=4, filters="kind=person")
    tool = create_sire_tool(retriever)
    assert len(tool(query=question, k=2).raw_output) == 2
    found = tool(query=question, filter={"year": {"gt": 1}}).raw_output
    assert found == []
    assert tool(query=question, filter="year>1").content.startswith(
        "Nothing was found. No passage has the metadata key"
    )
    assert all(n.metadata["kind"] == "person" for n in tool(query=question, filter={"kind": "person"}).raw_output)
    assert retriever.similarity_top_k == 4
    with pytest.raises(ConfigurationError):
        tool(query=question, filter="???")


def test_an_index_is_enough_and_others_are_refused(index_of, question):
    assert create_sire_tool(index_of())(query=question, k=1).raw_output
    with pytest.raises(ConfigurationError, match="neither a SireRetriever nor an Index"):
        create_sire_tool("a string")


FOLLOW_UP = "Where was Petra Quillon born?"
READ = json.dumps({"answer": "Varn Harbour [1]", "citations": [1], "sufficient": True})
IRCOT = [
    json.dumps({"reasoning": "Petra Quillon directed it.", "search": FOLLOW_UP}),
    json.dumps({"reasoning": "Enough.", "search": "DONE"}),
    READ,
]
ASK = [f"Follow up: {FOLLOW_UP}", "Varn Harbour", "So the final answer is: Varn Harbour", READ]
MAKERS = [
    lambda source: create_sire_answer_tool(source, ScriptedModel(list(IRCOT))),
    lambda source: create_sire_answer_tool(source, ScriptedModel([READ]), via="single"),
    lambda source: create_sire_answer_tool(source, ScriptedModel(list(ASK)), via="self-ask"),
    lambda source: create_sire_answer_tool(IRCoTQueryEngine(source, llm=ScriptedModel(list(IRCOT)))),
]


class Words(BaseRetriever):
    """Ranks by shared words; sync only; notes what it was asked."""

    def __init__(self, *, scored=True):
        self.nodes = [TextNode(id_=f"node-{d.id}", text=d.text, metadata={"title": d.title}) for d in demo_documents()]
        self.asked, self.scored = [], scored
        super().__init__()

    def _retrieve(self, query_bundle):
        self.asked.append(query_bundle.query_str)
        words = set(query_bundle.query_str.lower().rstrip("?").split())
        shared = [(-len(words & set(node.text.lower().rstrip(".").split())), n) for n, node in enumerate(self.nodes)]
        return [
            NodeWithScore(node=self.nodes[n], score=-count / 10 if self.scored else None)
            for count, n in sorted(shared)[:6]
        ]


@pytest.mark.parametrize("make", MAKERS)
async def test_a_short_answer_with_its_sources(index_of, question, make):
    retriever = SireRetriever(index_of("flat"), similarity_top_k=10)
    done = make(retriever).call(question=question)
    response = done.raw_output
    (source,) = response.metadata["sources"]
    name = ", ".join(source["doc_ids"])
    assert done.content.split("\n\n") == [
        f"Varn Harbour [{name}]",
        f"Sources:\n[{name}] {source['title']}",
        "The evidence is sufficient: yes.",
    ]
    assert (response.response, len(response.source_nodes)) == ("Varn Harbour [1]", 10)
    assert (await make(retriever).acall(question=question)).content == done.content


def test_steps_k_and_filter_of_one_call(index_of, question):
    retriever = SireRetriever(index_of("flat"), similarity_top_k=4, filters="kind=person")
    tool = create_sire_answer_tool(retriever, ScriptedModel(list(IRCOT)))
    done = tool.call(question=question, k=2, show_steps=True)
    assert f"3. Searching: {FOLLOW_UP}" in done.content
    assert [found.node.metadata["kind"] for found in done.raw_output.source_nodes] == ["person"] * 2
    done = tool.call(question=question, filter={"kind": "ship"})
    assert done.content == "No answer.\n\nThe evidence is sufficient: no (stopped by empty_index)."


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "question: Field required. The arguments are question, k, filter, as_of, show_steps."),
        ({"question": "who", "via": "ircot"}, "via: Extra inputs"),
        ({"question": "who", "k": 0}, "k: Input should be greater than or equal to 1"),
        ({"question": " "}, "is empty"),
    ],
)
async def test_mistakes_raise_in_our_words_and_ask_nobody(index_of, given, words):
    model = ScriptedModel(list(IRCOT))
    tool = create_sire_answer_tool(index_of("flat"), model)
    with pytest.raises(QueryError, match=words):
        tool.call(**given)
    with pytest.raises(QueryError, match=words):
        await tool.acall(**given)
    assert model.log == []


def test_what_cannot_be_made(index_of):
    engine = SingleQueryEngine(index_of("flat"), llm=ScriptedModel([READ]))
    with pytest.raises(ConfigurationError, match="The engine has its own llm"):
        create_sire_answer_tool(engine, ScriptedModel([READ]))
    with pytest.raises(ConfigurationError, match="via is 'ircot'"):
        create_sire_answer_tool(index_of("flat"), ScriptedModel([READ]), via="magic")
    with pytest.raises(ConfigurationError, match="str is neither a retriever nor an Index"):
        create_sire_answer_tool("folder", ScriptedModel([READ]))


@pytest.mark.parametrize(("kind", "script"), [(IRCoTQueryEngine, IRCOT), (SelfAskQueryEngine, ASK)])
@pytest.mark.parametrize("scored", [True, False])
async def test_nodes_of_any_retriever_come_back_as_they_are(question, kind, script, scored):
    words = Words(scored=scored)
    response = kind(words, llm=ScriptedModel(list(script))).query(question)
    assert words.asked == [question, FOLLOW_UP]
    known = {node.node_id: node for node in words.nodes}
    assert len(response.source_nodes) == len({found.node.node_id for found in response.source_nodes}) > 6
    assert all(found.node == known[found.node.node_id] for found in response.source_nodes)
    assert response.response == "Varn Harbour [1]"
    again = await kind(words, llm=ScriptedModel(list(script))).aquery(question)
    assert [found.node.node_id for found in again.source_nodes] == [f.node.node_id for f in response.source_nodes]


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
