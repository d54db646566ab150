"""No word of a converted file is lost: everything that stands on its pages can be found."""

import gzip
import io
import re
import zipfile
from pathlib import Path

import pytest

from sire_core.corpus.readers import read_documents
from sire_core.index import Index

pytest.importorskip("kreuzberg")

BODY = ["The lease pool gives a worker its jobs.", "Every worker claims one job at a time.", "Nothing is lost."]


def pdf(*pages):
    """A file of pages; each is a list of lines `(height, size, words)`."""
    places = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(pages)))
    parts = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (places, len(pages)),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for page in pages:
        says = b"".join(b"BT /F1 %d Tf 50 %d Td (%s) Tj ET\n" % (size, y, line.encode()) for y, size, line in page)
        parts.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>"
            % (len(parts) + 2)
        )
        parts.append(b"<</Length %d>>stream\n%s\nendstream" % (len(says), says))
    made, starts = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, start=1):
        starts.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % start for start in starts)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(parts) + 1, len(made))
    return made + b"xref\n0 %d\n0000000000 65535 f \n" % (len(parts) + 1) + table + end


def lines(words, top=700, size=11, step=14):
    return [(top - step * number, size, line) for number, line in enumerate(words)]


def running(words):
    return [(770, 9, "Kestrel yard yearly report"), *lines(words), (30, 9, "For members of the yard")]


PAGES = {
    "one line": [lines(["Invoice"], 750)],
    "title in the size of the text": [lines(["Invoice", *BODY, "Paid in 1999."], 750, 12)],
    "title": [[(740, 20, "Kestrel report"), *lines(BODY), *lines(["A second paragraph.", "It has two lines."], 600)]],
    "running lines": [running(BODY), running(["Other words stand here.", "They end it."])],
    "many pages": [running([f"Chapter number {number}.", *BODY]) for number in range(6)],
}


OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def archive(parts, **types):
    """A zip file of XML; `types` are those of Office's parts, by path with `__` for `/`."""
    if types:
        of = "application/vnd.openxmlformats-officedocument."
        named = "".join(
            f'<Override PartName="/{name.replace("__", "/")}.xml" ContentType="{of}{kind}+xml"/>'
            for name, kind in types.items()
        )
        relations = "application/vnd.openxmlformats-package.relationships+xml"
        parts["[Content_Types].xml"] = (
            f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" ContentType="{relations}"/>'
            f'<Default Extension="xml" ContentType="application/xml"/>{named}</Types>'
        )
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as packed:
        for name, text in parts.items():
            packed.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return raw.getvalue()


def relations(*targets):
    links = "".join(f'<Relationship Id="r{n}" Type="{OFFICE}/{k}" Target="{t}"/>' for n, (k, t) in enumerate(targets))
    return f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>'


def docx():
    def says(words, style="Normal"):
        return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{words}</w:t></w:r></w:p>'

    row = "".join(f"<w:tc>{says(cell)}</w:tc>" for cell in ("lease", "four"))
    inside = f"{says('Invoice')}{says('Kestrel', 'Heading1')}{says('A worker claims jobs.')}"
    parts = {
        "_rels/.rels": relations(("officeDocument", "word/document.xml")),
        "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{inside}<w:tbl><w:tr>{row}</w:tr></w:tbl></w:body>'
        "</w:document>",
    }
    return archive(parts, word__document="wordprocessingml.document.main")


def pptx():
    def shape(words, kind=""):
        holder = f'<p:ph type="{kind}"/>' if kind else ""
        return (
            f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="n"/><p:cNvSpPr/><p:nvPr>{holder}</p:nvPr></p:nvSpPr><p:spPr/>'
            f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{words}</a:t></a:r></a:p></p:txBody></p:sp>"
        )

    names = f'xmlns:p="{SLIDES}" xmlns:a="{DRAWING}" xmlns:r="{OFFICE}"'
    shapes = shape("Kestrel", "title") + shape("A worker claims jobs.") + shape("For members", "ftr")
    parts = {
        "_rels/.rels": relations(("officeDocument", "ppt/presentation.xml")),
        "ppt/_rels/presentation.xml.rels": relations(("slide", "slides/slide1.xml")),
        "ppt/presentation.xml": f'<p:presentation {names}><p:sldIdLst><p:sldId id="256" r:id="r0"/></p:sldIdLst>'
        "</p:presentation>",
        "ppt/slides/slide1.xml": f"<p:sld {names}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>",
    }
    kinds = {
        "ppt__presentation": "presentationml.presentation.main",
        "ppt__slides__slide1": "presentationml.slide",
    }
    return archive(parts, **kinds)


def xlsx():
    def sheet(*cells):
        row = "".join(f'<c r="{"AB"[n]}1" t="inlineStr"><is><t>{c}</t></is></c>' for n, c in enumerate(cells))
        return f'<worksheet xmlns="{SHEETS}"><sheetData><row r="1">{row}</row></sheetData></worksheet>'

    parts = {
        "_rels/.rels": relations(("officeDocument", "xl/workbook.xml")),
        "xl/_rels/workbook.xml.rels": relations(("worksheet", "one.xml"), ("worksheet", "two.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{SHEETS}" xmlns:r="{OFFICE}"><sheets><sheet name="Pools" sheetId="1" '
        'r:id="r0"/><sheet name="Yards" sheetId="2" r:id="r1"/></sheets></workbook>',
        "xl/one.xml": sheet("lease", "four"),
        "xl/two.xml": sheet("Kestrel"),
    }
    kinds = {"xl__workbook": "spreadsheetml.sheet.main", "xl__one": "spreadsheetml.worksheet"}
    return archive(parts, **kinds, xl__two="spreadsheetml.worksheet")


def epub():
    def page(body):
        return f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>{body}</body></html>'

    kind = "application/xhtml+xml"
    parts = {
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="c.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        "c.opf": '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><manifest>'
        f'<item id="a" href="a.xhtml" media-type="{kind}"/><item id="b" href="b.xhtml" media-type="{kind}"/></manifest>'
        '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>',
        "a.xhtml": page("<header>Yearly</header><h1>Kestrel</h1><p>A worker claims jobs.</p><footer>Members</footer>"),
        "b.xhtml": page("<p>One line.</p>"),
    }
    return archive(parts)


EML = b"From: a@example.com\nTo: b@example.com\nSubject: Lease pool\n\nOne line.\n\n> A worker claims.\n-- \nAnn Kestrel\n"
OTHERS = {
    "docx": (docx(), "Invoice Kestrel A worker claims jobs lease four"),
    "pptx": (pptx(), "Kestrel A worker claims jobs For members"),
    "xlsx": (xlsx(), "Pools lease four Yards Kestrel"),
    "epub": (epub(), "Yearly Kestrel A worker claims jobs Members One line"),
    "eml": (EML, "Lease pool One line A worker claims Ann Kestrel"),
}
FILES = {
    **{
        f"{name}.pdf": (pdf(*pages), " ".join(line for page in pages for _, _, line in page))
        for name, pages in PAGES.items()
    },
    **{f"others.{suffix}": found for suffix, found in OTHERS.items()},
}


@pytest.mark.parametrize("name", FILES)
def test_every_word_of_a_file_is_indexed(tmp_path, name):
    content, words = FILES[name]
    (tmp_path / name).write_bytes(content)
    with Index() as index:
        index.build(read_documents(tmp_path / name).documents)
        (document,) = index.documents()
    found = " ".join([document.title, *map(str, document.chunks)])
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
        "One",
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
