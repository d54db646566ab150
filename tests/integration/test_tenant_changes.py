"""What `allow=` hides is not deleted, not replaced and not named, whatever door a change comes through."""

from __future__ import annotations

import re
import shutil

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.indexing import InMemoryRecordManager
from langchain_core.indexing import index as langchain_index
from llama_index.core import Document as LlamaIndexDocument

from langchain_sire import SireRetriever as LangChainRetriever
from langchain_sire import SireVectorStore
from llama_index_sire import SireRetriever as LlamaIndexRetriever
from sire_core import Document, Index, Passage
from sire_core.errors import ConfigurationError, CorpusError, KnownDocumentError
from sire_core.serve.tools import IndexTools
from support.command import run
from support.indexes import indexed

A, B = {"tenant": "a"}, {"tenant": "b"}
SECRET = "The vault of Kemi is behind the mill."
CORPUS = [
    Document("person", SECRET, "Kemi", B),
    Document("mine", "Ann Hask was born in Lindle.", "Ann", A),
    Document("both", chunks=(Passage("Shown part.", "both-a", metadata=A), Passage("Hidden part.", "both-b", "", B))),
    Document("empty", "", "Nothing", B),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    with indexed(CORPUS, tmp_path_factory.mktemp("tenants") / "ix", recipe="flat") as index:
        return index.path


@pytest.fixture
def folder(built, tmp_path):
    return shutil.copytree(built, tmp_path / "ix")


def hidden(folder):
    """What the tenant does not see, as it is stored."""
    with Index(folder) as index:
        texts = {(document.id, passage.text) for document in index.documents() for passage in document.passages}
        names = {document.id for document in index.documents()}
    return {pair for pair in texts if pair[1] in (SECRET, "Hidden part.")} | (names & {"empty"})


KEPT = {("person", SECRET), ("both", "Hidden part."), "empty"}


def python(folder):
    return Index(folder, allow="tenant=a")


def langchain(folder):
    return LangChainRetriever.load(folder, allow="tenant=a")


def store(folder):
    return SireVectorStore(path=folder, allow="tenant=a")


def llama(folder):
    return LlamaIndexRetriever.from_persist_dir(folder, allow="tenant=a")


def doc(name, metadata):
    return Document(name, "Other text.", metadata=metadata)


def lc(name, metadata):
    return LangChainDocument(id=name, page_content="Other text.", metadata=metadata)


def li(name, metadata):
    return LlamaIndexDocument(id_=name, text="Other text.", metadata=metadata)


PUTS = {
    "add": (python, lambda door, name, metadata: door.add([doc(name, metadata)])),
    "update": (python, lambda door, name, metadata: door.update([doc(name, metadata)])),
    "build": (python, lambda door, name, metadata: door.build([doc(name, metadata)])),
    "defer": (python, lambda door, name, metadata: door.defer([doc(name, metadata)])),
    "using": (python, lambda door, name, metadata: door.using("flat").update([doc(name, metadata)])),
    "add_documents": (langchain, lambda door, name, metadata: door.add_documents([lc(name, metadata)])),
    "replace_all": (langchain, lambda door, name, metadata: door.replace_all([lc(name, metadata)])),
    "upsert": (langchain, lambda door, name, metadata: door.upsert([lc(name, metadata)])),
    "store": (store, lambda door, name, metadata: door.add_documents([lc(name, metadata)])),
    "insert": (llama, lambda door, name, metadata: door.insert([li(name, metadata)])),
    "refresh": (llama, lambda door, name, metadata: door.refresh([li(name, metadata)])),
    "replace_nodes": (llama, lambda door, name, metadata: door.replace_all([li(name, metadata)])),
}


@pytest.mark.parametrize("how", PUTS)
def test_an_id_that_a_hidden_document_has_is_as_free_as_any_other(how, folder, tmp_path):
    opened, put = PUTS[how]
    shown = {}
    for name in ("person", "free", *(["empty"] if how == "add" else [])):
        copy = tmp_path / name
        shutil.copytree(folder, copy)
        put(opened(copy), name, A)
        put(opened(copy), name, A)  # again: nothing changes
        assert hidden(copy) == KEPT
        with python(copy) as index:
            (hit,) = index.search("Other text", filter={"doc_id": name})
            found = hit.doc_ids, hit.unit, index.documents([name]), index.snapshot().document_ids(), index.stats()
            assert index.update([Document(name, "Changed.", metadata=A)]).updated == 1
            found += (index.documents(), index.search("Changed", 1)[0].unit.id)
            index.delete([name])
            assert not index.documents([name])
        shown[name] = repr(found).replace(hit.unit.id, "UNIT").replace(name, "ID")
        assert hidden(copy) == KEPT
    assert len({re.sub(r"[0-9a-f]{24}", "UNIT", text) for text in shown.values()}) == 1, shown
    if how in ("add", "insert"):  # its visible part has another text
        with pytest.raises(KnownDocumentError, match="both"):
            put(opened(folder), "both", A)
        return
    put(opened(folder), "both", A)  # the part of it that is hidden stays
    assert hidden(folder) == KEPT
    with python(folder) as index:
        assert [document.text for document in index.documents(["both"])] == ["Other text."]


@pytest.mark.parametrize("how", PUTS)
def test_documents_that_do_not_pass_are_refused_in_the_same_words(how, folder):
    opened, put = PUTS[how]
    errors = set()
    for name in ("person", "both", "empty", "free", "mine"):
        with pytest.raises(CorpusError) as error:
            put(opened(folder), name, B)
        errors.add((type(error.value), str(error.value).replace(name, "ID")))
        assert hidden(folder) == KEPT
    assert len(errors) == 1, errors
    assert not any(word in error[1].lower() for error in errors for word in ("exist", "already", "taken", "hidden"))


def test_ids_of_passages_do_not_tell_either(tmp_path):
    units = []
    for number, other in enumerate((Document("x", SECRET, "Kemi", B), Document("y", SECRET, "Kemi", B))):
        indexed([other], tmp_path / str(number), recipe="flat").close()
        with Index(tmp_path / str(number), allow="tenant=a") as index:
            index.add([Document("x", "Other text.", metadata=A)])
            units.append([(hit.unit, hit.doc_ids, hit.score) for hit in index.search("Other")])
    assert units[0] == units[1]


async def test_agents_name_such_a_document_by_its_id(folder):
    async def silent(_: str) -> None: ...

    with python(folder) as index:
        index.add([Document("person", "A mill stands in Kemi.", "Mill", metadata=A)])
        tools = IndexTools(index)
        for name, given in {"search": {"query": "mill"}, "neighbors": {"passage": 1}, "open": {}, "fetch": {}}.items():
            arguments = given if name == "search" else {"doc_id": "person", **given}
            payload = await tools.call(name, arguments, silent)
            assert "[person]" in payload
            assert "A mill stands" in payload
            assert "allow-" not in payload
            assert SECRET not in payload


DELETES = {
    "delete": (python, lambda door, ids: door.delete(ids, missing_ok=True)),
    "defer": (python, lambda door, ids: door.defer(delete=ids)),
    "passages": (python, lambda door, ids: door.delete_passages([*ids, "both-a", "both-b"])),
    "build": (python, lambda door, ids: door.build([])),
    "delete_documents": (langchain, lambda door, ids: door.delete_documents(ids, missing_ok=True)),
    "by filter": (langchain, lambda door, ids: door.delete_documents(filter="doc_id in [person, mine, both]")),
    "langchain": (langchain, lambda door, ids: door.delete(ids)),
    "replace_all": (langchain, lambda door, ids: door.replace_all([])),
    "store": (store, lambda door, ids: door.delete(ids)),
    "delete_ref_doc": (llama, lambda door, ids: [door.delete_ref_doc(name) for name in ids]),
    "delete_nodes": (llama, lambda door, ids: door.delete_nodes([*ids, "both-a", "both-b"])),
    "replace_nodes": (llama, lambda door, ids: door.replace_all([])),
}


@pytest.mark.parametrize("how", DELETES)
def test_hidden_documents_and_passages_are_not_deleted(how, folder):
    opened, delete = DELETES[how]
    delete(opened(folder), ["person", "mine", "both", "empty", "never"])
    assert hidden(folder) == KEPT
    with Index(folder, allow="tenant=a") as index:
        left = [document.id for document in index.documents()]
    assert left == (["mine"] if how in ("passages", "delete_nodes") else [])


@pytest.mark.parametrize(
    "delete",
    [
        lambda folder, ids: python(folder).delete(ids),
        lambda folder, ids: langchain(folder).delete_documents(ids),
        lambda folder, ids: llama(folder).delete(ids),
    ],
)
def test_a_hidden_id_is_an_unknown_one(delete, folder):
    said = set()
    for name in ("person", "nobody"):
        with pytest.raises(CorpusError, match="Not in the index") as error:
            delete(folder, [name])
        said.add(str(error.value).replace(name, "ID"))
    assert len(said) == 1
    assert "similar" not in said.pop()
    assert hidden(folder) == KEPT


def test_index_of_langchain_cleans_up_what_the_tenant_sees(folder):
    manager = InMemoryRecordManager(namespace="tenant")
    manager.create_schema()
    for texts in (["One.", "Two."], ["Two."]):
        documents = [LangChainDocument(page_content=text, metadata={**A, "source": "s"}) for text in texts]
        langchain_index(
            documents, manager, langchain(folder), cleanup="full", source_id_key="source", key_encoder="sha256"
        )
    with Index(folder, allow="tenant=a") as index:
        assert sorted(document.text for document in index.documents()) == [
            "Ann Hask was born in Lindle.",
            "Shown part.",
            "Two.",
        ]
    assert hidden(folder) == KEPT


def test_reports_and_settings_are_limited_too(folder):
    with python(folder) as index:
        report = index.add([doc("new", A)])
        assert (report.added, sum(report.units.values())) == (1, 3)
        for change in (
            lambda: index.drop_recipe("flat"),
            lambda: index.set_default_recipe("flat"),
            lambda: index.set_chunker(None),
            lambda: index.reextract(["mine"]),
        ):
            with pytest.raises(ConfigurationError, match="allow"):
                change()
        report = index.delete(["person", "mine", "both"], missing_ok=True)
        assert (report.updated, report.removed) == (1, 1)  # the visible part of "both" goes


def test_an_object_without_allow_writes_across_and_commands_that_change_take_no_allow(folder):
    with Index(folder) as index:
        index.update([doc("person", A)])
        index.delete(["both"])
    with python(folder) as index:
        assert [document.id for document in index.documents()] == ["person", "mine"]
    for command in (["delete", folder, "mine"], ["add", folder, __file__], ["update", folder, __file__]):
        assert "No such option" in run(*command, "--allow", "tenant=a", code=2).output
