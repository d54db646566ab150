"""Files of many formats keep their words, titles and headings: RST, PDF, source code, XML, notebooks and others."""

import os
import re
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from sire_core import Document, Index
from sire_core.documents.chunker import SentenceChunker, chunk_document
from sire_core.documents.markdown_sections import paths_of
from sire_core.errors import CorpusError
from sire_core.files.readers import read_documents
from sire_core.text.snippets import readable_sentences
from support.one_file import read_file
from support.pdf import one_line_pdf, pdf

pytestmark = pytest.mark.usefixtures("one_reading_process")

pytest.importorskip("docutils")
pytest.importorskip("pypdfium2")

DATA = Path(os.environ.get("SIRE_DATA", Path(__file__).parents[3] / ".." / "shared" / "data"))


def headings(text):
    return [heading for path in paths_of(text) for heading in path[-1:]]


RST = """
.. _start:

Lease & pool
============

See :pep:`12`, :func:`~queue.Queue.claim`, :ref:`the guide <guide>`, |version| and [1]_ by <ann@hask.org>.
A `link <https://a.example>`_, ``a_b`` and \\*stars\\*.

.. note:: Mind *this*.

.. code-block:: python
   :caption: A caption
   :emphasize-lines: 1

   x = "<b>"  # .. note:: kept

.. versionadded:: 2.0 Claims wait.

.. py:method:: claim(a, *, b=1)

   Claims a job.

.. toctree::

   other

- one

  more of it
- two

3. third

======  ======
Pool    Jobs
======  ======
lease   2|3
======  ======

Wrong level
~~~~~~~~~~~

Text.

Deeper
------

More.

.. contents::

A title that is longer than its line
^^^^^^

-h, --help       Shows help.
-f FILE, --file=FILE   Reads it.

.. only:: html

   For browsers.

.. image:: a.png
   :alt: A chart

.. [1] The foot note.

.. a comment
"""
RST_WORDS = (
    "Lease & pool See PEP 12, `claim`, the guide, version and [1] by <ann@hask.org>. A link, `a_b` and *stars*. "
    'Note: Mind this. A caption ``` x = "<b>" # .. note:: kept ``` Added in version 2.0 Claims wait. `claim(a, *, b=1)` '
    "Claims a job. - one more of it - two 3. third | Pool | Jobs | | --- | --- | | lease | 2\\|3 | Wrong level Text. "
    "Deeper More. A title that is longer than its line -h, --help Shows help. -f FILE, --file=FILE Reads it. For browsers. "
    "A chart [1] The foot note."
)


def test_rst_is_read_as_its_readers_see_it(tmp_path):
    document = read_file(tmp_path / "a.rst", RST)
    assert document.title == "Lease & pool"
    assert " ".join(re.sub(r"^#+ ", "", document.text, flags=re.MULTILINE).split()) == RST_WORDS
    assert headings(document.text) == ["Lease & pool", "Wrong level", "Deeper", "A title that is longer than its line"]


def test_a_very_long_paragraph_of_rst_is_read_as_it_is_written(tmp_path):
    items = [f"- item {number} of *many*" for number in range(2_000)]
    document = read_file(tmp_path / "a.rst", "\n".join(["Long", "====", "", *items, "", "Then", "====", "", "*End*."]))
    assert document.title == "Long"
    assert headings(document.text) == ["Long", "Then"]
    assert all(document.text.count(f"{item}\n") == 1 for item in items)
    assert document.text.endswith("\n\nEnd.")


@pytest.mark.parametrize(
    "head",
    ["PEP: 12\nTitle: Sample & more\nAuthor: Ann <a@b.c>\n", ":Title: Sample & more\n:Author: Ann\n", ":PEP: 1\n:Title: Sample & more\n", "PEP: 1\nTitle: Sample & :ref:`more`\n"],
)  # fmt: skip
def test_the_title_of_a_header_is_that_of_the_document(tmp_path, head):
    document = read_file(tmp_path / "a.rst", f"{head}\nAbstract\n========\n\nText.\n")
    assert document.title == "Sample & more"
    assert "Ann" in document.text or "PEP" in document.text


