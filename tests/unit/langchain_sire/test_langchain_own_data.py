"""Documents, splits and headings as users of LangChain have them."""

import json
import pickle

import pytest
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_sire import SireRetriever, SireVectorStore
from sire_core import Document as CoreDocument
from sire_core import Index
from sire_core.errors import ConfigurationError

pytestmark = pytest.mark.default_recipe

TEXTS = {
    "film.md": "The Salt Lantern is a film of 1931. It was directed by Petra Quillon.",
    "person.md": "Petra Quillon was born in Varn Harbour. She was a painter before.",
    "town.md": "Varn Harbour is a town with a pier. Its school was founded by Otto Brack.",
}
ROTA = " ".join(f"Sentence {number} of the page is about harbour {number}." for number in range(12))
QUESTION = "Where was the director of The Salt Lantern born?"


def pieces(size=40):
    """Pieces of the texts with the metadata that RecursiveCharacterTextSplitter(add_start_index=True) gives."""
    found = []
    for source, text in TEXTS.items():
        for start in range(0, len(text), size):
            metadata = {"source": source, "start_index": start, "page": start // size}
            found.append(Document(page_content=text[start : start + size], metadata=metadata, id=f"{source}:{start}"))
    return found


def test_what_is_split_already_is_not_split_again_and_long_documents_are_mentioned(caplog):
    long = Document(page_content="A sentence of a long text. " * 400, id="long")
    (found,) = SireRetriever.from_documents([long], recipe="flat").invoke("a long text")
    assert found.page_content == long.page_content
    assert "1 of 1 passage is longer than 8,000 characters" in caplog.text
    assert "long texts rank worse unless they are split" in caplog.text
    assert "SireRetriever.from_documents(documents, chunker='sentences')" in caplog.text
    assert "RecursiveCharacterTextSplitter(chunk_size=2000).split_documents(documents)" in caplog.text
    caplog.clear()
    SireRetriever.from_documents([CoreDocument("long", long.page_content)], recipe="flat")
    assert "chunker='sentences'" in caplog.text
    assert "split_documents" not in caplog.text, "splitters of LangChain take no documents of `read_documents`"
    caplog.clear()
    cut = SireRetriever.from_documents([long], recipe="flat", chunker="sentences", k=50).invoke("a long text")
    assert len(cut) > 1
    assert {name for d in cut for name in d.metadata["sire"]["doc_ids"]} == {"long"}
    assert not caplog.text


@pytest.mark.parametrize("door", [SireRetriever, SireVectorStore])
@pytest.mark.parametrize("text", ["Harbour 0 was closed.", ROTA[:300] + " Harbour 3 was closed."])
def test_old_chunks_without_ids_beside_those_of_a_new_split_are_named(caplog, door, text):
    splitter = RecursiveCharacterTextSplitter(chunk_size=150, chunk_overlap=0)

    def cut(text):
        return splitter.split_documents([Document(text, metadata={"source": "page.md"})])

    def texts():
        retriever.flush()
        return {document.text or document.chunks[0].text for document in retriever.index.documents()}

    opened = door.from_documents(cut(ROTA))
    retriever = opened if door is SireRetriever else opened.documents
    old = texts()
    opened.add_documents(cut(text))
    texts()
    left = len(retriever.index.documents()) - len(cut(text))
    assert len(old) > 3
    assert f"keeps {left} other parts of page.md beside those" in caplog.text
    caplog.clear()
    opened.add_documents(cut(text), replace_source=True)
    assert texts() == {document.page_content for document in cut(text)}
    assert not caplog.text


def _chunks(count, source="a.md"):
    return [_part(f"{source}#{n}", f"Chunk {n} of {count} about piers.", source) for n in range(count)]


@pytest.mark.parametrize("way", ["add_documents", "upsert", "store", "from_documents"])
def test_a_source_is_replaced_as_a_whole(tmp_path, way):
    """The chunks of a page that is shorter now take the place of all its old ones; other sources stay."""
    both = [*_chunks(3), *_chunks(2, "b.md")]
    retriever = SireRetriever.from_documents(both, path=tmp_path / "i", recipe="flat", k=9)
    if way == "store":
        SireVectorStore(documents=retriever).add_documents(_chunks(2), replace_source=True)
    elif way == "from_documents":
        options = {"path": tmp_path / "i", "recipe": "flat", "k": 9}
        retriever = SireRetriever.from_documents(_chunks(2), replace_source=True, **options)
    else:
        getattr(retriever, way)(_chunks(2), replace_source=True)
    ids = {document.id for document in retriever.invoke("Chunk about piers")}
    assert len(ids) == 4
    assert ids >= {"b.md#0", "b.md#1"}
    with pytest.raises(ConfigurationError, match=r"needs metadata\['source'\], which no has not"):
        retriever.add_documents([Document("Text.", id="no")], replace_source=True)


def test_what_is_hidden_is_not_replaced_with_its_source(tmp_path):
    path = tmp_path / "i"
    secret = Document("Chunk 9 about secret piers.", id="s", metadata={"source": "a.md", "for": "boss"})
    staff = [Document(d.page_content, id=d.id, metadata={**d.metadata, "for": "all"}) for d in _chunks(3)]
    SireRetriever.from_documents([*staff, secret], path=path, recipe="flat").index.close()
    limited = SireRetriever.load(path, allow="for=all")
    limited.add_documents(staff[:1], replace_source=True)
    limited.index.close()
    with Index(path) as index:
        assert sorted(document.id for document in index.documents()) == ["a.md#0", "s"]


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


@pytest.mark.parametrize(
    ("keys", "title"),
    [
        (["Header 1", "Header 2"], "Guide > Install"),
        (["title", "Header 1"], "Manual > Guide > Install"),
        ("title", "Manual > Guide > Install"),
    ],
)
def test_headings_that_are_named_and_known_stand_in_a_title_once(keys, title):
    metadata = {"title": "Manual", "Header 1": "Guide", "Header 2": "Install"}
    made = SireRetriever.from_documents([Document(page_content="Run it.", metadata=metadata)], title_key=keys)
    assert made.index.search("run", 1)[0].unit.title == title


def _part(name, text, source="a.md"):
    return Document(page_content=text, metadata={"source": source}, id=name)


def test_titles_that_come_from_elsewhere_stay(tmp_path):
    """A document of the core has a title of its own, whatever its `source` says."""
    with Index(tmp_path / "i", recipe="flat") as index:
        index.build([CoreDocument("page", "Words.", "From the page", {"source": "a.md"})])
    retriever = SireRetriever.open(tmp_path / "i", chunker=None)
    retriever.add_documents([_part("1", "---\ntitle: The queue\n---\nFirst."), _part("2", "Second.")])
    retriever.delete_documents(["1"])
    assert {d.id: d.title for d in retriever.index.documents()} == {"page": "From the page", "2": ""}
