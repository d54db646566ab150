"""The same corpus through the core and through LangChain: the same ids in the same order; sync equals async."""

import asyncio

import pytest
from langchain_core.documents import Document

from langchain_sire import LangChainEmbedder, SireRetriever
from sire_core import Document as SireDocument
from sire_core import recipes
from sire_core.data import demo_documents, demo_questions
from sire_core.index import Index
from sire_core.testing.doubles import HashEmbedder
from support.langchain_demo import Hashed

QUESTIONS = [q.question for q in demo_questions()]
FILTERS = [None, {"kind": "person"}, "year>1850, year<1900", {"not": {"kind": {"in": ["person", "place"]}}}]
RECIPES = sorted(recipes.REGISTRY)


def corpus():
    """The same documents for both sides: LangChain knows titles from the metadata only."""
    return [SireDocument(d.id, d.text, d.title, {"title": d.title, **d.metadata}) for d in demo_documents()]


def as_langchain():
    return [Document(id=d.id, page_content=d.text, metadata=dict(d.metadata)) for d in corpus()]


@pytest.fixture(scope="module", params=RECIPES)
def sides(request):
    core = Index(recipe=request.param)
    core.build(corpus())
    return core, SireRetriever.from_documents(as_langchain(), recipe=request.param)


def _of_hits(hits):
    return [(h.doc_ids[0], h.unit.text, pytest.approx(h.score), list(h.doc_ids), list(h.unit.chunk_ids)) for h in hits]


def _of_documents(found):
    return [
        (
            d.id,
            d.page_content,
            d.metadata["sire"]["score"],
            d.metadata["sire"]["doc_ids"],
            d.metadata["sire"]["chunk_ids"],
        )
        for d in found
    ]


def test_the_same_units_are_built(sides):
    core, retriever = sides
    assert core.view().ids.tolist() == retriever.index.view().ids.tolist()
    assert core.stats()["kinds"] == retriever.index.stats()["kinds"]


def whole(documents):
    """All that they hold: two documents of one passage are equal whatever their scores are."""
    return [document.model_dump() for document in documents]


@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_the_same_hits_in_the_same_order(sides, where):
    core, retriever = sides
    for question in QUESTIONS:
        for k in (1, 7, 30):
            found = retriever.invoke(question, k=k, filter=where)
            assert _of_documents(found) == _of_hits(core.search(question, k, filter=where))


async def test_sync_is_async(sides):
    _, retriever = sides
    native = await asyncio.gather(*(retriever.ainvoke(q, k=10) for q in QUESTIONS))
    assert list(map(whole, native)) == [whole(retriever.invoke(q, k=10)) for q in QUESTIONS]
    assert retriever.batch(QUESTIONS) == await retriever.abatch(QUESTIONS)


@pytest.mark.parametrize("recipe", ["flat", "raptor"])
def test_a_bridged_embedder_gives_what_our_own_gives(recipe):
    ours = Index(recipe=recipe, embedder=HashEmbedder(256))
    ours.build(corpus())
    theirs = SireRetriever.from_documents(as_langchain(), Hashed(), recipe=recipe)
    for question in QUESTIONS:
        assert [d.id for d in theirs.invoke(question, k=10)] == [h.doc_ids[0] for h in ours.search(question, 10)]


def test_a_folder_built_by_one_is_searched_by_the_other(tmp_path):
    core = Index(tmp_path / "i", recipe="sirerag")
    core.build(corpus())
    loaded = SireRetriever.load(tmp_path / "i", k=10)
    for question in QUESTIONS:
        found, expected = _of_documents(loaded.invoke(question)), _of_hits(core.search(question, 10))
        assert [row[1:] for row in found] == [row[1:] for row in expected]


def test_a_document_index_filled_piece_by_piece_equals_one_build():
    store = SireRetriever.open(recipe="flat", k=10, embedding=LangChainEmbedder(Hashed()))
    documents = as_langchain()
    for start in range(0, len(documents), 7):
        store.upsert(documents[start : start + 7])
    core = Index(recipe="flat", embedder=LangChainEmbedder(Hashed()), chunker=None)
    core.build(corpus())
    for question in QUESTIONS:
        assert _of_documents(store.invoke(question)) == _of_hits(core.search(question, 10))
