"""Files of any type as Markdown, by kreuzberg (extra `files`)."""

from __future__ import annotations

import re
from pathlib import Path

from sire_core.corpus.cleaning import clean_text
from sire_core.corpus.hostile import refuse_expanding
from sire_core.errors import CorpusError

__all__ = ["CONVERTED", "convert_file"]

CONVERTED = (
    *(".pdf", ".docx", ".doc", ".odt", ".rtf", ".pptx", ".ppt", ".odp", ".xlsx", ".xls", ".ods", ".csv", ".tsv"),
    *(".rst", ".org", ".tex", ".typ", ".epub", ".fb2", ".eml", ".msg", ".ipynb", ".xml", ".opml", ".djot"),
)
"""Suffixes that need the extra `files`."""

_UNDERLINE = re.compile(r"\n{3,}")


def convert_file(path: Path, max_bytes: int) -> tuple[str, str]:
    """Convert a file.

    Args:
        path: The file.
        max_bytes: Most bytes that its content and its text may have when they are unpacked.

    Returns:
        Its title (of the file's own metadata, empty for none) and its text as Markdown.

    Raises:
        CorpusError: The extra is missing, or the file cannot be converted; the message is the reason alone.
    """
    try:
        import kreuzberg
    except ImportError as error:
        raise CorpusError(
            f'files of type {path.suffix.lower()} need the extra "files": pip install "sire-rag[files]"'
        ) from error
    refuse_expanding(path, max_bytes)
    try:
        found = kreuzberg.extract_file_sync(str(path), config=kreuzberg.ExtractionConfig(output_format="markdown"))
    except Exception as error:  # every format has errors of its own; one bad file must not stop a folder
        raise CorpusError(f"cannot be converted: {' '.join(str(error).split())[:300]}") from error
    if len(found.content) > max_bytes:
        raise CorpusError(f"its text is longer than max_bytes={max_bytes:,}; raise max_bytes or split the file")
    text = clean_text(found.content).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise CorpusError("holds no text; a scanned document needs text recognition first")
    metadata = dict(found.metadata)
    title = metadata.get("title") or metadata.get("subject") or ""
    return clean_text(" ".join(str(title).split())), _UNDERLINE.sub("\n\n", text).strip()
