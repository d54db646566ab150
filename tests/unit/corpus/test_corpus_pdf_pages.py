"""What stands on the pages of a PDF beside plain words: forms, notes, raised letters, contents, what is printed outside."""

import re
from html import unescape

import pytest

from sire_core.documents.chunker import SentenceChunker, chunk_document
from sire_core.explore.markdown_html import markdown_html
from sire_core.text.snippets import readable_sentences
from support.one_file import read_file
from support.pdf import drawn_pdf, form_pdf, pdf

pytestmark = pytest.mark.usefixtures("one_reading_process")

pytest.importorskip("pypdfium2")


LABELS = [
    (60, 760, "Name"),
    (80, 700, "Lease renewed"),
    (80, 680, "Lease ended"),
    (60, 640, "Country"),
    (60, 600, "Boats"),
]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (b"/FT/Tx/T(who)/V(Orla Finch)/Rect[120 755 300 775]", "Name Orla Finch"),
        (b"/FT/Tx/T(who)/V(Orla Finch)/Ff 8192/Rect[120 755 300 775]", None),  # a password
        (b"/FT/Tx/T(who)/V(Orla Finch)/F 2/Rect[120 755 300 775]", None),  # hidden
        (b"/FT/Btn/T(r)/V/Yes/AS/Yes/AP<</N<</Yes 6 0 R/Off 6 0 R>>>>/Rect[60 698 72 710]", "\N{BALLOT BOX WITH X} Lease renewed"),
        (b"/FT/Btn/T(e)/V/Off/AS/Off/AP<</N<</Yes 6 0 R/Off 6 0 R>>>>/Rect[60 678 72 690]", "\N{BALLOT BOX} Lease ended"),
        (b"/FT/Ch/T(c)/Ff 131072/Opt[(Norway)(Chile)]/V(Chile)/Rect[120 635 300 655]", "Country Chile"),
        (b"/FT/Ch/T(c)/Ff 131072/Opt[[(no)(Norway)][(cl)(Chile)]]/V(cl)/Rect[120 635 300 655]", "Country Chile"),
        (b"/FT/Ch/T(b)/Ff 2097152/Opt[(Swift)(Tern)(Gull)]/V[(Swift)(Gull)]/Rect[120 595 300 615]", "Boats Swift, Gull"),
    ],
)  # fmt: skip
def test_a_filled_field_stands_beside_its_label(tmp_path, field, words):
    text = " ".join(read_file(tmp_path / "a.pdf", form_pdf(LABELS, b"/Subtype/Widget" + field)).text.split())
    if words is None:
        assert "Orla" not in text
    else:
        assert words in text
    assert all(label in text for *_, label in LABELS)


@pytest.mark.parametrize(
    ("kind", "shown"), [(b"Text", True), (b"FreeText", True), (b"Highlight", True), (b"Link", False), (b"Popup", False)]
)
def test_notes_on_a_page_stand_below_it(tmp_path, kind, shown):
    note = b"/Subtype/%s/Contents(Ask Ines first)/Rect[300 690 320 710]" % kind
    text = read_file(tmp_path / "a.pdf", form_pdf(LABELS, note)).text
    assert ("Ask Ines first" in text) == shown
    assert "Ask Ines first" not in text[: text.index("Boats")]


def shown(*parts):
    """A line of parts; `(words, rise)` is set smaller and above or below it."""
    operators = ["BT /F1 12 Tf 60 760 Td"]
    for part in parts:
        words, rise = part if isinstance(part, tuple) else (part, 0)
        operators.append(f"/F1 {7 if rise else 12} Tf {rise} Ts ({words}) Tj")
    return drawn_pdf(" ".join([*operators, "ET"]))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (["It takes 10", ("6", 5), " steps"], "It takes 10^6 steps"),
        (["10", ("-3", 5), " m"], "10^-3 m"),
        (["Ines Calder", ("12", 5), " said"], "Ines Calder^12 said"),
        (["Leases end.", ("3", 5), " Boats stay."], "Leases end. [3] Boats stay."),
        (["On the 4", ("th", 5), " of May"], "On the 4th of May"),
        (["Water is H", ("2", -3), "O"], "Water is H2O"),
        (["Width in m", ("2", 5)], "Width in m^2"),
        (["nothing is ", ("raised", 5), " here"], "nothing is raised here"),
    ],
)
def test_raised_letters_of_a_pdf_stay_apart_from_the_number_or_name(tmp_path, parts, words):
    assert read_file(tmp_path / "a.pdf", shown(*parts)).text == words


