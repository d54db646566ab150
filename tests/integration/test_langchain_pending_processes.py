"""What one process hands to an index, every other process finds at its next search."""

import json
import re
import subprocess
import sys

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from langchain_sire import SireRetriever
from sire_core import Document as SireDocument
from sire_core import Index
from sire_core.errors import StorageError


def doc(name, text, **metadata):
    return Document(id=name, page_content=text, metadata={"source": f"{name}.md", **metadata})


DOCUMENTS = [doc(name, f"Text of the document {name}.") for name in ("one", "two", "three")]

_LIBRARY = """
import json, sys
from langchain_sire import SireRetriever
retriever = SireRetriever.load(sys.argv[1], k=50)
for line in sys.stdin:
    print(json.dumps(sorted(d.page_content for d in retriever.invoke(line))), flush=True)
"""


def texts(*names):
    return sorted(f"Text of the document {name}." for name in names)


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout


def command_line(path):
    found = json.loads(
        run("-c", "from sire_core.cli import main; main()", "query", str(path), "document", "-k", "50", "--json")
    )
    return sorted(hit["text"] for hit in found)


def test_index_and_a_server_that_runs_all_the_time(tmp_path):
    records = InMemoryRecordManager("docs")
    records.create_schema()
    documents = SireRetriever.open(tmp_path / "i", recipe="flat")
    index(DOCUMENTS, records, documents, cleanup="full", key_encoder="sha256")
    with subprocess.Popen(
        [sys.executable, "-c", _LIBRARY, str(tmp_path / "i")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:

        def ask():
            server.stdin.write("document\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())

        assert ask() == texts("one", "two", "three")
        assert index(DOCUMENTS[:2], records, documents, cleanup="full", key_encoder="sha256")["num_deleted"] == 1
        assert ask() == texts("one", "two")
        index([*DOCUMENTS[:2], doc("four", "Text of the document four.")], records, documents, key_encoder="sha256")
        assert ask() == texts("one", "two", "four")
        server.stdin.close()
    index(DOCUMENTS[:1], records, documents, cleanup="full", key_encoder="sha256")
    assert command_line(tmp_path / "i") == texts("one")


LOOKS = {
    "view": lambda index, _: index.view().pool.document_ids(),
    "snapshot": lambda index, _: index.snapshot().document_ids(),
    "explain": lambda index, _: re.findall(r"document (\w+)\.", index.explain("document")),
    "documents": lambda index, _: [document.id for document in index.documents()],
    "search_many": lambda index, _: [hit.doc_ids[0] for hit in index.search_many(["one"], 5)[0]],
    "save": lambda index, copy: index.save(copy) or [found.id for found in SireRetriever.load(copy).invoke("document")],
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_way_to_read_sees_what_waits(tmp_path, look):
    documents = SireRetriever.open(tmp_path / "i", recipe="flat")
    documents.upsert(DOCUMENTS)
    documents.delete(["one"])
    other = Index(tmp_path / "i")
    assert other.stats()["pending"] == 1
    assert set(LOOKS[look](other, tmp_path / "copy")) == {"two", "three"}


def test_later_changes_of_others_stand_above_what_waited(tmp_path):
    documents = SireRetriever.open(tmp_path / "i", recipe="flat")
    documents.upsert(DOCUMENTS)
    documents.upsert([doc("one", "Text of the document old.")])
    documents.delete(["two"])
    Index(tmp_path / "i").update([SireDocument("one", "Text of the document new."), SireDocument("two", "Again.")])
    assert {hit.unit.text for hit in Index(tmp_path / "i").search("document")} == {
        "Text of the document new.",
        "Again.",
        "Text of the document three.",
    }


def test_who_cannot_index_what_waits_refuses_and_says_how_much(tmp_path):
    model = FakeListChatModel(responses=['{"entities": [], "facts": []}'])
    documents = SireRetriever.open(tmp_path / "i", llm=model, recipe="sirerag")
    documents.upsert(DOCUMENTS)
    documents.delete(["one", "two"])
    for ask in (lambda: SireRetriever.load(tmp_path / "i").invoke("document"), lambda: Index(tmp_path / "i").view()):
        with pytest.raises(StorageError, match=r"2 changes .* flush\(\)"):
            ask()
    assert [d.id for d in SireRetriever.load(tmp_path / "i", llm=model).invoke("document")] == ["three"]
    assert [d.id for d in SireRetriever.load(tmp_path / "i").invoke("document")] == ["three"]
