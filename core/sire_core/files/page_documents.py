"""`page_documents`: files as documents for the readers of LangChain and LlamaIndex, page by page."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from sire_core.files.readers import read_documents
from sire_core.types import Document

_PAGE_END = "\f"
_MAX_NAME_CHARS = 60
_logger = logging.getLogger(__name__)


def page_documents(path: Path, *, pages: bool, source: str = "") -> Iterator[Document]:
    """Read a file, or a folder of files; with `pages` each page as a document. `CorpusError` if nothing could be read.

    Ids and `source` in the metadata are paths as they were given, unlike those of `read_documents`: the readers of a
    framework are called file by file, and files of two folders may have one name. What cannot be read of a folder is
    logged. `source` is the path of the file that `path` is a copy of.
    """
    loaded = read_documents(path)
    for failure in (*loaded.failures, *loaded.notes):
        _logger.warning("%s: %s", failure.where, failure.reason)
    is_folder = path.is_dir()
    for document in loaded.drain():
        name = str(document.metadata["source"])
        location = str(path / name) if is_folder else source or str(path)
        metadata = {**document.metadata, "source": location}
        is_whole_file = document.id == name
        read = replace(document, id=location if is_whole_file else document.id, metadata=metadata)
        has_pages = _PAGE_END in document.text or location.lower().endswith(".pdf")
        yield from _pages_of(read) if pages and has_pages else [read]


def page_documents_of_bytes(content: bytes, name: str, *, pages: bool) -> Iterator[Document]:
    """Read the content of a file that is not on this machine, by a copy; `name` is its path there."""
    with tempfile.TemporaryDirectory(prefix="sire-read-") as folder:
        bare = PurePath(name.replace("\0", "")).name
        is_name = bare not in ("", "..") and len(bare) <= _MAX_NAME_CHARS
        copy = Path(folder, bare if is_name else f"file{PurePath(bare[-_MAX_NAME_CHARS:]).suffix}")
        copy.write_bytes(content)
        yield from page_documents(copy, pages=pages, source=name)


def with_title(document: Document) -> dict[str, Any]:
    """Metadata of a document with its title."""
    return {**document.metadata, **({"title": document.title} if document.title else {})}


def _pages_of(document: Document) -> Iterator[Document]:
    for number, text in enumerate(document.text.split(_PAGE_END), 1):
        if text.strip():
            about = {**document.metadata, "page": number, "page_label": str(number)}
            yield replace(document, id=f"{document.id}#page={number}", text=text.strip("\n"), metadata=about, blocks=())
