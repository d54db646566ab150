"""The user's own vector store under either framework: filled, followed, searched."""

import pytest

from sire_core import Index
from sire_core.data import demo_questions
from sire_core.errors import ConfigurationError
from sire_core.recipes import REGISTRY
from sire_core.types import to_uuid

RECIPES = sorted(REGISTRY)


def pool_ids(retriever):
    return {to_uuid(name.decode()) for name in retriever.index.view().ids.tolist()}


@pytest.mark.quick(recipe=["flat", "sirerag"])
@pytest.mark.parametrize("recipe", RECIPES)
async def test_recipes_rank_over_it_as_over_our_own_vectors(adapter, documents, recipe):
    options = {"embedder": adapter.bridged_embedding, "recipe": recipe, "k": 12}
    over = adapter.Retriever.from_documents(documents, vector_store=adapter.vector_store(), **options)
    own = adapter.Retriever.from_documents(documents, **options)
    assert "(yours) + local scores" in over.index.stats()["vectors"]
    for asked in demo_questions():
        for where in (None, "kind=person"):
            found, expected = (adapter.search(one, asked.question, filter=where) for one in (over, own))
            assert [hit.id for hit in found] == [hit.id for hit in expected]
            assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)
        found = await adapter.asearch(over, asked.question)
        assert [hit.id for hit in found] == [hit.id for hit in adapter.search(own, asked.question)]


@pytest.mark.quick(recipe=["sirerag"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_it_follows_every_change(adapter, documents, recipe):
    store = adapter.vector_store()
    retriever = adapter.Retriever.from_documents(documents[:20], recipe=recipe, vector_store=store)
    changes = [
        lambda: adapter.add(retriever, *documents[20:24]),
        lambda: adapter.add(retriever, adapter.document("northern-wren", "The Zorbleflux sank."), documents[5]),
        lambda: adapter.delete(retriever, "northern-wren", retriever.index.documents()[1].id),
    ]
    for change in changes:
        change()
        assert set(adapter.stored(store)) == pool_ids(retriever)


def test_an_empty_store_is_filled_by_the_same_script_again_and_by_opening(adapter, documents, question, tmp_path):
    """The folder says that the store was told; a store in the memory of this process was not."""
    options = {"path": tmp_path / "i", "recipe": "pagerank", "k": 9}
    first = adapter.Retriever.from_documents(documents, vector_store=adapter.vector_store(), **options)
    wanted = [hit.id for hit in adapter.search(first, question)]
    assert len(wanted) == 9
    again = adapter.Retriever.from_documents(documents, vector_store=adapter.vector_store(), **options)
    assert [hit.id for hit in adapter.search(again, question)] == wanted
    mirror = adapter.package.VectorStoreMirror(adapter.vector_store())
    opened = adapter.load(tmp_path / "i", vector_store=mirror)
    assert opened.index.stats()["recipe"] == "pagerank"
    assert [hit.id for hit in adapter.search(opened, question)] == wanted


def test_a_store_of_another_index_is_warned_of_once(adapter, documents, caplog):
    store = adapter.vector_store()
    adapter.Retriever.from_documents(documents[:4], vector_store=store, recipe="flat")
    assert "not of this index" not in caplog.text
    other = adapter.Retriever.from_documents(documents[4:6], vector_store=store, recipe="flat")
    adapter.add(other, documents[7])
    assert caplog.text.count("not of this index") == 1


def test_what_is_no_store_is_refused(adapter, documents):
    mirror, over = adapter.package.VectorStoreMirror, adapter.package.over_vector_store
    for make in (lambda: mirror({}), lambda: over("flat", {})):
        with pytest.raises(ConfigurationError, match=r"(?i)no (LangChain|LlamaIndex) vector ?store"):
            make()
    with pytest.raises(ConfigurationError, match=r"(?i)str is no (LangChain|LlamaIndex) vector ?store"):
        adapter.Retriever.from_documents(documents, vector_store="chroma")
    with pytest.raises(ConfigurationError, match="same name"):
        Index(mirrors=[mirror(adapter.vector_store()), mirror(adapter.vector_store())])
