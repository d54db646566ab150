"""What tools cite, and what they say of filters; for agents of both frameworks and of MCP."""

import json
import re

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.indexing import InMemoryRecordManager, index
from llama_index.core.schema import TextNode

import langchain_sire
import llama_index_sire
from sire_core import Document, Index
from sire_core.documents.document_names import check_cite_key, cited_names
from sire_core.errors import ConfigurationError, QueryError
from sire_core.serve.tools import IndexTools

HASH = "0123456789abcdef" * 8


@pytest.mark.parametrize(
    ("ids", "metadata", "differing", "title", "cite_key", "names"),
    [
        (["petra"], {"source": "a.md"}, {}, "T", "", ["petra"]),
        ([HASH], {"source": "a.md", "file_name": "b"}, {}, "T", "", ["a.md"]),
        ([HASH], {"file_name": "b.md"}, {}, "T", "", ["b.md"]),
        ([HASH], {}, {}, "T", "", ["T"]),
        ([HASH], {}, {}, "", "", [HASH]),
        ([HASH, HASH[::-1]], {}, {"source": ["a.md", "b.md"]}, "", "", ["a.md", "b.md"]),
        (["petra"], {"source": "a.md"}, {}, "T", "source", ["a.md"]),
        (["petra"], {}, {}, "T", "source", ["petra"]),
        (["petra"], {"source": "a.md", "page": 3}, {}, "T", "{source}, page {page}", ["a.md, page 3"]),
        (["petra"], {"source": "a.md"}, {}, "T", "{source}, page {page}", ["petra"]),
        (["petra"], {}, {}, "T", "{title} ({id})", ["T (petra)"]),
        (["12345678-1234-5678-1234-567812345678"], {"url": "u"}, {}, "", "", ["u"]),
    ],
)
def test_names(ids, metadata, differing, title, cite_key, names):
    assert cited_names(ids, metadata, differing, title, cite_key) == names


@pytest.mark.parametrize(
    ("cite_key", "name"),
    [
        ("{source}, p. {page:03d}", "a.md, p. 007"),
        ("{source:>6}: {{{page}}}", "  a.md: {7}"),
        ("{source:03d}", "a.md"),
        ("{source!r}", "a.md"),
    ],
)
def test_templates_as_python_formats_them(cite_key, name):
    assert cited_names(["x"], {"source": "a.md", "page": 7}, {}, "", check_cite_key(cite_key)) == [name]


@pytest.mark.parametrize("cite_key", [7, "{open", "a}", "p. {}"])
def test_a_cite_key_that_cannot_be_read_is_refused_at_once(cite_key):
    with pytest.raises(ConfigurationError, match="cite_key"):
        check_cite_key(cite_key)


@pytest.fixture(scope="module")
def langchain_index():
    documents = langchain_sire.SireRetriever.open(recipe="flat")
    records = InMemoryRecordManager("docs")
    records.create_schema()
    rows = [("Petra Quillon sails.", "a.md", "x"), ("Otto Brack walks.", "b.md", "y"), ("Salt lanterns.", "a.md", "x")]
    given = [LangChainDocument(page_content=text, metadata={"source": s, "tenant": t}) for text, s, t in rows]
    index(given, records, documents, key_encoder="sha512")
    documents.flush()
    return documents


def test_sample_values_of_long_texts_are_cut_within_their_quotes():
    retriever = langchain_sire.SireRetriever.from_texts(["Ada."], metadatas=[{"source": "folder/" * 20}])
    told = langchain_sire.create_sire_tool(retriever).args_schema.model_json_schema()["properties"]["filter"]
    assert 'source ("folder/folder/folder/folder/folder/folde...", ...).' in told["description"]


def test_agents_of_langchain_read_files_and_keys(langchain_index):
    tool = langchain_sire.create_sire_tool(langchain_index)
    assert tool.invoke({"query": "Petra Quillon", "k": 1}).startswith("[a.md] ")
    assert "tenant" in json.dumps(tool.args_schema.model_json_schema())
    told = tool.invoke({"query": "Petra", "filter": {"sorce": "a.md"}})
    assert "did you mean 'source'?" in told
    named = langchain_sire.create_sire_tool(langchain_index, cite_key="{source}/{tenant}")
    assert named.invoke({"query": "Petra Quillon", "k": 1}).startswith("[a.md/x] ")


def test_hints_and_schemas_keep_to_what_the_retriever_shows(langchain_index):
    narrow = langchain_sire.SireRetriever(index=langchain_index.index, filter={"tenant": "x"})
    tool = langchain_sire.create_sire_tool(narrow)
    assert "b.md" not in json.dumps(tool.args_schema.model_json_schema())
    told = tool.invoke({"query": "Otto", "filter": {"source": "b.m"}})
    assert "Nothing was found" in told
    assert "b.md" not in told


def test_agents_of_llama_index_read_files_and_keys():
    nodes = [TextNode(id_=HASH[:40], text="Petra Quillon sails.", metadata={"file_name": "a.md"})]
    retriever = llama_index_sire.SireRetriever.from_documents(nodes, recipe="flat")
    tool = llama_index_sire.create_sire_tool(retriever)
    assert str(tool.call(query="Petra")).startswith("[a.md] ")
    assert "file_name" in json.dumps(tool.metadata.get_parameters_dict())
    assert "did you mean 'file_name'?" in str(tool.call(query="Petra", filter={"filename": "a.md"}))
    assert str(llama_index_sire.create_sire_tool(retriever, cite_key="id").call(query="Petra")).startswith("[a.md]")


async def nothing(_):
    """Nobody listens."""


@pytest.fixture(scope="module")
def tools():
    built = Index(recipe="flat", chunker=None)
    built.build(
        [
            Document(HASH, "Petra Quillon sails.", metadata={"source": "a.md"}),
            Document(HASH[::-1], "Salt lanterns.", metadata={"source": "a.md"}),
            Document("otto", "Otto Brack walks.", metadata={"source": "b.md"}),
        ]
    )
    return IndexTools(built)


@pytest.mark.parametrize("blank", ["", "  ", {}, "null", "None", None, "{}"])
async def test_blank_arguments_of_mcp_are_not_given(tools, blank):
    result = await tools.call("search", {"query": "Petra Quillon", "k": 1, "filter": blank}, nothing)
    assert re.fullmatch(r"\[a\.md\] \(passage \w+\) Petra Quillon sails\.", result)
    every = await tools.call("search", {"query": "Petra Quillon", "k": blank, "filter": blank}, nothing)
    assert every.startswith(result)
    fetched = await tools.call("fetch", {"id": "otto", "start": blank, "length": blank}, nothing)
    assert "Otto Brack walks." in fetched


async def test_fetch_takes_what_results_cite_under_both_names(tools):
    for given in ({"id": "otto"}, {"doc_id": "otto"}):
        for tool in ("fetch", "open"):
            assert "Otto Brack walks." in await tools.call(tool, given, nothing)
    text = await tools.call("fetch", {"doc_id": "a.md"}, nothing)
    assert "Petra Quillon sails." in text
    assert "Salt lanterns." in text
    with pytest.raises(QueryError):
        await tools.call("fetch", {"id": "c.md"}, nothing)


async def test_half_a_surrogate_gets_an_answer(tools):
    result = await tools.call("search", {"query": "Petra \ud800Quillon", "k": 1}, nothing)
    assert b"Petra" in result.encode()
