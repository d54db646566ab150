"""Every word of an office file that its own library makes is in the text once, in order, and nothing else is."""

import datetime as dt
import re
import zipfile

import pytest

from sire_core.files.readers import read_documents

docx = pytest.importorskip("docx")
openpyxl = pytest.importorskip("openpyxl")
pptx = pytest.importorskip("pptx")

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
MARKED = [
    "count is <50; p<0.05 in the R&D trial by Marsh & Reed",
    "a_b *c* `d` [e](f) ~g~ \\h !i {j} $k ^l &amp; &lt;m&gt;",
    "“quoted” ‘single’ – dash — long … • ¿que? «guillemets» 中文。 ½ § ¶ † ‰ €",
    "A|B || C\\|D",
    "x < y > z <b>bold</b> <T>",
    "100 % of #1, @home/away; (a) [b] {c}: 'd' \"e\"?",
]


def read(path):
    (document,) = read_documents(path).documents
    return document


def words(text):
    """What people read of Markdown: marks of blocks and escapes of tables are none."""
    lines = [re.sub(r"^(#+|-) ", "", line) for line in text.split("\n") if line.strip("| -")]
    cells = [
        line.replace("\\|", "\0").strip("| ").replace(" | ", " ") if line.startswith("|") else line for line in lines
    ]
    return " ".join(" ".join(cells).replace("\0", "|").split())


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
    document = read(tmp_path / "a.docx")
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
    assert read(tmp_path / "a.docx").text == "1. one\n2. two\n\nBetween.\n\n3. three"


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
    assert words(read(tmp_path / "a.docx").text) == expected


def test_a_merged_cell_is_read_once_in_each_of_its_rows(tmp_path):
    made = docx.Document()
    table = made.add_table(2, 3)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(0, 2).merge(table.cell(1, 2)).text = "high"
    table.cell(1, 0).text = "last"
    made.save(tmp_path / "a.docx")
    assert words(read(tmp_path / "a.docx").text) == "wide high last high"


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
    document = read(tmp_path / "a.pptx")
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
    text = read(tmp_path / "a.xlsx").text
    assert words(text) == " ".join(["R&D", MARKED[0], "right", MARKED[1], "240:05:00", *MARKED[2:], "4.5", "TRUE"])
    assert len(text) < 1_000


def test_rows_of_values_keep_every_character(tmp_path):
    (tmp_path / "a.csv").write_text('name;note\n"a|b";"R&D <50\nnext"\nlast;\n', encoding="utf-8")
    assert read(tmp_path / "a.csv").text == "| name | note |\n| --- | --- |\n| a\\|b | R&D <50 next |\n| last |  |"


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
    assert read(tmp_path / "a.pptx").text.split("\n") == [
        *("## How to apply", "", "### Online", "", "1. Fill in the form", "2. Send it", "", "### At a branch"),
        *("", "1. Ask for the form", "", "Bold words that end a sentence."),
    ]
