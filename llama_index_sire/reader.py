"""`SireReader`: the core's readers of files in the place of LlamaIndex's own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from llama_index.core.bridge.pydantic import ConfigDict
from llama_index.core.readers.base import BasePydanticReader, BaseReader
from llama_index.core.schema import Document

from sire_core.files.page_documents import page_documents, page_documents_of_bytes, with_title
from sire_core.files.readers import PROSE


class SireReader(BasePydanticReader):
    """Reads PDF, Word, PowerPoint, Excel, HTML, Markdown, mail, EPUB and others, with headings, tables and titles.

    `SimpleDirectoryReader("docs", file_extractor=SireReader.extractor()).load_data()` takes it for all these formats,
    `file_extractor={".docx": SireReader()}` for one. Office formats and PDF need `pip install "sire-rag[files]"`; no
    other package does. Each file is read in a process of its own with limits of time and memory.

    Attributes:
        pages: Give each page of a PDF as a document, with `page_label` and `page` (from 1) in its metadata. False gives
            whole documents, which a `SireRetriever` cuts at headings; its hits have their pages then, too.
    """

    model_config = ConfigDict(extra="forbid")

    pages: bool = True

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized pipelines."""
        return "SireReader"

    @classmethod
    def extractor(cls, *, pages: bool = True) -> dict[str, BaseReader]:
        """Readers by suffix, for `SimpleDirectoryReader(..., file_extractor=...)`."""
        return dict[str, BaseReader](dict.fromkeys(PROSE, cls(pages=pages)))

    def lazy_load_data(
        self, file: str | os.PathLike[str], extra_info: Mapping[str, Any] | None = None, fs: Any = None
    ) -> Iterable[Document]:
        """Read a file.

        Args:
            file: Its path.
            extra_info: Further metadata; of two values of a key these hold.
            fs: A file system of `fsspec` that has the file; None for this machine.

        Raises:
            CorpusError: It cannot be read.
        """
        if fs is None:
            documents = page_documents(Path(file), pages=self.pages)
        else:
            documents = page_documents_of_bytes(fs.cat_file(str(file)), str(file), pages=self.pages)
        for document in documents:
            metadata = {**with_title(document), **(extra_info or {})}
            if "file_path" in metadata:  # the same, as LlamaIndex has it
                metadata.pop("source", None)
            yield Document(id_=document.id, text=document.text, metadata=metadata)
