"""File types and the titles of files."""

import random
import re
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from langchain_sire import SireRetriever
from sire_core import Document as CoreDocument
from sire_core import Index
from sire_core.errors import CorpusError
from sire_core.files.html import html_to_markdown
from sire_core.files.readers import read_documents
from support.growth import growth
from support.pdf import pdf

pytestmark = pytest.mark.usefixtures("one_reading_process")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<table><tr><td>Paris<td>France</table>", "|  |  |\n| --- | --- |\n| Paris | France |"),
        ("<table><tr hidden><td>x<tr><td>y</table><h1>T</h1>z", "|  |\n| --- |\n| y |\n\n# T\n\nz"),
        ("<table><thead hidden><tr><th>x<tbody><tr><td>y</table>", "|  |\n| --- |\n| y |"),
        ("<table><tr><td>a<td><table><tr><td>b</table><td>c</table>d", "a b c d"),
        ("<table><tr><td><p>a<p>b<div>C.</div>d</table>", "|  |\n| --- |\n| a / b / C. d |"),
        (
            "<table><tr><td>Lock<td><p>Held by:<ul><li>Ann<li>Bo</ul></table>",
            "|  |  |\n| --- | --- |\n| Lock | Held by: Ann / Bo |",
        ),
        ("<p class='menu'>x<p>a<p>b", "a\n\nb"),
        ("<p hidden>x<hr>a", "a"),
        ("<ul><li hidden>x<li>a<ul><li>b</ul><li>c</ul><p>d", "- a\n- b\n- c\n\nd"),
        ("<dl><dt>a<dd hidden>x<dt>b<dd>c</dl>", "a\n\nb\n\nc"),
        ("<dl><dt>Type:<dd><p>integer</p><dt>Values:<dd><p>1</p><p>2</p></dl>", "Type: integer\n\nValues:\n\n1\n\n2"),
        ("<div><span hidden>x</div>a", "a"),
        ("<nav><table><tr><td>x</nav>a", "a"),
        ("<nav><ul><li>x<li>x<p>x</ul></nav>a", "a"),
        ("<b><p>a</b> b</p>c", "a b\n\nc"),
        ("<pre>a", "```\na\n```"),
        ("<td>a</td><tr>b", "a\n\nb"),
    ],
)
def test_elements_without_end_tags_end_where_they_do_in_a_browser(page, text):
    found = html_to_markdown(page)[1]
    if text == "a b c d":  # a table in a cell stands between what was before and behind it
        found = " ".join(re.findall("[a-z]", found))
    assert found == text


TAGS = "p div ul li b span h2 pre code section dl dt dd table tbody tr td th".split()


@given(st.lists(st.sampled_from(["text", *(f"<{end}{tag}>" for tag in TAGS for end in ("", "/"))]), max_size=30))
def test_html_without_hidden_parts_loses_no_text_however_broken(parts):
    page = [f" word{place}. " if part == "text" else part for place, part in enumerate(parts)]
    found = re.findall(r"word\d+", html_to_markdown("".join(page))[1])
    assert sorted(found) == sorted(part.strip(" .") for part in page if part[0] == " ")


@pytest.mark.parametrize(
    "parts", ["<nav> <p> </b>", "<p><button> <b> <div></div>", "<i><p> <b> </i>", "<table><tr> <td>a", "<ul> <ul><li>"]
)
def test_html_is_linear(parts):
    def work(number):
        html_to_markdown("".join(part * number for part in parts.split()))

    assert growth(work, 2_000, 8_000) < 8


NO_TITLES = ["Microsoft Word - Draft 3", "untitled", "PowerPoint Presentation", "Document1", "final v2.docx"]


@pytest.mark.parametrize("title", ["Leases of Node.js", "Untitled Poems", "Document Retrieval", *NO_TITLES])
def test_a_title_that_a_program_wrote_is_none(tmp_path, title):
    pytest.importorskip("kreuzberg")
    (tmp_path / "leases.pdf").write_bytes(pdf([(0, 12, 72, 700, "A worker claims jobs.")], title=title))
    (document,) = read_documents(tmp_path).documents
    assert "A worker claims jobs" in document.text
    assert document.title == ("leases" if title in NO_TITLES else title)


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", "Pool,Threads\r\nlease,4"), ("a.tsv", '"Pool"\tThreads\r\nlease\t4')]
)
def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path, name, content):
    pytest.importorskip("kreuzberg")
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + content.encode())
    (document,) = read_documents(tmp_path).documents
    assert document.text.startswith("| Pool | Threads |")


