"""What is passed by mistake is answered with what to do."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_sire import LangChainChat, SireRetriever, SireVectorStore, create_sire_tool
from sire_core import Index, UsageLimits
from sire_core.errors import ConfigurationError, CorpusError, SireError

DOCUMENTS = [Document(id="a", page_content="Mira painted."), Document(id="b", page_content="Tom sailed.")]


class OneTooFew(Embeddings):
    def embed_documents(self, texts):
        return [[1.0, 2.0] for _ in texts[1:]]

    def embed_query(self, text):
        return [1.0, 2.0]


def test_limits_are_an_object_or_a_mapping():
    assert SireRetriever.from_documents(DOCUMENTS, limits={"max_calls": 2}).invoke("Mira")
    assert SireRetriever.from_documents(DOCUMENTS, limits=UsageLimits(max_calls=2)).invoke("Mira")
    for wrong in (5, {"calls": 2}):
        with pytest.raises(ConfigurationError, match="UsageLimits"):
            SireRetriever.from_documents(DOCUMENTS, limits=wrong)


def test_vectors_that_are_missing_are_counted():
    with pytest.raises(SireError, match="1 vectors for 2 texts"):
        SireRetriever.from_documents(DOCUMENTS, OneTooFew())


def test_a_class_in_the_place_of_an_object_is_named():
    with pytest.raises(ConfigurationError, match=r"OneTooFew is a class \(pass an object: OneTooFew"):
        SireRetriever.from_documents(DOCUMENTS, OneTooFew)
    with pytest.raises(ConfigurationError, match="InMemoryVectorStore is a class"):
        SireRetriever.from_documents(DOCUMENTS, vector_store=InMemoryVectorStore)
    with pytest.raises(ConfigurationError, match=r"FakeListChatModel is a class \(pass an object.*llm is a LangChain"):
        SireRetriever.from_documents(DOCUMENTS, llm=FakeListChatModel)
    with pytest.raises(ConfigurationError, match="FakeListChatModel is a class"):
        LangChainChat(FakeListChatModel)


def test_a_chat_model_is_not_for_the_index_itself():
    with pytest.raises(ConfigurationError, match=r"pass it as llm=... of langchain_sire.*LangChainChat\(model\)"):
        Index(language_model=FakeListChatModel(responses=["x"]))


def test_a_vector_store_in_the_place_of_embeddings_is_sent_to_its_own():
    with pytest.raises(ConfigurationError, match="vector_store="):
        SireRetriever.from_documents(DOCUMENTS, InMemoryVectorStore(DeterministicFakeEmbedding(size=4)))
    with pytest.raises(ConfigurationError, match="Embeddings object of LangChain"):
        SireRetriever.from_documents(DOCUMENTS, 5)


def test_a_document_with_nothing_where_a_value_belongs_is_named():
    with pytest.raises(CorpusError, match=r"number 1 \(id 'x'\): page_content is NoneType"):
        SireRetriever.from_documents([DOCUMENTS[0], Document.model_construct(page_content=None, id="x", metadata={})])
    with pytest.raises(CorpusError, match=r"id 'x'\): metadata is NoneType"):
        SireRetriever.from_documents([Document.model_construct(page_content="Text", id="x", metadata=None)])


def test_a_vector_store_of_ours_is_searched_by_the_tool():
    store = SireVectorStore()
    store.add_documents(DOCUMENTS)
    assert "[a] Mira painted." in create_sire_tool(store).invoke({"query": "Mira"})


def test_documents_without_text_are_counted(caplog):
    given = [*DOCUMENTS, Document(id="e", page_content=" "), Document(id="f", page_content="")]
    SireRetriever.from_documents(given)
    said = [record.getMessage() for record in caplog.records if "without text" in record.getMessage()]
    assert said == ["2 documents without text: no search finds them. The first is 'e'."]


@pytest.mark.parametrize("make", [SireRetriever.from_documents, lambda _, **given: SireVectorStore(**given)])
def test_a_misspelt_setting_of_the_recipe_is_named(make):
    with pytest.raises(TypeError, match="setting 'rankr'; did you mean 'ranker' of flat"):
        make([], recipe="flat", rankr="hybrid")
