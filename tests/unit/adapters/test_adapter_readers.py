"""Our readers of files where a framework asks for its own: documents with titles, pages and paths."""

import json
import pickle

import pytest

from sire_core.errors import CorpusError
from support.pdf import one_line_pdf, pdf

docx = pytest.importorskip("docx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A Word file with a heading and a table, a PDF of two pages and one of one, and a page, two of one name."""
    folder = tmp_path_factory.mktemp("files")
    made = docx.Document()
    made.add_heading("Lamp oil", 1)
    made.add_paragraph("The keeper fills the lamp at dusk.")
    table = made.add_table(2, 2)
    for cell, text in zip(
        [cell for row in table.rows for cell in row.cells], ["Oil", "Litres", "Rape", "7"], strict=True
    ):
        cell.text = text
    made.save(folder / "lamp.docx")
    lines = [[(0, 12, 60, 700, text)] for text in ("Petra Quillon wrote it.", "Hedda Sorrel printed it.")]
    (folder / "book.pdf").write_bytes(pdf(*lines, title="The book"))
    (folder / "note.pdf").write_bytes(one_line_pdf("A note of one page."))
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "page.html").write_text(f"<title>Page {name}</title><p>Bridge {name} is closed.</p>")
    return folder


def test_files_have_titles_paths_and_pages(adapter, folder):
    read = {document.id: document for document in map(adapter.plain, adapter.read(folder))}
    lamp = read[str(folder / "lamp.docx")]
    assert lamp.metadata["title"] == "Lamp oil"
    assert "| Rape | 7 |" in lamp.text
    pages = [read[f"{folder / 'book.pdf'}#page={number}"] for number in (1, 2)]
    assert [page.metadata["title"] for page in pages] == ["The book"] * 2
    assert [(page.metadata["page"], page.metadata["page_label"]) for page in pages] == [(1, "1"), (2, "2")]
    assert [page.text for page in pages] == ["Petra Quillon wrote it.", "Hedda Sorrel printed it."]
    assert read[f"{folder / 'note.pdf'}#page=1"].metadata["page"] == 1
    assert {read[str(folder / name / "page.html")].metadata["title"] for name in "ab"} == {"Page a", "Page b"}
    assert all(document.metadata[adapter.source_key] == name.partition("#")[0] for name, document in read.items())
    json.dumps([document.metadata for document in read.values()])


def test_what_was_read_is_searched_and_hits_have_their_pages(adapter, folder):
    retriever = adapter.Retriever.from_documents(adapter.read(folder), recipe="flat", k=1)
    (hit,) = adapter.search(retriever, "Who printed it? Hedda Sorrel")
    assert (hit.doc_ids, hit.pages) == ([f"{folder / 'book.pdf'}#page=2"], [2])
    documents = adapter.read(folder, pages=False)
    whole = adapter.Retriever.from_documents(documents, recipe="flat", k=1, chunker="sentences")
    (hit,) = adapter.search(whole, "Who printed it? Hedda Sorrel")
    assert hit.doc_ids == [str(folder / "book.pdf")]
    assert "2" in str(hit.pages)


def test_files_from_elsewhere_are_read_by_a_copy(adapter, folder):
    name, content = "far/lamp.docx", (folder / "lamp.docx").read_bytes()
    (document,) = map(adapter.plain, adapter.read_elsewhere(name, content))
    assert document.id == document.metadata["source"] == name
    assert "at dusk" in document.text


@pytest.mark.parametrize("name", ["https://docs.example/", "..", f"far/{'long' * 80}.md"])
def test_whatever_a_file_from_elsewhere_is_called_its_copy_is_read(adapter, name):
    (document,) = map(adapter.plain, adapter.read_elsewhere(name, b"# Lamp\n\nIt burns at dusk."))
    assert document.metadata["source"] == name
    assert "at dusk" in document.text


def test_a_file_that_cannot_be_read_is_an_error_and_one_of_a_folder_is_logged(adapter, tmp_path, caplog):
    (tmp_path / "broken.docx").write_bytes(b"PK\x03\x04 no document")
    with pytest.raises(CorpusError, match=r"broken\.docx"):
        adapter.read_file(tmp_path / "broken.docx")
    (tmp_path / "whole.md").write_text("# Lamp\n\nIt burns.")
    assert [adapter.plain(one).metadata["title"] for one in adapter.read(tmp_path)] == ["Lamp"]


def test_readers_are_sent_to_other_processes(adapter, folder):
    reader = pickle.loads(pickle.dumps(adapter.reader(folder / "lamp.docx")))
    assert [adapter.plain(one).metadata["title"] for one in adapter.load_with(reader, folder / "lamp.docx")] == [
        "Lamp oil"
    ]
