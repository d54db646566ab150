"""Tables and images as passages of their own: the nodes of a multimodal graph (IIER section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from sire_core.corpus.chunker import SentenceChunker
from sire_core.corpus.markdown_blocks import Block, markdown_blocks
from sire_core.types import Document, Failure, chunk_id

__all__ = ["MEDIA", "MediaCorpus", "media_of", "split_media"]

MEDIA = "media"
"""Key of a document's metadata under which its tables and images are listed: `{"chunk": id of the passage, "kind":
"table" or "image", "reference": where an image is, "described_by": "model", "alt text" or "file name"}`."""

Captions = Mapping[tuple[str, str], str]
"""What a model says of an image, by document id and reference."""


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
    """Make every Markdown table and image a passage of its own.

    The prose between them is cut as usual, so that each stands in the document's order beside the text that speaks of
    it. A table longer than a chunk is cut between rows, its header repeated. The text of an image is its description;
    the image itself stays where it is, and the metadata refer to it (see `MEDIA`).

    Args:
        documents: Documents with text; those with chunks are taken as they are.
        chunker: Cuts prose; None means `SentenceChunker()`.
        captions: Descriptions of images; see `describe_images`.
    """
    splitter = _Splitter(chunker or SentenceChunker(), captions or {})
    found = tuple(splitter.split(document) for document in documents)
    return MediaCorpus(found, splitter.tables, splitter.images, splitter.described)


def media_of(chunk: str, metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the metadata of a passage (a chunk or a unit of one) say of the table or image that it is; None for text."""
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
        said = self._captions.get((document, block.reference), "")
        self.described += bool(said)
        described_by = "model" if said else "alt text" if block.text else "file name"
        name = PurePosixPath(block.reference).stem.replace("-", " ").replace("_", " ")
        text = f"Image: {block.text or name}" + (f"\n{said}" if said else "")
        return text, {"kind": "image", "reference": block.reference, "described_by": described_by}
