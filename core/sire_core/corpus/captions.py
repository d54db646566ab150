"""`describe_images`: what a vision model sees in the images of documents (IIER section 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sire_core.corpus.markdown_blocks import markdown_blocks
from sire_core.corpus.media import MediaCorpus, split_media
from sire_core.errors import ModelError
from sire_core.protocols import Prompt
from sire_core.types import Document, Failure

if TYPE_CHECKING:
    import asyncio

    from sire_core.corpus.chunker import SentenceChunker
    from sire_core.protocols import LanguageModel

__all__ = ["describe_images"]

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
    """`split_media`, with images described by a model that can see.

    Images are read from files below `folder`; those on the web, outside of the folder or missing keep their alternative
    text, and so do all of them without a model. With `CachedModel(model, CallStore(file))` nothing is asked twice.

    Args:
        documents: Documents with Markdown text.
        model: Answers prompts with images; None when there is none.
        folder: Where the documents are. An image is looked for beside its document (whose id is then a path below the
            folder, as `read_documents` makes it) and in the folder itself.
        chunker: See `split_media`.
        workers: Calls in flight at once.

    Returns:
        The documents, what was found, and which images could not be described.

    Raises:
        ConfigurationError: The model cannot see.
        LimitExceededError: A usage limit would be passed.
    """
    if model is None:
        return split_media(documents, chunker)
    import asyncio

    gate = asyncio.Semaphore(workers)
    wanted = {(document.id, reference): (document, alternative) for document, reference, alternative in _of(documents)}
    said = await asyncio.gather(
        *(
            _describe(document, reference, alternative, model, Path(folder), gate)
            for (_, reference), (document, alternative) in wanted.items()
        )
    )
    captions = {image: text for image, text in zip(wanted, said, strict=True) if isinstance(text, str)}
    failures = tuple(failure for failure in said if isinstance(failure, Failure))
    return replace(split_media(documents, chunker, captions), failures=failures)


async def _describe(
    document: Document, reference: str, alternative: str, model: LanguageModel, folder: Path, gate: asyncio.Semaphore
) -> str | Failure:
    """What the model says of one image, or why there is nothing."""
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
    """Bytes of an image below a folder.

    Raises:
        OSError: It is not there, is somewhere else, or is too large; the message is for people.
    """
    if "://" in reference or reference.startswith("data:"):
        raise OSError("not a file; its alternative text is used")
    root = folder.resolve()
    for place in ((root / document).parent / reference, root / reference):
        file = place.resolve()
        if not file.is_relative_to(root):
            raise OSError(f"outside of {folder}; its alternative text is used")
        if file.is_file():
            if file.stat().st_size > _LARGEST:
                raise OSError(f"larger than {_LARGEST:,} bytes; its alternative text is used")
            return file.read_bytes()
    raise OSError(f"there is no such file below {folder}; its alternative text is used")