@pytest.mark.parametrize(
    "words",
    [
        "Assigning to *tmp* is wrong, and so is **tmp** twice.",
        "Then 2*x*y and (1-k)**2 are equal to (*p).",
        "Leave __init__ and _foo_ where R_HOME is.",
        "Call `f<-`(x) with a lone ` and `more` of them.",
        "# of boats in the yard of the harbour",
        "> x <- mean(c(1, 2)) + 1",
        "Write <b>bold</b> and <time> or <file>.",
        "See the boats [1][2] and f[a](b), not {#id}.",
        r"In c:\_data the path is \* or \\\\server, &lt; is AT&T.",
        "<HTML> <BODY>",
    ],
)
def test_words_of_a_pdf_that_look_like_marks_are_read_as_they_stand(tmp_path, words):
    escaped = re.sub(r"[\\()]", r"\\\g<0>", words).replace("`", r"\301")
    document = read_file(tmp_path / "a.pdf", pdf([(0, 10, 72, 700, escaped)]))
    (passage,) = chunk_document(document, SentenceChunker())
    assert " ".join(readable_sentences(passage.text)) == words
    shown = re.sub(r"<[^<>]*>", "", markdown_html(passage.text))
    assert " ".join(unescape(shown).split()) == words


def test_words_of_a_pdf_without_marks_get_none(tmp_path):
    words = "Ann Lee*, Bo Dean* and 3 * 4 of R_LIBS_USER: x[1] <- y & z < 5, a_b."
    assert read_file(tmp_path / "a.pdf", pdf([(0, 10, 72, 700, words)])).text == words


TYPED = ("Helvetica", "Helvetica-Bold", "Courier")
PROSE = "The crane of the yard stands in the harbour all day,"


def typed_page(*rows, x=90):
    """A page of prose around lines in a typewriter font, 12 points below each other."""
    code = [(2, 10, x, 680 - 12 * n, row.replace("(", "\\(").replace(")", "\\)")) for n, row in enumerate(rows) if row]
    return [
        *((0, 10, 72, 740 - 12 * n, PROSE) for n in range(4)),
        *code,
        *((0, 10, 72, 680 - 12 * len(rows) - 12 * n, PROSE) for n in range(4)),
    ]


def test_lines_of_code_keep_their_ends_columns_and_marks(tmp_path):
    code = ["f <- function(x, ...) {", "    c(1, 2)  # two", "", "    x[*tmp*]; y", "    f(x, i);", "}"]
    document = read_file(tmp_path / "a.pdf", pdf(typed_page(*code), fonts=TYPED))
    assert "\n\n```\n" + "\n".join(code) + "\n```\n\n" in document.text
    assert [block.kind for block in document.blocks] == ["paragraph", "code", "paragraph"]


def test_comments_in_another_font_and_columns_of_numbers_are_code(tmp_path):
    rows = ["> f <- c(1, x);", "", "     [,1]  [,2]", "[1,]   10    17", "[2,]   11    18", "> f[i]"]
    page = typed_page(*rows)
    page[5:5] = (2, 10, 90, 668, "> f[1];"), (0, 10, 140, 668, "# Take the first.")
    rows[1] = "> f[1]; # Take the first."
    document = read_file(tmp_path / "a.pdf", pdf(page, fonts=TYPED))
    assert "\n\n```\n" + "\n".join(rows) + "\n```\n\n" in document.text


def test_a_line_of_prose_that_begins_with_code_is_no_code(tmp_path):
    page = typed_page("f <- c(1, x);", "")
    page[5:5] = (2, 10, 90, 668, "f[1]"), (0, 10, 120, 668, "takes the first of a list.")
    assert "f[1] takes the first of a list." in read_file(tmp_path / "a.pdf", pdf(page, fonts=TYPED)).text


@pytest.mark.parametrize("word", ["$ make", "ls", "}"])
def test_a_short_line_in_the_font_of_code_is_code(tmp_path, word):
    first, second = typed_page(*["f <- c(1, x);"] * 3), typed_page(word)
    assert f"```\n{word}\n```" in read_file(tmp_path / "a.pdf", pdf(first, second, fonts=TYPED)).text


def test_a_paragraph_with_a_line_in_a_typewriter_font_stays_one(tmp_path):
    page = [(0, 10, 72, 740, PROSE), (2, 10, 72, 728, "make install and, if;"), (0, 10, 72, 716, PROSE)]
    assert "```" not in read_file(tmp_path / "a.pdf", pdf(page, fonts=TYPED)).text


