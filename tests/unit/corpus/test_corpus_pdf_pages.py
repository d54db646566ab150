"""What stands on the pages of a PDF beside plain words: forms, notes, raised letters, contents, what is printed outside."""

import re
import time
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


def rows_at(columns, *rows, top=700, gap=14):
    """Lines of a page with words at some x positions."""
    return [
        (0, 10, x, top - gap * number, words)
        for number, row in enumerate(rows)
        for x, words in zip(columns, row, strict=True)
        if words
    ]


OPERATORS = [
    ("Symbol", "Example", "Explanation"),
    ("**", "a**b", "exponentiation"),
    ("-", "- a", "minus"),
    ("|", "", "or"),
]


def test_columns_without_rules_are_a_table(tmp_path):
    above = [(0, 10, 72, 760, PROSE), (0, 10, 200, 730, "Operators")]
    below = [(0, 10, 72, 630, "Stars need an integer."), (0, 10, 72, 618, PROSE)]
    document = read_file(tmp_path / "a.pdf", pdf([*above, *rows_at((72, 150, 240), *OPERATORS), *below]))
    table = (
        "| Symbol | Example | Explanation |\n| --- | --- | --- |\n| ** | a**b | exponentiation |\n| - | - a | minus |"
    )
    assert f"Operators\n\n{table}\n| \\| |  | or |\n\nStars need" in document.text
    assert [block.kind for block in document.blocks] == ["paragraph"] * 2 + ["row"] * 4 + ["paragraph"]


def test_a_cell_that_goes_on_below_stays_one_and_a_table_without_a_header_has_none(tmp_path):
    rows = [("pdf()", "makes a file for"), ("", "printers, and for"), ("", "screens."), ("png()", "makes a picture."), ("jpeg()", "is for photos.")]  # fmt: skip
    text = read_file(tmp_path / "a.pdf", pdf(rows_at((72, 150), *rows, gap=12))).text
    made = "| pdf() | makes a file for printers, and for screens. |\n| png() | makes a picture. |\n| jpeg() | is for photos. |"
    assert text == f"|  |  |\n| --- | --- |\n{made}"


def test_cells_that_are_drawn_one_after_another_are_rows(tmp_path):
    cells = [(72, 700, "Berth"), (200, 700, "Keeper"), (72, 680, "Pier at the har-"), (72, 668, "bour crane"), (200, 680, "Ann"), (72, 656, "south"), (200, 656, "Bo")]  # fmt: skip
    text = read_file(tmp_path / "a.pdf", pdf([(0, 10, x, y, words) for x, y, words in cells])).text
    assert text.endswith("| Berth | Keeper |\n| --- | --- |\n| Pier at the harbour crane | Ann |\n| south | Bo |")


def test_a_table_goes_on_on_the_next_page(tmp_path):
    head, *rows = [("Berth", "Who"), *((f"north {name}", f"Ann {name}") for name in "abcdefgh")]
    pages = [rows_at((72, 200), head, *rows[:4]), rows_at((72, 200), *rows[4:])]
    document = read_file(tmp_path / "a.pdf", pdf(*pages))
    assert document.text.startswith("| Berth | Who |\n| --- | --- |\n| north a | Ann a |")
    assert "|  |  |\n| --- | --- |\n| north e | Ann e |\n" in document.text


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ((72, 330), [(PROSE[:40], PROSE[:38]), ("and its driver sleeps in a small house", "while the boats come and go at noon")] * 3),
        ((72, 250, 430), [("the crane of the yard", "stands in the harbour", "and the driver is gone")] * 5),
        ((72, 100), [("1.", "Lift the boat."), ("2.", "Wash it."), ("3.", "Set it down.")]),
        ((72, 100), [("(a)", "Lift the boat."), ("(b)", "Wash it."), ("(c)", "Set it down.")]),
        ((72, 200), [("Ann Lee", "Bo Dean"), ("North", "South")]),
    ],
    ids=["two columns", "three columns", "numbers", "letters", "two lines"],
)  # fmt: skip
def test_text_in_columns_and_lists_are_no_table(tmp_path, columns, rows):
    document = read_file(tmp_path / "a.pdf", pdf(rows_at(columns, *rows)))
    assert "row" not in {block.kind for block in document.blocks}