@pytest.mark.data
def test_real_rst_has_the_titles_that_people_gave():
    if not DATA.is_dir():
        pytest.skip("SIRE_DATA is not there")
    wrong, total = [], 0
    for path in sorted((DATA / "frameworks" / "docs").rglob("*.rst"))[::3]:
        (document,) = read_documents(path).documents
        lines = path.read_text(encoding="utf-8").split("\n")
        rules = (
            n
            for n, line in enumerate(lines)
            if n and re.fullmatch(r"([=\-~^*#+\"'`.:_])\1{2,}\s*", line) and lines[n - 1].strip()
        )
        title = lines[next(rules) - 1].strip()
        total += 1
        plain = re.sub(r":[\w.:-]+:`([^`<]*)(?: <[^>]*>)?`|`", lambda match: (match[1] or "").strip(), title)
        if plain.split() != document.title.split():
            wrong.append((path.name, title, document.title))
    assert total > 60
    assert len(wrong) <= 0.02 * total, wrong


@pytest.mark.parametrize("piece", ["*a ", "`a ", "|a ", "- ", "a\n=\n\n", ".. a::\n\n", "  " * 50 + "a\n\n"])
def test_hostile_rst_ends(tmp_path, piece):
    start = time.process_time()
    try:
        read_file(tmp_path / "a.rst", piece * (60_000 // len(piece)) + "\n\nEnd.")
    except CorpusError as error:
        assert "cannot be converted" in str(error) or "no text" in str(error)  # noqa: PT017
    assert time.process_time() - start < 20


PROSE = [
    "A coordinator that fails between the two phases leaves its participants",
    "waiting for an answer that may never come, so that they fail to observe",
    "the acknowledged write until another coordinator has taken over and read",
]


def column(top, lines, x=72):
    return [(0, 10, x, top - 12 * number, line) for number, line in enumerate(lines)]


def paper():
    page = [
        (1, 18, 72, 720, "Commit without a coordinator"),
        *column(660, PROSE),
        (1, 11, 72, 600, "4.7 Coordinator Availability"),
        *column(580, PROSE),
        (0, 9, 72, 40, "To appear in OSDI 2006 1"),
    ]
    return pdf(page, [*column(700, PROSE), (0, 9, 72, 40, "To appear in OSDI 2006 2")], [*column(700, PROSE), (0, 9, 72, 40, "To appear in OSDI 2006 3")])  # fmt: skip


def test_headings_of_a_pdf_are_its_headings(tmp_path):
    document = read_file(tmp_path / "a.pdf", paper())
    assert document.title == "Commit without a coordinator"
    assert headings(document.text) == ["Commit without a coordinator", "4.7 Coordinator Availability"]
    assert document.text.count("To appear in OSDI") == 1
    assert " ".join(PROSE) in document.text


@pytest.mark.parametrize("sample", [r"\(the 60pt HUGE", r"Set \\\\HUGE here", "* Widths"])
def test_large_samples_of_a_pdf_are_no_headings(tmp_path, sample):
    page = [(1, 18, 72, 720, "Letters"), *column(660, PROSE), (0, 60, 72, 540, sample), *column(460, PROSE)]
    document = read_file(tmp_path / "a.pdf", pdf(page))
    assert headings(document.text) == ["Letters"]
    assert sample.replace("\\(", "(").replace("\\\\", "\\") in document.text.replace("`", "")


def test_a_pdf_keeps_every_letter_and_puts_words_together_that_a_hyphen_cuts(tmp_path):
    lines = [
        "Yahoo! Research & others <50 | a_b *c* #1 [d] of the depart-",
        "ment wrote a well-known text; p<0.05 for R&D.",
    ]
    document = read_file(tmp_path / "a.pdf", pdf(column(700, lines)))
    assert " ".join(readable_sentences(document.text)) == " ".join(lines).replace("- ", "")


def test_a_table_of_a_pdf_that_goes_on_has_its_head_once_and_items_keep_their_numbers(tmp_path):
    def table(top, rows):
        return [
            (0, 10, x, top - 12 * number, cell)
            for number, row in enumerate([("Branch", "Code"), *rows])
            for x, cell in zip((72, 300), row, strict=True)
        ]

    first = [
        *column(700, PROSE),
        *table(600, [("Main street", "A1")]),
        *column(500, ["1. Ask for a form", "2. Fill it"]),
    ]
    second = [*table(700, [("High street", "B2")]), *column(600, PROSE)]
    third = [*column(700, ["3."]), (0, 10, 100, 600, "Hand it in"), *column(500, PROSE)]
    words = " ".join(read_file(tmp_path / "a.pdf", pdf(first, second, third)).text.split())
    assert words.count("Branch Code") == 1
    assert words.index("Main street A1") < words.index("High street B2") < words.index("3. Hand it in")


def test_passages_of_a_pdf_know_their_page(tmp_path):
    """The page that each begins on, with empty pages, headings and paragraphs that run over the end of a page."""
    count = 30

    def prose(top, word):
        return [(0, 10, 72, top - 12 * row, f"{word}{row} stands in this part of the manual.") for row in range(count)]

    pages = [
        [(1, 16, 72, 740, "Leases"), *prose(700, "Lease")],
        prose(740, "Renewal"),
        [],
        [(1, 16, 72, 740, "Pools"), *prose(700, "Pool")],
        [(1, 16, 72, 740, "Drains"), *prose(700, "Drain")],
    ]
    document = read_file(tmp_path / "a.pdf", pdf(*pages, title="Manual"))
    chunks = chunk_document(document, SentenceChunker(60, 0))
    of_word = {"Leases": 1, "Lease": 1, "Renewal": 2, "Pool": 4, "Pools": 4, "Drains": 5, "Drain": 5}
    assert {chunk.metadata["page"] for chunk in chunks} == {1, 2, 4, 5}
    for chunk in chunks:
        assert chunk.metadata["page"] == of_word[re.search("[A-Za-z]+", chunk.text)[0]], chunk.text
    assert not any("\f" in chunk.text for chunk in chunks)
    words = " ".join(chunk.text for chunk in chunks).split()
    assert words == " ".join(document.text.split()).split()

    index = Index(tmp_path / "ix", chunker=SentenceChunker(60, 0))
    index.build([document])
    (hit, *_) = index.search("Renewal12", k=1)
    assert hit.page == 2
    assert all(found.page == 5 for found in index.search("Drain7", k=9, filter={"page": 5}))
    without = Index(tmp_path / "plain", chunker=SentenceChunker(60, 0))
    without.build([Document("a.pdf", document.text.replace("\f", ""), document.title, {"source": "a.pdf"})])
    for question in ("Renewal12", "where does Pool5 stand", "Lease3 and Drain4"):
        found, plain = (i.search(question, k=6) for i in (index, without))
        assert [(h.unit.text, round(h.score, 4)) for h in found] == [(h.unit.text, round(h.score, 4)) for h in plain]


@pytest.mark.parametrize(
    ("named", "after", "title"),
    [("", ["1 Pumps", "2 Valves"], "manual"), ("Contents", ["Pumps", "Valves"], "manual"), ("", ["Pumps"], "Pumps")],
)
def test_contents_name_no_pdf(tmp_path, named, after, title):
    contents = [(1, 18, 72, 720, "Contents"), (0, 10, 72, 700, "1 Pumps"), (0, 10, 400, 700, "2")]
    chapters = [[(1, 18, 72, 720, chapter), *column(640, PROSE)] for chapter in after]
    assert read_file(tmp_path / "manual.pdf", pdf([], contents, *chapters, title=named)).title == title


def test_chapters_contents_and_notes_of_a_pdf(tmp_path):
    first = [
        (1, 18, 72, 720, "Boats and their repair *"),
        (1, 18, 72, 660, "Version 2"),
        (1, 10, 72, 640, "1"),
        (1, 10, 100, 640, "Hulls"),
        (1, 10, 400, 640, "2"),
        *column(600, PROSE),
    ]
    second = [(1, 30, 72, 720, "Eleven"), (1, 18, 72, 680, "Hulls"), *column(640, PROSE)]
    document = read_file(tmp_path / "a.pdf", pdf(first, second))
    assert document.title == "Boats and their repair"
    assert headings(document.text) == ["Boats and their repair", "Version 2", "Eleven Hulls"]
    assert "1 Hulls 2" in document.text


@pytest.mark.parametrize("by", ["the clock", pytest.param("the processor", marks=pytest.mark.slow)])
def test_pages_of_a_pdf_are_bounded(tmp_path, monkeypatch, by):
    if by == "the clock":
        monkeypatch.setattr("sire_core.files.reading_process._WALL_TIME", 0.3)
    line = [(0, 10, 72, 700, "words and words " * 200)]
    (tmp_path / "many.pdf").write_bytes(pdf(line * 100, repeat=400))
    (tmp_path / "good.txt").write_text("Good.")
    start = time.process_time()
    found = read_documents(tmp_path)
    assert time.process_time() - start < 20
    assert [document.id for document in found.documents] == ["good.txt"]
    assert all("than a document" in failure.reason for failure in found.failures)


def packed(content, dictionary=b"/Filter/FlateDecode", times=1):
    for _ in range(times):
        content = zlib.compress(content, 9)
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (dictionary, len(content), content)


def pdf_of(*objects, contents=b"4 0 R", resources=b""):
    """A page with the fourth object as its content, and with drawings."""
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 5 0 R>>%s>>/Contents %s>>"
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    every = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[3 0 R]>>", page % (resources, contents)]
    every += [objects[0], font, *objects[1:]]
    return (
        b"%PDF-1.5\n"
        + b"".join(b"%d 0 obj\n%s\nendobj\n" % pair for pair in enumerate(every, 1))
        + b"trailer<</Root 1 0 R>>\n%%EOF"
    )


def drawings(depth, times):
    """Objects, each of which draws the next one several times; the last one has words."""
    form = b"/Filter/FlateDecode/Type/XObject/Subtype/Form/BBox[0 0 612 792]/Resources<</Font<</F1 5 0 R>>%s>>"
    inner = [packed(b" /X Do " * times, form % b"/XObject<</X %d 0 R>>" % (7 + n)) for n in range(depth)]
    return [packed(b"q /X Do Q"), *inner, packed(b"BT /F1 10 Tf 72 700 Td (Leases end at noon) Tj ET", form % b"")]


@pytest.mark.quick(name=["repeated", "in each other"])
@pytest.mark.parametrize("name", ["repeated", "packed twice", "in each other", "lines"])
def test_a_small_pdf_that_expands_is_stopped(tmp_path, name):
    drawn = b"/XObject<</X 6 0 R>>"
    lines = b"0 0 m 1 1 l S\n"
    (tmp_path / "a.pdf").write_bytes({
        "repeated": lambda: pdf_of(packed(lines * 200_000), contents=b"[%s]" % (b"4 0 R " * 20_000)),
        "packed twice": lambda: pdf_of(packed(lines * 4_000_000, b"/Filter[/FlateDecode /FlateDecode]", times=2)),
        "in each other": lambda: pdf_of(*drawings(9, 10), resources=drawn),
        "lines": lambda: pdf_of(packed(lines * 4_000_000)),
    }[name]())  # fmt: skip
    start = time.process_time()
    with pytest.raises(CorpusError, match="than a document does; print it to a new PDF"):
        read_documents(tmp_path / "a.pdf")
    assert time.process_time() - start < 5


def test_drawings_within_drawings_are_read(tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf_of(*drawings(3, 1), resources=b"/XObject<</X 6 0 R>>"))
    (document,) = read_documents(path).documents
    assert document.text == "Leases end at noon"
    path.write_bytes(pdf_of(packed(b"BT /F1 10 Tf 72 700 Td (Leases end) Tj ET")))
    assert read_documents(path).documents[0].text == "Leases end"


FILTERS = {
    "indirect": (b"/Filter 6 0 R", 2, [b"[/FlateDecode /FlateDecode]"]),
    "of another kind": (b"/Filter[/ASCIIHexDecode /FlateDecode]", 1, []),
    "escaped name": (b"/Filter[/Fl#61teDecode /Fl#61teDecode]", 2, []),
}


@cache
def packed_lines():
    """280 MB of drawing, packed once."""
    return zlib.compress(b"0 0 m 1 1 l S\n" * 20_000_000, 9)


@pytest.mark.parametrize("name", FILTERS)
def test_memory_of_a_small_pdf_is_bounded_however_its_filters_are_written(tmp_path, name):
    dictionary, times, others = FILTERS[name]
    stream = packed(packed_lines(), dictionary, times - 1)
    if name == "of another kind":
        stream = b"<<%s/Length 0>>stream\n%s>\nendstream" % (dictionary, packed_lines().hex().encode())
    (tmp_path / "a.pdf").write_bytes(pdf_of(stream, *others))
    (tmp_path / "good.pdf").write_bytes(one_line_pdf("Leases end at noon."))
    found = read_documents(tmp_path)
    assert [document.text for document in found.documents] == ["Leases end at noon."]
    (failure,) = found.failures
    assert "memory than a document does; print it to a new PDF to read it" in failure.reason


def test_one_process_reads_all_pdfs_and_ends(tmp_path):
    psutil = pytest.importorskip("psutil")
    for number in range(5):
        (tmp_path / f"{number}.pdf").write_bytes(one_line_pdf(f"Lease {number} ends."))
    before, seen = {child.pid for child in psutil.Process().children()}, set()

    def note(*_):
        seen.update(child.pid for child in psutil.Process().children())

    with ThreadPoolExecutor(1) as other_thread:  # this thread has a process, for all tests
        found = other_thread.submit(read_documents, tmp_path, progress=note).result()
    assert len(found) == 5
    seen -= before
    assert len(seen) == 1
    assert not seen.intersection(psutil.pids())


@pytest.mark.parametrize(("suffix", "newer"), [("doc", "docx"), ("xls", "xlsx"), ("ppt", "pptx"), ("msg", "eml")])
def test_an_old_file_that_is_not_read_says_what_to_do(tmp_path, suffix, newer):
    pytest.importorskip("kreuzberg")
    (tmp_path / f"a.{suffix}").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + b"Not one of them.")
    with pytest.raises(CorpusError, match=f"cannot be converted: .*; save it as .{newer} and read that"):
        read_documents(tmp_path / f"a.{suffix}")


SOURCES = {
    "a.py": ("import x\n\n\n@cached\nclass Queue:\n    def claim(self):\n        return 1\n\n\ndef run():\n    pass\n", ["class Queue", "def claim", "def run"]),
    "a.go": ("package q\n\n// Claim claims.\nfunc (q *Queue) Claim(n int) error {\n\treturn nil\n}\n", ["package q", "func (q *Queue) Claim"]),
    "a.ts": ("export class Queue {\n}\nexport async function claim() {\n}\n", ["export class Queue", "export async function claim"]),
    "a.c": ("static int claim(int a) {\n  if (a) {\n  }\n  return 1;\n}\n", ["static int claim"]),
    "a.sql": ("CREATE TABLE jobs (\n  id int\n);\n", ["CREATE TABLE jobs"]),
    "a.rs": ("pub fn claim() {\n}\n\nimpl Queue {\n}\n", ["pub fn claim", "impl Queue"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_source_code_is_read_line_by_line_under_its_definitions(tmp_path, name):
    code, expected = SOURCES[name]
    document = read_file(tmp_path / name, code)
    assert (document.title, headings(document.text)) == (name, expected)
    lines = [line for line in document.text.split("\n") if line.strip() and not line.startswith(("```", "## ", "### "))]
    assert lines == [line for line in code.split("\n") if line.strip()]


OTHERS = {
    "a.xml": ("<shop><item><name>R&amp;D kit</name><price>&lt;50</price></item><p>By <b>Marsh</b> &amp; Reed.</p></shop>", "a", "name: R&D kit price: <50 By Marsh & Reed."),
    "a.opml": ('<opml><head><title>Plan</title></head><body><outline text="A &amp; B"><outline text="C"/></outline></body></opml>', "Plan", "- A & B - C"),
    "a.org": ("#+TITLE: Lease pool\n* First\nText.\n** Second\nMore.\n", "Lease pool", "# First Text. ## Second More."),
    "a.tex": ("\\title{Lease pool}\n\\section{First}\nText.\n", "Lease pool", "\\title{Lease pool} ## First Text."),
    "a.adoc": ("= Lease pool\n\n== First\n\nText.\n", "Lease pool", "# Lease pool ## First Text."),
    "a.yaml": ("# comment\nkey: a_b\n", "a.yaml", "# comment key: a_b"),
    "a.log": ("12:00 well-\nknown\n", "a.log", "12:00 well- known"),
    "a.md": ("---\ntitle: Queues\ndescription: All about them.\n---\n<br/>\n", "Queues", "All about them."),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_keep_their_words(tmp_path, name):
    content, title, words = OTHERS[name]
    document = read_file(tmp_path / name, content)
    assert (document.title, " ".join(document.text.split())) == (title, words)


CASES = {
    r"\pard\outlinelevel0\b Results of it\b0\par\pard M\'fcller \u8211? \{x\} C:\\_a.\par no.\tab 4711\line next non\_breaking\~space.\par"
    r"\trowd\cellx3000\cellx6000 Name\cell Value\cell\row\trowd\cellx3000\cellx6000 alpha\cell 5\cell\row\pard {\pict\pngblip 8950}End.": (
        "# Results of it Müller \u2013 {x} C:\\_a. no. 4711 next non-breaking\xa0space. | Name | Value | | --- | --- | | alpha | 5 | End."
    ),
    r"a {\deleted gone {\b in it} \'fc\emdash\tab}b": "a b",
    r"a \deleted gone \deleted0 b": "a b",
    r"a {\deleted gone\plain  b}": "a b",
    r"a {\deleted gone\par}b": "a b",
    r"a {\deleted{\pict\pngblip 8950}{\field{\*\fldinst HYPERLINK x}{\fldrslt gone}}}b": "a b",
    r"a {\deleted{\pict\pngblip\bin3 }}{}}b C:\\deleted": r"a b C:\deleted",
    r"a {\mvf gone}{\mvt b}{\revised  c}": "a b c",
    r"a{\deleted {\*\footnote gone}}{\footnote\pard A note.} b": "a b [^1]: A note.",
    r"a{\*\atnid X}\chatn{\*\annotation\pard{\*\atnref 1}{\*\atndate 155} A comment.} b": "a b [^1]: A comment.",
    r"{\shp{\*\shpinst\shpleft1{\sp{\sn posh}{\sv 6}}{\shptxt In a box\par}}{\shprslt{\*\do{\dptxbxtext In a box}}}}b": "In a box b",
    r"\u-10179?\u-8704?, \uc0 \u55357\uc1 \u56832\'3f and \u8211?\~b": "😀, 😀 and –\xa0b",
    r"{\colortbl ;\red0 ;}the .env file \b !x\b0 ; {\field{\*\fldinst HYPERLINK x}{\fldrslt a .b}}": "the .env file **!x**; [a .b](x)",
    r"10{\super 6} steps, Calder\super 1\nosupersub  on the 4{\super th}; it ends.{\super 3}": "10^6 steps, Calder^1 on the 4th; it ends. [3]",
    r"H{\sub 2}O, {Hel}{\i l}{o wor}ld, m{\super 2}\plain  x": "H2O, Hel*l*o world, m^2 x",
    "{" * 500 + r"\deleted gone" + "}" * 600 + " b": "b",
}


INNER_TABLE = (
    r"{\pard\intbl\itap2 Bow\nestcell 3 m\nestcell{\*\nesttableprops\trowd\cellx1000\cellx2000\nestrow}{\nonesttables\par}}"
    r"{\pard\intbl\itap2 Aft\nestcell 4 m\nestcell{\*\nesttableprops\trowd\cellx1000\cellx2000\nestrow}{\nonesttables\par}}"
)
TABLES = {
    r"\pard\intbl Ann\par Bo\cell North\par South\cell": "| Ann | North |\n| Bo | South |",
    r"\pard\intbl Ann\cell North berth\par Pier 3\par It is long.\par Aft\cell": (
        "| Ann | North berth / Pier 3 / It is long. Aft |"
    ),
    r"\pard\intbl Swift\par" + INNER_TABLE + r"\pard\intbl Hull\cell\trowd\cellx2000\cellx4000\pard\intbl a \'7c b\cell": (
        "| Swift / Bow 3 m / Aft 4 m / Hull | a \\| b |"
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", TABLES)
def test_cells_of_rich_text_with_paragraphs_and_tables_within(tmp_path, row):
    pytest.importorskip("kreuzberg")
    head = r"\trowd\cellx2000\cellx4000\pard\intbl Name\cell Place\cell\row\trowd\cellx2000\cellx4000"
    (tmp_path / "a.rtf").write_text(rf"{{\rtf1\ansi Above.\par {head}{row}\row\pard Below.\par Last.\par}}")
    (document,) = read_documents(tmp_path).documents
    assert document.text == f"Above.\n\n| Name | Place |\n| --- | --- |\n{TABLES[row]}\n\nBelow.\n\nLast."


@pytest.mark.parametrize("content", CASES)
def test_words_of_rich_text(tmp_path, content):
    pytest.importorskip("kreuzberg")
    (tmp_path / "a.rtf").write_text(rf"{{\rtf1\ansi {content}\par}}")
    (document,) = read_documents(tmp_path).documents
    assert " ".join(document.text.split(None)) == " ".join(CASES[content].split())
