"""`SireDocumentTransformer` and `pool_documents`: the flattened pool for any store."""

import asyncio
import copy
import json
import time

import pytest
from langchain_core.documents import BaseDocumentTransformer, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_sire import SireDocumentTransformer, pool_documents
from sire_core.errors import ConfigurationError, IndexMissingError
from sire_core.index import Index
from sire_core.storage.pool import shared_metadata
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import to_uuid

SCALARS = (str, int, float, bool, type(None))


@pytest.fixture
def documents(documents):
    """A part of the demo corpus is enough here."""
    return documents[:14]


def test_the_pool_is_passages_and_what_was_made_from_them(documents):
    transformer = SireDocumentTransformer("sirerag")
    assert isinstance(transformer, BaseDocumentTransformer)
    pool = transformer.transform_documents(documents)
    kinds = {kind: [d for d in pool if d.metadata["kind"] == kind] for kind in {d.metadata["kind"] for d in pool}}
    assert len(kinds["chunk"]) == len(documents)
    assert {"chunk", "sim_summary", "aggregate"} <= set(kinds)
    assert len({d.id for d in pool}) == len(pool)
    given = {d.id for d in documents}
    for document in pool:
        sources = json.loads(document.metadata["doc_ids"])
        assert sources
        assert set(sources) <= given
        assert document.metadata["doc_id"] == sources[0]
        assert to_uuid(document.metadata["unit_id"]) == document.id
        assert json.loads(document.metadata["chunk_ids"])


def test_trap_pool_metadata_is_scalars_only_for_stores_that_take_nothing_else(documents):
    for document in SireDocumentTransformer("sirerag").transform_documents(documents):
        assert all(isinstance(value, SCALARS) for value in document.metadata.values())


def test_trap_nothing_volatile_is_in_the_pool(documents):
    one, two = (SireDocumentTransformer("sirerag").transform_documents(documents) for _ in range(2))
    assert one == two
    assert not [d for d in one if "score" in d.metadata]


def test_passages_carry_what_is_embedded(documents):
    pool = SireDocumentTransformer("flat").transform_documents(documents[:1])
    assert pool[0].page_content == f"SS Northern Wren\n{documents[0].page_content}"
    assert pool[0].metadata["user_kind"] == "ship"
    assert pool[0].metadata["year"] == 1879


def test_trap_callers_documents_are_untouched(documents):
    before = copy.deepcopy(documents)
    for made in SireDocumentTransformer("flat").transform_documents(documents):
        made.metadata["title"] = "changed"
    assert documents == before


def test_trap_tenants_derived_units_claim_only_what_all_their_passages_share():
    texts = [("a", "Petra Quillon wrote The Salt Lantern."), ("b", "Petra Quillon was born in Varn Harbour.")]
    documents = [Document(id=t, page_content=x, metadata={"tenant": t, "lang": "en"}) for t, x in texts]
    pool = SireDocumentTransformer("sirerag").transform_documents(documents)
    mixed = [d for d in pool if len(json.loads(d.metadata["doc_ids"])) > 1]
    assert mixed
    assert all("tenant" not in d.metadata and d.metadata["lang"] == "en" for d in mixed)
    assert {d.metadata["tenant"] for d in pool if d.metadata["kind"] == "chunk"} == {"a", "b"}


def test_shared_metadata():
    assert shared_metadata([{"a": 1, "b": 2}, {"b": 2, "a": 3, "c": 4}]) == {"b": 2}
    assert shared_metadata([{"a": None}, {}]) == {}
    assert shared_metadata([{"a": [1]}]) == {"a": [1]}


def test_it_works_with_a_vector_store(documents):
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    pool = SireDocumentTransformer("sirerag").transform_documents(documents)
    assert store.add_documents(list(pool)) == [d.id for d in pool]
    assert store.get_by_ids([pool[-1].id])[0].metadata == pool[-1].metadata
    found = store.similarity_search("anything", k=3, filter=lambda d: d.metadata["kind"] == "aggregate")
    assert [d.metadata["kind"] for d in found] == ["aggregate"] * 3


