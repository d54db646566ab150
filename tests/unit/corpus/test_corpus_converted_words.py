"""Files that are converted: every word of them is indexed once, in its line."""

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sire_core import Index
from sire_core.files.readers import read_documents
from support.pdf import drawn_pdf, pdf, tagged_pdf

pytestmark = pytest.mark.usefixtures("one_reading_process")

pytest.importorskip("kreuzberg")


BODY = ["The lease pool gives a worker its jobs.", "Every worker claims one job at a time.", "Nothing is lost."]


def lines(words, top=700, size=11, step=14):
    return [(0, size, 50, top - step * number, line) for number, line in enumerate(words)]


def running(words):
    return [(0, 9, 50, 770, "Kestrel yard yearly report"), *lines(words), (0, 9, 50, 30, "For members of the yard")]


PAGES = {
    "one line": [lines(["Invoice"], 750)],
    "title in the size of the text": [lines(["Invoice", *BODY, "Paid in 1999."], 750, 12)],
    "title": [
        [(0, 20, 50, 740, "Kestrel report"), *lines(BODY), *lines(["A second paragraph.", "It has two lines."], 600)]
    ],
    "running lines": [running(BODY), running(["Other words stand here.", "They end it."])],
    "many pages": [running([f"Chapter number {number}.", *BODY]) for number in range(6)],
}


@pytest.mark.parametrize("pages", PAGES.values(), ids=PAGES)
def test_every_word_of_a_pdf_is_indexed(tmp_path, pages):
    words = " ".join(line for page in pages for *_, line in page)
    (tmp_path / "a.pdf").write_bytes(pdf(*pages))
    with Index() as index:
        index.build(read_documents(tmp_path).documents)
        (document,) = index.documents()
    found = " ".join([document.title, *(passage.text for passage in document.passages)])
    assert not set(re.findall(r"\w+", words.lower())) - set(re.findall(r"\w+", found.lower()))


OLD_OFFICE = {
    "trial.doc": (
        "trial",
        (
            "Trial report\n\ncount is <50; p<0.05 in the R&D trial by Marsh & Reed\n\nInvoice no.\t4711\tDate\n\nfirst point\n\n"
            "second point\n\nstep one\n\nstep two\n\nName\tValue\t\tlimit\t<50 & >3"
        ),
    ),
    "figures.xls": (
        "figures",
        (
            "## One\n\n| Name | When | n |\n| --- | --- | --- |\n| R&D <50 \\| x*y* | 2026-01-02 | 3.5 |\n"
            "| late | 2026-01-02 13:30:00 | true |\n\n## Three\n\n| deep | 2 |\n| --- | --- |"
        ),
    ),
    "changes.rtf": (
        "Heading one",
        (
            "# Heading one\n\nKept before kept after insertedword end.[^1]\n\nFirst half\n\nsecond half.\n\n"
            "Last paragraph.\n\n| Name | R&D limit |\n| --- | --- |\n| alpha | <50; p<0.05 |\n\nMarked smile 😀 tab here\n\n"
            "next.\n\n- item one\n- item two\n\n[^1]: A note kept.\n\n[^2]: A comment kept."
        ),
    ),
    "slides.ppt": ("R&D | plan", "-----\n\n## R&D | plan\n\na | b | c\n\ncount <50\n\nSay: below 50 always"),
}
"""Files that LibreOffice made: an empty sheet between two, an empty corner, words of a master that no slide shows; tracked
changes, a footnote, a comment."""


@pytest.mark.parametrize("name", OLD_OFFICE)
def test_files_of_older_programs_hold_their_words_and_nothing_else(tmp_path, name):
    packed = Path(__file__).parents[2] / "data" / "old_office" / f"{name}.gz"
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else packed.with_suffix("").read_bytes()
    (tmp_path / name).write_bytes(content)
    read = read_documents(tmp_path)
    assert [(document.title, document.text) for document in read.documents] == [OLD_OFFICE[name]]
    assert not read.failures


LINES = [
    "The crane that stands in the northern terminal of the",
    "harbour was delivered by the yard of Nordvik in",
    "to its place, in the summer of a year that nobody remembers",
    "well, and it has stood there, as everyone in the harbour knows,",
    "through every storm.",
]
PARAGRAPH = " ".join(LINES)
PAGE = f"<h1>The cranes of the yard</h1><div style='column-count: 3'><p>{PARAGRAPH}</p><p>{PARAGRAPH}</p></div>"


@pytest.mark.parametrize("root", [b"StructTreeRoot", b"Struct#54reeRoot"], ids=["plain name", "hidden name"])
def test_the_last_word_of_a_line_is_not_joined_to_the_next(tmp_path, root):
    (tmp_path / "a.pdf").write_bytes(tagged_pdf(LINES, root=root))
    (document,) = read_documents(tmp_path).documents
    assert document.text.split() == PARAGRAPH.split()


def test_a_page_printed_by_a_browser_keeps_its_words_and_its_heading(tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium")
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    printing = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    printing += [f"--print-to-pdf={tmp_path / 'a.pdf'}", str(tmp_path / "page.html")]
    subprocess.run(printing, capture_output=True, timeout=60, check=True)
    (document,) = read_documents(tmp_path / "a.pdf").documents
    assert document.title == "The cranes of the yard"
    assert document.text.split() == ["#", *document.title.split(), *PARAGRAPH.split(), *PARAGRAPH.split()]


def test_ligatures_that_old_fonts_number_are_letters(tmp_path):
    (tmp_path / "a.pdf").write_bytes(
        tagged_pdf(["The coe\x1ecients are de\x1cned, and the \x1crst of them is signi\x1ccant."])
    )
    (document,) = read_documents(tmp_path / "a.pdf").documents
    assert document.text == "The coefficients are defined, and the first of them is significant."


@pytest.mark.parametrize("spacing", [4, 8, 12])
def test_letters_that_stand_apart_are_words(tmp_path, spacing):
    shown = f"{spacing} Tc /F1 20 Tf (REPORT OF THE YARD) Tj 0 -40 Td (A B C D E F) Tj 0 Tc /F1 12 Tf 0 -30 Td"
    text = "".join(f" (The crane of the yard stands in the harbour, number {n}.) Tj 0 -16 Td" for n in range(4))
    (tmp_path / "a.pdf").write_bytes(drawn_pdf(f"BT 60 760 Td {shown}{text} ET"))
    (document,) = read_documents(tmp_path / "a.pdf").documents
    assert document.title == "REPORT OF THE YARD"
    assert "A B C D E F" in document.text
    assert "The crane of the yard stands in the harbour, number 0." in document.text


@pytest.mark.parametrize(
    ("rise", "words"), [(3, "typeset in LATEX here"), (-3, "typeset in LATEX here"), (0, "typeset in L ATEX")]
)
def test_a_letter_that_is_set_into_a_word_from_another_line_belongs_to_it(tmp_path, rise, words):
    logo = f"[(typeset in L) 450] TJ {rise} Ts /F1 9 Tf (A) Tj 0 Ts /F1 12 Tf [150 (T) 167] TJ -2 Ts (E) Tj 0 Ts [125 (X here)] TJ"
    (tmp_path / "a.pdf").write_bytes(drawn_pdf(f"BT /F1 12 Tf 60 700 Td {logo} ET"))
    (document,) = read_documents(tmp_path / "a.pdf").documents
    assert words in document.text
