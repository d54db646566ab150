"""Every word of a document that its format's own library makes is in the text once, in order, and nothing else is."""

import csv
import datetime as dt
import html
import io
import json
import re
import zipfile
from email.message import EmailMessage
from xml.sax.saxutils import escape

import pytest

from support.one_file import read_file
from support.outlook import outlook_mail

pytestmark = pytest.mark.usefixtures("one_reading_process")

docx = pytest.importorskip("docx")
openpyxl = pytest.importorskip("openpyxl")
pptx = pytest.importorskip("pptx")

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
MARKS = [
    "count is <50; p<0.05 in the R&D trial by Marsh & Reed",
    "a_b *c* [e](f) ~g~ \\h !i {j} $k ^l &amp; &lt;m&gt;",
    "“quoted” ‘single’ – dash — long … • ¿que? «guillemets» 中文。 ½ § ¶ † ‰ €",
    "x < y > z <b>bold</b> <T>",
    "100 % of #1, @home/away; (a) [b] {c}: 'd' \"e\"?",
    "Invoice no.\t4711\tDate",
]
WORDS = [" ".join(text.split()) for text in MARKS]
MARKED = [*MARKS[:-1], "`d` A|B || C\\|D"]


def words(text):
    """What people read of Markdown: marks of blocks and of tables are none."""
    text = re.sub(r"^ *(#+|-|```\w*) ?", "", text, flags=re.MULTILINE)
    cells = [
        line.replace("\\|", "\0").strip("| ").replace(" | ", " ") if line.startswith("|") else line
        for line in text.split("\n")
        if line.strip("| -")
    ]
    return " ".join(" ".join(cells).replace("\0", "|").split())


def packed(**members):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml").replace("_opf", ".opf"), content)
    return raw.getvalue()


PARAGRAPHS = "".join(f"<p>{html.escape(text)}</p>" for text in MARKS)
PAGE = f"""<html><head><title>Head</title><style>p {{}}</style></head><body><h1>Trial &amp; error &lt;1&gt;</h1>
<!-- a comment -->{PARAGRAPHS}<ul><li>one</li><li>two <b>bold</b><ul><li>deep</li></ul></li></ul>
<ol><li>first</li></ol><table><tr><th>Name</th><th>Size</th></tr><tr><td>a&nbsp;b</td><td>&lt;5</td></tr></table>
<p>A <a href="http://a.example/x">link</a>, H<sub>2</sub>O, <del>gone</del> <ins>new</ins>, line<br>break.</p>
<blockquote><p>Said so.</p></blockquote><dl><dt>Term</dt><dd>Means.</dd></dl><figure><img alt="A chart" src="data:image/png;base64,QUJD">
<figcaption>Figure 1</figcaption></figure><aside>no</aside><script>no()</script><p><span hidden>no</span>Foot note<sup>1</sup>.</p></body></html>"""
PAGE_WORDS = [
    *("Trial & error <1>", *WORDS, "one two bold deep", "1. first", "Name Size a b <5", "A link, H2O, gone new, line break."),
    *("Said so. Term Means.", "A chart Figure 1", "Foot note^1."),
]  # fmt: skip

PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="d"><dc:title>Book &amp; more</dc:title></metadata>
<manifest><item id="n" properties="nav" href="n.xhtml"/><item id="b" href="b.xhtml"/><item id="a" href="a.xhtml"/></manifest>
<spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/></spine></package>"""
CONTAINER = '<container><rootfiles><rootfile full-path="c.opf"/></rootfiles></container>'

OPEN_NAMES = (
    'xmlns:office="o" xmlns:text="t" xmlns:table="b" xmlns:draw="w" xmlns:presentation="p" xmlns:dc="d" xmlns:xlink="l"'
)


def opened(kind, body):
    content = f"<office:document-content {OPEN_NAMES}><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    meta = f"<office:document-meta {OPEN_NAMES}><dc:title>Open &amp; shut</dc:title></office:document-meta>"
    return packed(content_xml=content, meta_xml=meta, styles_xml=f"<office:document-styles {OPEN_NAMES}/>")


def open_text(text):
    return escape(text).replace("\t", "<text:tab/>").replace(" ", " <text:s/>", 1)


OPEN_PARAGRAPHS = "".join(f"<text:p>{open_text(text)}</text:p>" for text in MARKS)
NESTED = "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in ("a|b", "R&amp;D"))
ODT = f"""<text:tracked-changes><text:changed-region><text:deletion><text:p>no</text:p></text:deletion></text:changed-region>
</text:tracked-changes><text:h text:outline-level="1">Trial &amp; error</text:h>{OPEN_PARAGRAPHS}
<text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>deep</text:p></text:list-item></text:list>
</text:list-item></text:list><text:p>A <text:a xlink:href="http://a.example">link</text:a><text:note><text:note-citation>1</text:note-citation>
<text:note-body><text:p>Noted.</text:p></text:note-body></text:note> ends<office:annotation><dc:creator>Ann</dc:creator><dc:date>2020</dc:date>
<text:p>Remarked.</text:p></office:annotation>.</text:p><table:table table:name="Table1"><table:table-row><table:table-cell><text:p>a</text:p>
</table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>
<table:table><table:table-row>{NESTED}<table:table-cell><table:table><table:table-row>{NESTED}</table:table-row></table:table></table:table-cell>
</table:table-row></table:table><text:p>No.<text:line-break/>now</text:p><text:p>Boxes<draw:frame><draw:text-box><text:p>outer<draw:frame>
<draw:text-box><text:p>inner</text:p></draw:text-box></draw:frame></text:p></draw:text-box></draw:frame></text:p>"""
ODT_WORDS = [
    "Trial & error",
    *WORDS,
    "one deep",
    "A link ends. Noted. Remarked.",
    "a b",
    "a|b R&D a|b R&D No. now Boxes outer inner",
]
ODP = "".join(
    f'<draw:page draw:name="p{n}"><draw:frame presentation:class="title"><draw:text-box><text:p>Slide {n}</text:p></draw:text-box></draw:frame>'
    f"<draw:frame><draw:text-box><text:p>{open_text(text)}</text:p></draw:text-box></draw:frame>"
    f"<presentation:notes><draw:frame><draw:text-box><text:p>Said {n}.</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>"
    for n, text in enumerate(MARKS)
)
ODP_WORDS = [word for n, text in enumerate(WORDS) for word in (f"Slide {n}", text, f"Said {n}.")]


def open_cells(*cells):
    return f"<table:table-row>{''.join(f'<table:table-cell><text:p>{escape(cell)}</text:p></table:table-cell>' for cell in cells)}</table:table-row>"


ODS = f"""<table:table table:name="Stock &amp; more">{open_cells("Name", "Note")}{"".join(open_cells(f"n{n}", text) for n, text in enumerate(WORDS))}
<table:table-row><table:table-cell table:number-columns-repeated="1000"/></table:table-row></table:table>
<table:table table:name="Two">{open_cells("<5")}</table:table>"""
ODS_WORDS = ["Stock & more Name Note", *(f"n{n} {text}" for n, text in enumerate(WORDS)), "Two <5"]

FB2 = f"""<FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0" xmlns:l="l"><description><title-info><book-title>Book</book-title></title-info>
</description><body><section><title><p>Trial &amp; error</p></title>{"".join(f"<p>{escape(text)}</p>" for text in MARKS)}<p>A <strong>bold</strong>
word<a l:href="#n1" type="note">[1]</a>.</p><poem><stanza><v>One verse</v><v>two</v></stanza></poem><table><tr><td>a</td><td>b</td></tr></table>
</section></body><body name="notes"><section id="n1"><p>Noted.</p></section></body><binary id="x">QUJD</binary></FictionBook>"""
FB2_WORDS = ["Book", "Trial & error", *WORDS, "A bold word[1]. One verse two", "a b", "Noted."]


def notebook():
    nbformat = pytest.importorskip("nbformat")
    made = nbformat.v4.new_notebook()
    code = nbformat.v4.new_code_cell("x = '<b>' # *c*")
    code.outputs = [
        nbformat.v4.new_output("stream", text="a < b\n"),
        nbformat.v4.new_output("display_data", {"image/png": "QUJD"}),
    ]
    made.cells = [
        nbformat.v4.new_markdown_cell("# Trial & error\n\nA_b & c."),
        code,
        nbformat.v4.new_raw_cell("raw & <t>"),
    ]
    return nbformat.writes(made)


def mail():
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "Ann Å <a@b.example>", "b@b.example", "Trial & error – é"
    made.set_content("\n\n".join(MARKS))
    made.add_alternative(f"<p>{html.escape(MARKS[0])}</p>", subtype="html")
    made.add_attachment("Attached & read.", filename="more.txt")
    return made.as_bytes()


def outlook():
    pytest.importorskip("kreuzberg")
    people = {"sender": ("Ann Å", "a@b.example"), "to": [("", "b@b.example"), ("Bo", "c@b.example")]}
    return outlook_mail("Trial & error – é 😀", "\r\n\r\n".join([*MARKS, "- one\r\n- two"]), **people)


def rich_text():
    pytest.importorskip("kreuzberg")
    escaped = [re.sub(r"([\\{}])", r"\\\1", text).replace("\t", r"\tab ") for text in MARKS]
    coded = [re.sub(r"[^\x00-\x7f]", lambda sign: rf"\u{ord(sign[0])}?", text) for text in escaped]
    changes = r"\u-10179?\u-8704?{\deleted gone \{\u8211?\par}{\revised new}{\mvf away}{\*\footnote\pard A note.}"
    return r"{\rtf1{\info{\title Trial}}" + r"\par ".join([*coded, changes]) + "}"


def values():
    text = io.StringIO()
    csv.writer(text).writerows(
        [["Name", "Note"], *([f"n{n}", mark] for n, mark in enumerate(MARKS)), ["a|b", 'say "x"\nnext']]
    )
    return text.getvalue()


FILES = {
    "a.html": (lambda: PAGE, "Head", PAGE_WORDS),
    "a.epub": (lambda: packed(**{"META-INF__container_xml": CONTAINER, "c_opf": PACKAGE, "n.xhtml": "<p>no</p>", "a.xhtml": PAGE, "b.xhtml": "<p>Last.</p>"}), "Book & more", [*PAGE_WORDS, "Last."]),
    "a.odt": (lambda: opened("text", ODT), "Open & shut", ODT_WORDS),
    "a.odp": (lambda: opened("presentation", ODP), "Open & shut", ODP_WORDS),
    "a.ods": (lambda: opened("spreadsheet", ODS), "Open & shut", ODS_WORDS),
    "a.fb2": (lambda: FB2, "Book", FB2_WORDS),
    "a.ipynb": (notebook, "Trial & error", ["Trial & error A_b & c. x = '<b>' # *c* a < b raw & <t>"]),
    "a.eml": (mail, "Trial & error – é", ["From: Ann Å <a@b.example> To: b@b.example", *WORDS, "more.txt Attached & read."]),
    "a.msg": (outlook, "Trial & error – é 😀", ['From: "Ann Å" <a@b.example> To: b@b.example, "Bo" <c@b.example> Date: 2026-01-02T13:30:00+00:00', *WORDS, "one two"]),
    "a.rtf": (rich_text, "Trial", [*WORDS, "😀new", "[^1]: A note."]),
    "a.csv": (values, "a", ["Name Note", *(f"n{n} {text}" for n, text in enumerate(WORDS)), 'a|b say "x" next']),
    "a.txt": (lambda: "\n\n".join(MARKS), "a", WORDS),
    "a.md": (lambda: "# Trial\n\n" + "\n\n".join(html.escape(text, quote=False).replace("\\h", "\\\\h") for text in MARKS), "Trial", ["Trial", *WORDS]),
    "a.jsonl": (lambda: json.dumps({"id": "a", "title": "T", "text": "\n\n".join(MARKS)}), "T", WORDS),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_every_word_is_read_once_and_in_order(tmp_path, name):
    make, title, expected = FILES[name]
    document = read_file(tmp_path / name, make())
    text = document.text or "\n\n".join(passage.text for passage in document.passages)
    assert words(text) == " ".join(expected)
    assert document.title == title


def test_word_keeps_every_character_once_and_in_order(tmp_path):
    made = docx.Document()
    made.add_heading("Trial & error <1>", 1)
    for text in MARKED:
        made.add_paragraph(text)
    made.add_paragraph("Invoice no.\t4711\tDate\nnext line")
    made.add_heading("Lists", 2)
    for style in ("List Bullet", "List Bullet 2"):
        made.add_paragraph(f"of {style.split()[1].lower()}", style=style)
    table = made.add_table(2, 3)
    for cell, text in zip((c for row in table.rows for c in row.cells), ["Name", *MARKED[:3], "e|f", "g"], strict=True):
        cell.text = text
    table.cell(0, 0).paragraphs[0].runs[0].bold = True
    noted = made.add_paragraph("A remark follows.")
    made.add_comment(noted.runs, text="Is it <5?", author="Ann", initials="a")
    made.sections[0].header.paragraphs[0].text = "Top & first"
    made.sections[0].footer.paragraphs[0].text = "Bottom"
    made.save(tmp_path / "a.docx")
    expected = [
        *(
            "Top & first",
            "Trial & error <1>",
            *MARKED,
            "Invoice no. 4711 Date next line",
            "Lists",
            "of bullet of bullet",
        ),
        *("Name", *MARKED[:3], "e|f", "g", "A remark follows.", "Is it <5?", "Bottom"),
    ]
    document = read_file(tmp_path / "a.docx")
    assert words(document.text) == " ".join(expected)
    assert document.title == "Trial & error <1>"
    assert "\n- of bullet\n  - of bullet\n".replace("  -", "-") in document.text.replace("  -", "-")


def test_word_counts_the_numbers_of_lists_as_word_does(tmp_path):
    made = docx.Document()
    for text in ("one", "two"):
        made.add_paragraph(text, style="List Number")
    made.add_paragraph("Between.")
    made.add_paragraph("three", style="List Number")
    made.save(tmp_path / "a.docx")
    assert read_file(tmp_path / "a.docx").text == "1. one\n2. two\n\nBetween.\n\n3. three"


def run(text, tag="t"):
    return f'<w:r><w:{tag} xml:space="preserve">{text}</w:{tag}></w:r>'


BODIES = {
    "inserted and deleted": (
        f'{run("It costs ")}<w:ins w:id="1">{run("50")}</w:ins><w:del w:id="2">{run("40", "delText")}</w:del>{run(" now")}',
        "It costs 50 now",
    ),
    "fields": (
        (
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
            f'{run(" HYPERLINK &quot;http://a.example&quot; ", "instrText")}<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
            f'{run("The site")}<w:r><w:fldChar w:fldCharType="end"/></w:r>{run(" of it")}'
        ),
        "The site of it",
    ),
    "symbols": (f'{run("below ")}<w:r><w:sym w:font="Symbol" w:char="F0A3"/></w:r>{run(" 5")}', "below ≤ 5"),
    "pictures of a font, whose codes are those of letters": (
        f'{run("done")}<w:r><w:sym w:font="Webdings" w:char="F061"/><w:sym w:font="Marlett" w:char="F062"/></w:r>',
        "done\N{BULLET}\N{BULLET}",
    ),
    "content control": (f"<w:sdt><w:sdtContent>{run('inside')}</w:sdtContent></w:sdt>{run(' out')}", "inside out"),
    "hyphen that does not break": ("<w:r><w:t>co</w:t><w:noBreakHyphen/><w:t>op</w:t></w:r>", "co-op"),
    "breaks": ("<w:r><w:t>a</w:t><w:br/><w:t>b</w:t><w:cr/><w:t>c</w:t></w:r>", "a b c"),
    "text box, once for new and old programs": (
        (
            f'{run("Beside. ")}<w:r><mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
            f'<mc:Choice Requires="wps"><w:txbxContent><w:p>{run("Boxed.")}</w:p></w:txbxContent></mc:Choice>'
            f"<mc:Fallback><w:pict><w:txbxContent><w:p>{run('Boxed.')}</w:p></w:txbxContent></w:pict></mc:Fallback>"
            "</mc:AlternateContent></w:r>"
        ),
        "Beside. Boxed.",
    ),
    "formula": (
        '<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:r><m:t>a&lt;b</m:t></m:r></m:oMath>',
        "a<b",
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_word_reads_what_stands_between_the_runs_of_a_paragraph(tmp_path, name):
    body, expected = BODIES[name]
    docx.Document().save(tmp_path / "empty.docx")
    with zipfile.ZipFile(tmp_path / "empty.docx") as empty, zipfile.ZipFile(tmp_path / "a.docx", "w") as made:
        for member in empty.namelist():
            content = empty.read(member)
            if member == "word/document.xml":
                content = f'<w:document xmlns:w="{WORD}"><w:body><w:p>{body}</w:p></w:body></w:document>'.encode()
            made.writestr(member, content)
    assert words(read_file(tmp_path / "a.docx").text) == expected


def test_a_merged_cell_is_read_once_in_each_of_its_rows(tmp_path):
    made = docx.Document()
    table = made.add_table(2, 3)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(0, 2).merge(table.cell(1, 2)).text = "high"
    table.cell(1, 0).text = "last"
    made.save(tmp_path / "a.docx")
    assert words(read_file(tmp_path / "a.docx").text) == "wide high last high"


def write_docx_table(path, rows):
    made = docx.Document()
    table = made.add_table(len(rows), len(rows[0]))
    fill_cells(table, rows)
    made.save(path)


def write_pptx_table(path, rows):
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[6])
    fill_cells(slide.shapes.add_table(len(rows), len(rows[0]), 0, 0, 9, 9).table, rows)
    made.save(path)


def fill_cells(table, rows):
    for number, row in enumerate(rows):
        for column, paragraphs in enumerate(row):
            cell = table.cell(number, column)
            cell.text = paragraphs[0]
            for words in paragraphs[1:]:
                getattr(cell, "text_frame", cell).add_paragraph().text = words


def write_odt(path, body, styles=""):
    spaces = ("office", "text", "table", "style")
    names = "".join(f' xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"' for n in spaces)
    body = f"<office:body><office:text>{body}</office:text></office:body>"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        made.writestr("content.xml", f"<office:document-content{names}>{styles}{body}</office:document-content>")


def test_paragraphs_with_the_style_of_a_heading_are_headings(tmp_path):
    """As LibreOffice writes them when it converts other formats."""
    style = '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Heading_20_1"/>'
    texts = {"P1": "Purchasing", "Standard": "Orr signs.", "Heading_20_2": "Suppliers", "Heading_20_Note": "None."}
    body = "".join(f'<text:p text:style-name="{name}">{text}</text:p>' for name, text in texts.items())
    write_odt(tmp_path / "a.odt", body, f"<office:automatic-styles>{style}</office:automatic-styles>")
    document = read_file(tmp_path / "a.odt")
    assert (document.title, document.text) == ("Purchasing", "# Purchasing\n\nOrr signs.\n\n## Suppliers\n\nNone.")


def write_odt_table(path, rows):
    cells = [
        ["".join(f"<text:p>{words}</text:p>" for words in paragraphs) for paragraphs in row] for row in rows
    ]  # fmt: skip
    body = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell>{cell}</table:table-cell>" for cell in row)
        + "</table:table-row>"
        for row in cells
    )
    write_odt(path, f"<table:table>{body}</table:table>")


@pytest.mark.parametrize(("suffix", "nothing"), [("docx", ""), ("odt", ""), ("pptx", "0")])
def test_paragraphs_of_cells_are_rows_or_stay_apart(tmp_path, suffix, nothing):
    rows = [
        [["Day"], ["Text"], ["Out"], ["In"]],
        [["1 May", "2 May", "3 May"], ["Rent", "Crane", "Fuel"], ["70", nothing, "12"], [""]],
        [["4 May"], ["Boat", "It is sold.", "Hull", "new"], [""], ["9"]],
        [["5 May"], ["Berth", "North"], [""], ["8"]],
    ]
    {"docx": write_docx_table, "pptx": write_pptx_table, "odt": write_odt_table}[suffix](tmp_path / f"a.{suffix}", rows)
    lines = [line for line in read_file(tmp_path / f"a.{suffix}").text.split("\n") if line.startswith("|")]
    assert lines[2:] == [
        "| 1 May | Rent | 70 |  |",
        f"| 2 May | Crane | {nothing} |  |",
        "| 3 May | Fuel | 12 |  |",
        "| 4 May | Boat / It is sold. Hull / new |  | 9 |",
        "| 5 May | Berth / North |  | 8 |",
    ]


def test_slides_keep_every_character_their_notes_and_their_tables(tmp_path):
    made = pptx.Presentation()
    for number, text in enumerate(MARKED):
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text = f"Slide {number} & | more"
        slide.placeholders[1].text = f"{text}\nsecond {number}"
        slide.notes_slide.notes_text_frame.text = f"Spoken <{number}>"
    table = slide.shapes.add_table(1, 2, 0, 0, 9999, 9999).table
    table.cell(0, 0).text, table.cell(0, 1).text = "h|1", "R&D"
    made.save(tmp_path / "a.pptx")
    expected = [f"Slide {n} & | more {text} second {n} Spoken <{n}>" for n, text in enumerate(MARKED)]
    expected[-1] = expected[-1].replace(" Spoken", " h|1 R&D Spoken")
    document = read_file(tmp_path / "a.pptx")
    assert words(document.text) == " ".join(expected)
    assert document.title == "Slide 0 & | more"


def test_sheets_keep_every_character_and_no_empty_columns(tmp_path):
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "R&D"
    for number, text in enumerate(MARKED, start=1):
        sheet.cell(number, 1, text)
    sheet["Z1"], sheet["A3000"], sheet["XFD1048576"] = "right", 4.5, True
    sheet["Z2"] = dt.timedelta(days=10, minutes=5)
    made.save(tmp_path / "a.xlsx")
    text = read_file(tmp_path / "a.xlsx").text
    assert words(text) == " ".join(["R&D", MARKED[0], "right", MARKED[1], "240:05:00", *MARKED[2:], "4.5", "TRUE"])
    assert len(text) < 1_000


def test_bold_lines_of_slides_are_headings_and_numbers_begin_again_behind_them(tmp_path):
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[1])
    slide.shapes.title.text = "How to apply"
    frame = slide.placeholders[1].text_frame
    frame.text = "Online"
    for text in ("Fill in the form", "Send it", "At a branch", "Ask for the form", "Bold words that end a sentence."):
        frame.add_paragraph().text = text
    for paragraph in frame.paragraphs:
        numbered = paragraph.text in ("Fill in the form", "Send it", "Ask for the form")
        mark = "buAutoNum" if numbered else "buNone"
        element = paragraph._p.get_or_add_pPr().makeelement(f"{{{DRAWING}}}{mark}", {"type": "arabicPeriod"} if numbered else {})  # fmt: skip
        paragraph._p.get_or_add_pPr().append(element)
        paragraph.runs[0].font.bold = not numbered
    made.save(tmp_path / "a.pptx")
    assert read_file(tmp_path / "a.pptx").text.split("\n") == [
        *("## How to apply", "", "### Online", "", "1. Fill in the form", "2. Send it", "", "### At a branch"),
        *("", "1. Ask for the form", "", "Bold words that end a sentence."),
    ]
