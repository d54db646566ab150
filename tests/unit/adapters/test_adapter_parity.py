"""The same corpus through the core and through an adapter: the same units and hits in the same order."""

import asyncio
from itertools import cycle

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents, demo_questions
from sire_core.recipes import REGISTRY

QUESTIONS = [asked.question for asked in demo_questions()]
FILTERS = [None, {"kind": "person"}, "year>1850, year<1900", {"not": {"kind": {"in": ["person", "place"]}}}]


@pytest.fixture(scope="module")
def core_indexes():
    return {}


@pytest.fixture(params=sorted(REGISTRY))
def sides(request, index_of, adapter, core_indexes):
    """An index of the core, whose documents have their titles in the metadata, too, and a retriever."""
    if request.param not in core_indexes:
        core_indexes[request.param] = index = Index(recipe=request.param)
        index.build([Document(d.id, d.text, d.title, {"title": d.title, **d.metadata}) for d in demo_documents()])
    return core_indexes[request.param], adapter.over(index_of(request.param), k=10)


def expected(adapter, hits):
    return [(hit.doc_ids[0], hit.unit.text, adapter.score(hit.score), list(hit.doc_ids)) for hit in hits]


def shown(found):
    return [(hit.id, hit.text, pytest.approx(hit.score, abs=1e-6), hit.doc_ids) for hit in found]


def test_the_same_units_are_built(sides):
    core, retriever = sides
    assert core.view().ids.tolist() == retriever.index.view().ids.tolist()
    assert core.stats()["kinds"] == retriever.index.stats()["kinds"]


@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_the_same_hits_in_the_same_order(adapter, sides, where):
    core, retriever = sides
    for question, k in zip(QUESTIONS, cycle((1, 7, 30))):
        found = adapter.search(retriever, question, k=k, filter=where)
        assert expected(adapter, core.search(question, k, filter=where)) == shown(found)


async def test_sync_is_async(adapter, sides):
    _, retriever = sides
    native = await asyncio.gather(*(adapter.asearch(retriever, question) for question in QUESTIONS))
    assert native == [adapter.search(retriever, question) for question in QUESTIONS]


def test_a_folder_built_by_one_is_searched_by_the_other(adapter, tmp_path):
    with Index(tmp_path / "i", recipe="sirerag") as core:
        core.build(demo_documents())
        loaded = adapter.load(tmp_path / "i")
        for question in QUESTIONS:
            found = adapter.search(loaded, question, k=10)
            assert [row[1:] for row in expected(adapter, core.search(question, 10))] == [r[1:] for r in shown(found)]


@pytest.mark.parametrize("recipe", ["flat", "raptor"])
def test_a_bridged_embedder_gives_what_the_framework_s_model_gives(adapter, documents, recipe):
    over = adapter.Retriever.from_documents(documents, embedder=adapter.bridged_embedding, recipe=recipe)
    theirs = adapter.Retriever.from_documents(documents, embedder=adapter.embedding, recipe=recipe)
    for question in QUESTIONS:
        assert adapter.search(theirs, question) == adapter.search(over, question)
