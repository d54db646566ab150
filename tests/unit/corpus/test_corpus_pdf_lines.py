"""Words at the ends of the lines of PDF files with tags are words of their own."""

import shutil
import subprocess

import pytest

from sire_core.corpus.readers import read_documents
from support.pdf import drawn_pdf, tagged_pdf

pytest.importorskip("kreuzberg")

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
