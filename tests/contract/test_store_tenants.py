"""No search shows a passage of another tenant, whatever database the vectors are in and whatever stands before it."""

import random

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import Embeddings
from llama_index.core.schema import Document as LlamaIndexDocument

from langchain_sire import SireRetriever as LangChainRetriever
from llama_index_sire import SireRetriever as LlamaIndexRetriever
from sire_core import Index
from sire_core.models.sync import run_sync
from sire_core.recipes import REGISTRY
from sire_core.testing.contracts import two_tenants
from sire_core.testing.doubles import HashEmbedder

pytestmark = pytest.mark.default_recipe
TENANTS = (("red", "blue"), ("blue", "red"))
DATABASES = [
    "postgres",
    pytest.param("qdrant", marks=pytest.mark.slow),
    pytest.param("lance", marks=pytest.mark.slow),
]
RECIPES = [name if name == "sire" else pytest.param(name, marks=pytest.mark.slow) for name in sorted(REGISTRY)]
WIDENING = [None, {"tenant": {"exists": True}}, {"or": [{"tenant": "red"}, {"tenant": "blue"}]}]


class Hashed(Embeddings):
    """The test embedder as LangChain's."""

    model = "hash"

    def embed_documents(self, texts):
        return run_sync(HashEmbedder().embed(texts)).tolist()

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def core(path, recipe, store, **options):
    """An index, and what it shows for a question and a filter."""
    index = Index(path, recipe=recipe, embedder=HashEmbedder(), store=store, **options)

    def shown(question, where):
        hits = index.search(question, 50, filter=where, returns="units")
        return [*hits, *index.search(question, 50, filter=where), index.explain(question, 50, filter=where)]

    return index, shown


def langchain(path, recipe, store, **options):
    """The same through a retriever of LangChain."""
    index, _ = core(path, recipe, store, **options)
    retriever = LangChainRetriever(index=index, k=50)
    return index, lambda question, where: retriever.invoke(question, filter=where)


def llama_index(path, recipe, store, **options):
    """The same through a retriever of LlamaIndex."""
    index, _ = core(path, recipe, store, **options)

    def shown(question, where):
        retriever = LlamaIndexRetriever(index, similarity_top_k=50, filters=where)
        return [scored.node.model_dump() for scored in retriever.retrieve(question)]

    return index, shown


def check(found, question, foreign):
    """Something is shown, and no word of the other tenant but what was asked for."""
    assert found
    text = repr(found).lower().replace(question.lower(), "")
    assert f"{foreign}canary" not in text
    assert f"{foreign}marker" not in text


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("through", [core, langchain, llama_index])
@pytest.mark.parametrize("make_store", DATABASES, indirect=True)
def test_each_store_shows_a_tenant_only_its_own(make_store, tmp_path, through, recipe):
    moved = two_tenants()[0]
    index, shown = through(tmp_path / "ix", recipe, make_store())
    with index:
        assert not index.build(two_tenants()).failures
        assert set(index.push().values()) == {0}, "the database answers, not our own vectors"
        for own, foreign in TENANTS:
            for question in ("Who met Lord Ashby in Port Amber?", f"{foreign}canary {foreign}marker"):
                check(shown(question, {"tenant": own}), question, foreign)
        assert not index.search("Lord Ashby", 5, filter={"tenant": "nobody"})
    for own, foreign in TENANTS:
        index, shown = through(tmp_path / "ix", recipe, make_store(), allow={"tenant": own})
        with index:
            for question in ("Who met Lord Ashby in Port Amber?", f"{foreign}canary {foreign}marker"):
                for where in WIDENING:
                    check(shown(question, where), question, foreign)
                assert not index.search(question, 50, filter={"tenant": foreign})
    # What is given to another tenant is gone for the first, in the database too.
    index, _ = through(tmp_path / "ix", recipe, make_store())
    with index:
        index.update([type(moved)(moved.id, moved.text, moved.title, {"tenant": "green"})])
    for own in ("red", "green"):
        index, shown = through(tmp_path / "ix", recipe, make_store(), allow={"tenant": own})
        with index:
            ids = {doc for hit in index.search(moved.text, 50, returns="passages") for doc in hit.doc_ids}
            assert (moved.id in ids) == (own == "green")
            check(shown("Lord Ashby in Port Amber", None), "", "blue")


FRAMEWORKS = [
    pytest.param("langchain postgres"),
    pytest.param("langchain memory", marks=pytest.mark.slow),
    pytest.param("llama-index simple", marks=pytest.mark.slow),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", FRAMEWORKS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_each_store_of_a_framework_shows_a_tenant_only_its_own(request, kind, recipe):
    if kind == "llama-index simple":
        from llama_index.core.vector_stores import SimpleVectorStore

        given = [
            LlamaIndexDocument(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in two_tenants()
        ]
        made = LlamaIndexRetriever.from_documents(
            given, vector_store=SimpleVectorStore(), recipe=recipe, embed_model=HashEmbedder(), similarity_top_k=50
        )
        index = made.index

        def shown(question, where):
            mine = LlamaIndexRetriever(index, similarity_top_k=50, filters=where)
            return [scored.node.model_dump() for scored in mine.retrieve(question)]
    else:
        store = langchain_store(request, kind)
        given = [LangChainDocument(d.text, id=d.id, metadata={"title": d.title, **d.metadata}) for d in two_tenants()]
        retriever = LangChainRetriever.from_documents(given, vector_store=store, recipe=recipe, k=50)
        index = retriever.index

        def shown(question, where):
            return retriever.invoke(question, filter=where)

    with index:
        assert set(index.push().values()) == {0}
        for own, foreign in TENANTS:
            for question in ("Who met Lord Ashby in Port Amber?", f"{foreign}canary {foreign}marker"):
                check(shown(question, {"tenant": own}), question, foreign)


def langchain_store(request, kind):
    """An empty store of LangChain: PGVector over the real server, or in memory."""
    from langchain_core.vectorstores import InMemoryVectorStore

    if kind == "langchain memory":
        return InMemoryVectorStore(Hashed())
    PGVector = pytest.importorskip("langchain_postgres").PGVector
    psycopg = pytest.importorskip("psycopg")
    server = request.getfixturevalue("postgres")
    database = f"d{random.randrange(10**12)}"  # its own: ids are unique across the collections of a database
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}")
    place = server.replace("postgresql://", "postgresql+psycopg://").replace("/postgres?", f"/{database}?")
    assert database in place
    store = PGVector(Hashed(), connection=place, collection_name="passages", use_jsonb=True)
    request.addfinalizer(store._engine.dispose)
    return store
