"""Documents cut by the splitters of LangChain and LlamaIndex, as their users cut them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sire_core.corpus.files import DEFAULT_MAX_BYTES, find_files, read_text
from sire_core.corpus.html import html_to_markdown
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.types import Document, Failure, Passage

__all__ = ["CHUNKINGS", "split_corpus"]

CHUNKINGS = ("files", "langchain", "llama-index", "none")
"""Ways to cut documents: as `sire index` does, by a framework's splitters, or not at all."""

_HEADERS = [("#" * level, f"Header {level}") for level in (1, 2, 3)]
_MARKDOWN = (".md", ".markdown", ".mdx")
_HTML = (".html", ".htm")


class _Text(NamedTuple):
    name: str
    text: str
    metadata: Mapping[str, Any]
    is_markdown: bool


def split_corpus(corpus: Path | Sequence[Document], by: str) -> tuple[tuple[Document, ...], tuple[Failure, ...]]:
    """Cut a corpus with the splitters of a framework.

    `langchain`: Markdown by `MarkdownHeaderTextSplitter` (three levels, headings kept), then everything by
    `RecursiveCharacterTextSplitter` (1,000 characters, 100 overlap); every piece is a document of its own with `source`
    and the headings in its metadata. `llama-index`: `SentenceSplitter` (512 tokens, 40 overlap); nodes are passages of
    their document.

    Args:
        corpus: A folder, of which HTML is read as text and every other file as it is; or documents with Markdown texts.
        by: `langchain` or `llama-index`.

    Returns:
        Documents cut into passages, and files that are no texts.

    Raises:
        ConfigurationError: The framework is not installed.
    """
    failures: list[Failure] = []
    if isinstance(corpus, Path):
        texts = list(_files(corpus, failures))
    else:
        texts = [
            _Text(d.id, d.text or "\n\n".join(p.text for p in d.passages), d.metadata, is_markdown=True) for d in corpus
        ]
    return tuple(_langchain(texts) if by == "langchain" else _llama_index(texts)), tuple(failures)


def _files(folder: Path, failures: list[Failure]) -> Iterator[_Text]:
    files, left = find_files([folder])
    failures += [Failure(file.name, reason) for file, reason in left]
    for file in files:
        suffix = file.path.suffix.lower()
        try:
            text = read_text(file.path, DEFAULT_MAX_BYTES, declares=suffix in _HTML)
        except CorpusError as error:
            failures.append(Failure(file.name, str(error)))
            continue
        text = html_to_markdown(text)[1] if suffix in _HTML else text
        yield _Text(file.name, text, {"source": file.name}, suffix in _MARKDOWN)


def _langchain(texts: Sequence[_Text]) -> Iterator[Document]:
    try:
        from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter
    except ImportError as error:
        raise ConfigurationError("--chunks langchain needs: pip install langchain-text-splitters") from error
    headings = MarkdownHeaderTextSplitter(_HEADERS, strip_headers=False)
    characters = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=100)
    for name, text, metadata, is_markdown in texts:
        sections = headings.split_text(text) if is_markdown else characters.create_documents([text])
        for number, piece in enumerate(characters.split_documents(sections)):
            own = f"{name}#{number}"
            about = {**metadata, **piece.metadata, "source": name}
            yield Document(own, metadata=about, chunks=(Passage(piece.page_content, id=own),))


def _llama_index(texts: Sequence[_Text]) -> Iterator[Document]:
    try:
        from llama_index.core.node_parser import SentenceSplitter
    except ImportError as error:
        raise ConfigurationError("--chunks llama-index needs: pip install llama-index-core") from error
    splitter = SentenceSplitter(chunk_size=512, chunk_overlap=40)
    for name, text, metadata, _ in texts:
        pieces = tuple(Passage(piece, id=f"{name}#{n}") for n, piece in enumerate(splitter.split_text(text)))
        if pieces:
            yield Document(name, metadata=metadata, chunks=pieces)
