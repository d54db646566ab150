"""`SireVectorStore`: LangChain's own suite for vector stores, and the classes that take nothing but a store."""

import pytest
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.stores import InMemoryStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests
from langchain_text_splitters import CharacterTextSplitter

from langchain_sire import SireRetriever, SireVectorStore
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError, QueryError
from support.langchain_demo import as_langchain

pytestmark = pytest.mark.default_recipe


class TestStandard(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self):
        return SireVectorStore(self.get_embeddings())


@pytest.fixture(scope="module")
def store():
    made = SireVectorStore(recipe="sire")
    made.add_documents(as_langchain())
    return made


QUESTION = "Where was the director of the film The Salt Lantern born?"


async def test_searches_are_those_of_the_recipe(store):
    found = store.similarity_search(QUESTION, 5, filter={"kind": "person"})
    hits = store.documents.index.search(QUESTION, 5, filter={"kind": "person"})
    assert [d.id for d in found] == [hit.unit.source_id for hit in hits]
    assert all("sire" not in d.metadata for d in found)
    scored = await store.asimilarity_search_with_score(QUESTION, 5)
    assert [score for _, score in scored] == sorted((score for _, score in scored), reverse=True)
    assert [d.id for d in store.as_retriever(search_kwargs={"k": 3}).invoke(QUESTION)] == [d.id for d, _ in scored][:3]
    with pytest.raises(TypeError, match="no argument 'fetch'"):
        store.similarity_search(QUESTION, fetch=3)


async def test_a_store_is_made_without_embeddings():
    documents = [Document(id="p", page_content="Petra Quillon was born in Varn Harbour.")]
    text = documents[0].page_content
    stores = [
        SireVectorStore.from_documents(documents),
        await SireVectorStore.afrom_documents(documents, recipe="flat"),
        SireVectorStore.from_texts([text], ids=["p"]),
        await SireVectorStore.afrom_texts([text], ids=["p"], recipe="flat"),
    ]
    for made in stores:
        assert [found.id for found in made.similarity_search("Where was Petra Quillon born?")] == ["p"]


def test_by_vector(store):
    view = store.documents.index.view()
    position = 7
    wanted = view.units([position])[0]
    found = store.similarity_search_by_vector(view.matrix[position].tolist(), 3)
    assert found[0].id == wanted.source_id
    assert len(found) == 3
    only = store.similarity_search_by_vector(view.matrix[position].tolist(), 30, filter={"kind": "ship"})
    assert {d.metadata["kind"] for d in only} == {"ship"}
    with pytest.raises(QueryError, match="shape"):
        store.similarity_search_by_vector([1.0, 2.0])
    assert SireVectorStore().similarity_search_by_vector([1.0]) == []


async def test_by_vector_takes_what_other_searches_take_or_refuses_it(store):
    store.documents.flush()
    vector = store.documents.index.view().matrix[7].tolist()
    for found in (
        store.similarity_search_by_vector(vector, 30, filters={"kind": "ship"}),
        await store.asimilarity_search_by_vector(vector, 30, filters={"kind": "ship"}),
    ):
        assert {d.metadata["kind"] for d in found} == {"ship"}
    with pytest.raises(TypeError, match="no argument 'nonsense'"):
        store.similarity_search_by_vector(vector, nonsense=1)
    with pytest.raises(ConfigurationError, match="nope"):
        store.similarity_search_by_vector(vector, recipe="nope")
    with pytest.raises(ConfigurationError, match="not 'zzz'"):
        store.similarity_search_by_vector(vector, returns="zzz")
    with pytest.raises(ConfigurationError, match="finds passages"):
        await store.asimilarity_search_by_vector(vector, returns="units")


async def test_another_recipe_of_the_folder_is_searched_in_every_way(tmp_path):
    texts = [f"Petra Quillon wrote book number {n}. Otto Brack read book number {n} in Lindlemouth." for n in range(8)]
    SireRetriever.from_texts(texts, path=tmp_path / "i", recipe="sirerag")
    store = SireVectorStore(path=tmp_path / "i", recipe="sire")
    store.documents.index.build(store.documents.index.using("sirerag").documents())
    other = {"recipe": "sirerag", "returns": "units"}
    wanted = {d.page_content for d in store.similarity_search("Petra Quillon", 40, **other)}
    assert wanted - set(texts), "units that the other recipe does not have"
    for found in (
        store.max_marginal_relevance_search("Petra Quillon", 40, 40, **other),
        await store.amax_marginal_relevance_search("Petra Quillon", 40, 40, **other),
        [d for d, _ in store.similarity_search_with_relevance_scores("Petra Quillon", 40, **other)],
    ):
        assert {d.page_content for d in found} == wanted
    assert (
        len(store.similarity_search_by_vector(store.documents.index.view().matrix[0].tolist(), recipe="sirerag")) == 4
    )


def test_a_parent_document_retriever_works_over_it():
    store = SireVectorStore()
    retriever = ParentDocumentRetriever(
        vectorstore=store,
        docstore=InMemoryStore(),
        child_splitter=CharacterTextSplitter(separator=". ", chunk_size=80, chunk_overlap=0),
        search_kwargs={"k": 6},
    )
    parents = [Document(page_content=d.text, metadata={"title": d.title}) for d in demo_documents()[:12]]
    retriever.add_documents(parents)
    asked = demo_documents()[3].text[:60]
    found = retriever.invoke(asked)
    assert found[0] == parents[3]
    children = store.similarity_search(asked, 6)
    assert all(any(child.page_content in parent.page_content for parent in parents) for child in children)
    owners = dict.fromkeys(child.metadata["doc_id"] for child in children)
    assert found == [parent for parent in retriever.docstore.mget(list(owners)) if parent]


def test_it_is_made_from_texts_and_opens_what_is_there(tmp_path):
    embedding = DeterministicFakeEmbedding(size=8)
    made = SireVectorStore.from_texts(["One.", "Two."], embedding, [{"n": 1}, {"n": 2}], ids=["a", "b"], path=tmp_path)
    assert made.embeddings is embedding
    made.documents.flush()
    again = SireVectorStore(documents=SireRetriever.open(tmp_path, embedding))
    assert [d.id for d in again.similarity_search("One.", 1, filter="n=1")] == ["a"]
    with pytest.raises(TypeError, match="not both"):
        SireVectorStore(embedding, documents=made.documents)


async def test_documents_that_the_core_has_read_need_no_conversion():
    (film, *_), question = demo_documents(), demo_documents()[0].text
    for made in (SireVectorStore.from_documents([film]), await SireVectorStore.afrom_documents([film])):
        (found,) = made.similarity_search(question, 1)
        assert (found.id, found.page_content) == (film.id, film.text)
    named = SireVectorStore.from_documents([Document(page_content="One.")], ids=["a"])
    assert [found.id for found in named.similarity_search("One.", 1)] == ["a"]
    assert len(named.add_documents([film, Document(page_content="Two.")])) == 2