def test_without_the_extra_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "kreuzberg", None)
    (tmp_path / "a.rtf").write_bytes(b"{\\rtf1 a}")
    with pytest.raises(CorpusError, match=r'pip install -U "sire-rag\[files\]"'):
        read_documents(tmp_path)


@pytest.mark.parametrize(("suffix", "library"), [("docx", "docx"), ("pptx", "pptx"), ("xlsx", "openpyxl")])
def test_without_a_library_the_message_says_what_to_install(tmp_path, monkeypatch, suffix, library):
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with zipfile.ZipFile(tmp_path / f"a.{suffix}", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(CorpusError, match=r'pip install -U "sire-rag\[files\]"'):
        read_documents(tmp_path)


def test_ids_do_not_depend_on_how_a_path_is_written(tmp_path, monkeypatch):
    page = tmp_path / "docs" / "api" / "queue.md"
    page.parent.mkdir(parents=True)
    page.write_text("# Queue\n\nText.")
    monkeypatch.chdir(tmp_path)
    for source in ("docs", "./docs", "docs/", "docs/../docs", tmp_path / "docs", "docs/api/.."):
        assert [document.id for document in read_documents(source).documents] == ["api/queue.md"], source
    for source in (page, "docs/api/queue.md", "docs/api", "./docs/api/../api/queue.md"):
        assert [document.id for document in read_documents(source, roots=["docs"]).documents] == ["api/queue.md"], (
            source
        )
    assert [document.id for document in read_documents(["docs", page]).documents] == ["api/queue.md"]


def part(name, file, title="", own=""):
    text = f"---\ntitle: {title}\n---\nWords of {name}." if title else f"Words of {name}."
    return Document(id=name, page_content=text, metadata={"source": file, **({"title": own} if own else {})})


def titles(retriever):
    return {document.id: document.title for document in retriever.index.documents()}


@pytest.mark.parametrize("seed", range(3))
def test_titles_are_those_of_the_files_whatever_the_order_of_changes(tmp_path, seed):
    rng = random.Random(seed)
    known = {}
    retriever = SireRetriever.open(tmp_path, recipe="flat")
    for number in range(15):
        if known and rng.random() < 0.3:
            gone = rng.sample(sorted(known), min(len(known), 2))
            (retriever.delete_documents if rng.random() < 0.5 else retriever.delete)(gone)
            known = {name: document for name, document in known.items() if name not in gone}
        else:
            given = {
                f"d{n}": part(
                    f"d{n}", f"f{rng.randrange(3)}.md", rng.choice(["", "", f"T{number}"]), rng.choice(["", "", "Own"])
                )
                for n in rng.sample(range(12), 2)
            }
            (retriever.add_documents if rng.random() < 0.5 else retriever.upsert)(list(given.values()))
            known |= given
        if rng.random() < 0.3:
            retriever = SireRetriever.load(tmp_path) if known else retriever
        in_parts, in_use = {}, {}
        for name, title in titles(retriever).items():
            text, metadata = known[name].page_content, known[name].metadata
            if own := metadata.get("title"):
                assert title == own
                continue
            in_use.setdefault(metadata["source"], set()).add(title)
            in_parts.setdefault(metadata["source"], set()).add(
                text.split("\n")[1][7:] if text.startswith("---") else ""
            )
        for file, (title,) in in_use.items():
            assert title in in_parts[file] - {""} or in_parts[file] == {title}


def test_sources_of_documents_with_what_waits_and_without_what_is_hidden(tmp_path):
    index = Index(tmp_path, recipe="flat")
    assert index.sources() == {}
    index.build(
        [
            CoreDocument("a", "One.", metadata={"source": "x.md", "tenant": "a"}),
            CoreDocument("b", "Two.", metadata={"source": 7, "file_path": "y.md", "tenant": "b"}),
            CoreDocument("c", "Three.", metadata={"source": "", "tenant": "a"}),
        ]
    )
    index.defer([CoreDocument("d", "Four.", metadata={"file_path": "z.md", "tenant": "a"})], delete=["a"])
    assert index.sources() == {"b": "y.md", "d": "z.md"}
    assert Index(tmp_path, allow="tenant=a").sources() == {"d": "z.md"}


def test_documents_by_id_are_those_of_all_documents(tmp_path):
    index = Index(tmp_path, recipe="flat", chunker="sentences")
    index.build([CoreDocument(f"d{n}", " ".join(f"Sentence {m} of {n}." * 30 for m in range(5))) for n in range(9)])
    every = index.documents()
    assert max(len(document.passages) for document in every) > 1
    assert index.documents(["d7", "d2", "none"]) == [document for document in every if document.id in ("d2", "d7")]
    assert [index.documents(document.id) for document in every] == [[document] for document in every]
