"""What is delivered within `max_tokens` never has more tokens, in every way out, whatever the documents hold."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from mcp import Client

import langchain_sire
import llama_index_sire
from sire_core import Document, Index
from sire_core.extend import count_tokens
from sire_core.serve.mcp_server import make_server
from sire_core.testing.doubles import ScriptedModel
from support.command import run

QUESTION = "Which lever opens the lock of Orr, and when?"
TITLES = ("", "Locks > Orr", "a > b, c; (d) - " * 6)
TEXTS = (
    "The lock of Orr is opened by the left lever. It opens at nine. " * 5,
    "# Lock of Orr\n\n| lever | opens | when |\n|---|---|---|\n"
    + "| left | lock of Orr | 09:00 |\n| right | gate | - |\n" * 9,
    "- lever: left\n- lock: `Orr`\n\n```\norr --open=lock; lever(left) # {[()]}\n```\n" * 4,
    "levers" * 300,
    "\u6c34\u9580\u306f\u5de6\u306e\u30ec\u30d0\u30fc\u3067\u958b\u304f lock Orr " * 20,
)
CORPUS = [
    Document(f"d\u00e9{number}-{kind}", f"{text} ({number})", title=title, metadata={"from": "a/b.c, d", "n": number})
    for number, title in enumerate(TITLES)
    for kind, text in enumerate(TEXTS)
]
EMPTY_ENVELOPE = 60  # Tokens that the hint of a tool has without any evidence


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("budgets") / "index"
    with Index(path, recipe="sire") as index:
        index.build(CORPUS)
    return path


@pytest.fixture(scope="module")
def index(folder):
    with Index(folder) as index:
        yield index


def page_contents(documents):
    return "\n\n".join(document.page_content for document in documents)


def node_contents(nodes):
    return "\n\n".join(scored.node.get_content(MetadataMode.LLM) for scored in nodes)


def of_langchain(max_tokens):
    documents = [LangChainDocument(d.text, metadata={"title": d.title, **d.metadata}, id=d.id) for d in CORPUS]
    compressor = langchain_sire.EvidenceCompressor(max_tokens=max_tokens)
    return page_contents(compressor.compress_documents(documents, QUESTION))


def of_llama_index(max_tokens):
    nodes = [NodeWithScore(node=TextNode(id_=d.id, text=d.text, metadata=d.metadata), score=1.0) for d in CORPUS]
    processor = llama_index_sire.EvidencePostprocessor(max_tokens=max_tokens)
    return node_contents(processor.postprocess_nodes(nodes, QueryBundle(QUESTION)))


def of_reasoning(index, max_tokens):
    model = ScriptedModel('{"thought": "It is known.", "answer": "left", "search": "", "done": true}')
    retriever = langchain_sire.IRCoTRetriever(index=index, llm=model, max_tokens=max_tokens)
    return page_contents(retriever.invoke(QUESTION))


async def of_mcp(index, max_tokens):
    async with Client(make_server(index)) as client:
        result = await client.call_tool("search", {"query": QUESTION, "max_tokens": max_tokens})
    assert result.structured_content is None
    return "\n".join(part.text for part in result.content)


WAYS = {
    "Index.context": lambda index, _, most: index.context(QUESTION, most).text,
    "LangChain retriever": lambda index, _, most: page_contents(
        langchain_sire.SireRetriever(index=index, max_tokens=most).invoke(QUESTION)
    ),
    "LlamaIndex retriever": lambda index, _, most: node_contents(
        llama_index_sire.SireRetriever(index, max_tokens=most).retrieve(QUESTION)
    ),
    "EvidenceCompressor": lambda index, _, most: of_langchain(most),
    "EvidencePostprocessor": lambda index, _, most: of_llama_index(most),
    "command line": lambda _, folder, most: run("query", folder, QUESTION, "--max-tokens", most).stdout,
    "command line, JSON": lambda _, folder, most: run("query", folder, QUESTION, "--max-tokens", most, "--json").stdout,
    "MCP": lambda index, _, most: asyncio.run(of_mcp(index, max(most, EMPTY_ENVELOPE))),
    "LangChain tool": lambda index, _, most: langchain_sire.create_sire_tool(
        langchain_sire.SireRetriever(index=index, max_tokens=max(most, EMPTY_ENVELOPE))
    ).invoke({"query": QUESTION}),
    "LlamaIndex tool": lambda index, _, most: (
        llama_index_sire.create_sire_tool(llama_index_sire.SireRetriever(index, max_tokens=max(most, EMPTY_ENVELOPE)))
        .call(query=QUESTION)
        .content
    ),
    "reasoning retriever": lambda index, _, most: of_reasoning(index, most),
}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=12, deadline=None)
@given(max_tokens=st.integers(2, 700))
def test_the_payload_never_exceeds_its_budget(folder, index, way, max_tokens):
    payload = WAYS[way](index, folder, max_tokens)
    limit = max(max_tokens, EMPTY_ENVELOPE) if way == "MCP" or "tool" in way else max_tokens
    assert count_tokens(payload) <= limit
    assert max_tokens < 300 or count_tokens(payload) > 100


BULKY = {
    "file_path": "/home/of/somebody/with/a/long/path/to/documents/of/the/lock/" + "orr/" * 12 + "lock.eml",
    "from": "Petra Quillon <petra.quillon@orr-harbour.example>",
    "to": ", ".join(f"Person {n} <person{n}@orr-harbour.example>" for n in range(6)),
}


@pytest.mark.parametrize("way", ["SireRetriever", "EvidencePostprocessor"])
def test_metadata_that_nobody_reads_costs_llama_index_no_evidence(way):
    """Nodes with paths and addresses quote as much as those that hide them, and more with a larger budget."""
    metadata = {"title": "Lock of Orr", "shift": "night", **BULKY}

    def quotes(hidden, max_tokens):
        texts = [text for text in TEXTS if " " in text]
        nodes = [
            TextNode(id_=f"n{n}", text=text, metadata=metadata, excluded_llm_metadata_keys=hidden)
            for n, text in enumerate(texts)
        ]
        if way == "SireRetriever":
            found = llama_index_sire.SireRetriever.from_documents(nodes, max_tokens=max_tokens).retrieve(QUESTION)
        else:
            given = [NodeWithScore(node=node, score=1.0) for node in nodes]
            processor = llama_index_sire.EvidencePostprocessor(max_tokens=max_tokens)
            found = processor.postprocess_nodes(given, QueryBundle(QUESTION))
        assert all(scored.node.metadata == metadata for scored in found)
        assert count_tokens(node_contents(found)) <= max_tokens
        for scored in found:
            assert "title: Lock of Orr\nshift: night" in scored.node.get_content(MetadataMode.LLM)
        return [scored.node.get_content() for scored in found]

    sizes = []
    for max_tokens in (30, 50, 150, 300, 600):
        assert quotes([], max_tokens) == quotes(list(BULKY), max_tokens)
        sizes.append(sum(map(count_tokens, quotes([], max_tokens))))
    assert sizes == sorted(sizes)
    assert sizes[0] > 10
