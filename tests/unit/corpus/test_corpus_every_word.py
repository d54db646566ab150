"""Every word of a document that its format's own library makes is in the text once, in order, and nothing else is.

Word, PowerPoint and Excel files have a file of tests of their own (`test_corpus_office_words.py`).
"""

import csv
import html
import io
import json
import re
import zipfile
from email.message import EmailMessage
from xml.sax.saxutils import escape

import pytest

from sire_core.files.readers import read_documents
from tests.support.outlook import outlook_mail

MARKS = [
    "count is <50; p<0.05 in the R&D trial by Marsh & Reed",
    "a_b *c* [e](f) ~g~ \\h !i {j} $k ^l &amp; &lt;m&gt;",
    "“quoted” ‘single’ – dash — long … • ¿que? «guillemets» 中文。 ½ § ¶ † ‰ €",
    "x < y > z <b>bold</b> <T>",
    "100 % of #1, @home/away; (a) [b] {c}: 'd' \"e\"?",
    "Invoice no.\t4711\tDate",
]
WORDS = [" ".join(text.split()) for text in MARKS]


def read(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (document,) = read_documents(path).documents
    return document


def words(text):
    """What people read of Markdown: marks of blocks and of tables are none."""
    text = re.sub(r"^ *(#+|-|```\w*) ?", "", text, flags=re.MULTILINE)
    lines = [line for line in text.split("\n") if line.strip("| -")]
    cells = [line.strip("| ").replace(" | ", " ") if line.startswith("|") else line for line in lines]
    return " ".join(" ".join(cells).replace("\\|", "|").split())


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
ODT = f"""<text:tracked-changes><text:changed-region><text:deletion><text:p>no</text:p></text:deletion></text:changed-region>
</text:tracked-changes><text:h text:outline-level="1">Trial &amp; error</text:h>{OPEN_PARAGRAPHS}
<text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>deep</text:p></text:list-item></text:list>
</text:list-item></text:list><text:p>A <text:a xlink:href="http://a.example">link</text:a><text:note><text:note-citation>1</text:note-citation>
<text:note-body><text:p>Noted.</text:p></text:note-body></text:note> ends<office:annotation><dc:creator>Ann</dc:creator><dc:date>2020</dc:date>
<text:p>Remarked.</text:p></office:annotation>.</text:p><table:table table:name="Table1"><table:table-row><table:table-cell><text:p>a</text:p>
</table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>
<text:p><draw:frame><draw:text-box><text:p>Boxed.</text:p></draw:text-box></draw:frame></text:p>"""
ODT_WORDS = ["Trial & error", *WORDS, "one deep", "A link ends. Noted. Remarked.", "a b", "Boxed."]
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
    document = read(tmp_path / name, make())
    text = document.text or "\n\n".join(passage.text for passage in document.passages)
    assert words(text) == " ".join(expected)
    assert document.title == title
