"""Compares converters of files to Markdown, and what can be found in each format.

    pip install "markitdown[docx,pptx,pdf]" mammoth pdfplumber trafilatura html2text markdownify
    python benchmarks/converters.py   # words lost and added, marks kept, seconds, memory, size, licence

The documents are those of SIRE_DATA/firms: the same 146 as Markdown, HTML, Word, PowerPoint and PDF. Words are those of
the Markdown as `markdown-it-py` renders it; numbers below 100 are not counted, since they may be those of lists. A
converter that is not installed is left out. Each row runs in a process of its own.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import resource
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

FIRMS = Path(os.environ.get("SIRE_DATA", "../shared/data")) / "firms"
SHOWN = 5


def sire(path: Path) -> str:
    """What this package reads."""
    from sire_core.files.readers import read_documents

    return read_documents(path).documents[0].text


def markitdown(path: Path) -> str:
    """MarkItDown of Microsoft."""
    from markitdown import MarkItDown

    return str(MarkItDown().convert(str(path)).text_content)


def kreuzberg(path: Path) -> str:
    """Kreuzberg, with all that it can keep."""
    from kreuzberg import ExtractionConfig, extract_file_sync

    return str(extract_file_sync(str(path), config=ExtractionConfig(output_format="markdown")).content)


def mammoth(path: Path) -> str:
    """Mammoth, Word to Markdown."""
    import mammoth as library

    with path.open("rb") as file:
        return str(library.convert_to_markdown(file).value)


def pdfplumber(path: Path) -> str:
    """Plain text of pdfplumber."""
    import pdfplumber as library

    with library.open(path) as file:
        return "\n\n".join(page.extract_text() or "" for page in file.pages)


def pypdfium2(path: Path) -> str:
    """Plain text of PDFium, which our own reader begins with."""
    import pypdfium2 as library

    return "\n\n".join(page.get_textpage().get_text_bounded() for page in library.PdfDocument(path))


def trafilatura(path: Path) -> str:
    """Trafilatura, which looks for the main text of a page."""
    import trafilatura as library

    return library.extract(path.read_text(encoding="utf-8"), output_format="markdown", include_tables=True) or ""


def html2text(path: Path) -> str:
    """Markdown by html2text (GPL)."""
    import html2text as library

    return str(library.html2text(path.read_text(encoding="utf-8"), bodywidth=0))


def markdownify(path: Path) -> str:
    """Markdown by markdownify over BeautifulSoup."""
    import markdownify as library

    return str(library.markdownify(path.read_text(encoding="utf-8"), heading_style="ATX"))


CONVERTERS: dict[str, tuple[Callable[[Path], str], ...]] = {
    "html": (sire, markitdown, kreuzberg, trafilatura, html2text, markdownify),
    "docx": (sire, markitdown, kreuzberg, mammoth),
    "pptx": (sire, markitdown, kreuzberg),
    "pdf": (sire, markitdown, kreuzberg, pdfplumber, pypdfium2),
}
LIBRARIES = {"docx": "python-docx", "pptx": "python-pptx", "pdf": "pypdfium2"}
"""What our own readers use; the standard library for HTML."""


def words(text: str) -> list[str]:
    """Words in small letters, without marks of Markdown and addresses of links."""
    text = re.sub(r"\]\([^()\s]*\)", "] ", re.sub(r"\\([^\w\s])", r"\1", html.unescape(text)))
    text = unicodedata.normalize("NFKC", text)
    return [word for word in re.findall(r"[^\W_]+", text.lower()) if not (word.isdigit() and len(word) < 3)]


def marked(text: str, pattern: str) -> list[tuple[str, ...]]:
    """Words of the lines with a mark, once for each line."""
    return [found for line in text.split("\n") if re.match(pattern, line) and (found := tuple(words(line)[:SHOWN]))]


def kept(reference: str, text: str, pattern: str) -> float:
    """Share of the marked lines of the reference that are marked, too."""
    wanted = Counter(marked(reference, pattern))
    return 100 * sum((wanted & Counter(marked(text, pattern))).values()) / max(1, sum(wanted.values()))


def size_of(name: str, seen: set[str]) -> int:
    """Bytes of an installed distribution and of what it needs."""
    name = re.split(r"[^\w.-]", name)[0].lower()
    if name in seen:
        return 0
    seen.add(name)
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return 0
    paths = [Path(str(file.locate())) for file in found.files or ()]
    own = sum(path.stat().st_size for path in paths if path.is_file())
    return own + sum(size_of(need, seen) for need in found.requires or () if "extra ==" not in need)


def licence_of(name: str) -> str:
    """What a distribution says of its licence, shortly."""
    about = metadata.metadata(name)
    classes = [value.rpartition(":: ")[2] for value in about.get_all("Classifier") or () if value.startswith("License")]
    return (about.get("License-Expression") or next(iter(classes), None) or about.get("License") or "?").split("\n")[0]


def row(name: str, kind: str) -> dict[str, object]:
    """Convert all documents of a format with one converter, in this process."""
    from markdown_it import MarkdownIt

    convert = next(converter for converter in CONVERTERS[kind] if converter.__name__ == name)
    paths = sorted((FIRMS / kind).rglob(f"*.{kind}"))
    convert(paths[0])  # what is loaded once does not count
    start = time.process_time()
    texts = [convert(path) for path in paths]
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    markdown = [(FIRMS / "md" / path.relative_to(FIRMS / kind)).with_suffix(".md") for path in paths]
    sources = [path.read_text(encoding="utf-8") for path in markdown]
    render = MarkdownIt("commonmark").enable("table").render
    lost, added = Counter[int](), Counter[int]()
    total = 0
    for number, (source, text) in enumerate(zip(sources, texts, strict=True)):
        expected, found = Counter(words(re.sub(r"<[^>]+>", " ", render(source)))), Counter(words(text))
        lost[number], added[number] = (expected - found).total(), (found - expected).total()
        total += expected.total()
    reference, text = "\n".join(sources), "\n".join(texts)
    library = LIBRARIES.get(kind, "") if name == "sire" else name
    return {
        "format": kind,
        "converter": f"sire ({library or 'html.parser'})" if name == "sire" else name,
        f"lost of {total:,} words": lost.total(),
        "added": added.total(),
        "headings %": round(kept(reference, text, r"#+ ")),
        "items %": round(kept(reference, text, r"\s*([-*+•]|\d+[.)]) ")),
        "rows %": round(kept(reference, text, r"\|")),
        "CPU s": round(seconds, 2),
        "memory MB": memory,
        "installed MB": round(size_of(library, set()) / 1e6, 1) if library else 0.0,
        "licence": licence_of(library) if library else "PSF",
    }


def show(rows: list[dict[str, object]]) -> None:
    """Print a Markdown table."""
    print(f"| {' | '.join(rows[0])} |\n|{'---|' * len(rows[0])}")
    for values in rows:
        print(f"| {' | '.join(map(str, values.values()))} |")


def main() -> None:
    """Print the table that was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", 1)[0])
    parser.add_argument("--row", nargs=2, metavar=("CONVERTER", "FORMAT"), help="one row of the comparison, as JSON")
    options = parser.parse_args()
    if options.row:
        print(json.dumps(row(*options.row)))
    else:
        rows = []
        for kind, converters in CONVERTERS.items():
            for converter in converters:
                command = [sys.executable, __file__, "--row", converter.__name__, kind]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    print(
                        f"{converter.__name__} on {kind}: {done.stderr.strip().rpartition(chr(10))[2]}", file=sys.stderr
                    )
                else:
                    rows.append(json.loads(done.stdout.strip().rpartition("\n")[2]))
        show(rows)


if __name__ == "__main__":
    main()
