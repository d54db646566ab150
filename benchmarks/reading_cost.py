"""Bounds what reading costs: CPU seconds and memory per megabyte of text, for each format.

    python benchmarks/reading_cost.py [FORMAT ...]

A file with a megabyte of text is made for each format, by the library of the format where there is one (`.doc`, `.xls`
and `.ppt` by LibreOffice), and read in a process of its own. A small one is read in another, and its figures are taken
off: what is loaded once does not count.
"""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
import tempfile
import textwrap
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

KINDS = (
    *("txt", "md", "html", "rst", "docx", "pptx", "xlsx", "pdf", "odt", "ods", "epub"),
    *("fb2", "xml", "ipynb", "eml", "csv", "jsonl", "py", "tex", "1"),
    *("odp", "opml", "rtf", "msg", "doc", "xls", "ppt"),
)


def package(**members: str) -> bytes:
    """A zip archive."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return raw.getvalue()


def office(kind: str, paragraphs: list[str]) -> bytes:
    """A file of Office, made by the library of its format."""
    raw = io.BytesIO()
    if kind == "docx":
        made = importlib.import_module("docx").Document()
        for text in paragraphs:
            made.add_paragraph(text)
    elif kind == "pptx":
        made = importlib.import_module("pptx").Presentation()
        for text in paragraphs:
            made.slides.add_slide(made.slide_layouts[1]).placeholders[1].text = text
    else:
        made = importlib.import_module("openpyxl").Workbook()
        for text in paragraphs:
            made.active.append(text.split(". "))
    made.save(raw)
    return raw.getvalue()


def pdf(paragraphs: list[str]) -> bytes:
    """Pages of 40 lines, without a table of their places, which readers make again."""
    lines = [line for text in paragraphs for line in textwrap.wrap(text, 90)]
    pages = [lines[start : start + 40] for start in range(0, len(lines), 40)]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    parts = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Count {len(pages)}/Kids[{kids}]>>"]
    parts.append("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    for number, page in enumerate(pages):
        text = "\n".join(f"BT /F1 10 Tf 50 {740 - 14 * row} Td ({line}) Tj ET" for row, line in enumerate(page))
        box = "/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>"
        parts.append(f"<</Type/Page/Parent 2 0 R{box}/Contents {5 + 2 * number} 0 R>>")
        parts.append(f"<</Length {len(text)}>>stream\n{text}\nendstream")
    objects = "".join(f"{number} 0 obj\n{part}\nendobj\n" for number, part in enumerate(parts, start=1))
    return f"%PDF-1.4\n{objects}trailer<</Root 1 0 R>>\n%%EOF".encode()


def older(kind: str, paragraphs: list[str]) -> bytes:
    """A file as older programs of Office save it, by LibreOffice."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"sample.{kind}x")
        path.write_bytes(office(path.suffix[1:], paragraphs))
        profile = f"-env:UserInstallation=file://{folder}/profile"
        subprocess.run(
            ["soffice", profile, "--headless", "--convert-to", kind, "--outdir", folder, str(path)],
            check=True,
            capture_output=True,
        )
        return path.with_suffix(f".{kind}").read_bytes()


