"""Files that lose text in other readers: odd parts, references, encodings and notations; each stands for its kind."""

import io
import json
import struct
import unicodedata
import zipfile
from email.message import EmailMessage

import pytest

from sire_core.errors import CorpusError
from sire_core.evaluate.rows import fold
from sire_core.files.delimited import read_values
from sire_core.files.html import html_to_markdown
from sire_core.files.notations import read_notation, tex_letters
from sire_core.files.raised_text import lowered, raised, write_scripts
from sire_core.files.readers import read_documents
from sire_core.files.source_code import printed_text
from sire_core.files.text_encodings import guess_encoding
from support.command import run as run_command
from support.outlook import compound_file

pytestmark = pytest.mark.usefixtures("one_reading_process")

docx = pytest.importorskip("docx")
openpyxl = pytest.importorskip("openpyxl")
pptx = pytest.importorskip("pptx")
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def read(folder, name, content):
    """Documents and notes of one file, its text with single blanks and without bars."""
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    found = read_documents(folder / name)
    return " ".join(found[0].text.replace("|", " ").split()), [note.reason for note in found.notes]


def word(body, parts=(), relations=""):
    made = io.BytesIO()
    docx.Document().save(made)
    changed = io.BytesIO()
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            raw = old.read(name)
            if name == "word/document.xml":
                raw = f'<w:document {W} xmlns:r="{RELATIONS}"><w:body>{body}</w:body></w:document>'.encode()
            elif name == "word/_rels/document.xml.rels":
                raw = raw.replace(b"</Relationships>", relations.encode() + b"</Relationships>")
            elif name == "[Content_Types].xml":
                kinds = '<Default Extension="html" ContentType="text/html"/><Default Extension="rtf" ContentType="application/rtf"/>'
                raw = raw.replace(b"<Default", kinds.encode() + b"<Default", 1)
            new.writestr(name, raw)
        for name, content in dict(parts).items():
            new.writestr(name, content)
    return changed.getvalue()


def paragraph(*runs):
    return f"<w:p>{''.join(runs)}</w:p>"


def run(text, properties=""):
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def mark(kind, inside=""):
    return f'<w:r><w:fldChar w:fldCharType="{kind}">{inside}</w:fldChar></w:r>'


def instruction(words):
    return f"<w:r><w:instrText>{words}</w:instrText></w:r>"


LAST = paragraph(run("Orla stays."))
RAISED = '<w:vertAlign w:val="superscript"/>'
FORMS = {
    "an inner field without end": (
        paragraph(mark("begin"), instruction(" REF a "), mark("separate"), run("outer "), mark("end")) + paragraph(mark("begin"), instruction(" PAGE "), run("loose")) + LAST,
        "outer loose Orla stays.",
    ),
    "a list of contents that goes on over a heading": (
        paragraph(mark("begin"), instruction(" TOC "), mark("separate"), run("One 1"))
        + f"<w:p><w:pPr><w:outlineLvl w:val='0'/></w:pPr>{run('One')}</w:p>" + LAST + paragraph(mark("end")),
        "# One Orla stays.",
    ),
    "boxes and lists of a form": (
        paragraph(mark("begin", '<w:ffData><w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox></w:ffData>'), mark("end"), run("yes "),
                  mark("begin", '<w:ffData><w:checkBox><w:default w:val="0"/></w:checkBox></w:ffData>'), mark("end"), run("no "),
                  mark("begin", '<w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="Gull"/><w:listEntry w:val="Heron"/></w:ddList></w:ffData>'), mark("end")),
        "☒ yes ☐ no Heron",
    ),
    "a list of a form that shows its value": (
        paragraph(mark("begin", '<w:ffData><w:ddList><w:listEntry w:val="Gull"/></w:ddList></w:ffData>'), instruction("FORMDROPDOWN"), mark("separate"), run("Gull"), mark("end"), run(" flies")),
        "Gull flies",
    ),
    "raised letters": (
        paragraph(run("10"), run("6", RAISED), run(" of Calder"), run("1", RAISED), run(", the 4"), run("th", RAISED), run(" H"), run("2", '<w:vertAlign w:val="subscript"/>'), run("O")),
        "10^6 of Calder^1, the 4th H2O",
    ),
    "a formula": (
        ('<w:p xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:oMath><m:f><m:num><m:r><m:t>3</m:t></m:r></m:num><m:den><m:r><m:t>4</m:t></m:r></m:den></m:f>'
        "<m:r><m:t>+</m:t></m:r><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:oMath></w:p>"),
        "3/4+x^2",
    ),
    "ruby": (
        paragraph(*(f"<w:r><w:ruby><w:rt>{run(above)}</w:rt><w:rubyBase>{run(base)}</w:rubyBase></w:ruby></w:r>" for base, above in (("漢", "かん"), ("字", "じ"))), run("の")),
        "漢字(かんじ)の",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FORMS)
def test_odd_parts_of_word(tmp_path, case):
    body, expected = FORMS[case]
    assert read(tmp_path, "a.docx", word(body))[0] == expected


@pytest.mark.parametrize(
    ("name", "content"), [("a.html", "<p>Chunk & words.</p>"), ("a.rtf", r"{\rtf1 Chunk & words.\par}"), ("a.mht", "")]
)
def test_files_in_a_word_file_are_read(tmp_path, name, content):
    if name == "a.mht":
        page = EmailMessage()
        page.set_content("<p>Chunk &amp; words.</p>", subtype="html")
        content = page.as_string()
        relation = relation_to("chunk.html")
        name = "chunk.html"
    else:
        relation = relation_to(name)
    made = word('<w:altChunk r:id="rId77"/>' + LAST, {f"word/{name}": content}, relation)
    assert read(tmp_path, "a.docx", made)[0] == "Chunk & words. Orla stays."


def relation_to(name, kind="aFChunk"):
    return f'<Relationship Id="rId77" Type="{RELATIONS}/{kind}" Target="{name}"/>'


@pytest.mark.parametrize(
    "broken", ["word/styles.xml", "word/numbering.xml", "docProps/core.xml", "word/theme/theme1.xml"]
)
def test_one_broken_part_never_costs_a_file(tmp_path, broken):
    old = word(LAST)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(old)) as source, zipfile.ZipFile(made, "w") as target:
        for name in source.namelist():
            target.writestr(name, b"<a><b" if name == broken else source.read(name))
    assert read(tmp_path, "a.docx", made.getvalue())[0] == "Orla stays."


