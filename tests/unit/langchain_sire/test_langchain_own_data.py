"""What users of LangChain put in comes back as it was, and existing indexes are opened, not replaced."""

import copy
import json
import pickle

import pytest
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate

from langchain_sire import SireRetriever
from sire_core.errors import CorpusError

pytestmark = pytest.mark.default_recipe

TEXTS = {
    "film.md": "The Salt Lantern is a film of 1931. It was directed by Petra Quillon.",
    "person.md": "Petra Quillon was born in Varn Harbour. She was a painter before.",
    "town.md": "Varn Harbour is a town with a pier. Its school was founded by Otto Brack.",
}
QUESTION = "Where was the director of The Salt Lantern born?"


def pieces(size=40):
    """Pieces of the texts with the metadata that RecursiveCharacterTextSplitter(add_start_index=True) gives."""
    found = []
    for source, text in TEXTS.items():
        for start in range(0, len(text), size):
            metadata = {"source": source, "start_index": start, "page": start // size}
            found.append(Document(page_content=text[start : start + size], metadata=metadata, id=f"{source}:{start}"))
    return found


def plain(document):
    return document.id, document.page_content, {k: v for k, v in document.metadata.items() if k != "sire"}


def whole(documents):
    """All that they hold: two documents of one passage are equal whatever their scores are."""
    return [document.model_dump() for document in documents]


@pytest.mark.parametrize("recipe", ["sire", "iier", "raptor", "sirerag", "indexrag", "smart"])
def test_the_users_own_pieces_come_back_with_ids_and_all_metadata(recipe):
    given = pieces()
    retriever = SireRetriever.from_documents(given, recipe=recipe, k=50)
    found = retriever.invoke(QUESTION)
    assert sorted(map(plain, found), key=str) == sorted(map(plain, given), key=str)
    scores = [d.metadata["sire"]["score"] for d in found]
    assert scores == sorted(scores, reverse=True)
    assert all(d.metadata["sire"]["path"] for d in found)
    assert len(retriever.invoke(QUESTION, k=3)) == 3


def test_what_is_split_already_is_not_split_again_and_long_documents_are_mentioned(caplog):
    long = Document(page_content="A sentence of a long text. " * 400, id="long")
    (found,) = SireRetriever.from_documents([long], recipe="flat").invoke("a long text")
    assert found.page_content == long.page_content
    assert "longer than 8,000 characters" in caplog.text
    cut = SireRetriever.from_documents([long], recipe="flat", chunker="sentences", k=50).invoke("a long text")
    assert len(cut) > 1
    assert {name for d in cut for name in d.metadata["sire"]["doc_ids"]} == {"long"}


def test_units_have_what_their_passages_agree_on():
    documents = [Document(page_content=text, metadata={"source": s, "lang": "en"}, id=s) for s, text in TEXTS.items()]
    units = SireRetriever.from_documents(documents, recipe="sirerag", returns="units", k=50).invoke(QUESTION)
    mixed = [d for d in units if len(d.metadata["sire"]["doc_ids"]) > 1]
    assert mixed
    for unit in mixed:
        assert unit.metadata["lang"] == "en"
        assert "source" not in unit.metadata
        assert sorted(unit.metadata["sire"]["differing"]["source"]) == sorted(unit.metadata["sire"]["doc_ids"])


def test_a_stuff_chain_can_cite_sources():
    retriever = SireRetriever.from_documents(pieces(200), k=2)
    seen = []

    class Model(FakeListChatModel):
        def _call(self, messages, *args, **kwargs):
            seen.append(messages[-1].content)
            return super()._call(messages, *args, **kwargs)

    chain = create_stuff_documents_chain(
        Model(responses=["x"]),
        ChatPromptTemplate.from_template("{context}\n{question}"),
        document_prompt=PromptTemplate.from_template("[{source}] {page_content}"),
    )
    chain.invoke({"context": retriever.invoke(QUESTION), "question": QUESTION})
    assert "[film.md] The Salt Lantern is" in seen[0]
    assert "[person.md] Petra Quillon was born" in seen[0]


def test_several_questions_find_each_document_once():
    retriever = SireRetriever.from_documents(pieces(200), k=3)
    model = FakeListChatModel(responses=["Who directed The Salt Lantern?\nWhere was Petra Quillon born?"])
    found = MultiQueryRetriever.from_llm(retriever, model).invoke(QUESTION)
    assert sorted(d.metadata["source"] for d in found) == sorted(TEXTS)
    one, other = (retriever.invoke(question)[0] for question in (QUESTION, "The Salt Lantern"))
    assert one.metadata["sire"]["score"] != other.metadata["sire"]["score"]
    assert one == other == pickle.loads(pickle.dumps(one)) != retriever.invoke(QUESTION)[1]
    assert type(one.model_dump()["metadata"]["sire"]) is dict
    assert json.loads(json.dumps(one.metadata))["sire"]["path"] == one.metadata["sire"]["path"]


def test_what_vector_stores_have_is_found_there():
    retriever = SireRetriever.from_documents(pieces(200))
    for made in ({"search_type": "mmr"}, {"search_kwargs": {"score_threshold": 0.5}}):
        with pytest.raises(TypeError, match=r"SireRetriever has no .*SireVectorStore\(path=...\).as_retriever"):
            SireRetriever(index=retriever.index, **made)


def names(retriever):
    return sorted(document.id for document in retriever.index.documents())


async def test_from_documents_adds_to_an_index_that_is_there(tmp_path):
    first = [Document(id=str(n), page_content=f"Text number {n}.") for n in range(20)]
    SireRetriever.from_documents(first, path=tmp_path / "i").index.close()
    more = [Document(id="new", page_content="A new text."), Document(id="3", page_content="Another text.")]
    retriever = SireRetriever.from_documents(more, path=tmp_path / "i", k=30)
    assert len(names(retriever)) == 21
    assert "Another text." in {d.page_content for d in retriever.invoke("text")}
    assert len(names(SireRetriever.from_documents([], path=tmp_path / "i"))) == 21
    assert len(names(await SireRetriever.afrom_texts(["One."], ids=["x"], path=tmp_path / "i"))) == 22
    retriever = SireRetriever.load(tmp_path / "i")
    retriever.replace_all(more)
    assert names(retriever) == ["3", "new"]
    assert names(SireRetriever.load(tmp_path / "i")) == ["3", "new"]


async def test_documents_are_added_replaced_and_deleted_on_the_retriever():
    retriever = SireRetriever.from_texts(["One."], ids=["a"], recipe="flat", k=9)
    assert retriever.add_documents([Document(id="b", page_content="Two."), Document(id="a", page_content="New.")]) == [
        "b",
        "a",
    ]
    assert {d.page_content for d in retriever.invoke("x")} == {"New.", "Two."}
    assert await retriever.aadd_documents([Document(id="c", page_content="Three.")]) == ["c"]
    retriever.delete_documents(["a", "c"])
    assert names(retriever) == ["b"]
    with pytest.raises(CorpusError, match="Not in the index"):
        await retriever.adelete_documents(["a"])
    with pytest.raises(CorpusError, match="'d'"):
        retriever.add_documents([Document(id="d", page_content="One."), Document(id="d", page_content="Two.")])


def test_words_of_other_classes_mean_the_same(tmp_path):
    documents = pieces(200)
    made = SireRetriever.from_documents(
        documents, embedder="lexical", persist_directory=tmp_path / "i", top_k=2, recipe="flat", filters="page=0"
    )
    assert len(made.invoke(QUESTION)) == 2
    titled = SireRetriever.from_documents(
        [Document(page_content="x", metadata={"name": "Petra Quillon"})], title_key="name", recipe="flat"
    )
    assert titled.index.documents()[0].title == "Petra Quillon"
    with pytest.raises(TypeError, match=r"SireRetriever.from_documents\(\) has no argument 'embeding'.*'embedding'"):
        SireRetriever.from_documents(documents, embeding="lexical")
    with pytest.raises(TypeError, match=r"SireRetriever.open\(\) has no argument 'chunk'"):
        SireRetriever.open(chunk=3)
    with pytest.raises(TypeError, match="got 'embedding' twice"):
        SireRetriever.from_documents(documents, "lexical", embedder="lexical")


def test_one_call_may_take_another_recipe_of_the_folder(tmp_path):
    documents = pieces(200)
    for recipe in ("raptor", "pagerank"):
        SireRetriever.from_documents(documents, recipe=recipe, path=tmp_path / "i").index.close()
    retriever = SireRetriever.load(tmp_path / "i", recipe="raptor", k=3)
    other = SireRetriever.load(tmp_path / "i", recipe="pagerank", k=3)
    assert whole(retriever.invoke(QUESTION, recipe="pagerank")) == whole(other.invoke(QUESTION))
    assert whole(other.invoke(QUESTION)) != whole(retriever.invoke(QUESTION))
    retriever.add_documents([Document(id="new", page_content="A new text about Varn Harbour.")])
    assert "new" in {d.id for d in retriever.invoke("A new text about Varn Harbour", recipe="pagerank", k=9)}


def test_retrievers_can_be_copied_and_sent_to_other_processes(tmp_path):
    retriever = SireRetriever.from_documents(pieces(), path=tmp_path / "i", k=3, show_progress=True)
    again = pickle.loads(pickle.dumps(retriever))
    expected = whole(retriever.invoke(QUESTION))
    assert whole(again.invoke(QUESTION)) == whole(copy.deepcopy(retriever).invoke(QUESTION)) == expected
    llm = SireRetriever.load(tmp_path / "i", llm=FakeListChatModel(responses=["0"] * 9), k=3)
    assert whole(pickle.loads(pickle.dumps(llm)).invoke(QUESTION)) == expected
    memory = SireRetriever.from_documents(pieces(), recipe="flat")
    assert whole(copy.deepcopy(memory).invoke(QUESTION)) == whole(memory.invoke(QUESTION))
    with pytest.raises(Exception, match="Give it a path"):
        pickle.dumps(memory)
