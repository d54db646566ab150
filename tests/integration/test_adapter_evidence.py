"""Evidence within a budget in both frameworks: over our index, and in the hits of any retriever."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.llms import MockLLM
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

import langchain_sire
import llama_index_sire
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.extend import count_tokens
from sire_core.search.context import ContextOptions

QUESTION = "When is the furnace cleaned, and who cleans the furnace?"
FILLER = "The furnace hall was painted in a light colour by a company from the next town in spring."
TEXTS = [
    f"{FILLER}\n\nThe furnace is cleaned on Mondays.\n\n{FILLER} It has doors.",
    f"Lunch is at noon in the hall.\n\nThe night shift cleans the furnace with brushes and sand.\n\n{FILLER} Twice.",
    "Boats leave at six. " * 30,
]
METADATA = {"source": "plant.md", "tags": ["a"], "start_index": 10}


def langchain_documents() -> list[LangChainDocument]:
    return [LangChainDocument(id=str(n), page_content=text, metadata=METADATA) for n, text in enumerate(TEXTS)]


def nodes() -> list[TextNode]:
    return [
        TextNode(
            id_=str(n), text=text, metadata={"file_name": "plant.md"}, start_char_idx=100, end_char_idx=100 + len(text)
        )
        for n, text in enumerate(TEXTS)
    ]


def delivered_documents(max_tokens: int, options: ContextOptions, *, ours: bool) -> tuple[str, list[Any]]:
    if ours:
        retriever = langchain_sire.SireRetriever.from_documents(langchain_documents(), context_options=options)
        found = retriever.invoke(QUESTION, max_tokens=max_tokens)
    else:
        compressor = langchain_sire.EvidenceCompressor(max_tokens=max_tokens, context_options=options)
        found = list(compressor.compress_documents(langchain_documents(), QUESTION))
    assert all({**METADATA, **document.metadata} == document.metadata for document in found)
    quotes = [(str(one.id), one.page_content, one.metadata["sire"]["spans"]) for one in found]
    return "\n\n".join(one.page_content for one in found), quotes


def delivered_nodes(max_tokens: int, options: ContextOptions, *, ours: bool) -> tuple[str, list[Any]]:
    if ours:
        found = llama_index_sire.SireRetriever.from_documents(
            nodes(), max_tokens=max_tokens, context_options=options
        ).retrieve(QUESTION)
    else:
        given = [NodeWithScore(node=node, score=0.5) for node in nodes()]
        processor = llama_index_sire.EvidencePostprocessor(max_tokens=max_tokens, context_options=options)
        found = processor.postprocess_nodes(given, QueryBundle(QUESTION))
        assert [one.node.get_content() for one in given] == TEXTS  # not modified
    for one in found:
        assert one.node.metadata == {"file_name": "plant.md"}
        spans = one.node.metadata["sire_spans"]
        assert (one.node.start_char_idx, one.node.end_char_idx) == (100 + spans[0][0], 100 + spans[-1][1])
    quotes = [(one.node.node_id, one.node.get_content(), one.node.metadata["sire_spans"]) for one in found]
    return "\n\n".join(one.node.get_content(MetadataMode.LLM) for one in found), quotes


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("deliver", [delivered_documents, delivered_nodes])
def test_evidence_is_quoted_within_the_budget(deliver: Any, *, ours: bool) -> None:
    payload, quotes = deliver(60, ContextOptions(), ours=ours)
    assert "cleaned on Mondays" in payload
    assert "night shift cleans the furnace" in payload
    for name, text, spans in quotes:
        assert all(TEXTS[int(name)][start:end] in text for start, end in spans)
    for max_tokens in (5, 17, 40, 200):
        assert count_tokens(deliver(max_tokens, ContextOptions(), ours=ours)[0]) <= max_tokens
    for max_tokens in (30, 300):
        assert len(deliver(max_tokens, ContextOptions(count=len), ours=ours)[0]) <= max_tokens


def test_a_reranker_of_blocks_is_an_option_and_other_objects_are_refused() -> None:
    def likes_sand(_: str, texts: list[str]) -> list[float]:
        return [5.0 * ("sand" in text) for text in texts]

    assert "sand" not in delivered_documents(12, ContextOptions(), ours=False)[0]
    assert "sand" in delivered_documents(12, ContextOptions(rerank=likes_sand), ours=False)[0]
    for make in (langchain_sire.EvidenceCompressor, llama_index_sire.EvidencePostprocessor):
        with pytest.raises(ValueError, match="Expected ContextOptions"):
            make(context_options={"rerank": "colbert"})
        with pytest.raises(ValueError, match="max_token\n"):
            make(max_token=9)
    index = langchain_sire.SireRetriever.from_documents(langchain_documents()).index
    for fields in ({"scores": "similarity", "max_tokens": 9}, {"context_options": ContextOptions()}):
        with pytest.raises(ConfigurationError, match="max_tokens"):
            llama_index_sire.SireRetriever(index, **fields)


@pytest.mark.parametrize("passages", [None, "text", ["text"], [None], [TextNode(text="A node without a score.")]])
def test_what_are_no_passages_of_a_retriever_is_refused(passages):
    with pytest.raises(CorpusError, match=r"Expected a list of langchain_core\.documents\.Document objects"):
        langchain_sire.EvidenceCompressor().compress_documents(passages, QUESTION)
    for step in (llama_index_sire.EvidencePostprocessor(), llama_index_sire.SireRerank(llm=MockLLM())):
        with pytest.raises(CorpusError, match=r"Expected a list of llama_index\.core\.schema\.NodeWithScore objects"):
            step.postprocess_nodes(passages, query_str="Which harbour?")
