"""The same corpus through the core and through LlamaIndex: identical ids in identical order, sync and async."""

import pytest
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_sire import SireRetriever, to_documents
from sire_core.data import demo_documents, demo_questions
from sire_core.index import Index
from sire_core.recipes import REGISTRY
from sire_core.types import to_uuid

RECIPES = sorted(REGISTRY)
K = 12


def as_llama_index():
    return [LlamaDocument(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]


@pytest.fixture(scope="module", params=RECIPES)
def both(request):
    core = Index(recipe=request.param)
    core.build(demo_documents())
    return core, SireRetriever.from_documents(as_llama_index(), recipe=request.param, similarity_top_k=K)


def test_same_pool(both):
    core, retriever = both
    assert retriever.index.view().ids.tolist() == core.view().ids.tolist()


async def test_same_hits_in_the_same_order_sync_and_async(both):
    core, retriever = both
    for question in demo_questions():
        hits = core.search(question.question, K)
        found = retriever.retrieve(question.question)
        assert [n.node_id for n in found] == [to_uuid(hit.unit.id) for hit in hits]
        assert [n.text for n in found] == [hit.unit.text for hit in hits]
        assert [n.score for n in found] == pytest.approx([max(hit.score, 1e-6) for hit in hits], abs=1e-6)
        again = await retriever.aretrieve(question.question)
        assert [n.model_dump() for n in again] == [n.model_dump() for n in found]


def test_same_hits_under_a_filter(both):
    core, retriever = both
    filters = MetadataFilters(filters=[MetadataFilter(key="kind", value="person")])
    filtered = SireRetriever(retriever.index, similarity_top_k=K, filters=filters)
    for question in demo_questions():
        hits = core.search(question.question, K, filter={"kind": "person"})
        assert [n.node_id for n in filtered.retrieve(question.question)] == [to_uuid(hit.unit.id) for hit in hits]


def test_documents_are_the_same_but_for_the_title_in_the_metadata():
    for ours, core in zip(to_documents(as_llama_index()), demo_documents(), strict=True):
        assert (ours.id, ours.title) == (core.id, core.title)
        assert [passage.text for passage in ours.passages] == [core.text]
        assert ours.metadata == {"title": core.title, **core.metadata}
