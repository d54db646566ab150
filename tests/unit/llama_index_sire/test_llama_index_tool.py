"""The tool for agents: a clean question in, cited text out."""

import pytest
from llama_index.core.tools import FunctionTool, RetrieverTool

from llama_index_sire import SireRetriever, create_sire_tool
from llama_index_sire.tool import cite
from sire_core.errors import ConfigurationError, QueryError


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
