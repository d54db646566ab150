"""The node parser: a pool of nodes for any pipeline, from an index that follows the corpus."""

import copy
import pickle
import random

import numpy as np
import pytest
from llama_index.core import MockEmbedding
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.llms import MockLLM
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from pydantic import ValidationError

from llama_index_sire import LlamaIndexEmbedder, SireNodeParser, SireRetriever
from sire_core import Index
from sire_core.errors import ConfigurationError, StorageError
from sire_core.recipes import REGISTRY
from sire_core.storage.check import check_folder
from sire_core.types import to_uuid
from support.damage import DAMAGES, damage
from support.llama_index_models import ChatLLM, WordEmbedding

RECIPES = sorted(REGISTRY)


def dumped(nodes):
    return [node.model_dump() for node in nodes]


@pytest.mark.quick(recipe=["sire", "sirerag"])
@pytest.mark.parametrize("recipe", RECIPES)
async def test_contract_of_node_parsers(recipe, documents):
    before = copy.deepcopy(documents)
    parser = SireNodeParser(complete=True, recipe=recipe)
    nodes = parser.get_nodes_from_documents(documents)
    assert documents == before
    assert len({node.node_id for node in nodes}) == len(nodes)
    kinds = [node.metadata["sire_kind"] for node in nodes]
    passages = kinds.count("chunk")
    assert passages == len(documents)
    assert kinds[:passages] == ["chunk"] * passages, "leaves first"
    assert dumped(parser(documents)) == dumped(nodes), "content ids"
    assert dumped(await parser.acall(documents)) == dumped(nodes), "sync equals async"
    assert [n.node_id for n in nodes] == [
        to_uuid(i.decode()) for i in SireRetriever.from_documents(documents, recipe=recipe).index.view().ids
    ]


def test_passages_know_where_they_are(documents):
    text = "First sentence here. " * 200
    nodes = SireNodeParser(complete=True, recipe="flat")([Document(id_="long", text=text)])
    assert len(nodes) > 1
    assert all(text[n.start_char_idx : n.end_char_idx] == n.text for n in nodes)
    assert all(n.ref_doc_id == "long" for n in nodes)


def test_trap_leaves_and_summaries_are_not_linked(documents):
    """LlamaIndex links any neighbours with one source, also a leaf and a summary."""
    text = "First sentence here. Another one there. " * 200
    nodes = SireNodeParser(complete=True, recipe="raptor", include_prev_next_rel=True)(
        [Document(id_="long", text=text), *documents]
    )
    by_id = {node.node_id: node for node in nodes}
    linked = [n for n in nodes if NodeRelationship.NEXT in n.relationships]
    assert linked
    for node in linked:
        following = by_id[node.next_node.node_id]
        assert node.ref_doc_id == following.ref_doc_id == "long"
    assert not [
        n for n in SireNodeParser(complete=True, recipe="raptor")(documents) if NodeRelationship.NEXT in n.relationships
    ]


def test_summaries_know_their_children(documents):
    nodes = SireNodeParser(complete=True, recipe="raptor")(documents)
    by_id = {node.node_id: node for node in nodes}
    summaries = [node for node in nodes if node.metadata["sire_kind"] == "sim_summary"]
    assert summaries
    for summary in summaries:
        assert summary.ref_doc_id == summary.node_id
        levels = {by_id[child.node_id].metadata["sire_level"] for child in summary.child_nodes}
        assert max(levels) == summary.metadata["sire_level"] - 1


def test_without_passages_the_store_keeps_what_others_have_put_under_a_document(tmp_path, documents):
    store = SimpleVectorStore()
    changed = next(d for d in documents if d.id_ == "bruno-hask")
    own = TextNode(id_="own", text="A passage of the user's splitter.", embedding=[1.0])
    own.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=changed.id_)
    store.add([own])
    folder = str(tmp_path / "index")
    parser = SireNodeParser(
        recipe="indexrag",
        kinds=["aku", "bridge"],
        persist_dir=folder,
        vector_store=store,
        embed_model=WordEmbedding(),
        embed_nodes=True,
    )
    first = parser(documents)
    store.add(first)
    second = parser([Document(id_=changed.id_, text="Bruno Hask kept bees.", metadata=changed.metadata)])
    store.add(second)
    with Index(folder, embedder=LlamaIndexEmbedder(WordEmbedding())) as index:
        view = index.view()
        expected = {to_uuid(unit.id) for unit, _ in map(view.pool.unit, range(view.size)) if unit.kind != "chunk"}
    assert set(store.data.embedding_dict) == {"own"} | expected
    assert {node.node_id for node in first} - expected
    assert 0 < len(second) < len(first)


def test_class_name_and_round_trip():
    parser = SireNodeParser(complete=True, recipe="raptor", recipe_settings={"depth": 2}, seed=3, kinds=["sim_summary"])
    assert parser.to_dict()["class_name"] == "SireNodeParser"
    assert SireNodeParser.from_dict(parser.to_dict()).to_dict() == parser.to_dict()
    assert SireNodeParser.from_json(parser.to_json()).to_dict() == parser.to_dict()


def test_trap_every_setting_changes_the_cache_key(documents):
    """Objects that are no pydantic models vanish from the key, and stale nodes come back."""
    parsers = [
        SireNodeParser(complete=True),
        SireNodeParser(complete=True, recipe="raptor"),
        SireNodeParser(complete=True, recipe_settings={"depth": 2}),
        SireNodeParser(complete=True, kinds=["chunk"]),
        SireNodeParser(complete=True, seed=1),
        SireNodeParser(complete=True, title_key="name"),
        SireNodeParser(complete=True, llm=MockLLM(max_tokens=1)),
        SireNodeParser(complete=True, llm=ChatLLM(model="a")),
        SireNodeParser(complete=True, llm=ChatLLM(model="b")),
        SireNodeParser(complete=True, embed_model=MockEmbedding(embed_dim=4)),
        SireNodeParser(complete=True, embed_model=MockEmbedding(embed_dim=8)),
        SireNodeParser(complete=True, embed_model=MockEmbedding(embed_dim=8), embed_nodes=True),
    ]
    keys = [get_transformation_hash(documents, parser) for parser in parsers]
    assert len(set(keys)) == len(parsers)
    assert keys == [get_transformation_hash(documents, parser) for parser in parsers]