@pytest.mark.parametrize("suffix", ["docx", "xlsx", "pptx"])
def test_strict_files_and_absent_parts(tmp_path, suffix):
    made = io.BytesIO()
    if suffix == "docx":
        made.write(word(LAST, relations=relation_to("media/gone.png", "image")))
    elif suffix == "pptx":
        deck = pptx.Presentation()
        deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = "Orla stays."
        deck.save(made)
    else:
        book = openpyxl.Workbook()
        book.active["A1"] = "Orla stays."
        book.save(made)
    strict = io.BytesIO()
    with zipfile.ZipFile(made) as source, zipfile.ZipFile(strict, "w") as target:
        for name in source.namelist():
            raw = source.read(name)
            for kind in ("officeDocument", "wordprocessingml", "spreadsheetml", "presentationml", "drawingml"):
                raw = raw.replace(
                    f"http://schemas.openxmlformats.org/{kind}/2006/".encode(),
                    f"http://purl.oclc.org/ooxml/{kind}/".encode(),
                )
            target.writestr(name, raw)
    assert "Orla stays." in read(tmp_path, f"a.{suffix}", strict.getvalue())[0]


@pytest.mark.parametrize(("title", "shown"), [(None, "budget"), ("Budget of the harbour", "Budget of the harbour")])
def test_a_workbook_is_named_by_its_properties_or_its_file(tmp_path, title, shown):
    book = openpyxl.Workbook()
    book.active.title, book.properties.title = "Q3", title
    book.active.append(["Berth", "Fee"])
    book.save(tmp_path / "budget.xlsx")
    (document,) = read_documents(tmp_path / "budget.xlsx")
    assert (document.title, document.text[:5]) == (shown, "## Q3")


def test_the_title_of_a_word_file_stands_above_its_headings(tmp_path):
    made = docx.Document()
    for words, style in (("Yard", "Title"), ("Leases", "Heading 1"), ("Ends", "Heading 2"), ("At noon.", "Normal")):
        made.add_paragraph(words, style=style)
    made.save(tmp_path / "a.docx")
    (document,) = read_documents(tmp_path / "a.docx")
    assert document.text.split("\n\n") == ["# Yard", "## Leases", "### Ends", "At noon."]


def test_what_stands_beside_the_cells_of_a_sheet(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["Region", "Quarter", "Sales"], ["North", "Q1", 5], [None, "Q2", 7], ["Sum", None, "=SUM(C2:C3)"]):
        sheet.append(row)
    sheet.merge_cells("A2:A3")
    sheet["B2"].comment = openpyxl.comments.Comment("Orla holds the key", "Ann")
    chart = openpyxl.chart.BarChart()
    chart.title = "Traffic of the harbour"
    chart.add_data(openpyxl.chart.Reference(sheet, min_col=3, min_row=1, max_row=3), titles_from_data=True)
    sheet.add_chart(chart, "E2")
    book.save(tmp_path / "b.xlsx")
    text = " ".join(read_documents(tmp_path / "b.xlsx")[0].text.split())
    assert "| North | Q2 | 7 |" in text
    assert "| Sum | | =SUM(C2:C3) |" in text
    assert "B2: Orla holds the key" in text
    assert "Traffic of the harbour" in text


