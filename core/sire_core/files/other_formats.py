"""RTF and the old formats of Office by kreuzberg, and whatever our own readers cannot read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sire_core.documents.markdown_writing import table, undo_escapes
from sire_core.documents.titles import first_title
from sire_core.files.raised_text import write_scripts
from sire_core.files.rich_text import GAP, prepare_rtf

_MIDNIGHT = re.compile(r"(?<=^\d{4}-\d\d-\d\d) 00:00:00$")
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
SECOND_READER = frozenset(_KINDS) - {".doc", ".xls", ".ppt"}
"""Formats that kreuzberg reads where our own reader cannot."""


def read_other(path: Path, suffix: str) -> tuple[str, str]:
    """Title and Markdown of a file by kreuzberg."""
    # Before 4.8 there is no ContentFilterConfig.
    from kreuzberg import ContentFilterConfig, ExtractionConfig, extract_bytes_sync, extract_file_sync

    # What stands at the edge of a page is taken for a running header, and a title is there too: all of it stays. Of
    # slides it is the words of the master ("Click to edit Master title style").
    everything = ContentFilterConfig(
        include_headers=suffix != ".ppt", include_footers=True, include_watermarks=True, strip_repeating_text=False
    )

    # Only the plain text of a .doc has its paragraphs.
    form = "plain" if suffix == ".doc" else "markdown"
    config = ExtractionConfig(output_format=form, content_filter=everything)
    config.max_archive_depth = 0  # files in files: one of them may expand without end
    if suffix == ".rtf":
        extracted = extract_bytes_sync(prepare_rtf(path.read_bytes()), "application/rtf", config=config)
    else:
        extracted = extract_file_sync(str(path), mime_type=_KINDS.get(suffix), config=config)
    metadata: dict[str, Any] = dict(extracted.metadata)
    title = first_title(metadata.get("title"), metadata.get("subject"))
    if suffix == ".doc":
        return title, str(extracted.content).replace("\n", "\n\n")
    if suffix == ".xls":
        return title, _sheets(metadata.get("sheet_names", ()), extracted.tables)
    return title, _written(extracted.content)


def rtf_text(raw: bytes) -> str:
    """Markdown of an RTF text that another file includes."""
    from kreuzberg import ExtractionConfig, extract_bytes_sync

    config = ExtractionConfig(output_format="markdown")
    return _written(extract_bytes_sync(prepare_rtf(raw), "application/rtf", config=config).content)


def _written(content: str) -> str:
    """Markdown without names of pictures and marks of our own."""
    return undo_escapes(write_scripts(_PICTURE.sub("", content.replace(GAP, ""))))


def _sheets(names: Sequence[str], tables: Sequence[Any]) -> str:
    """Sheets as tables without empty rows and columns, days without the time that they do not have."""
    rows = ([[_MIDNIGHT.sub("", cell) for cell in row] for row in grid.cells] for grid in tables)
    filled = [(grid.page_number, text) for grid, cells in zip(tables, rows, strict=True) if (text := table(cells))]
    return "\n\n".join(f"## {names[sheet - 1]}\n\n{text}" for sheet, text in filled)