def test_trap_a_parser_with_an_index_is_never_answered_from_the_cache(tmp_path, documents):
    """A, then another A, then the first A again: the cached answer of the first would be stale."""
    parser = SireNodeParser(persist_dir=tmp_path / "i")
    assert get_transformation_hash(documents, parser) != get_transformation_hash(documents, parser)


def test_trap_pickling_for_workers(tmp_path):
    """What cannot be pickled is dropped with a mere warning; several workers would split the corpus."""
    parser = SireNodeParser(
        complete=True, recipe="raptor", recipe_settings={"depth": 2}, embed_model=WordEmbedding(model_name="a")
    )
    for one in (parser, SireNodeParser(persist_dir=str(tmp_path))):
        with pytest.raises(ConfigurationError, match="without num_workers"):
            pickle.dumps(one)


def test_bad_settings_are_told_at_once(tmp_path):
    with pytest.raises(ValidationError, match="no recipe 'ragtor'"):
        SireNodeParser(complete=True, recipe="ragtor")
    with pytest.raises(ValidationError, match="Input should be 'chunk'"):
        SireNodeParser(kinds=["chunks"])
    with pytest.raises(ValidationError, match=r"in the recipe 'raptor'\. Did you mean 'depth'\? Its settings are"):
        SireNodeParser(complete=True, recipe="raptor", recipe_settings={"dept": 1})
    with pytest.raises(ValidationError, match="embed_nodes needs an embed_model"):
        SireNodeParser(complete=True, embed_nodes=True)
    with pytest.raises(ValidationError, match="with a persist_dir"):
        SireNodeParser(complete=True, vector_store=SimpleVectorStore())


def test_vectors_of_the_users_model_can_come_with_the_nodes(documents):
    model = WordEmbedding()
    nodes = SireNodeParser(complete=True, recipe="raptor", embed_model=model, embed_nodes=True)(documents[:6])
    for node in nodes:
        assert type(node.embedding) is list
        assert np.linalg.norm(node.embedding) == pytest.approx(1.0, abs=1e-5)
    title_and_text = f"{nodes[0].metadata['title']}\n{nodes[0].text}"
    expected = np.array(model.get_text_embedding(title_and_text))
    assert np.allclose(nodes[0].embedding, expected / np.linalg.norm(expected), atol=1e-6)


def test_nodes_of_another_splitter_are_taken_as_passages():
    nodes = [
        TextNode(text=text, relationships={NodeRelationship.SOURCE: Document(id_="d").as_related_node_info()})
        for text in ("One.", "Two.")
    ]
    found = SireNodeParser(complete=True, recipe="flat")(nodes)
    assert [(n.text, n.ref_doc_id) for n in found] == [("One.", "d"), ("Two.", "d")]


def test_retired_ids_are_listed_and_deleted(tmp_path, documents):
    store = SimpleVectorStore()
    settings = {"recipe": "raptor", "persist_dir": str(tmp_path / "i"), "embed_nodes": True}
    parser = SireNodeParser(complete=True, **settings, embed_model=WordEmbedding())
    store.add(parser(documents))
    assert parser.retired_ids == []
    changed = Document(id_=documents[0].id_, text="Something else entirely.", metadata=documents[0].metadata)
    store.delete(changed.id_)
    store.add(parser([changed]))
    retired = parser.retired_ids
    assert retired
    assert set(retired) <= set(store.data.embedding_dict)
    assert SireNodeParser(complete=True, **settings, embed_model=WordEmbedding()).retired_ids == retired, (
        "as another process sees it"
    )
    assert parser.delete_retired(store) == retired
    assert not set(retired) & set(store.data.embedding_dict)
    assert parser.retired_ids == []


@pytest.mark.parametrize("how", [how for how in DAMAGES if how != "gone"])
def test_a_damaged_ledger_says_what_to_do(tmp_path, documents, how):
    folder = tmp_path / "i"
    parser = SireNodeParser(recipe="flat", persist_dir=str(folder))
    parser(documents[:2])
    damage(folder / "llama_index_nodes.json", how, random.Random(7), [folder / "manifest.json"])
    with pytest.raises(StorageError, match="Empty the vector store"):
        parser(documents[2:4])
    assert [(f.file, f.advice[:9]) for f in check_folder(folder)] == [("llama_index_nodes.json", "It says w")]


def test_what_would_go_stale_is_refused(documents, tmp_path):
    from llama_index.core import VectorStoreIndex

    with pytest.raises(ConfigurationError, match="Without a persist_dir nobody removes what sirerag derived"):
        VectorStoreIndex.from_documents(
            documents[:4], transformations=[SireNodeParser()], embed_model=MockEmbedding(embed_dim=4)
        )
    assert SireNodeParser(kinds=["chunk"])(documents[:4])
    parser = SireNodeParser(recipe="raptor", persist_dir=str(tmp_path / "p"))
    parser(documents[:8])
    parser([Document(text="Another text altogether.", id_=document.node_id) for document in documents[:8]])
    assert parser.retired_ids
    with pytest.raises(ConfigurationError, match="delete_retired"):
        parser(documents[20:22])
    parser.delete_retired(SimpleVectorStore())
    assert parser(documents[20:22])
