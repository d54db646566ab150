"""Making, saving and loading a `SireRetriever`."""

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from langchain_sire import SireRetriever, create_ircot_chain
from sire_core.errors import ConfigurationError, IndexMissingError, QueryError, StorageError
from sire_core.index import Index


async def test_async_makers_make_the_same(documents, question):
    sync = SireRetriever.from_documents(documents, recipe="flat")
    assert (await SireRetriever.afrom_documents(documents, recipe="flat")).invoke(question) == sync.invoke(question)
    texts, ids = [d.page_content for d in documents], [d.id for d in documents]
    metadatas = [d.metadata for d in documents]
    made = await SireRetriever.afrom_texts(texts, metadatas=metadatas, ids=ids, recipe="flat")
    assert made.invoke(question) == sync.invoke(question)
    assert SireRetriever.from_texts(texts, None, metadatas, ids=ids, recipe="flat").invoke(question) == made.invoke(
        question
    )


def test_save_and_load_and_path(documents, question, tmp_path):
    retriever = SireRetriever.from_documents(documents, path=tmp_path / "a", k=6)
    found = retriever.invoke(question)
    retriever.save(tmp_path / "b")
    for folder in ("a", "b"):
        assert SireRetriever.load(tmp_path / folder, k=6).invoke(question) == found
    with pytest.raises(StorageError, match="Name a new folder"):
        retriever.save(tmp_path / "b")


def test_loading_nothing_says_so_at_once(tmp_path, documents):
    with pytest.raises(IndexMissingError, match="no index"):
        SireRetriever.load(tmp_path / "nowhere")
    SireRetriever.from_documents(documents[:3], recipe="flat", path=tmp_path / "i")
    with pytest.raises(ConfigurationError, match="does not hold 'raptor'"):
        SireRetriever.load(tmp_path / "i", recipe="raptor")


def test_options_reach_the_index(documents):
    stages = set()
    SireRetriever.from_documents(
        documents[:3], recipe="flat", chunker=None, progress=lambda stage, done, total: stages.add(stage)
    )
    assert "embedding" in stages
    with pytest.raises(TypeError, match="chunk_size"):
        SireRetriever.from_documents(documents[:3], chunk_size=100)


@pytest.mark.parametrize("llm", ["gpt-4o-mini", FakeListChatModel(responses=["x"]).with_retry(), object()])
def test_something_that_is_no_chat_model_is_refused_at_once(documents, llm):
    with pytest.raises(ConfigurationError, match="llm is a LangChain chat model"):
        SireRetriever.from_documents(documents, llm=llm)
    with pytest.raises(ConfigurationError, match="llm is a LangChain chat model"):
        create_ircot_chain(SireRetriever.from_documents(documents[:2], recipe="flat"), llm)


@pytest.mark.parametrize("question", [{"question": "Who?"}, None, 5])
def test_a_question_that_is_no_text_is_called_so(documents, question):
    """A chain that hands its whole input to the retriever."""
    with pytest.raises(QueryError, match=f"is a {type(question).__name__}, not a text"):
        SireRetriever.from_documents(documents[:2], recipe="flat").invoke(question)


def test_a_folder_remembers_the_recipe_of_its_retriever(documents, question, tmp_path):
    retriever = SireRetriever.from_documents(documents, recipe="sire", path=tmp_path / "a", k=6)
    found = retriever.invoke(question)
    retriever.save(tmp_path / "copy")
    for place in (tmp_path / "a", tmp_path / "copy"):
        with Index(place, recipe="raptor", chunker=None) as beside:
            beside.build(beside.documents())
        again = SireRetriever.load(place)
        assert again.index.stats()["recipe"] == "sire"
        assert [d.id for d in again.invoke(question)] == [d.id for d in found]
        assert SireRetriever.load(place, recipe="raptor").index.stats()["recipe"] == "raptor"
        assert SireRetriever.from_documents([], path=place).index.stats()["recipe"] == "sire"
    assert [d.id for d in retriever.invoke(question)] == [d.id for d in found]
    retriever.index.drop_recipe("sire")
    with pytest.raises(ConfigurationError, match=r"does not hold 'sire' \(it holds: raptor\). Name one that it holds"):
        SireRetriever.load(tmp_path / "a")
    assert SireRetriever.load(tmp_path / "a", recipe="raptor").invoke(question)
