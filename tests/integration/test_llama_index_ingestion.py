"""`SireNodeParser` in LlamaIndex's `IngestionPipeline`: no run leaves anything stale in the vector store."""

import asyncio
import inspect
import json

import numpy as np
import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.schema import Document
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index_sire import SireNodeParser
from sire_core import Index
from sire_core.data import demo_documents
from sire_core.recipes import REGISTRY
from sire_core.types import to_uuid

RECIPES = sorted(REGISTRY)
CANARY = "Zorbleflux"


class World:
    """A pipeline with its stores, and every text that ever came out of it by id."""

    def __init__(self, folder, recipe, strategy, *, is_async=False, store=None):
        self.store, self.docstore = store or SimpleVectorStore(), SimpleDocumentStore()
        followed = {"vector_store": self.store, "docstore": self.docstore}
        self.folder = str(folder / "index")
        self.parser = SireNodeParser(recipe=recipe, persist_dir=self.folder, **followed)
        self.pipeline = IngestionPipeline(
            transformations=[self.parser, MockEmbedding(embed_dim=4)],
            vector_store=self.store,
            docstore=self.docstore,
            docstore_strategy=strategy,
        )
        self.is_async = is_async
        self.texts = {}

    def run(self, documents):
        nodes = (
            asyncio.run(self.pipeline.arun(documents=documents))
            if self.is_async
            else self.pipeline.run(documents=documents)
        )
        self.texts.update((node.node_id, node.text) for node in nodes)
        return nodes

    @property
    def ids(self):
        return set(self.store.data.embedding_dict)

    @property
    def stored_text(self):
        return "\n".join(self.texts[name] for name in sorted(self.ids))

    def index_ids(self):
        with Index(self.folder) as index:
            return {to_uuid(name.decode()) for name in index.view().ids.tolist()}


def corpus(canary=False):
    return [
        Document(
            id_=d.id,
            text=d.text
            + (
                f" The {CANARY} sank here. The {CANARY} was built in Port Ansel."
                if canary and d.id == "bruno-hask"
                else ""
            ),
            metadata={"title": d.title, **d.metadata},
        )
        for d in demo_documents()
    ]