def test_letters_that_have_one_width_by_chance_and_a_typed_file_are_no_code(tmp_path):
    chance = [(0, 10, 90, 690, "bad dogs han"), (0, 10, 90, 670, "2000 3000 5000"), (2, 10, 90, 650, "f(w) = i;")]
    assert "```" not in read_file(tmp_path / "a.pdf", pdf([*typed_page(), *chance], fonts=TYPED)).text
    typed = [(2, 10, 72, 700 - 12 * n, PROSE) for n in range(9)]
    assert read_file(tmp_path / "b.pdf", pdf(typed, fonts=TYPED)).text == " ".join([PROSE] * 9)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("The yard reads R_", "LIBS_USER first", "reads R_LIBS_USER first"),
        ("The yard reads R_LIBS", "_USER first", "reads R_LIBS_USER first"),
        ("Set the option --with-", "blas first", "option --with-blas first"),
        ("See https://", "example.org/yard first", "See https://example.org/yard first"),
        ("See https://cran.example.org/", "package=crane first", "See https://cran.example.org/package=crane first"),
        ("See https://www.", "example.org first", "See https://www.example.org first"),
        ("See https://cran.r-", "project.org first", "See https://cran.r-project.org first"),
        ("See https://example.org/yard/crane", "-2.html first", "See https://example.org/yard/crane-2.html first"),
        ("See https://example.org/yard/", "and the harbour", "See https://example.org/yard/ and the harbour"),
        ("See https://example.org.", "The harbour is there", "See https://example.org. The harbour is there"),
        ("See https://example.org", "or the harbour", "See https://example.org or the harbour"),
        ("The crane of the har-", "bour is tall", "The crane of the harbour is tall"),
    ],
)
def test_names_and_addresses_that_a_line_cuts_are_whole(tmp_path, first, second, words):
    page = [(0, 10, 72, 700 - 12 * n, line) for n, line in enumerate((PROSE, first, second, PROSE))]
    text = read_file(tmp_path / "a.pdf", pdf(page)).text
    assert words in " ".join(text.split())


def test_narrow_letters_of_a_typewriter_font_stand_beside_their_neighbours(tmp_path):
    shown = r'BT 60 760 Td /F1 12 Tf (Call ) Tj /F2 12 Tf (f\(1,ii,"l"\)) Tj /F1 12 Tf ( for all) Tj ET'
    content = drawn_pdf(shown).replace(
        b"<< /F1 5 0 R >>", b"<< /F1 5 0 R /F2 << /Type/Font/Subtype/Type1/BaseFont/Courier >> >>"
    )
    assert read_file(tmp_path / "a.pdf", content).text == 'Call f(1,ii,"l") for all'


def test_a_page_of_contents_gives_neither_headings_nor_a_title(tmp_path):
    entries = [f"{n} Chapter on leases {n} . . . . . . {3 * n}" if n % 2 else f"{n} Boats {3 * n}" for n in range(1, 9)]
    contents = [(1, 20, 72, 740, "Contents"), *((1, 14, 72, 700 - 24 * n, entry) for n, entry in enumerate(entries))]
    prose = [(0, 10, 72, 700 - 14 * n, "The crane of the yard stands in the harbour all day.") for n in range(30)]
    document = read_file(tmp_path / "yard.pdf", pdf(contents, [(1, 20, 72, 740, "1 Chapter on leases"), *prose]))
    headings = [line for line in document.text.split("\n") if line.startswith("#")]
    assert [line.strip("# \f") for line in headings] == ["Contents", "1 Chapter on leases"]
    assert "2 Boats 6" in document.text
    assert "Boats" not in document.title


def test_a_page_of_a_table_keeps_its_heading(tmp_path):
    rows = [(0, 10, 72, 660 - 20 * n, f"Boat {name} {size}") for n, (name, size) in enumerate([("A", 9), ("B", 3), ("C", 7), ("D", 1), ("E", 5)])]  # fmt: skip
    prose = [(0, 10, 72, 500 - 14 * n, "The crane of the yard stands in the harbour all day.") for n in range(3)]
    document = read_file(tmp_path / "a.pdf", pdf([(1, 20, 72, 740, "Sizes of boats"), *rows, *prose]))
    assert document.text.startswith("# Sizes of boats")


def test_what_is_printed_beside_the_page_is_left_out(tmp_path):
    lines = [(0, 12, 72, 700, "Leases end at noon."), (0, 12, 800, 700, "Printer's mark"), (0, 12, 72, -40, "Fileid 7")]
    assert read_file(tmp_path / "a.pdf", pdf(lines)).text.strip() == "Leases end at noon."


def test_the_head_of_a_table_that_goes_on_is_read_once_and_a_form_each_time(tmp_path):
    def page(*rows):
        return [
            (0, 10, x, 700 - 20 * number, words)
            for number, row in enumerate(rows)
            for x, words in zip((60, 300), row, strict=True)
        ]

    head = ("Berth", "Keeper")
    table = pdf(page(head, ("North", "Ann"), ("South", "Bo")), page(head, ("East", "Cy"), ("West", "Di")))
    assert read_file(tmp_path / "a.pdf", table).text.count("Keeper") == 1
    form = pdf(page(("Name", "Date"), ("Boat", "Port"), ("Crew", "Load")), repeat=2)
    assert read_file(tmp_path / "b.pdf", form).text.count("Crew") == 2