RULED = [
    (1, 10, 74, 690, "Item"), (1, 10, 264, 690, "Purpose"),
    (0, 10, 74, 670, "Crane"), (0, 10, 134, 670, "Lifts boats that weigh more than"), (0, 10, 134, 658, "ten tons and masts."),
    (0, 10, 134, 634, "Only at high water."),
    (0, 10, 74, 610, "Slip and the small winch"), (0, 10, 194, 610, "Pulls boats"), (0, 10, 194, 598, "ashore."),
]  # fmt: skip
LEVEL = [(72, 700, 400), (72, 682, 400), (72, 626, 400), (72, 590, 400)]
UPRIGHT = [(72, 590, 700), (132, 626, 682), (192, 590, 626), (192, 682, 700), (400, 590, 700)]


@pytest.mark.parametrize(
    "drawn",
    [
        " ".join([*(f"{x} {y} m {end} {y} l S" for x, y, end in LEVEL), *(f"{x} {y} m {x} {top} l S" for x, y, top in UPRIGHT)]),
        " ".join([*(f"{x} {y} m {end} {y} l" for x, y, end in LEVEL), *(f"{x} {y} m {x} {top} l" for x, y, top in UPRIGHT), "S"]),
        " ".join([*(f"{x} {y} {end - x} .5 re f" for x, y, end in LEVEL), *(f"{x} {y} .5 {top - y} re f" for x, y, top in UPRIGHT)]),
        " ".join([*(f"{x} {y} m {end} {y} l S" for x, y, end in LEVEL), *(f"{x} {y} m {x} {top} l S" for x, y, top in UPRIGHT[1:-1])]),
        "72 590 328 110 re 132 626 268 56 re S 72 626 m 192 626 l 192 590 l S 192 682 m 192 700 l S 72 682 m 400 682 l S",
    ],
    ids=["lines", "one path", "thin boxes", "without outer lines", "boxes"],
)  # fmt: skip
def test_the_cells_of_a_ruled_table_are_those_that_its_lines_enclose(tmp_path, drawn):
    around = [(0, 10, 72, 740, PROSE), (0, 10, 72, 560, PROSE)]
    text = read_file(tmp_path / "a.pdf", pdf([around[0], *RULED, around[1]], drawn=drawn)).text
    rows = ["| Item |  | Purpose |", "| --- | --- | --- |"]
    rows += ["| Crane | Lifts boats that weigh more than ten tons and masts. Only at high water. |  |"]
    rows += ["| Slip and the small winch |  | Pulls boats ashore. |"]
    assert text == "\n\n".join([PROSE, "\n".join(rows), PROSE])


def test_a_cell_that_reaches_down_stands_in_each_of_its_rows(tmp_path):
    words = [(0, 10, 74, 690, "North"), (0, 10, 134, 690, "Ann"), (0, 10, 134, 670, "Bo"), (0, 10, 74, 650, "South"), (0, 10, 134, 650, "Cy")]  # fmt: skip
    drawn = "72 640 128 60 re S 132 640 m 132 700 l S 132 680 m 200 680 l S 72 660 m 200 660 l S"
    text = read_file(tmp_path / "a.pdf", pdf(words, drawn=drawn)).text
    assert text.endswith("| North | Ann |\n| North | Bo |\n| South | Cy |")


@pytest.mark.parametrize(
    "drawn", ["60 600 500 150 re S", "60 705 m 500 705 l S 60 685 m 500 685 l S", "300 600 m 300 750 l S"]
)
def test_frames_and_single_lines_make_no_table(tmp_path, drawn):
    text = read_file(tmp_path / "a.pdf", pdf([(0, 10, 72, 700, PROSE), (0, 10, 72, 688, PROSE)], drawn=drawn)).text
    assert text == f"{PROSE} {PROSE}"


def test_drawings_of_many_lines_are_read_in_linear_time(tmp_path):
    drawn = " ".join(f"{x} 100 m {x} 700 l S 10 {x + 90} m 600 {x + 90} l S" for x in range(10, 600, 4))
    start = time.process_time()
    text = read_file(tmp_path / "a.pdf", pdf(rows_at((72, 200, 300), *OPERATORS), drawn=drawn, repeat=50)).text
    assert text.count("exponentiation") == 50
    assert time.process_time() - start < 10


