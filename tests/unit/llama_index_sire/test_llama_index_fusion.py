"""Our retriever beside others: fusion by hash, merging of parents, routers, recursion; nodes are the user's own."""

import json
from datetime import date, datetime, timezone
from pathlib import Path

import pytest
from llama_index.core import Document
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.ingestion import run_transformations
from llama_index.core.llms.mock import MockLLM
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, get_leaf_nodes
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import AutoMergingRetriever, QueryFusionRetriever, RecursiveRetriever, RouterRetriever
from llama_index.core.schema import IndexNode, NodeWithScore, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.storage import StorageContext
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import RetrieverTool

from llama_index_sire import SireRetriever
from sire_core.testing.doubles import HashEmbedder

TEXTS = {
    "petra": "Petra Quillon was born in Varn Harbour.",
    "lantern": "The Salt Lantern is a film by Petra Quillon.",
    "otto": "Otto Brack commanded a steamship on Lake Lindle.",
    "lake": "Lake Lindle freezes in winter.",
}


class Words(BaseRetriever):
    """Ranks the given nodes by common words, as LlamaIndex's BM25Retriever gives back the nodes that it was given."""

    def __init__(self, nodes):
        self._nodes = nodes
        super().__init__()

    def _retrieve(self, query_bundle):
        words = set(query_bundle.query_str.lower().split())
        scored = [NodeWithScore(node=n, score=len(words & set(n.text.lower().split()))) for n in self._nodes]
        return sorted(scored, key=lambda found: -found.score)[:2]


def nodes():
    return [
        TextNode(
            id_=name,
            text=text,
            metadata={"zeta": 1, "file_name": f"{name}.md", "alpha": [1, 2], "title": "Same"},
            excluded_embed_metadata_keys=["zeta"],
        )
        for name, text in TEXTS.items()
    ]


def retriever(given, **options):
    return SireRetriever.from_documents(given, embed_model=HashEmbedder(), recipe="flat", **options)


@pytest.mark.parametrize("returns", ["passages", "units"])
def test_a_node_comes_back_with_its_hash_its_keys_and_equal(returns):
    for found in retriever(nodes(), returns=returns).retrieve("Petra Quillon"):
        (given,) = [node for node in nodes() if node.node_id == found.node_id]
        assert found.node.hash == given.hash
        assert found.node.metadata == given.metadata
        assert list(found.node.metadata) == list(given.metadata)
        assert found.node.excluded_embed_metadata_keys == given.excluded_embed_metadata_keys
        assert found.node.excluded_llm_metadata_keys == given.excluded_llm_metadata_keys
        assert json.loads(found.node.metadata["sire_doc_ids"]) == [given.node_id]
        (kept,) = SimilarityPostprocessor(similarity_cutoff=0.0).postprocess_nodes([found])
        assert kept.node.hash == given.hash


def test_split_documents_come_back_with_the_hash_of_the_splitters_nodes():
    documents = [
        Document(id_=name, text=f"{text} " * 9, metadata={"b": name, "a": 1, "c": {"z": 1, "a": [2]}})
        for name, text in TEXTS.items()
    ]
    cut = run_transformations(documents, [SentenceSplitter(chunk_size=60, chunk_overlap=5)])
    assert len(cut) > 8
    cut[0].metadata["one"] = 1  # a key of one node alone, before those that all have
    cut[0].metadata = {"own": 1, **cut[0].metadata}
    hashes = {node.node_id: node.hash for node in cut}
    for found in retriever(cut, similarity_top_k=50).retrieve("Petra Quillon"):
        assert found.node.hash == hashes[found.node_id]


@pytest.mark.parametrize("mode", ["reciprocal_rerank", "relative_score", "simple"])
def test_fusion_merges_what_both_found(mode):
    given = nodes()
    ours = retriever(given, similarity_top_k=2)
    fusion = QueryFusionRetriever(
        [ours, Words(given)], llm=MockLLM(), num_queries=1, mode=mode, similarity_top_k=4, use_async=False
    )
    question = "Petra Quillon film"
    first = {n.node_id for n in ours.retrieve(question)}
    second = {n.node_id for n in Words(given).retrieve(question)}
    assert first & second
    found = fusion.retrieve(question)
    assert {n.node_id for n in found} == first | second
    assert len(found) == len(first | second)
    if mode == "reciprocal_rerank":
        best = {n.node_id: n.score for n in found}
        assert min(best[name] for name in first & second) > 1 / 60 + 1e-9
        assert min(best[name] for name in first & second) > max([best[name] for name in first ^ second], default=0.0)


def test_merging_retriever_finds_the_parents():
    document = Document(id_="d", text=" ".join(f"{text} " * 4 for text in TEXTS.values()))
    tree = HierarchicalNodeParser.from_defaults(chunk_sizes=[256, 40]).get_nodes_from_documents([document])
    store = SimpleDocumentStore()
    store.add_documents(tree)
    leaves = get_leaf_nodes(tree)
    merging = AutoMergingRetriever(
        retriever(leaves, similarity_top_k=len(leaves)), StorageContext.from_defaults(docstore=store)
    )
    (found,) = merging.retrieve("Petra Quillon")
    assert found.node_id not in {leaf.node_id for leaf in leaves}


def test_recursive_and_router_retrievers_follow_our_nodes():
    link = IndexNode(id_="link", text="Films of Petra Quillon", index_id="films", metadata={"k": 1})
    films = retriever(nodes(), similarity_top_k=1)
    root = retriever([link], similarity_top_k=1)
    assert root.retrieve("films")[0].node.hash == link.hash
    recursive = RecursiveRetriever("root", retriever_dict={"root": root, "films": films})
    assert [n.node_id for n in recursive.retrieve("Salt Lantern film")] == ["lantern"]
    router = RouterRetriever(
        LLMSingleSelector.from_defaults(llm=MockLLM()),
        [RetrieverTool.from_defaults(films, description="films")],
        llm=MockLLM(),
    )
    assert router._retrievers == [films]


def test_what_a_search_adds_can_be_read_but_is_no_item():
    (found,) = retriever(nodes(), similarity_top_k=1).retrieve("Salt Lantern film")
    metadata = found.node.model_copy(deep=True).metadata
    assert metadata["sire_kind"] == metadata.get("sire_kind") == "chunk"
    assert "sire_path" in metadata
    assert not [key for key in metadata if key.startswith("sire_")]
    assert metadata.get("sire_nothing", 7) == 7
    with pytest.raises(KeyError):
        metadata["sire_nothing"]
    assert "sire_" not in found.node.get_content("all")
    assert TextNode.from_dict(found.node.to_dict()).hash == found.node.hash


def test_metadata_of_any_type_comes_back_with_the_hash():
    typed = {
        "day": date(2024, 5, 31),
        "at": datetime(2024, 5, 31, 9, tzinfo=timezone.utc),
        "path": Path("a/b"),
        "tags": {"a"},
        "n": (1, 2),
    }
    node = TextNode(id_="a", text="A lighthouse.", metadata={**typed, "plain": 1})
    (found,) = retriever([node], filters={"day": {"gte": date(2024, 5, 1)}}).retrieve("lighthouse")
    assert found.node.metadata == node.metadata
    assert found.node.hash == node.hash
    document = Document(id_="d", text="A lighthouse.", metadata=typed)
    (found,) = retriever([document]).retrieve("lighthouse")
    assert found.node.metadata == typed