def test_merged_and_raised_in_slides(tmp_path):
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    grid = slide.shapes.add_table(3, 2, 0, 0, 9_000_000, 3_000_000).table
    for row, words in enumerate([("Region", "Quarter"), ("North", "Q1"), ("", "Q2")]):
        for column, text in enumerate(words):
            grid.cell(row, column).text = text
    grid.cell(1, 0).merge(grid.cell(2, 0))
    runs = slide.shapes.title.text_frame.paragraphs[0]
    runs.add_run().text = "10"
    power = runs.add_run()
    power.text = "6"
    power.font._element.set("baseline", "30000")
    deck.save(tmp_path / "a.pptx")
    text = read_documents(tmp_path / "a.pptx")[0].text
    assert "10^6" in text
    assert "| North | Q2 |" in text


RAISED_TEXTS = {
    f"x{raised('n+1')}": "x^(n+1)",
    f"1{raised('3')}\u2044{lowered('4')} cup": "1 3/4 cup",
    f"is {raised('3')}{lowered('4')} in": "is 3/4 in",
    f"M{raised('me')} Curie, 1{raised('er')}": "Mme Curie, 1er",
    f"SO{lowered('4')}{raised('2+')}": "SO4^2+",
    f"Done.{raised('1')} Next": "Done. [1] Next",
    f"Calder{raised('[1]')}": "Calder[1]",
    f"e{raised('x' + raised('2'))}": "e^(x^2)",
    f"{raised('1')} A note": "1 A note",
}


@pytest.mark.parametrize("text", RAISED_TEXTS)
def test_raised_letters_leave_numbers_and_names_as_they_are(text):
    assert write_scripts(text) == RAISED_TEXTS[text]


PAGES = {
    "<p>a</p><script>b()</script foo=1><p>c": "a c",
    "<p>a</p><SCRIPT>b()</script\n><style>x</style/><p>c": "a c",
    "<p>a<!--><p>b<!---><p>c<!-- d --!><p>e": "a b c e",
    "<ruby>漢<rp>(</rp><rt>かん<rp>)</rp><rb>字<rt>じ</ruby>の": "漢字(かんじ)の",
    "<ruby><rb>漢</rb><rb>字</rb><rt>かん</rt><rt>じ</rt></ruby>": "漢字(かんじ)",
    "<p>so <math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>4</mn></mfrac></math>": "so (a+b)/4",
    "<math><semantics><msub><mi>x</mi><mn>1</mn></msub><annotation>tex</annotation></semantics></math> end": "x_1 end",
    "<p><math><mi>a<p>after": "a after",
    "<p>10<sup>6</sup> W, Calder<sup><a href='#1'>1</a></sup>, H<sub>2</sub>O": "10^6 W, Calder^1, H2O",
    "<?xml version='1.0'?><!DOCTYPE html [<!ENTITY co 'Heron Ltd'>]><p>The &co; sells.</p><p><![CDATA[x < y]]></p>": "The Heron Ltd sells. x < y",
    "<!DOCTYPE html [ <!-- ' ]> --> <!ENTITY a \"]>\"> ]><p>Text.": "Text.",
}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_marks_of_pages(page):
    assert " ".join(html_to_markdown(page)[1].split()) == PAGES[page]