def test_many_lines_with_many_cells_are_read_in_linear_time(tmp_path):
    rows = [tuple(f"c{n}" for n in range(40))] * 50
    columns = [20 + 28 * n for n in range(40)]
    rows_apart = [tuple(columns[n] + 13 * (line % 2) for n in range(40)) for line in range(50)]
    page = [row for number, xs in enumerate(rows_apart) for row in rows_at(xs, rows[number], top=780 - 14 * number)]
    start = time.process_time()
    read_file(tmp_path / "a.pdf", pdf(page, repeat=20))
    assert time.process_time() - start < 10


def test_the_words_of_a_head_that_counts_pages_are_read_once(tmp_path):
    chapters = [("Leases", 3), ("Boats of the yard", 4)]
    pages, number = [], 4
    for chapter, (name, length) in enumerate(chapters, start=1):
        for page in range(length):
            number += 1
            head = (
                [(0, 10, 72, 770, f"Chapter {chapter}: {name} {number}")]
                if page
                else [(1, 16, 72, 740, f"{chapter} {name}")]
            )
            prose = [(0, 10, 72, 700 - 14 * n, f"{PROSE} at {number + n} o'clock") for n in range(20)]
            pages.append([*head, *prose, *([(0, 10, 72, 400, "12 boats are there in year 12")] if number == 6 else [])])
    text = read_file(tmp_path / "a.pdf", pdf(*pages)).text
    assert "Chapter" not in text
    assert text.count("Leases") == text.count("Boats of the yard") == 1
    assert "12 boats are there in year 12" in text


