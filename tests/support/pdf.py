"""PDF files to read."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

__all__ = ["drawn_pdf", "form_pdf", "one_line_pdf", "pdf", "tagged_pdf"]

_FONTS = b"<< /Font << /F1 5 0 R >> >>"


def one_line_pdf(text: str) -> bytes:
    """A page with one line of text, as the PDF standard has it at its smallest."""
    return _file(_page(f"BT /F1 12 Tf 60 760 Td ({text}) Tj ET".encode("latin-1")))


def drawn_pdf(operators: str) -> bytes:
    """A page with what these operators draw; `/F1` is Helvetica."""
    return _file(_page(operators.encode("latin-1")))


def form_pdf(labels: Sequence[tuple[int, int, str]], annotation: bytes) -> bytes:
    """A page with words `(x, y, words)`, and one field or note, whose looks are the empty sixth object."""
    words = "".join(f"BT /F1 12 Tf {x} {y} Td ({text}) Tj ET " for x, y, text in labels).encode("latin-1")
    looks = b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 0 >>\nstream\n\nendstream"
    form = b" /AcroForm << /Fields [7 0 R] /DR %s /DA (/F1 12 Tf) >>" % _FONTS
    return _file([*_page(words, form, b" /Annots [7 0 R]"), looks, b"<< /Type /Annot /P 3 0 R %s >>" % annotation])


def tagged_pdf(lines: Sequence[str], *, root: bytes = b"StructTreeRoot") -> bytes:
    """A page with one paragraph, which the tree of the file's structure names, as browsers print pages."""
    shown = "".join(f"({line}) Tj 0 -16 Td " for line in lines)
    stream = f"/P << /MCID 0 >> BDC BT /F1 12 Tf 60 760 Td {shown}ET EMC".encode("latin-1")
    tree = [
        b"<< /Type /%s /K 7 0 R /ParentTree << /Nums [0 [8 0 R]] >> >>" % root,
        b"<< /Type /StructElem /S /Document /P 6 0 R /K [8 0 R] >>",
        b"<< /Type /StructElem /S /P /P 7 0 R /Pg 3 0 R /K [0] >>",
    ]
    marked = b" /MarkInfo << /Marked true >> /%s 6 0 R" % root
    return _file([*_page(stream, marked, b" /StructParents 0"), *tree])


def pdf(
    *pages: Sequence[tuple[int, int, int, int, str]],
    fonts: Sequence[str] = ("Helvetica", "Helvetica-Bold"),
    repeat: int = 1,
    title: str = "",
    drawn: str = "",
) -> bytes:
    """Pages of lines `(font, size, x, y, words)`, the font by its number among `fonts`, and of what else is drawn."""
    named = b" ".join(b"/F%d << /Type/Font/Subtype/Type1/BaseFont/%s >>" % (n, f.encode()) for n, f in enumerate(fonts))
    streams = [
        b"".join(
            b"BT /F%d %d Tf %d %d Td (%s) Tj ET\n" % (f, size, x, y, words.encode()) for f, size, x, y, words in page
        )
        + drawn.encode()
        for page in pages
    ]
    kids = b" ".join(b"%d 0 R" % (3 + len(pages) + n % len(pages)) for n in range(repeat * len(pages)))
    parts = [b"<< /Type/Catalog/Pages 2 0 R >>", b"<< /Type/Pages/Count %d/Kids[%s] >>" % (repeat * len(pages), kids)]
    parts += [
        b"<< /Filter/FlateDecode/Length %d >>stream\n%s\nendstream" % (len(z), z) for z in map(zlib.compress, streams)
    ]
    parts += [
        b"<< /Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R/Resources<</Font<<%s>>>> >>" % (3 + n, named)
        for n in range(len(pages))
    ]
    parts.append(b"<< /Title (%s) >>" % title.encode())
    made = b"%PDF-1.4\n" + b"".join(b"%d 0 obj\n%s\nendobj\n" % (n, part) for n, part in enumerate(parts, start=1))
    return made + b"trailer << /Root 1 0 R /Info %d 0 R >>\n%%%%EOF\n" % len(parts)


def _page(stream: bytes, catalog: bytes = b"", page: bytes = b"") -> list[bytes]:
    return [
        b"<< /Type /Catalog /Pages 2 0 R%s >>" % catalog,
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 842] /Contents 4 0 R /Resources %s%s >>" % (_FONTS, page),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]


def _file(objects: Sequence[bytes]) -> bytes:
    out, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return out + head + table + tail