def book(members, order, title="Book"):
    """An EPUB file with members, and the references of its spine."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        container = '<container><rootfiles><rootfile full-path="O/c.opf"/></rootfiles></container>'
        packed.writestr("META-INF/container.xml", container)
        items = "".join(
            f'<item id="i{n}" href="{href}" media-type="application/xhtml+xml"/>' for n, href in enumerate(order)
        )
        spine = "".join(f'<itemref idref="i{n}"/>' for n in range(len(order)))
        packed.writestr(
            "O/c.opf",
            f"<package><metadata><title>{title}</title></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>",
        )
        for name, content in members.items():
            packed.writestr(f"O/{name}", content)
    return made.getvalue()


def page(words, encoding="utf-8"):
    return f'<?xml version="1.0" encoding="{encoding}"?><html><body><p>{words}</p></body></html>'.encode(encoding)


BOOKS = {
    "fragments and queries": (book({"a.xhtml": page("One."), "b.xhtml": page("Two.")}, ["a.xhtml#x", "b.xhtml?v=2", "a.xhtml"]), "One. Two."),
    "letter case": (book({"Text/A.XHTML": page("One.")}, ["text/a.xhtml"]), "One."),
    "escaped names": (book({"a b.xhtml": page("One."), "c%20d.xhtml": page("Two.")}, ["a%20b.xhtml", "c%20d.xhtml"]), "One. Two."),
    "an absent page": (book({"a.xhtml": page("One.")}, ["gone.xhtml", "a.xhtml"]), "One."),
    "no order": (book({"a.xhtml": page("One."), "b.xhtml": page("Two.")}, []), "One. Two."),
    "wide letters": (book({"a.xhtml": page("Köln.", "utf-16")}, ["a.xhtml"]), "Köln."),
    "Cyrillic letters": (book({"a.xhtml": page("Орла.", "windows-1251")}, ["a.xhtml"]), "Орла."),
    "a name that HTML knows": (book({"a.xhtml": page("One&nbsp;&mdash; two.")}, ["a.xhtml"], "A&nbsp;B"), "One — two."),
}  # fmt: skip


@pytest.mark.parametrize("case", BOOKS)
def test_references_and_encodings_of_books(tmp_path, case):
    content, expected = BOOKS[case]
    text, notes = read(tmp_path, "a.epub", content)
    assert text == expected
    assert bool(notes) == (case == "an absent page")


def test_pages_of_a_book_are_read_once_however_often_they_are_named(tmp_path):
    content = book({"a.xhtml": page("word " * 100)}, ["a.xhtml"] * 2_000)
    assert len(read(tmp_path, "a.epub", content)[0]) < 600


def test_entities_of_xml(tmp_path):
    fb2 = "<FictionBook><body><p>{}</p></body></FictionBook>"
    inside = '<!DOCTYPE F [<!ENTITY nbsp "&#160;"><!ENTITY co "Heron"><!ENTITY all "&co; Ltd"><!ENTITY x SYSTEM "file:///etc/passwd">]>'
    assert (
        read(tmp_path, "a.fb2", inside + fb2.format("Orla&nbsp;of &all;&x; &copy; AT&T"))[0]
        == "Orla of Heron Ltd © AT&T"
    )
    assert "Broken & words." in read(tmp_path, "b.fb2", fb2.format("Broken & <i>words.</p>"))[0]


def message(*parts, kind="alternative", boundary="b", **headers):
    head = {"From": "a@b.example", "Subject": "Tide", **headers}
    lines = [f"{name}: {value}" for name, value in head.items()]
    lines += ["MIME-Version: 1.0", f'Content-Type: multipart/{kind}; boundary="{boundary}"', ""]
    for part_kind, text in parts:
        lines += ["--b", f"Content-Type: {part_kind}", "", text]
    return "\n".join([*lines, "--b--", ""])


HTML_PART = ("text/html; charset=utf-8", "<p>The tide gate closes at nine. Orla keeps it, Tobias helps her.</p>")
MAILS = {
    "a placeholder": (message(("text/plain", "Please use a program for HTML."), HTML_PART), "closes at nine", "Please"),
    "a full text": (message(("text/plain", "The tide gate closes at nine. Orla keeps it, Tobias helps."), HTML_PART), "Tobias helps.", "her"),
    "another boundary": (message(("text/plain", "Orla keeps it."), boundary="zzz"), "Orla keeps it.", "--b"),
    "no boundary": (message(("text/plain", "Orla keeps it.")).replace('; boundary="b"', ""), "Orla keeps it.", "--b"),
    "a page without a type": ("From: a@b.example\n\n<html><body><p>Orla &amp; Jo.</p></body></html>", "Orla & Jo.", "<p>"),
    "flowed": ("From: a@b.example\nContent-Type: text/plain; format=flowed\n\nOrla keeps \nthe gate.\n> She \n> said.\n-- \nAnn", "Orla keeps the gate.", "zzz"),
    "flowed, without blanks": ("From: a@b.example\nContent-Type: text/plain; format=flowed; delsp=yes\n\nOrla Fi \nnch.\n", "Orla Finch.", "Fi nch"),
    "guessed": ("From: a@b.example\nContent-Type: text/plain\n\nЖурнал открыт с утра до вечера.\n".encode("cp1251"), "Журнал открыт", "�"),
    "a style sheet": (message(("text/css", "p { color: red }"), HTML_PART, kind="related"), "closes at nine", "color"),
}  # fmt: skip


@pytest.mark.parametrize("case", MAILS)
def test_forms_of_mails(tmp_path, case):
    content, has, has_not = MAILS[case]
    text, _ = read(tmp_path, "a.eml", content)
    assert has in text
    assert has_not not in text


TABLES = {
    "sep=;\nname;price\nHeron;1,5\n": "| name | price | | Heron | 1,5 |",
    "Sales, north, 2025\n\nname;price\nHeron;1,5\nGull;2,5\n": "Sales, north, 2025 | name | price | | Heron | 1,5 | | Gull | 2,5 |",
    "Report,2025,,\n,,,\nname,price,place,x\nA,1,2,3\nB,1,2,3\n": "Report 2025 | name | price | place | x | | A | 1 | 2 | 3 | | B | 1 | 2 | 3 |",
    '"a,b";"c,d"\n1;2\n3;4\n': "| a,b | c,d | | 1 | 2 | | 3 | 4 |",
    'name,price\nHeron,"open\nGull,3\nTern,4\nRook,5\n': "| name | price | | Heron | open | | Gull | 3 | | Tern | 4 | | Rook | 5 |",
    'name,text\nHeron,"two\nlines, of"\nGull,3\n': "| name | text | | Heron | two lines, of | | Gull | 3 |",
    'name,size\npipe,5" wide\nrod,6" long\n': '| name | size | | pipe | 5" wide | | rod | 6" long |',
    "a\tb, c\n1\t2, 3\n": "| a | b, c | | 1 | 2, 3 |",
}  # fmt: skip


@pytest.mark.parametrize("text", TABLES)
def test_dialects_of_values(text):
    lines = [line for line in read_values(text, "").split("\n") if not line.startswith("| ---")]
    assert " ".join(" ".join(lines).split()) == TABLES[text]


ORG = "#+TITLE: Guide\n#+MACRO: p Heron $1\n# no\n* TODO Limits of {{{p(Q)}}} :tag:\n:PROPERTIES:\n:ID: x\n:END:\nSee [[http://x.y][this]].\n#+BEGIN_SRC sh\n,* inner\n#+END_SRC\n#+begin_comment\nno\n#+end_comment\n* COMMENT no\nno\n* Last\n"
ADOC = "= Guide to {p}\n:p: Heron\n:q: {p} Queue\n\n// no\n////\nno\n////\nThe {q} has {unknown}.\n[source,ruby]\n----\n== inner\n----\n[source]\nputs 1\n== inner\n\n== Last\n"
TEX = '\\title{A {B} of \\textbf{G\\"odel}\\thanks{no}}\n% \\title{no}\n\\section[s]{One \\emph{big {deep}} thing}\n100\\% of na\\"{\\i}ve \\c{c}a % no\n\\begin{verbatim}\n\\section{inner}\n% stays\n\\end{verbatim}\n\\begin{comment}\nno\n\\end{comment}\nIt is \\verb|9% x|. % no\n\\newcommand{\\p}{\\section{no}} said.\\section{Two}More.'
NOTATIONS = {
    ".org": (ORG, "Guide", "# Limits of Heron Q See this. ```sh * inner ``` # Last"),
    ".adoc": (ADOC, "", "# Guide to Heron The Heron Queue has {unknown}. ```ruby == inner ``` ``` puts 1 == inner ``` ## Last"),
    ".tex": (TEX, "A B of Gödel", "\\title{A {B} of Gödel\\thanks{no}} ## One big deep thing 100% of naïve ça ``` \\section{inner} % stays ``` It is \\verb|9% x|. \\newcommand{\\p}{\\section{no}} said.\\section{Two}More."),
    ".latex": ("\\begin{document}\\title{Gate}\\maketitle\\section*{One}Orla.", "Gate", "\\begin{document} \\title{Gate}\\maketitle ## One Orla."),
}  # fmt: skip


@pytest.mark.parametrize("suffix", NOTATIONS)
def test_notations(suffix):
    text, title, expected = NOTATIONS[suffix]
    assert read_notation(text, suffix)[0] == title
    assert " ".join(read_notation(text, suffix)[1].split()) == expected


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        (r"G{\"o}del, {\"U}ber \'e", "Gödel, Über é"),
        (r"Erd\H{o}s Erd{\H o}s \v{S}koda", "Erdős Erdős Škoda"),
        (r"Stanis\l{}aw Stanis\l aw {\L}\'od\'z", "Stanisław Stanisław Łódź"),
        (r"\aa{}ngstr\"om \ss \o re \^\i", "ångström ß øre î"),
        (r"\cite{a} \caption{b} $\vec{x}$", r"\cite{a} \caption{b} $\vec{x}$"),
    ],
)
def test_letters_of_tex(tex, expected):
    assert " ".join(tex_letters(tex).replace("ß ", "ß ").split()) == expected


def test_what_a_terminal_shows():
    assert (
        printed_text("\x1b[1;31mWARN\x1b[0m gate\x1b[K\n\r 1%|\r 50%|\r100%| done\nx\b\by\r\n\x1b]0;title\x07z")
        == "WARN gate\n100%| done\ny\nz"
    )


def test_outputs_of_a_notebook(tmp_path):
    outputs = [
        {"output_type": "display_data", "data": {"text/html": "<p>From <b>HTML</b>.</p>", "text/plain": "<IPython.core.display.HTML object>"}},
        {"output_type": "display_data", "data": {"text/latex": "$x^2$"}},
        {"output_type": "error", "ename": "ValueError", "evalue": "bad gate", "traceback": ["\x1b[0;31mValueError\x1b[0m: bad gate"]},
        {"output_type": "display_data", "data": {"image/png": "QUJD", "text/plain": "<Figure size 640x480 with 1 Axes>"}},
        "odd", None,
    ]  # fmt: skip
    cells = [{"cell_type": "code", "source": "x", "outputs": outputs}, "odd", {"cell_type": "code", "outputs": 5}]
    text, _ = read(tmp_path, "a.ipynb", json.dumps({"cells": cells, "metadata": None}))
    assert text == "``` x ``` From **HTML**. $x^2$ ``` ValueError: bad gate ```".replace("**", "")


MISNAMED = {
    "page.xls": ("<html><table><tr><th>Gate</th></tr><tr><td>Orla</td></tr></table></html>", ".html"),
    "tabs.xls": ("Gate\tKeeper\nSeven\tOrla\n", ".csv"),
    "wide.xls": ("Gate\tKeeper\nSeven\tOrla\n".encode("utf-16"), ".csv"),
    "rich.doc": (r"{\rtf1 Orla stays.\par}", ".rtf"),
    "page.doc": ("<!DOCTYPE html><p>Orla</p>", ".html"),
    "plain.doc": ("Orla stays here.", ".txt"),
    "word.doc": (word(LAST), ".docx"),
    "word.txt": (word(LAST), ".docx"),
    "word.xlsx": (word(LAST), ".docx"),
    "saved.doc": (message(HTML_PART, kind="related").replace("The tide", "Orla"), ".mht"),
    "book.zip.docx": (book({"a.xhtml": page("Orla.")}, ["a.xhtml"]), ".epub"),
    "sheet.xls": ('<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"><Worksheet><Table><Row><Cell><Data>Orla</Data></Cell><Cell><Data>7</Data></Cell></Row></Table></Worksheet></Workbook>', ".xml"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISNAMED)
def test_files_are_read_by_their_content(tmp_path, name):
    content, suffix = MISNAMED[name]
    text, notes = read(tmp_path, name, content)
    assert "Orla" in text
    assert "<" not in text
    assert f"its content is that of {suffix}" in notes[0]


@pytest.mark.parametrize(
    ("words", "encoding"),
    [
        ("Der Bürgermeister heißt Jörg Großmann.", "cp1252"),
        ("Jørgen Bjørn åbner porten.", "cp1252"),
        ("¿Dónde está la señora Muñoz?", "cp1252"),
        ("Stanisław źle się czuł, więc śpi.", "iso8859-2"),
        ("Ворота закрываются в девять.", "koi8-r"),
        ("Ворота закрываются в девять.", "cp1251"),
        ("Η πύλη κλείνει στις εννέα.", "cp1253"),
        ("Şişli'de güneş ışığı çok.", "cp1254"),
        ("המגדלור נסגר בתשע.", "cp1255"),
        ("灯台は九時に閉まります。", "cp932"),
        ("名前,年齢,住所\n佐藤太郎,30,東京\n三木英子,25,大阪", "cp932"),
        ("灯台は九時に閉まります。", "euc_jp"),
        ("灯塔九点关闭。奥拉有钥匙。", "gb18030"),
        ("燈塔九點關閉。奧拉有鑰匙。", "big5"),
        ("등대는 아홉 시에 닫습니다.", "cp949"),
    ],
)
def test_encodings_are_guessed_by_letters(words, encoding):
    raw = words.encode(encoding)
    assert raw.decode(guess_encoding(raw)) == words


def test_what_our_reader_cannot_read_is_read_by_the_second_with_a_note(tmp_path, monkeypatch):
    from sire_core.files import converters

    def broken(path):
        raise ValueError("odd part")

    monkeypatch.setattr("sire_core.files.word_files.read_docx", broken)
    (tmp_path / "a.docx").write_bytes(word(LAST))
    converted = converters.convert(tmp_path / "a.docx", ".docx", 1_000_000)
    assert converted.text == "Orla stays."
    assert converted.notes == (
        "read by kreuzberg, which may lose more of it; our reader: cannot be converted: damaged, or no .docx file (odd part)",
    )


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_one_name_in_two_forms_is_one_document(tmp_path, form):
    (tmp_path / unicodedata.normalize(form, "Café.md")).write_text("# Café\n\nOrla keeps it.")
    found = read_documents(tmp_path)
    assert [document.id for document in found] == [unicodedata.normalize("NFC", "Café.md")]


def test_two_names_that_look_alike_are_told_apart(tmp_path):
    for form, words in (("NFC", "Orla keeps it."), ("NFD", "Ines keeps it.")):
        (tmp_path / unicodedata.normalize(form, "Café.md")).write_text(f"# Café\n\n{words}")
    texts = {document.id: document.text.split("\n")[-1] for document in read_documents(tmp_path)}
    assert texts == {"Café.md": "Orla keeps it.", "Cafe%CC%81.md": "Ines keeps it."}


def test_a_guessed_encoding_is_noted_whenever_the_folder_is_indexed(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_bytes("# Tor\n\nDer Bürgermeister heißt Jörg Großmann.".encode("cp1252"))
    (tmp_path / "docs/b.md").write_text("# Gate\n\nThe gate opens at noon.")
    for _ in range(2):
        assert "which is guessed" in run_command("index", tmp_path / "docs", "--to", tmp_path / "index").output


def word_6(text, flags=0):
    """A file as Word 2 writes it: a header, the text, and nothing else."""
    raw = text.encode("cp1252")
    head = b"\xdb\xa5" + bytes(8) + flags.to_bytes(2, "little") + bytes(12) + (384).to_bytes(4, "little")
    return (head + (384 + len(raw)).to_bytes(4, "little")).ljust(384, b"\0") + raw


def word_6_east(text):
    """A file as Word 6 of the Far East writes it: Western characters are marked by a first byte that no letter has."""
    units = (
        code if len(code) > 1 else b"\x10" * (code > b"\x7f") + code
        for code in (c.encode("cp1252" if c in "“”" else "gbk") for c in text)
    )
    raw = b"".join(unit[::-1].ljust(2, b"\0") for unit in units)
    return word_6("").replace(b"\xdb\xa5", b"\x99\xa6")[:28] + (384 + len(raw)).to_bytes(4, "little") + bytes(352) + raw


def record(kind, content, *, container=False):
    """A record of a PowerPoint file before 2007."""
    return struct.pack("<HHI", 15 * container, kind, len(content)) + content


def slides_97(*slides, notes=""):
    """A show whose slides have their text in shapes alone, with the forms for notes and slides."""
    shapes = [record(0x40C, record(0xFA8, text.encode("cp1252")), container=True) for text in slides]
    form = record(0x40C, record(0xFA0, "Click to edit".encode("utf-16-le")), container=True)
    pages = [record(0x3EE, shape, container=True) for shape in shapes]
    said = record(0x40C, record(0xFA0, notes.encode("utf-16-le")), container=True)
    forms = [
        record(0x3F8, form, container=True),
        record(0x3F0, record(0x3F1, bytes(3) + b"\x80" + bytes(4)) + form, container=True),
    ]
    raw = b"".join([*forms, *pages, record(0x3F0, record(0x3F1, b"\0\1\0\0" + bytes(4)) + said, container=True)])
    return compound_file({"PowerPoint Document": raw})


OLD = {
    "k.doc": (word_6_east("创建新文档，“Orla”单击要创建的文件类型"), "创建新文档，“Orla”单击要创建的文件类型"),
    "l.ppt": (slides_97("Orla stays", "Tide\rtables", notes="Łódź"), "Orla stays Tide tables Łódź"),
    "m.ppt": (compound_file({"PowerPoint Document": bytes(64), "Text_Content": b"Orla stays\r\rThe tide \x96 a table"}), "Orla stays The tide – a table"),
    "n.html": (b"<body><img alt='Orla at the gate'><img alt='The tide'></body>", "Orla at the gate The tide"),
    "a.doc": (word_6("Tor sieben\r\nDer Bürgermeister\x07 heißt\x07\x07Jörg \x13 PAGE \x14 3\x15 Groß\x1fmann"), "Tor sieben Der Bürgermeister ; heißt Jörg 3 Großmann"),
    "b.dot": (word_6("Orla stays."), "Orla stays."),
    "c.docm": (word(LAST), "Orla stays."),
    "d.eml": ("From: a@b.example\nSubject: Gate\n\nOrla stays.".encode("utf-16-le"), "From: a@b.example Orla stays."),
    "e.eml": ("From: a@b.example\nSubject: Gate\n\nOrla stays.".encode("utf-16"), "From: a@b.example Orla stays."),
    "f.rtf": (rb"{\pard Orla {\b st}ays.\par}", "Orla **st**ays."),
    "j.tex": ("\\documentclass{article}\n\\usepackage[latin2]{inputenc}\n\\begin{document}\nOrla spi, źle.\n\\end{document}".encode("iso8859-2"), r"\documentclass{article} \usepackage[latin2]{inputenc} \begin{document} Orla spi, źle. \end{document}"),
    "g.rtf": (rb"{\rtf1{\*\generator x}\pard{\loch\f2\*\cs7\cf0 Orla stays.}\par}", "Orla stays."),
    "h.html": (b"<body><nav><ol><li><a href='a'>Orla</a></li><li><a href='b'>stays</a></li></ol></nav>", "1. Orla 2. stays"),
    "i.doc": (b"\x31\xbe\0\0\0\xab".ljust(14, b"\0") + (139).to_bytes(4, "little") + bytes(110) + b"Orla stays.\xff\xff", "Orla stays."),
}  # fmt: skip


@pytest.mark.parametrize("name", OLD)
def test_old_and_related_formats_are_read(tmp_path, name):
    (tmp_path / name).write_bytes(OLD[name][0])
    (document,) = read_documents(tmp_path).documents
    assert " ".join(document.text.replace("**Orla", "Orla").split()) == OLD[name][1]


def test_cells_of_an_open_sheet_stand_in_their_columns(tmp_path):
    cell, empty = "<b:table-cell><t:p>{}</t:p></b:table-cell>", "<b:{}table-cell b:number-columns-repeated='2'/>"
    wide = "<b:table-cell b:number-rows-spanned='2'><t:p>Port</t:p></b:table-cell><b:covered-table-cell/>"
    rows = [
        wide + "".join(map(cell.format, ["Ships", "Crew", "Tons"])),
        empty.format("covered-") + empty.format("") + cell.format("9"),
    ]
    table = "".join(f"<b:table-row>{row}</b:table-row>" for row in rows)
    with zipfile.ZipFile(tmp_path / "a.ods", "w") as archive:
        archive.writestr(
            "content.xml", f"<o:body xmlns:o='o' xmlns:t='t' xmlns:b='b'><b:table>{table}</b:table></o:body>"
        )
    text = read_documents(tmp_path / "a.ods")[0].text
    assert text.split("\n")[::2] == ["| Port | Ships | Crew | Tons |", "| Port |  |  | 9 |"]


def locked_odt():
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr(
            "META-INF/manifest.xml", '<m><file-entry full-path="content.xml"><encryption-data/></file-entry></m>'
        )
        archive.writestr("content.xml", b"\x8a\x01\xfe")
    return raw.getvalue()


@pytest.mark.parametrize("name", ["a.doc", "a.odt"])
def test_an_encrypted_file_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(word_6("Orla stays.", flags=0x100) if name == "a.doc" else locked_odt())
    with pytest.raises(CorpusError, match="encrypted; save it without its password"):
        read_documents(tmp_path)


def test_a_quote_copied_from_values_matches_its_row(tmp_path):
    (tmp_path / "a.csv").write_text('name;price\n"Grey; Heron";1,5\nGull;2,5\n')
    row = fold(read_documents(tmp_path)[0].text)
    assert all(fold(quote) in row for quote in ('"Grey; Heron";1,5', "Gull;2,5", "Gull,2,5"))
    assert fold("Gull;1,5") not in row


def test_lists_begin_with_the_numbers_that_they_name(tmp_path):
    document = docx.Document()
    numbering = document.part.numbering_part.element
    level = '<w:lvl w:ilvl="0"><w:start w:val="100"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
    first = numbering.index(next(numbering.iterchildren(f"{{{W.split(chr(34))[1]}}}num")))
    numbering.insert(first, docx.oxml.parse_xml(f'<w:abstractNum {W} w:abstractNumId="77">{level}</w:abstractNum>'))
    numbering.append(docx.oxml.parse_xml(f'<w:num {W} w:numId="77"><w:abstractNumId w:val="77"/></w:num>'))
    for words in ("Oil the wheel.", "Close the lid."):
        properties = document.add_paragraph(words)._p.get_or_add_pPr()
        properties.append(docx.oxml.parse_xml(f'<w:numPr {W}><w:ilvl w:val="0"/><w:numId w:val="77"/></w:numPr>'))
    document.save(tmp_path / "steps.docx")
    assert read_documents(tmp_path / "steps.docx")[0].text == "100. Oil the wheel.\n101. Close the lid."


def test_numbers_that_are_none_cost_no_words(tmp_path):
    page = '<ol start="²"><li>Oil the wheel.</li></ol><table><tr><td colspan="²">Close the lid.</td></tr></table>'
    assert read(tmp_path, "steps.html", page)[0] == "1. Oil the wheel. --- Close the lid."
    body = '<w:p><w:pPr><w:outlineLvl w:val="²"/></w:pPr><w:r><w:t>Oil the wheel.</w:t></w:r></w:p>'
    assert read(tmp_path, "steps.docx", word(body)) == ("Oil the wheel.", [])
