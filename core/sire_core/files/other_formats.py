"""RTF and the old formats of Office by kreuzberg, and whatever our own readers cannot read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from sire_core.documents.markdown_writing import table, undo_escapes
from sire_core.documents.titles import first_title
from sire_core.files.conversion import note
from sire_core.files.raised_text import write_scripts
from sire_core.files.rich_text import CELL_PARAGRAPH, GAP, prepare_rtf

_CODE_PAGE, _CODE_PAGE_1252 = re.compile(rb"\x42\0\x02\0..", re.DOTALL), b"\x42\0\x02\0\xe4\x04"
"""Record of a workbook that names its encoding."""
_MIDNIGHT = re.compile(r"(?<=^\d{4}-\d\d-\d\d) 00:00:00$")
_BAR = re.compile(r"(?<!\\)\|")
_PICTURE = re.compile(r"!\[image\]\(image_\d+\.\w+\)")
_KINDS = {
    ".doc": "application/msword",
    ".xls": "application/vnd.ms-excel",
    ".ppt": "application/vnd.ms-powerpoint",
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".epub": "application/epub+zip",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".fb2": "application/x-fictionbook+xml",
    ".xml": "application/xml",
    ".opml": "application/xml+opml",
    ".ipynb": "application/x-ipynb+json",
}
"""Types by suffix; the name of a file may say another."""
SECOND_READER = frozenset(_KINDS) - {".doc", ".xls", ".ppt"}  # Formats that kreuzberg reads where our own reader cannot


def read_other(path: Path, suffix: str) -> tuple[str, str]:
    """Title and Markdown of a file by kreuzberg."""
    kind, content = _KINDS.get(suffix, "application/rtf"), path.read_bytes()
    content = prepare_rtf(content) if suffix == ".rtf" else content
    # Of slides what stands at the edge are the words of the master ("Click to edit Master title style").
    extracted = _extracted(content, kind, headers=suffix != ".ppt")
    metadata: dict[str, Any] = dict(extracted.metadata)
    title = first_title(metadata.get("title"), metadata.get("subject"))
    if suffix == ".doc":
        return title, str(extracted.content).replace("\n", "\n\n")
    if suffix == ".xls":
        return title, _sheets(metadata.get("sheet_names", ()), extracted.tables)
    return title, _written(extracted.content)


def read_with_edges(path: Path, suffix: str) -> str:
    """Markdown of a file by kreuzberg, with what stands at the edges of its pages."""
    return _written(_extracted(path.read_bytes(), _KINDS[suffix], headers=True).content)


def _extracted(content: bytes, kind: str, *, headers: bool) -> Any:
    """A file as kreuzberg reads it."""
    # Before 4.8 there is no ContentFilterConfig.
    from kreuzberg import ContentFilterConfig, ExtractionConfig, extract_bytes_sync

    # What stands at the edge of a page is taken for a running header, and a title is there too: all of it stays.
    everything = ContentFilterConfig(
        include_headers=headers, include_footers=True, include_watermarks=True, strip_repeating_text=False
    )
    # Only the plain text of a .doc has its paragraphs.
    form = "plain" if kind == _KINDS[".doc"] else "markdown"
    config = ExtractionConfig(output_format=form, content_filter=everything)
    config.max_archive_depth = 0  # files in files: one of them may expand without end
    try:
        return extract_bytes_sync(content, kind, config=config)
    except Exception as error:
        latin = _CODE_PAGE.sub(_CODE_PAGE_1252, content, count=1)
        if "Codepage" not in str(error) or latin == content:
            raise
        note("its letters are in an unknown encoding, read as cp1252")
        return extract_bytes_sync(latin, kind, config=config)


def rtf_text(raw: bytes) -> str:
    """Markdown of an RTF text that another file includes."""
    from kreuzberg import ExtractionConfig, extract_bytes_sync

    config = ExtractionConfig(output_format="markdown")
    return _written(extract_bytes_sync(prepare_rtf(raw), "application/rtf", config=config).content)


def _written(content: str) -> str:
    """Markdown without names of pictures and marks of our own."""
    text = undo_escapes(write_scripts(_PICTURE.sub("", content.replace(GAP, ""))))
    return _with_rows_of_cells(text) if CELL_PARAGRAPH in text else text


def _with_rows_of_cells(text: str) -> str:
    """Markdown whose cells have paragraphs, in the rows for which these stand."""
    lines: list[str] = []
    for is_table, group in groupby(text.split("\n"), lambda line: line.startswith("|")):
        if is_table:
            rows = [[cell.strip().replace("\\|", "|") for cell in _BAR.split(line)[1:-1]] for line in group]
            paragraphs = [[cell.replace(CELL_PARAGRAPH, "\n\n") for cell in row] for row in (rows[0], *rows[2:])]
            lines.append(table(paragraphs))
        else:
            lines += (line.replace(CELL_PARAGRAPH, "\n\n") for line in group)
    return "\n".join(lines)


def _sheets(names: Sequence[str], tables: Sequence[Any]) -> str:
    """Sheets as tables without empty rows and columns, days without the time that they do not have."""
    rows = ([[_MIDNIGHT.sub("", cell) for cell in row] for row in grid.cells] for grid in tables)
    filled = [(grid.page_number, text) for grid, cells in zip(tables, rows, strict=True) if (text := table(cells))]
    return "\n\n".join(f"## {names[sheet - 1]}\n\n{text}" for sheet, text in filled)