def test_kinds_can_be_chosen(documents):
    pool = SireDocumentTransformer("sirerag", kinds=("chunk", "aggregate")).transform_documents(documents)
    assert {d.metadata["kind"] for d in pool} == {"chunk", "aggregate"}
    with pytest.raises(ConfigurationError, match="no kinds summary; the kinds are chunk"):
        SireDocumentTransformer(kinds=["summary"])


def test_a_second_call_pays_for_the_change_only_and_lists_no_stale_unit(documents, tmp_path):
    embedded = []

    class Counting(HashEmbedder):
        async def embed(self, texts, kind="document"):
            embedded.append(len(texts))
            return await super().embed(texts, kind)

    transformer = SireDocumentTransformer("flat", embedding=Counting(), path=tmp_path / "i")
    first = transformer.transform_documents(documents)
    embedded.clear()
    changed = [*documents[1:], Document(id="new", page_content="A new passage.")]
    second = transformer.transform_documents(changed)
    assert sum(embedded) == 1
    assert {d.id for d in first} - {d.id for d in second} == {first[0].id}
    assert len(second) == len(first)


def test_an_index_of_the_users_own(documents):
    index = Index(recipe="flat")
    pool = SireDocumentTransformer(index=index).transform_documents(documents)
    assert pool_documents(index) == pool
    with pytest.raises(ConfigurationError, match="not both"):
        SireDocumentTransformer("flat", index=index)
    with pytest.raises(IndexMissingError):
        pool_documents(Index())


async def test_trap_async_transform_does_not_block_the_loop(documents):
    class Slow(HashEmbedder):
        async def embed(self, texts, kind="document"):
            await asyncio.sleep(0.3)
            return await super().embed(texts, kind)

    beats = []

    async def tick():
        while True:
            beats.append(time.perf_counter())
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    pool = await SireDocumentTransformer("flat", embedding=Slow()).atransform_documents(documents)
    ticking.cancel()
    assert pool == SireDocumentTransformer("flat", embedding=HashEmbedder()).transform_documents(documents)
    assert len(beats) > 15


async def test_unknown_arguments_are_refused(documents):
    transformer = SireDocumentTransformer("flat")
    with pytest.raises(ConfigurationError, match="not chunk_size"):
        transformer.transform_documents(documents, chunk_size=3)
    with pytest.raises(ConfigurationError, match="not chunk_size"):
        await transformer.atransform_documents(documents, chunk_size=3)


async def test_atomic_knowledge_and_bridging_facts_for_any_store(documents):
    """The pool of `indexrag`: what each document knows, and what joins documents, without the passages."""
    kinds = ("aku", "bridge")
    transformer = SireDocumentTransformer("indexrag", kinds=kinds)
    pool = transformer.transform_documents(documents)
    assert {d.metadata["kind"] for d in pool} == set(kinds)
    sources = {d.id: json.loads(d.metadata["doc_ids"]) for d in pool}
    atomic = [d for d in pool if d.metadata["kind"] == "aku"]
    bridges = [d for d in pool if d.metadata["kind"] == "bridge"]
    assert {source for d in atomic for source in sources[d.id]} == {d.id for d in documents}
    assert all(len(sources[d.id]) == 1 for d in atomic)
    assert all(len(set(sources[d.id])) > 1 for d in bridges)
    assert all(isinstance(value, SCALARS) for d in pool for value in d.metadata.values())
    assert await SireDocumentTransformer("indexrag", kinds=kinds).atransform_documents(documents) == pool


def test_bridging_facts_go_with_their_documents_from_the_users_store(documents, tmp_path):
    transformer = SireDocumentTransformer("indexrag", path=tmp_path / "i", kinds=("aku", "bridge"))
    first = transformer.transform_documents(documents)
    gone = next(json.loads(d.metadata["doc_ids"])[0] for d in first if d.metadata["kind"] == "bridge")
    second = transformer.transform_documents([d for d in documents if d.id != gone])
    assert not [d for d in second if gone in json.loads(d.metadata["doc_ids"])]
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    store.add_documents(list(first))
    store.delete(sorted({d.id for d in first} - {d.id for d in second}))
    store.add_documents(list(second))
    assert set(store.store) == {d.id for d in second}
