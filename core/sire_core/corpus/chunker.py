"""Cutting documents into passages at sentence boundaries, with the text kept verbatim."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from sire_core.algorithms.parts import packed
from sire_core.algorithms.text import split_sentences
from sire_core.corpus.markdown_blocks import block_runs
from sire_core.corpus.sections import (
    clean_markdown,
    is_cut,
    path_of,
    section_title,
    sections_of_markdown,
)
from sire_core.errors import ConfigurationError
from sire_core.types import Chunk, Document, Passage, chunk_id

__all__ = ["SentenceChunker", "chunk_document", "joined"]

# As `count_tokens`, but a run of word characters counts once per sixteen: without this a line of base64 or of a
# language without spaces would be a single token, and a chunk of any length.
_TOKEN = re.compile(r"\w{1,16}|[^\w\s]")
_CLAUSE = re.compile(r"\S.*?(?:[,;:](?=\s)|[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]|\Z)", re.DOTALL)
_WORD = re.compile(r"\S+")
_LONGEST_OVERLAP = 2_000


class _Span(NamedTuple):
    start: int
    end: int
    tokens: int
    whole: bool


@dataclass(frozen=True, slots=True)
class SentenceChunker:
    """Packs whole sentences into chunks.

    A chunk is a slice of the text, from its first sentence to its last, so punctuation and inner whitespace stay as
    they were (RAPTOR's splitter re-joins sentences and loses them). A sentence longer than a chunk is
    cut after `, ; :`, then between words, then inside a word.

    Attributes:
        max_tokens: Largest chunk, in tokens of `sire_core.algorithms.text.count_tokens` (words longer than sixteen
            characters count once per sixteen).
        overlap_tokens: A chunk repeats at most this many tokens of the one before, in whole sentences; 0 for none.

    Raises:
        ConfigurationError: A setting makes no sense.
    """

    max_tokens: int = 512
    overlap_tokens: int = 64

    def __post_init__(self) -> None:
        for name, lowest in (("max_tokens", 1), ("overlap_tokens", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
                raise ConfigurationError(f"{name} must be an integer of at least {lowest}, not {value!r}.")
        if self.overlap_tokens >= self.max_tokens:
            raise ConfigurationError(
                f"overlap_tokens ({self.overlap_tokens}) must be smaller than max_tokens ({self.max_tokens}); "
                "lower overlap_tokens, or set it to 0."
            )

    def settings(self) -> dict[str, int]:
        """The settings that decide where text is cut, as JSON values."""
        return {"max_tokens": self.max_tokens, "overlap_tokens": self.overlap_tokens}

    @property
    def fingerprint(self) -> str:
        """Names the method and its settings; equal fingerprints cut a text at the same places."""
        return f"sections-2(max={self.max_tokens},overlap={self.overlap_tokens})"

    def split(self, text: str) -> list[str]:
        """Cut a text into chunks.

        Returns:
            Slices of `text` in order, none blank. Every character that is not whitespace is in at least one of them.
        """
        chunks: list[str] = []
        window: list[_Span] = []
        tokens = 0
        for span in self._spans(text):
            if tokens + span.tokens > self.max_tokens:
                chunks.append(text[window[0].start : window[-1].end])
                window = self._overlap(window, span.tokens)
                tokens = sum(kept.tokens for kept in window)
            window.append(span)
            tokens += span.tokens
        if window:
            chunks.append(text[window[0].start : window[-1].end])
        return chunks

    def _overlap(self, window: list[_Span], needed: int) -> list[_Span]:
        budget = min(self.overlap_tokens, self.max_tokens - needed)
        first = len(window)
        while first and window[first - 1].whole and window[first - 1].tokens <= budget:
            first -= 1
            budget -= window[first].tokens
        return window[first:]

    def _spans(self, text: str) -> Iterator[_Span]:
        end = 0
        for sentence in _units(text):
            start = text.index(sentence, end)
            end = start + len(sentence)
            tokens = _count(text, start, end)
            if tokens <= self.max_tokens:
                yield _Span(start, end, tokens, whole=True)
            else:
                yield from self._pieces(text, start, end)

    def _pieces(self, text: str, start: int, end: int) -> Iterator[_Span]:
        for clause in _CLAUSE.finditer(text, start, end):
            tokens = _count(text, *clause.span())
            if tokens <= self.max_tokens:
                yield _Span(*clause.span(), tokens, whole=False)
                continue
            for word in _WORD.finditer(text, *clause.span()):
                tokens = _count(text, *word.span())
                if tokens <= self.max_tokens:
                    yield _Span(*word.span(), tokens, whole=False)
                    continue
                for token in _TOKEN.finditer(text, *word.span()):
                    yield _Span(*token.span(), 1, whole=False)


def _units(text: str) -> Iterator[str]:
    """What is not cut as long as it fits: sentences, fenced code, tables."""
    if "```" not in text and "~~~" not in text and "|" not in text:
        yield from split_sentences(text)
        return
    for kind, lines in block_runs(text.split("\n")):
        block = "\n".join(lines)
        if kind == "text":
            yield from split_sentences(block)
        elif block.strip():
            yield block.strip()


def _count(text: str, start: int, end: int) -> int:
    return len(_TOKEN.findall(text, start, end))


def chunk_document(document: Document, chunker: SentenceChunker | None = None) -> tuple[Chunk, ...]:
    """Make the chunks of a document.

    Markdown is cleaned (comments, front matter, anchors, lines of navigation) and cut at its headings first: small
    neighbouring sections share a chunk, no chunk holds parts of two large ones. A chunk's title is the document's with
    the path of headings that the whole chunk stands under.

    Args:
        document: With `chunks` given they are taken as they are, blank ones left out, and so is a text that a splitter
            cut, as its metadata tell (`start_index`, `Header 1`, `header_path`).
        chunker: Cuts `document.text`; None takes the whole text as one chunk.

    Returns:
        Chunks with positions 0, 1, ..; none for a document without text.
    """
    kept = [passage for passage in _passages(document, chunker) if passage.text.strip()]
    return tuple(_chunk(document, position, passage) for position, passage in enumerate(kept))


def joined(passages: Sequence[Passage]) -> str:
    """Passages as the text that they were cut from: whole sentences that a chunk repeats of the one before stand once.

    Passages with ids of their own were not cut here, and stay as they are.
    """
    parts = [passage.text for passage in passages[:1]]
    for before, passage in pairwise(passages):
        shared = 0 if passage.id else _repeated(before.text, passage.text)
        parts.append(passage.text[shared:] if shared else f"\n\n{passage.text}")
    return "".join(parts)


def _repeated(before: str, text: str) -> int:
    """Length of the sentences that end one chunk and begin the next; both hold more than these."""
    end, place, starts = before[-_LONGEST_OVERLAP:], 0, []
    for unit in _units(end):
        starts.append(end.index(unit, place))
        place = starts[-1] + len(unit)
    shared = [len(end) - start for start in starts[1:] if text.startswith(end[start:])]
    return next((length for length in shared if text[length : length + 1].isspace()), 0)


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
    for group in packed(sections, lambda section: _count(section.text, 0, len(section.text)), chunker.max_tokens // 2):
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