def test_heads_of_short_chapters_and_numbers_of_pages_are_left_out(tmp_path):
    pages = [[(1, 16, 72, 740, name), (0, 10, 72, 700, f"{PROSE} {name}.")] for name in ("Leases", "Boats", "Cranes")]
    for number in range(8, -1, -1):
        name, lines = ("Leases", "Boats", "Cranes")[number // 3], 20 - 2 * number
        prose = [(0, 10, 72, 700 - 14 * n, f"{PROSE} {number}{n} times.") for n in range(lines)]
        pages.insert(number // 3 + 1, [(0, 10, 200 + number, 770, name), *prose, (0, 10, 290, 30, str(number + 1))])
    pages[2].append((0, 10, 72, 60, "12"))
    text = read_file(tmp_path / "a.pdf", pdf(*pages)).text
    assert [text.count(f"\n{name}\n") for name in ("Leases", "Boats", "Cranes")] == [0] * 3
    assert re.findall(r"^\f*(\d+)\f*$", text, re.MULTILINE) == ["12"]
    assert text.count(PROSE) == 3 + sum(range(4, 21, 2))


def test_lines_that_a_page_begins_with_are_no_heads(tmp_path):
    """The head of a table on each page stands where text does on others; a subtotal counts no pages."""
    head = [(0, 10, 72, 740, "Berth"), (0, 10, 200, 740, "Keeper")]
    rows = [[(0, 10, x, 717 - 14 * n, f"{word} {9 - n}{page}") for n in range(4) for x, word in ((72, "north"), (200, "Ann"))] for page in range(3)]  # fmt: skip
    totals = [(0, 10, 72, 600, f"Subtotal {90 + 7 * page}") for page in range(3)]
    pages = [[*head, *rows[page], totals[page]] for page in range(3)]
    text = read_file(tmp_path / "a.pdf", pdf([(0, 10, 72, 760, PROSE), *pages[0]], *pages[1:])).text
    assert "| Berth | Keeper |" in text
    assert [f"Subtotal {90 + 7 * page}" in text for page in range(3)] == [True] * 3


def test_a_head_that_names_nothing_else_stays_once(tmp_path):
    pages = [
        [(0, 10, 72, 770, f"{n} Nordvik handbook"), (0, 10, 72, 700, f"{PROSE} {n}{n}."), (0, 10, 72, 600, "x")]
        for n in range(3, 9)
    ]
    assert read_file(tmp_path / "a.pdf", pdf(*pages)).text.count("Nordvik handbook") == 1


def test_code_that_goes_on_on_the_next_page_is_one(tmp_path):
    first, second = typed_page("f <- c(1, x);", "    f(w, i);")[:-4], typed_page("}", "f(i) # last;")[4:]
    document = read_file(tmp_path / "a.pdf", pdf(first, second, fonts=TYPED))
    (code,) = (block for block in document.blocks if block.kind == "code")
    assert (
        document.text[code.start : code.end].replace("\f", "")
        == "```\nf <- c(1, x);\n    f(w, i);\n}\nf(i) # last;\n```"
    )
    assert document.text.count("\f") == 1


@pytest.mark.parametrize(
    ("first", "second", "heading"),
    [
        ("One-", "and two-sample tests", "One- and two-sample tests"),
        ("Tests of the har-", "bour crane", "Tests of the harbour crane"),
        ("Tests of two-", "sample sets", "Tests of two-sample sets"),
    ],
)
def test_a_hyphen_in_a_heading_is_read_as_in_a_paragraph(tmp_path, first, second, heading):
    prose = [(0, 10, 72, 600 - 14 * n, f"{PROSE} in a two-sample test of the harbour") for n in range(9)]
    text = read_file(tmp_path / "a.pdf", pdf([(1, 16, 72, 740, first), (1, 16, 72, 722, second), *prose])).text
    assert text.startswith(f"# {heading}\n")


def test_a_line_behind_a_hyphen_ends_neither_the_paragraph_nor_the_cell(tmp_path):
    lines = [
        "The crane of the harbour lifts the boats of the har-",
        "bour, and the dri-",
        "ver sleeps",
        "while they wait.",
    ]
    page = [(0, 10, 72, 700 - 12 * n, line) for n, line in enumerate(lines)]
    page += [(0, 10, 72, 652, PROSE), (0, 10, 72, 620, "The last line of the page is cut be-"), (0, 10, 290, 30, "17")]
    text = read_file(tmp_path / "a.pdf", pdf(page)).text
    assert "harbour, and the driver sleeps" in " ".join(text.split())
    assert text.count("\n\n") == 2
    assert text.endswith("cut be-\n\n17")


def test_titles_of_notes_and_words_in_pictures_own_no_text(tmp_path):
    def chapter(name, *box):
        prose = [(0, 10, 72, 700 - 14 * n, f"{PROSE} {name} {n}.") for n in range(12)]
        note = [(0, 10, 90, 480, "Leases end at noon."), (0, 10, 90, 466, "Boats do not.")]
        return [(1, 16, 72, 740, name), *prose, *box, *note, (0, 10, 72, 440, f"{PROSE} {name}.")]

    boxes = [[(1, 12, 90, 500, "Hinweis")], [(1, 12, 90, 500, "Hinweis")], [(0, 40, 200, 496, "NORDVIK")]]
    pages = map(chapter, ("1 Leases", "2 Hulls", "3 Masts"), *zip(*boxes, strict=True))
    document = read_file(tmp_path / "a.pdf", pdf(*pages, chapter("4 Sails")))
    headings = [block for block in document.blocks if block.kind == "heading"]
    names = [document.text[block.start : block.end].strip("# \f") for block in headings]
    assert names == ["1 Leases", "2 Hulls", "3 Masts", "NORDVIK", "4 Sails"]
    assert {block.level for block in headings} == {1}


def test_a_sign_that_a_font_does_not_name_begins_an_item(tmp_path):
    shown = r"BT /F1 12 Tf 60 760 Td (\210 The crane lifts.) Tj 0 -14 Td (\210 It is old.) Tj ET"
    assert read_file(tmp_path / "a.pdf", drawn_pdf(shown)).text == "- The crane lifts.\n- It is old."


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (r"(see \304a and \303b) Tj", "see ~a and ^b"),
        (r"(in \304/yard) Tj", "in ~/yard"),
        (r"[(ma\304) 450 (nana)] TJ", "mañana"),
        (r"[(for\303) 400 (et)] TJ", "forêt"),
    ],
)
def test_accents_beside_letters_are_signs(tmp_path, shown, words):
    assert read_file(tmp_path / "a.pdf", drawn_pdf(f"BT /F1 12 Tf 60 760 Td {shown} ET")).text == words