@pytest.mark.parametrize(
    ("strategy", "is_async"), [(DocstoreStrategy.UPSERTS, True), (DocstoreStrategy.UPSERTS_AND_DELETE, False)]
)
@pytest.mark.quick(recipe=["sire", "sirerag"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_second_run_with_one_changed_document_leaves_no_stale_summary(tmp_path, recipe, strategy, is_async):
    world = World(tmp_path, recipe, strategy, is_async=is_async)
    world.run(corpus(canary=True))
    assert world.ids == world.index_ids()
    assert CANARY in world.stored_text
    nodes = world.run(corpus())
    assert 0 < len(nodes) < len(world.ids)
    assert world.ids == world.index_ids()
    assert CANARY not in world.stored_text
    assert world.parser.retired_ids == []
    assert world.run(corpus()) == []
    assert world.ids == world.index_ids()


def test_a_parser_that_cannot_learn_of_deletions_says_so(tmp_path, caplog):
    store = SimpleVectorStore()
    followed = {"persist_dir": str(tmp_path / "i"), "vector_store": store}
    SireNodeParser(recipe="flat", **followed)
    SireNodeParser(recipe="raptor", kinds=["chunk"], **followed)
    SireNodeParser(recipe="raptor", docstore=SimpleDocumentStore(), **followed)
    assert not caplog.messages
    SireNodeParser(recipe="raptor", **followed).get_nodes_from_documents(corpus()[:4])
    (said,) = caplog.messages
    assert "docstore=docstore" in said


def test_trap_the_cache_does_not_bring_an_old_answer_back(tmp_path):
    """One document, then another text, then the first text again: its cached nodes belong to an older index."""
    world = World(tmp_path, "raptor", DocstoreStrategy.UPSERTS)
    world.run(corpus(canary=True)[:12])
    for canary in (False, True, False):
        (document,) = (d for d in corpus(canary=canary) if d.id_ == "bruno-hask")
        world.run([document])
        assert world.ids == world.index_ids()
        assert (CANARY in world.stored_text) == canary


def test_trap_pipelines_can_be_saved(tmp_path):
    """Cached nodes go through JSON; NumPy numbers in metadata fail there."""
    pipeline = IngestionPipeline(transformations=[SireNodeParser(complete=True, recipe="raptor")])
    documents = [
        Document(id_=str(i), text=f"Text number {i}.", metadata={"w": np.float32(i), "n": np.int64(i)})
        for i in range(4)
    ]
    first = pipeline.run(documents=documents)
    pipeline.persist(str(tmp_path / "pipeline"))
    other = IngestionPipeline(transformations=[SireNodeParser(complete=True, recipe="raptor")])
    other.load(str(tmp_path / "pipeline"))
    assert [n.model_dump() for n in other.run(documents=documents)] == [n.model_dump() for n in first]


def test_trap_equal_documents_share_one_hash_in_the_document_store(tmp_path):
    """`get_all_document_hashes` knows one of two equal documents; the other must not be taken for deleted."""
    world = World(tmp_path, "flat", DocstoreStrategy.UPSERTS)
    twins = [Document(id_=name, text="The same text.") for name in ("a", "b")]
    world.run(twins)
    world.run([Document(id_="c", text="Another text.")])
    with Index(world.folder) as index:
        assert index.stats()["documents"] == 3


@pytest.mark.skipif(
    "set_document_hashes" in inspect.getsource(IngestionPipeline._handle_upserts),
    reason="this LlamaIndex notes documents as done before they are: it never hands them out again",
)
def test_a_run_that_died_before_the_store_is_made_up_for(tmp_path):
    away = []

    class Fragile(SimpleVectorStore):
        def add(self, nodes, **kwargs):
            if away:
                raise ConnectionError("the store is away")
            return super().add(nodes)

    world = World(tmp_path, "raptor", DocstoreStrategy.UPSERTS, store=Fragile())
    world.run(corpus(canary=True))
    new = Document(id_="new", text="A new text about the harbour.")
    away.append(True)
    with pytest.raises(ConnectionError):
        world.run([*corpus(), new])
    assert world.ids != world.index_ids()
    away.clear()
    world.run([*corpus(), new])
    assert world.ids == world.index_ids()
    assert CANARY not in world.stored_text


def test_another_process_goes_on(tmp_path):
    world = World(tmp_path, "raptor", DocstoreStrategy.UPSERTS)
    world.run(corpus(canary=True))
    world.store.persist(str(tmp_path / "vectors.json"))
    world.docstore.persist(str(tmp_path / "documents.json"))
    later = World(
        tmp_path,
        "raptor",
        DocstoreStrategy.UPSERTS,
        store=SimpleVectorStore.from_persist_path(str(tmp_path / "vectors.json")),
    )
    later.docstore = later.parser.docstore = later.pipeline.docstore = SimpleDocumentStore.from_persist_path(
        str(tmp_path / "documents.json")
    )
    later.texts = world.texts
    assert len(later.run(corpus())) < len(world.ids)
    assert later.ids == later.index_ids()
    assert CANARY not in later.stored_text


def test_trap_derived_nodes_leak_on_delete(tmp_path):
    """`delete_ref_doc` of LlamaIndex's own index reaches every node of ours, derived ones by their id."""
    nodes = SireNodeParser(complete=True, recipe="raptor")(corpus()[:12])
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    store = index.storage_context.vector_store.data
    assert "None" not in store.text_id_to_ref_doc_id.values()
    derived = [node.node_id for node in nodes if node.metadata["sire_kind"] != "chunk"]
    assert derived
    for name in derived:
        index.delete_ref_doc(name)
    assert not set(derived) & set(store.embedding_dict)
    index.delete_ref_doc(corpus()[0].id_)
    assert len(store.embedding_dict) == 11
    json.dumps(index.storage_context.to_dict())
