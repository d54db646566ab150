"""Documents as chunks with their sections, and the text of passages that were cut, joined again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from sire_core.algorithms.parts import packed
from sire_core.corpus.chunker import SentenceChunker, text_units, tokens_between
from sire_core.corpus.markdown_blocks import block_runs
from sire_core.corpus.markdown_cleaning import clean_markdown
from sire_core.corpus.sections import (
    is_cut,
    path_of,
    section_title,
    sections_of_markdown,
)
from sire_core.corpus.titles import header_title
from sire_core.types import Chunk, Document, Passage, chunk_id

__all__ = ["chunk_document", "joined"]


def chunk_document(document: Document, chunker: SentenceChunker | None = None) -> tuple[Chunk, ...]:
    """Make the chunks of a document.

    Markdown is cleaned (comments, front matter, anchors, lines of navigation) and cut at its headings first: small
    neighbouring sections share a chunk, no chunk holds parts of two large ones. A chunk's title is the document's with
    the path of headings that the whole chunk stands under. A document without one has the title of its front matter or
    of a header (`Title: ...`), also where a splitter cut it.
    """
    if not document.title:
        head = document.passages[0].text if document.passages else document.text
        document = replace(document, title=header_title(head))
    kept = [passage for passage in _passages(document, chunker) if passage.text.strip()]
    return tuple(_chunk(document, position, passage) for position, passage in enumerate(kept))


def joined(passages: Sequence[Passage], chunker: SentenceChunker | None) -> str:
    """Passages as the text that they were cut from: what a chunk repeats of the one before stands once.

    That are whole sentences, as many as the chunker repeats, and the header of a table that goes on. Passages that the
    chunker would not have cut where they end, and those with ids of their own, stay as they are.
    """
    parts = [passage.text for passage in passages[:1]]
    for before, passage in pairwise(passages):
        if chunker is None or passage.id:
            parts.append(f"\n\n{passage.text}")
        elif head := _repeated_head(before.text, passage.text, chunker):
            parts.append(passage.text[len(head) :])
        else:
            shared = _repeated(before.text, passage.text, chunker)
            parts.append(passage.text[shared:] if shared else f"\n\n{passage.text}")
    return "".join(parts)


def _repeated_head(before: str, text: str, chunker: SentenceChunker) -> str:
    """The header of the table that one chunk ends with and the next one goes on with; else nothing."""
    lines = text.split("\n", 3)
    head = "\n".join(lines[:2])
    if len(lines) < 3 or head not in before or tokens_between(before) + tokens_between(lines[2]) <= chunker.max_tokens:
        return ""
    kind, last = list(block_runs(before.split("\n")))[-1]
    return head if kind == "table" and "\n".join(last[:2]).strip() == head else ""


def _repeated(before: str, text: str, chunker: SentenceChunker) -> int:
    """Length of the sentences that end one chunk and begin the next: the most of them that the chunker repeats."""
    units = [unit for _, unit in text_units(before)]
    start, tokens = len(before), 0
    held = tokens_between(before)
    for number in range(len(units) - 1, 0, -1):
        start = before.rindex(units[number], 0, start)
        tokens += tokens_between(units[number])
        if tokens > chunker.overlap_tokens:
            return 0
        shared = before[start:]
        if not text.startswith(shared) or not text[len(shared) : len(shared) + 1].isspace():
            continue
        needed = tokens_between(next(text_units(text[len(shared) :]))[1])
        further = tokens + tokens_between(units[number - 1])
        most = number == 1 or further > chunker.overlap_tokens or further + needed > chunker.max_tokens
        if most and held + needed > chunker.max_tokens:
            return len(shared)
    return 0


def _passages(document: Document, chunker: SentenceChunker | None) -> Sequence[Passage]:
    if document.passages:
        return document.passages
    if chunker is None or is_cut(document.metadata):
        return [Passage(document.text)]
    return [Passage(text, title=section_title(document.title, path)) for path, text in _cut(document.text, chunker)]


def _chunk(document: Document, position: int, passage: Passage) -> Chunk:
    metadata = {**document.metadata, **passage.metadata} if passage.metadata else document.metadata
    title = passage.title or section_title(document.title, path_of(metadata))
    return Chunk(
        id=chunk_id(document.id, position, title, passage.text),
        doc_id=document.id,
        position=position,
        title=title,
        text=passage.text,
        metadata=metadata,
        source_id=passage.id,
    )


def _cut(text: str, chunker: SentenceChunker) -> list[tuple[tuple[str, ...], str]]:
    """Chunks with their paths."""
    sections = sections_of_markdown(clean_markdown(text))
    pieces = []
    for group in packed(sections, lambda section: tokens_between(section.text), chunker.max_tokens // 2):
        path = _shared([section.path for section in group])
        pieces += [(path, part) for part in chunker.split("\n\n".join(section.text for section in group))]
    return pieces


def _shared(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The headings that all paths begin with."""
    shared = paths[0]
    for path in paths[1:]:
        same = 0
        while same < min(len(shared), len(path)) and shared[same] == path[same]:
            same += 1
        shared = shared[:same]
    return shared
