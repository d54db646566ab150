"""Tables and images as passages of their own: the nodes of a multimodal graph (IIER section 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from sire_core.documents.chunker import SentenceChunker
from sire_core.documents.markdown_blocks import Block, markdown_blocks
from sire_core.errors import ModelError
from sire_core.protocols import Prompt
from sire_core.types import Document, Failure, chunk_id

if TYPE_CHECKING:
    import asyncio

    from sire_core.protocols import LanguageModel

MEDIA = "media"
"""Key of a document's metadata under which its tables and images are listed: `{"chunk": id of the passage, "kind":
"table" or "image", "reference": where an image is, "described_by": "model", "alt text" or "file name"}`."""

Captions = Mapping[tuple[str, str], str]
"""Descriptions of images by a model, by document id and reference."""


@dataclass(frozen=True, slots=True)
class MediaCorpus:
    """Documents whose tables and images are passages, and what became of them.

    Attributes:
        documents: In the order given; those without tables and images as they were.
        tables: Tables found.
        images: Images found.
        described: Images that a model described; the text of the others is their alternative text or their file name.
        failures: Images that a model should have described and could not, and why.
    """

    documents: tuple[Document, ...]
    tables: int = 0
    images: int = 0
    described: int = 0
    failures: tuple[Failure, ...] = ()


def split_media(
    documents: Sequence[Document], chunker: SentenceChunker | None = None, captions: Captions | None = None
) -> MediaCorpus:
    """Make every Markdown table and image a passage of its own."""
    splitter = _Splitter(chunker or SentenceChunker(), captions or {})
    split_documents = tuple(splitter.split(document) for document in documents)
    return MediaCorpus(split_documents, splitter.tables, splitter.images, splitter.described)


def media_of(chunk: str, metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Metadata of the table or image that a passage (a chunk or a unit of one) is; None for text."""
    listed = metadata.get(MEDIA)
    if not isinstance(listed, (list, tuple)):
        return None
    return next((entry for entry in listed if isinstance(entry, Mapping) and entry.get("chunk") == chunk), None)


class _Splitter:
    """Cuts documents and counts what it finds."""

    def __init__(self, chunker: SentenceChunker, captions: Captions) -> None:
        self._chunker = chunker
        self._captions = captions
        self.tables = self.images = self.described = 0

    def split(self, document: Document) -> Document:
        """The document with its tables and images as passages; the same object where there are none."""
        blocks = () if document.chunks else markdown_blocks(document.text)
        if all(block.kind == "text" for block in blocks):
            return document
        pieces: list[tuple[str, dict[str, str]]] = []
        for block in blocks:
            if block.kind == "text":
                pieces += [(text, {}) for text in self._chunker.split(block.text)]
            elif block.kind == "table":
                self.tables += 1
                pieces += [(text, {"kind": "table"}) for text in self._chunker.split(block.text)]
            else:
                pieces.append(self._image(document.id, block))
        entries = [
            {"chunk": chunk_id(document.id, position, document.title, text), **entry}
            for position, (text, entry) in enumerate(pieces)
            if entry
        ]
        metadata = {**document.metadata, MEDIA: entries}
        return replace(document, text="", chunks=tuple(text for text, _ in pieces), metadata=metadata)

    def _image(self, document: str, block: Block) -> tuple[str, dict[str, str]]:
        self.images += 1
        caption = self._captions.get((document, block.reference), "")
        self.described += bool(caption)
        described_by = "model" if caption else "alt text" if block.text else "file name"
        name = PurePosixPath(block.reference).stem.replace("-", " ").replace("_", " ")
        text = f"Image: {block.text or name}" + (f"\n{caption}" if caption else "")
        return text, {"kind": "image", "reference": block.reference, "described_by": described_by}


_INSTRUCTIONS = (
    "The image stands in a document; the data is its title and the text given with the image. Say in two to four "
    "sentences what the image shows: the names, numbers and relations that one can read in it. Say nothing that it "
    "does not show."
)
_LARGEST = 20_000_000
_TOKENS = 300


async def describe_images(
    documents: Sequence[Document],
    model: LanguageModel | None,
    folder: str | Path,
    chunker: SentenceChunker | None = None,
    workers: int = 4,
) -> MediaCorpus:
    """`split_media`, with images described by a model that can see."""
    if model is None:
        return split_media(documents, chunker)
    import asyncio

    gate = asyncio.Semaphore(workers)
    wanted = {(document.id, reference): (document, alternative) for document, reference, alternative in _of(documents)}
    described = await asyncio.gather(
        *(
            _describe(document, reference, alternative, model, Path(folder), gate)
            for (_, reference), (document, alternative) in wanted.items()
        )
    )
    captions = {image: text for image, text in zip(wanted, described, strict=True) if isinstance(text, str)}
    failures = tuple(failure for failure in described if isinstance(failure, Failure))
    return replace(split_media(documents, chunker, captions), failures=failures)


async def _describe(
    document: Document, reference: str, alternative: str, model: LanguageModel, folder: Path, gate: asyncio.Semaphore
) -> str | Failure:
    """A model's description of one image, or the reason why there is none."""
    import asyncio

    try:
        image = await asyncio.to_thread(_read, folder, document.id, reference)
        async with gate:
            prompt = Prompt(_INSTRUCTIONS, f"{document.title}\n{alternative}", images=(image,))
            answer = await model.complete(prompt, max_tokens=_TOKENS)
    except (OSError, ModelError) as error:
        return Failure(f"{document.id}: {reference}", str(error))
    return " ".join(answer.text.split())


def _of(documents: Sequence[Document]) -> Iterator[tuple[Document, str, str]]:
    for document in documents:
        for block in () if document.chunks else markdown_blocks(document.text):
            if block.kind == "image":
                yield document, block.reference, block.text


def _read(folder: Path, document: str, reference: str) -> bytes:
    """Bytes of an image below a folder."""
    if "://" in reference or reference.startswith("data:"):
        raise OSError("not a file; its alternative text is used")
    root = folder.resolve()
    for candidate in ((root / document).parent / reference, root / reference):
        file = candidate.resolve()
        if not file.is_relative_to(root):
            raise OSError(f"outside of {folder}; its alternative text is used")
        if file.is_file():
            if file.stat().st_size > _LARGEST:
                raise OSError(f"larger than {_LARGEST:,} bytes; its alternative text is used")
            return file.read_bytes()
    raise OSError(f"there is no such file below {folder}; its alternative text is used")