def outlook(text: str) -> bytes:
    """A mail of Outlook, by what the tests make them with."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    made: bytes = importlib.import_module("tests.support.outlook").outlook_mail("A", text, sender=("B", "b@c.example"))
    return made


def tagged(paragraphs: list[str], tag: str, around: str) -> str:
    """Paragraphs as elements."""
    return around.replace("*", "".join(f"<{tag}>{text}</{tag}>" for text in paragraphs))


def sample(kind: str, paragraphs: list[str]) -> bytes:
    """A file of a format with the paragraphs."""
    plain = "\n\n".join(paragraphs)
    page = tagged(paragraphs, "p", "<html><body>*</body></html>")
    spine = '<package><manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>'
    opened = (
        '<o:document-content xmlns:o="o" xmlns:t="t" xmlns:b="b" xmlns:d="d"><o:body>*</o:body></o:document-content>'
    )
    cells = [f"<b:table-cell><t:p>{text}</t:p></b:table-cell>" for text in paragraphs]
    slides = [f"<d:frame><d:text-box><t:p>{text}</t:p></d:text-box></d:frame>" for text in paragraphs]
    sheet = opened.replace("*", "<b:table>*</b:table>")
    made: dict[str, Callable[[], bytes | str]] = {
        **dict.fromkeys(("docx", "pptx", "xlsx"), lambda: office(kind, paragraphs)),
        **dict.fromkeys(("doc", "ppt", "xls"), lambda: older(kind, paragraphs)),
        "rtf": lambda: "{\\rtf1 " + "\\par ".join(paragraphs) + "{\\deleted gone}}",
        "msg": lambda: outlook(plain),
        "odp": lambda: package(content__xml=tagged(slides, "d:page", opened)),
        "opml": lambda: (
            tagged(paragraphs, "outline", "<opml><body>*</body></opml>")
            .replace("<outline>", '<outline text="')
            .replace("</outline>", '"/>')
        ),
        "html": lambda: page,
        "pdf": lambda: pdf(paragraphs),
        "odt": lambda: package(content__xml=tagged(paragraphs, "t:p", opened)),
        "ods": lambda: package(content__xml=tagged(cells, "b:table-row", sheet)),
        "epub": lambda: package(
            **{"META-INF/container__xml": '<c><rootfile full-path="c"/></c>', "c": spine, "a__xhtml": page}
        ),
        "fb2": lambda: tagged(paragraphs, "p", "<F><body><section>*</section></body></F>"),
        "xml": lambda: tagged(paragraphs, "item", "<list>*</list>"),
        "ipynb": lambda: json.dumps({"cells": [{"cell_type": "markdown", "source": text} for text in paragraphs]}),
        "eml": lambda: f"From: a@b.example\nSubject: Sample\n\n{plain}",
        "csv": lambda: "\n".join(",".join(text.split(". ")) for text in paragraphs),
        "jsonl": lambda: "\n".join(json.dumps({"id": str(n), "text": text}) for n, text in enumerate(paragraphs)),
        "py": lambda: "\n\n".join(f'def f{n}():\n    """{text}"""' for n, text in enumerate(paragraphs)),
        "1": lambda: ".TH A 1\n.SH B\n" + "\n.PP\n".join(paragraphs),
    }
    content = made.get(kind, lambda: plain)()
    return content if isinstance(content, bytes) else content.encode()


def cost(kind: str) -> list[object]:
    """A row of the table."""
    text = (
        "A worker claims one job at a time and renews its lease. Long jobs write where they stand (see 4.2), so that "
    )
    paragraphs = [f"Step {number}. {text * 4}nothing is lost" for number in range(1, 2_300)]
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"sample.{kind}")
        for many in (paragraphs[:20], paragraphs):
            path.write_bytes(sample(kind, many))
            command = [sys.executable, __file__, "--read", str(path)]
            runs.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        size = path.stat().st_size / 1e6
    difference = {name: runs[1][name] - runs[0][name] for name in runs[0]}
    read = difference["characters"] / 1e6
    return [
        kind,
        round(size, 2),
        round(read, 2),
        round(difference["seconds"] / read, 2),
        round(difference["memory"] / read),
    ]


def measure_reading(path: Path) -> dict[str, float]:
    """CPU seconds, peak memory in MB and characters of reading a file, in this process."""
    from sire_core.files.readers import read_documents

    start = time.process_time()
    characters = sum(len(document.text) for document in read_documents(path).documents)
    # Peak of this program alone; what `getrusage` tells begins with that of the program that started it.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    used = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return {"seconds": time.process_time() - start, "memory": used, "characters": characters}


def main() -> None:
    """Print a table."""
    if sys.argv[1:2] == ["--read"]:
        print(json.dumps(measure_reading(Path(sys.argv[2]))))
        return
    print("| format | file, MB | text, MB | CPU s per MB of text | memory, MB per MB of text |\n|---|--:|--:|--:|--:|")
    for kind in sys.argv[1:] or KINDS:
        print(f"| {' | '.join(map(str, cost(kind)))} |", flush=True)


if __name__ == "__main__":
    main()
