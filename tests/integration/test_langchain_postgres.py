"""A graph recipe over PostgreSQL with pgvector: a real server on this machine, from the wheel `pgserver`."""

import random

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from langchain_sire import SireRetriever
from sire_core.data import demo_documents, demo_questions
from sire_core.models.sync import run_sync
from sire_core.testing.doubles import HashEmbedder

pytestmark = [pytest.mark.default_recipe, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
QUESTIONS = [question.question for question in demo_questions() if question.metadata.get("demo")]


class Hashed(Embeddings):
    """The test embedder as LangChain's."""

    model = "hash"

    def embed_documents(self, texts):
        return run_sync(HashEmbedder(64).embed(texts)).tolist()

    def embed_query(self, text):
        return self.embed_documents([text])[0]


@pytest.fixture
def store(postgres):
    PGVector = pytest.importorskip("langchain_postgres").PGVector
    place = postgres.replace("postgresql://", "postgresql+psycopg://")
    store = PGVector(Hashed(), connection=place, collection_name=f"c{random.randrange(10**12)}", use_jsonb=True)
    yield store
    store._engine.dispose()


def found(retriever):
    return [[document.id for document in retriever.invoke(question)] for question in QUESTIONS]


def test_the_default_recipe_finds_the_same_over_postgres_and_follows_changes(store):
    documents = [Document(d.text, id=d.id, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
    own = SireRetriever.from_documents(documents, Hashed(), k=5)
    theirs = SireRetriever.from_documents(documents, vector_store=store, k=5)
    for change in (lambda _: None, lambda retriever: retriever.delete_documents(["northern-wren"])):
        change(own)
        change(theirs)
        assert found(theirs) == found(own)
    assert theirs.index.push() == {"langchain": 0}
    assert "northern-wren" not in {document.id for document in theirs.invoke("Who was on the wreck?", k=41)}
