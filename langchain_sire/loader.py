"""`SireLoader` and `SireParser`: the core's readers of files as LangChain's loaders."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Iterator
from pathlib import Path

from langchain_core.document_loaders import BaseBlobParser, BaseLoader, Blob
from langchain_core.documents import Document

from sire_core.files.page_documents import page_documents, page_documents_of_bytes, with_title
from sire_core.types import Document as SireDocument


class SireLoader(BaseLoader):
    """Reads PDF, Word, PowerPoint, Excel, HTML, Markdown, mail, EPUB and others, with headings, tables and titles.

    Also as `DirectoryLoader("docs", loader_cls=SireLoader)`. Office formats and PDF need
    `pip install "sire-rag[files]"`; no other package does. Files are read in a process of its own with limits of time
    and memory; what cannot be read of a folder is logged.

    Args:
        path: A file or folder.
        pages: Give each page of a PDF as a document, with `page` (from 1) and `page_label` in its metadata. False gives
            whole documents, which a `SireRetriever(chunker="sentences")` cuts at headings; its hits have their pages
            then, too.

    Raises:
        CorpusError: Nothing could be read.
    """

    def __init__(self, path: str | os.PathLike[str], *, pages: bool = True) -> None:
        self._path = Path(path)
        self._pages = pages

    def lazy_load(self) -> Iterator[Document]:
        """Yield documents with `source` (their path), `title` and pages in the metadata."""
        yield from map(_to_langchain, page_documents(self._path, pages=self._pages))


class SireParser(BaseBlobParser):
    """Reads files that something else fetches, as `SireLoader` does: `GenericLoader(blob_loader, SireParser())`.

    Args:
        pages: See `SireLoader`.
    """

    def __init__(self, *, pages: bool = True) -> None:
        self._pages = pages

    def lazy_parse(self, blob: Blob) -> Iterator[Document]:
        """Yield documents with the metadata of the blob; a blob without a path is read by its MIME type."""
        if blob.data is None and blob.path is not None:
            documents = page_documents(Path(blob.path), pages=self._pages)
        else:
            name = str(blob.source or f"text{mimetypes.guess_extension(blob.mimetype or 'text/plain') or ''}")
            documents = page_documents_of_bytes(blob.as_bytes(), name, pages=self._pages)
        for document in documents:
            converted = _to_langchain(document)
            converted.metadata |= blob.metadata
            yield converted


def _to_langchain(document: SireDocument) -> Document:
    return Document(id=document.id, page_content=document.text, metadata=with_title(document))
