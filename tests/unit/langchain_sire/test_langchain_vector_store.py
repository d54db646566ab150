"""Recipes over the user's own vector store."""

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

import sire_core as core
from langchain_sire import (
    LangChainEmbedder,
    SireRetriever,
    VectorStoreMirror,
    VectorStoreSource,
    over_vector_store,
    pool_documents,
)
from sire_core import Index
from sire_core.data import demo_documents as core_demo
from sire_core.errors import ConfigurationError
from sire_core.filters import parse_filter
from sire_core.models.sync import run_sync
from support.langchain_demo import Hashed


def _filled(documents, recipe, **source):
    """An index whose pool is in a store, a retriever over the store, and one over the index itself."""
    store = InMemoryVectorStore(Hashed())
    embedding = LangChainEmbedder(Hashed())
    local = SireRetriever.from_documents(documents, embedding, recipe=recipe, k=6)
    store.add_documents(pool_documents(local.index))
    over = SireRetriever.from_documents(documents, embedding, recipe=over_vector_store(recipe, store, **source), k=6)
    return store, over, local


def test_trap_native_filters_pass_through_untouched(documents, question):
    def no_aggregates(document):
        return document.metadata["kind"] != "aggregate"

    _, over, _ = _filled(documents, "sirerag", search_kwargs={"filter": no_aggregates})
    with pytest.raises(ConfigurationError, match="pagerank also finds what the store does not list"):
        over_vector_store("pagerank", InMemoryVectorStore(Hashed()), search_kwargs={"filter": no_aggregates})
    assert "aggregate" not in {d.metadata["sire"]["kind"] for d in over.invoke(question, k=30, returns="units")}


def test_our_filter_can_be_translated_for_the_store(documents, question):
    asked = []

    def translate(where):
        asked.append(where)
        return lambda document: where.matches({"kind": document.metadata.get("user_kind")})

    _, over, local = _filled(documents, "flat", native_filter=translate)
    wanted = {"kind": "person"}
    assert [d.id for d in over.invoke(question, filter=wanted)] == [d.id for d in local.invoke(question, filter=wanted)]
    assert asked == [parse_filter(wanted)]
    with pytest.raises(ConfigurationError, match="not both"):
        VectorStoreSource(InMemoryVectorStore(Hashed()), native_filter=translate, search_kwargs={"filter": 1})


def test_trap_units_that_the_store_still_holds_but_the_index_does_not_are_passed_over(documents, question):
    _, over, _ = _filled(documents, "sirerag")
    first = over.invoke(question)[0].metadata["sire"]["doc_ids"][0]
    over.index.delete([first])  # the store was not told
    found = over.invoke(question, k=6)
    assert len(found) == 6
    assert not [d for d in found if first in d.metadata["sire"]["doc_ids"]]


def test_stores_that_forget_ids_are_understood(documents, question):
    class Forgetful(InMemoryVectorStore):
        def similarity_search_with_score(self, query, k=4, **kwargs):
            found = super().similarity_search_with_score(query, k, **kwargs)
            return [(Document(page_content=d.page_content, metadata=d.metadata), score) for d, score in found]

    index = SireRetriever.from_documents(documents, LangChainEmbedder(Hashed()), recipe="flat").index
    store = Forgetful(Hashed())
    store.add_documents(pool_documents(index))
    pairs = run_sync(VectorStoreSource(store).rank(question, 3))
    assert {name for name, _ in pairs} <= {name.decode() for name in index.view().ids.tolist()}


class Minimal(VectorStore):
    """What the base class demands, and no scores; delete answers None, `get_by_ids` is missing."""

    def __init__(self, found):
        self.found = found

    def add_texts(self, texts, metadatas=None, **kwargs):
        raise NotImplementedError

    @classmethod
    def from_texts(cls, texts, embedding, metadatas=None, **kwargs):
        raise NotImplementedError

    def similarity_search(self, query, k=4, **kwargs):
        return [Document(id=name, page_content=name) for name in self.found[:k]]


async def test_trap_a_store_without_scores_ranks_by_order():
    source = VectorStoreSource(Minimal(["a", "b", "c"]))
    assert await source.rank("?", 2) == [("a", 1.0), ("b", 0.5)]
    assert run_sync(source.rank("?", 9)) == [("a", 1.0), ("b", 0.5), ("c", 1 / 3)]


class Distances(Minimal):
    def similarity_search_with_score(self, query, k=4, **kwargs):
        return [(document, float(place)) for place, document in enumerate(self.similarity_search(query, k))]


async def test_trap_distances_become_scores_that_grow_with_similarity():
    for distances in (True, None):
        source = VectorStoreSource(Distances(["a", "b"]), distances=distances)
        assert await source.rank("?", 2) == [("a", -0.0), ("b", -1.0)]


class Far(InMemoryVectorStore):
    """Scores are squared distances, the smaller the nearer."""

    def similarity_search_with_score(self, query, k=4, **kwargs):
        return [(found, 2 - 2 * score) for found, score in super().similarity_search_with_score(query, k, **kwargs)]


@pytest.mark.parametrize("kind", [InMemoryVectorStore, Far])
def test_what_the_store_has_not_got_yet_stands_where_its_vector_says(tmp_path, kind):
    store, embedding = kind(Hashed()), LangChainEmbedder(Hashed())
    mirrors = [VectorStoreMirror(store)]
    recipe = over_vector_store("flat", store)
    new = core.Document("new", "Zed Moss sailed to Orr in the Amber.", metadata={"late": True})
    with (
        Index(tmp_path, recipe=recipe, embedder=embedding, mirrors=mirrors) as over,
        Index(tmp_path, recipe="flat", embedder=embedding) as own,
    ):
        over.build(core_demo())
        own.add([new])

        def same(question, where=None):
            """All hits of the store in the order of our own scan; equal cosines have none."""
            expected = {hit.unit.id: hit.score for hit in own.search(question, 60, filter=where)}
            hits = over.search(question, 60, filter=where)
            assert {hit.unit.id for hit in hits} == set(expected)
            assert [expected[hit.unit.id] for hit in hits] == pytest.approx(sorted(expected.values())[::-1], abs=1e-5)
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
            return hits

        for question in ("Who sailed to Orr in the Amber?", "Who commanded the Northern Wren?", "Zed"):
            hits = same(question)
            (waits,) = [hit for hit in hits if hit.doc_ids == ("new",)]
            assert "not yet in the user's vector store" in waits.path[0].note
            assert len(same(question, {"late": True})) == 1
        assert same("Who sailed to Orr in the Amber?")[0].doc_ids == ("new",)
        own.update([core.Document("new", "The mill of Varn.")])
        assert same("The mill of Varn")[0].doc_ids == ("new",)


def test_a_filter_for_the_store_holds_for_what_it_has_not_got_yet(tmp_path):
    store, embedding = InMemoryVectorStore(Hashed()), LangChainEmbedder(Hashed())
    recipe = over_vector_store("flat", store, search_kwargs={"filter": lambda found: "Wren" in found.page_content})
    with (
        Index(tmp_path, recipe=recipe, embedder=embedding, mirrors=[VectorStoreMirror(store)]) as over,
        Index(tmp_path, recipe="flat", embedder=embedding) as own,
    ):
        over.build(core_demo())
        own.add([core.Document("new", "Zed Moss sailed to Orr in the Amber.")])
        hits = over.search("Who sailed to Orr in the Amber?", 10)
    assert hits
    assert all("Wren" in hit.unit.index_text for hit in hits)
