"""Tables and images as passages of their own: the nodes of a multimodal graph (IIER section 3.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from sire_core.documents.block_reading import read_blocks
from sire_core.documents.blocks import CODE, ROW, Block
from sire_core.documents.chunker import SentenceChunker
from sire_core.errors import ModelError
from sire_core.protocols import LanguageModel, Prompt
from sire_core.types import Document, Failure, chunk_id

if TYPE_CHECKING:
    import asyncio


MEDIA = "media"
"""Key of a document's metadata under which its tables and images are listed: `{"chunk": id of the passage, "kind":
"table" or "image", "reference": where an image is, "described_by": "model", "alt text" or "file name"}`."""

# No part of an image may hold the beginning of another one, so that nothing is read twice.
_IMAGE = re.compile(
    r"!\[(?P<alt>[^\[\]\n]*)\]\(\s*<?(?P<target>(?:(?!!\[)[^)\s>])+)>?(?:\s+[\"'](?P<title>[^\"'\n]*)[\"'])?\s*\)"
)

Captions = Mapping[tuple[str, str], str]  # Descriptions of images by a model, by document id and reference


class MediaPart(NamedTuple):
    """A piece of a Markdown text: its kind is `text`, `table` or `image`.

    Text and tables stand as they are; the text of an image is its alternative text or its title.
    """

    kind: str
    text: str
    reference: str = ""  # where an image is


@dataclass(frozen=True, slots=True)
class MediaCorpus:
    """Documents whose tables and images are passages, and what became of them."""

    documents: tuple[Document, ...]  # In the order given; those without tables and images as they were
    tables: int = 0  # Tables found
    images: int = 0  # Images found
    # Images that a model described; the text of the others is their alternative text or their file name
    described: int = 0
    failures: tuple[Failure, ...] = ()  # Images that a model should have described and could not, and why


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


def media_parts(text: str) -> Iterator[MediaPart]:
    """Prose, tables and images of a Markdown text, in order."""
    for is_row, run in groupby(read_blocks(text), lambda block: block.kind == ROW):
        if not is_row:
            yield from _prose_parts(text, list(run))
            continue
        tables: list[list[Block]] = []
        for row in run:
            begins = not tables or "\n" in text[row.start : row.end]  # a header has a rule below it
            tables += [[row]] if begins else []
            tables[-1] += [] if begins else [row]
        for rows in tables:
            yield MediaPart("table", "\n".join(map(str.strip, text[rows[0].start : rows[-1].end].split("\n"))))


def _prose_parts(text: str, blocks: Sequence[Block]) -> Iterator[MediaPart]:
    """Prose with the words of its images, which follow the block that they stand in."""
    prose, end = "", blocks[0].start
    for block in blocks:
        span = text[block.start : block.end]
        images = [] if block.kind == CODE else list(_IMAGE.finditer(span))
        if not images or _IMAGE.sub("", span).strip():
            prose += text[end : block.start] + (_IMAGE.sub(r"\g<alt>", span) if images else span)
        end = block.end
        if images:
            yield from [MediaPart("text", prose.strip("\n"))] if prose.strip() else []
            prose = ""
            for image in images:
                yield MediaPart("image", " ".join((image["alt"] or image["title"] or "").split()), image["target"])
    yield from [MediaPart("text", prose.strip("\n"))] if prose.strip() else []


class _Splitter:
    """Cuts documents and counts what it finds."""

    def __init__(self, chunker: SentenceChunker, captions: Captions) -> None:
        self._chunker = chunker
        self._captions = captions
        self.tables = self.images = self.described = 0

    def split(self, document: Document) -> Document:
        """The document with its tables and images as passages; the same object where there are none."""
        parts = [] if document.chunks else list(media_parts(document.text))
        if all(part.kind == "text" for part in parts):
            return document
        pieces: list[tuple[str, dict[str, str]]] = []
        for part in parts:
            if part.kind == "text":
                pieces += [(text, {}) for text in self._chunker.split(part.text)]
            elif part.kind == "table":
                self.tables += 1
                pieces += [(text, {"kind": "table"}) for text in self._chunker.split(part.text)]
            else:
                pieces.append(self._image(document.id, part))
        entries = [
            {"chunk": chunk_id(document.id, position, document.title, text), **entry}
            for position, (text, entry) in enumerate(pieces)
            if entry
        ]
        metadata = {**document.metadata, MEDIA: entries}
        return replace(document, text="", chunks=tuple(text for text, _ in pieces), metadata=metadata)

    def _image(self, document: str, image: MediaPart) -> tuple[str, dict[str, str]]:
        self.images += 1
        caption = self._captions.get((document, image.reference), "")
        self.described += bool(caption)
        described_by = "model" if caption else "alt text" if image.text else "file name"
        name = PurePosixPath(image.reference).stem.replace("-", " ").replace("_", " ")
        text = f"Image: {image.text or name}" + (f"\n{caption}" if caption else "")
        return text, {"kind": "image", "reference": image.reference, "described_by": described_by}


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
        for part in () if document.chunks else media_parts(document.text):
            if part.kind == "image":
                yield document, part.reference, part.text


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
