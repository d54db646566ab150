"""Words that users of LangChain's and LlamaIndex's stores know: ids, recipe settings, two models with two jobs."""

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from llama_index.core.schema import TextNode

import llama_index_sire
from langchain_sire import IRCoTRetriever, SelfAskRetriever, SireDocumentIndex, SireRetriever, SireVectorStore
from sire_core.errors import ConfigurationError, CorpusError

DOCUMENTS = [Document(page_content="Petra Quillon sails."), Document(page_content="Otto Brack walks.", id="own")]


class Counted(FakeListChatModel):
    calls: int = 0

    def _call(self, *args, **kwargs):
        type(self).calls += 1
        return super()._call(*args, **kwargs)


@pytest.fixture
def model():
    Counted.calls = 0
    return Counted(responses=['{"entities": [], "facts": []}'])


@pytest.mark.parametrize("kind", [SireRetriever, SireDocumentIndex, SireVectorStore])
async def test_ids(kind):
    made = kind.from_documents(DOCUMENTS, recipe="flat", ids=["a", "b"])
    assert [d.id for d in made.get_by_ids(["b", "none", "a"])] == ["b", "a"]
    assert made.add_documents([Document(page_content="New.", id="x")], ids=["a"]) == ["a"]
    assert await made.aadd_documents([Document(page_content="Other.")], ids=["c"]) == ["c"]
    assert [d.page_content for d in await made.aget_by_ids(["a", "c"])] == ["New.", "Other."]
    with pytest.raises(CorpusError, match="1 documents but 2 ids"):
        made.add_documents([Document(page_content="New.")], ids=["a", "b"])
    assert DOCUMENTS[1].id == "own"


@pytest.mark.parametrize("given", [{"ranker": "hybrid"}, {"recipe_settings": {"ranker": "hybrid"}}])
def test_settings_of_a_recipe(tmp_path, given):
    made = SireRetriever.from_documents(DOCUMENTS, recipe="flat", path=tmp_path / "i", **given)
    assert [d.page_content for d in made.invoke("Petra Quillon", k=1)] == ["Petra Quillon sails."]
    again = SireVectorStore(path=tmp_path / "i")
    assert again.documents.index.recipe_name == "flat"
    assert "BM25" in made.index.explain("Petra Quillon")
    nodes = [TextNode(text="Petra Quillon sails.")]
    theirs = llama_index_sire.SireRetriever.from_documents(nodes, recipe="flat", **given)
    assert "BM25" in theirs.index.explain("Petra Quillon")


def test_settings_that_no_recipe_has_are_refused_by_name():
    with pytest.raises(TypeError, match="'rankerr'"):
        SireRetriever.from_documents(DOCUMENTS, recipe="flat", rankerr="hybrid")
    with pytest.raises(ConfigurationError, match="nothing_such"):
        SireRetriever.from_documents(DOCUMENTS, recipe="flat", recipe_settings={"nothing_such": 1})


@pytest.mark.parametrize("kind", [IRCoTRetriever, SelfAskRetriever])
def test_a_reasoning_model_extracts_nothing(kind, model, caplog):
    retriever = kind.from_documents(DOCUMENTS, recipe="sirerag", llm=model)
    assert Counted.calls == 0
    assert retriever.llm is model
    assert retriever.index.language_model is None
    assert "estimate" not in caplog.text
    other = kind.from_documents(DOCUMENTS, recipe="sirerag", llm=model, extraction_llm=model)
    assert Counted.calls > 0
    assert other.index.language_model is not None


def test_extraction_by_its_own_name_and_a_warning_of_what_it_costs(model, caplog):
    SireRetriever.from_documents(DOCUMENTS, recipe="sirerag", extraction_llm=model)
    assert Counted.calls > 0
    assert caplog.text.count("Index.estimate(documents)") == 1
    nodes = [TextNode(text="Petra Quillon sails.")]
    with pytest.raises(TypeError, match="twice"):
        llama_index_sire.SireRetriever.from_documents(nodes, llm=None, extraction_llm=None)
