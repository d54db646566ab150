"""Cuts documents into passages at sentence boundaries; the text stays verbatim."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from sire_core.documents.block_reading import read_blocks
from sire_core.documents.blocks import CODE, ROW, Block, code_fences, layout_of, repeated_of
from sire_core.documents.heading_paths import independent_headings, is_cut, path_of, section_title
from sire_core.documents.markdown_cleaning import clean_markdown
from sire_core.documents.markdown_sections import sections_of
from sire_core.documents.titles import header_title, is_of_values
from sire_core.errors import ConfigurationError
from sire_core.text.languages import UNDETERMINED, find_language, stated_language
from sire_core.text.words import (
    LINK_TARGET,
    count_tokens,
    is_plain,
    packed,
    split_sentences,
    token_pattern,
    without_link_targets,
)
from sire_core.types import Chunk, Document, Passage, chunk_id

# As `count_tokens`, but a word counts once per sixteen letters: without this a line of base64 would be a single token,
# and a chunk of any length.
_LONGEST = 16
# Of plain text, where the general pattern finds the same. The address of a link is one token.
_TOKEN = re.compile(rf"{LINK_TARGET}|\w{{1,{_LONGEST}}}|[^\w\s]")
_CLAUSE = re.compile(r"\S.*?(?:[,;:](?=\s)|[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]|\Z)", re.DOTALL)
_RUN_OF_LETTERS = re.compile(r"\S+")
_LINE = re.compile(r"[^\n]+")
_PAGE_END = "\f"
_PASSAGES_OF_LANGUAGE, _CHARS_OF_LANGUAGE = 8, 8_000
"""Passages and letters of a document that are read for its language."""
_LINE_PAGE_END = re.compile(r"\f+(?=\n|\Z)|(?:(?<=\n)|\A)\f+")


def stored_chunker(settings: Mapping[str, Any] | None) -> SentenceChunker | None:
    """Return the chunker of a folder from its settings in the manifest; None if it takes documents whole."""
    return SentenceChunker(**settings) if settings else None


class Slice(NamedTuple):
    """A chunk and its position in the text."""

    start: int  # Place of its first character in the text
    end: int  # Place behind its last one
    text: str  # What stands there; in front of it the header of the table, or the fence of the code, that goes on here
    repeated: int  # Number of letters at its beginning that repeat the chunk before


class _Span(NamedTuple):
    start: int
    end: int
    tokens: int
    whole: bool
    head: str = ""  # of the table or code that goes on here: a chunk that begins with the span repeats it


@dataclass(frozen=True, slots=True)
class SentenceChunker:
    """Packs whole sentences into chunks.

    A chunk is a slice of the text, from its first sentence to its last, so punctuation and inner whitespace stay as
    they were (RAPTOR's splitter re-joins sentences and loses them). A sentence longer than a chunk is
    cut after `, ; :`, then between words, then inside a word. A table or fenced code longer than a chunk is cut between
    its lines, and every chunk of it begins with its header or fence, unless that takes half of a chunk.

    Attributes:
        max_tokens: Largest chunk, in tokens of `sire_core.text.words.count_tokens` (words longer than sixteen
            letters count once per sixteen).
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
        """The settings that affect the cuts, as JSON values."""
        return {"max_tokens": self.max_tokens, "overlap_tokens": self.overlap_tokens}

    @property
    def fingerprint(self) -> str:
        """Name of the method and its settings; equal fingerprints cut a text equally."""
        return f"sections-6(max={self.max_tokens},overlap={self.overlap_tokens})"

    def fingerprint_of(self, text: str) -> str:
        """Fingerprint for one text: differs from `fingerprint` for scripts whose letters count as tokens."""
        return self.fingerprint if is_plain(text) else f"{self.fingerprint}+scripts"

    def split(self, text: str) -> list[str]:
        """Cut a text into chunks."""
        return [piece.text for piece in self.slices(text)]

    def slices(self, text: str, blocks: Sequence[Block] | None = None) -> Iterator[Slice]:
        """Cut a text into chunks with their positions; `blocks` are those of the part of the text to cut."""
        window: list[_Span] = []
        tokens = before = 0
        for span in self._spans(text, read_blocks(text) if blocks is None else blocks):
            if tokens + span.tokens > self.max_tokens:
                yield _slice(text, window, before)
                before = window[-1].end
                window = self._overlap(window, span.tokens)
                tokens = sum(repeated.tokens for repeated in window)
            if not window:
                tokens = tokens_between(span.head)
            window.append(span)
            tokens += span.tokens
        if window:
            yield _slice(text, window, before)

    def _overlap(self, window: list[_Span], needed: int) -> list[_Span]:
        budget = min(self.overlap_tokens, self.max_tokens - needed)
        first = len(window)
        while first and window[first - 1].whole and window[first - 1].tokens <= budget:
            first -= 1
            budget -= window[first].tokens
        return window[first:]

    def _spans(self, text: str, blocks: Sequence[Block]) -> Iterator[_Span]:
        for kind, start, end, head_end in _units(text, blocks):
            tokens = tokens_between(text, start, end)
            if tokens <= self.max_tokens:
                yield _Span(start, end, tokens, whole=True)
            elif kind in (CODE, ROW):
                yield from self._lines(text, kind, start, end, head_end)
            else:
                yield from self._pieces(text, start, end, self.max_tokens)

    def _lines(self, text: str, kind: str, start: int, end: int, head_end: int) -> Iterator[_Span]:
        """Spans of lines of code or a table; the first stays with the fence or the header, which ends at `head_end`."""
        lines = [line for line in map(_stripped_span, _LINE.finditer(text, start, end)) if line[0] < line[1]]
        fence, is_closed = code_fences(text[start:end]) if kind == CODE else ("", False)
        head = fence or text[start:head_end]
        size = 1 if fence else sum(stop <= head_end for _, stop in lines)
        head_tokens = tokens_between(head)
        if head_tokens > self.max_tokens // 2:
            head, head_tokens = "", 0
        elif size:
            stops = [stop for _, stop in lines[size : size + 1] if tokens_between(text, start, stop) <= self.max_tokens]
            stop = stops[0] if stops else lines[min(size, len(lines)) - 1][1]
            yield _Span(start, stop, tokens_between(text, start, stop), whole=False)
            lines = lines[size + len(stops) :]
        if is_closed and len(lines) > 1:
            lines[-2:] = [(lines[-2][0], lines[-1][1])]  # no passage begins with the closing fence
        for left, right in lines:
            tokens = tokens_between(text, left, right)
            if tokens <= self.max_tokens - head_tokens:
                yield _Span(left, right, tokens, whole=False, head=head)
            else:
                for piece in self._pieces(text, left, right, self.max_tokens - head_tokens):
                    yield piece._replace(head=head)

    def _pieces(self, text: str, start: int, end: int, room: int) -> Iterator[_Span]:
        for clause in _CLAUSE.finditer(text, start, end):
            tokens = tokens_between(text, *clause.span())
            if tokens <= room:
                yield _Span(*clause.span(), tokens, whole=False)
                continue
            for word in _RUN_OF_LETTERS.finditer(text, *clause.span()):
                tokens = tokens_between(text, *word.span())
                if tokens <= room:
                    yield _Span(*word.span(), tokens, whole=False)
                    continue
                for token in _tokens(text, *word.span()).finditer(text, *word.span()):
                    yield _Span(*token.span(), 1, whole=False)


def _slice(text: str, window: Sequence[_Span], before: int) -> Slice:
    """The chunk of some spans; `before` is the place behind the chunk before."""
    start, end, head = window[0].start, window[-1].end, window[0].head
    if head:
        return Slice(start, end, f"{head}\n{text[start:end]}", len(head))
    return Slice(start, end, text[start:end], max(0, before - start))


def _stripped_span(line: re.Match[str]) -> tuple[int, int]:
    """Start and end of a line, with its indentation and without trailing space."""
    return line.start(), line.start() + len(line[0].rstrip())


def _units(text: str, blocks: Sequence[Block]) -> Iterator[tuple[str, int, int, int]]:
    """Yield kinds and spans of sentences, code and tables, which are cut only if too long, and ends of headers."""
    runs: list[list[Block]] = []
    for block in blocks:
        kind = _unit_kind(block)
        begins = kind == CODE or (kind == ROW and block.level == 1)
        if begins or not runs or _unit_kind(runs[-1][0]) != kind:
            runs.append([block])
        else:
            runs[-1].append(block)
    for run in runs:
        kind, start, end = _unit_kind(run[0]), run[0].start, run[-1].end
        if kind:
            yield kind, start, end, run[0].end if kind == ROW and run[0].level else start
        else:
            yield from (("", *span, 0) for span in _sentences(text, start, end))


def _unit_kind(block: Block) -> str:
    return block.kind if block.kind in (CODE, ROW) else ""


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans of the sentences of a part of a text."""
    part = text[start:end]
    at = 0
    for sentence in split_sentences(part):
        at = part.index(sentence, at)
        yield start + at, start + at + len(sentence)
        at += len(sentence)


def tokens_between(text: str, start: int = 0, end: int | None = None) -> int:
    """Count the tokens of a part of a text as a chunk does."""
    return count_tokens(without_link_targets(text[start:end]), _LONGEST)  # the bracket stands for the address


def _tokens(text: str, start: int, end: int) -> re.Pattern[str]:
    return _TOKEN if is_plain(text, start, end) else _script_tokens()


@cache
def _script_tokens() -> re.Pattern[str]:
    return re.compile(f"{LINK_TARGET}|{token_pattern(_LONGEST).pattern}")


def chunk_document(document: Document, chunker: SentenceChunker | None = None) -> tuple[Chunk, ...]:
    """Make the chunks of a document."""
    if not document.title:
        head = document.passages[0].text if document.passages else document.text
        document = replace(document, title=header_title(head))
    passages = [passage for passage in _passages(document, chunker) if passage.text.strip()]
    spoken = document_language(document)
    return tuple(_chunk(document, position, passage, spoken) for position, passage in enumerate(passages))


def document_language(document: Document) -> str:
    """Code of the language of a document: what its metadata say of `lang`, or what its text is in; see `types.Unit`."""
    if stated := stated_language(document.metadata):
        return stated
    passages = document.passages
    text = document.text if not passages else "\n".join(passage.text for passage in passages[:_PASSAGES_OF_LANGUAGE])
    text = without_link_targets(text[:_CHARS_OF_LANGUAGE])
    code = find_language(text.replace(document.title, " ") if document.title else text)  # a work may be foreign
    return code if code != UNDETERMINED else find_language(f"{document.title}\n{text}")


def chunk_documents(chunker: SentenceChunker | None, documents: Sequence[Document]) -> list[tuple[Chunk, ...]]:
    """Make the chunks of documents."""
    return [chunk_document(document, chunker) for document in documents]


def cut_document(document: Document, chunker: SentenceChunker | None) -> Document:
    """Return a document with its passages, for an index that would cut it in another way."""
    if document.chunks or not document.text.strip():
        return document
    passages = [
        Passage(
            chunk.text,
            title="" if chunk.title == document.title else chunk.title,
            metadata={key: value for key, value in chunk.metadata.items() if key not in document.metadata},
            blocks=chunk.blocks,
            repeated=repeated_of(chunk.layout),
        )
        for chunk in chunk_document(document, chunker)
    ]
    return replace(document, text="", chunks=tuple(passages))


def joined(passages: Iterable[Passage]) -> str:
    """Join passages into the text that they were cut from, without what they repeat of the ones before."""
    parts = (passage.text[passage.repeated :] if passage.repeated else f"\n\n{passage.text}" for passage in passages)
    return "".join(parts).removeprefix("\n\n")


def _passages(document: Document, chunker: SentenceChunker | None) -> Sequence[Passage]:
    if document.passages:
        return document.passages
    if chunker is None or is_cut(document.metadata):
        return [Passage(document.text, blocks=document.blocks)]
    return list(_cut(document, chunker))


def _cut(document: Document, chunker: SentenceChunker) -> Iterator[Passage]:
    """Cut a document at its headings, and sections that are too long at sentences."""
    text = clean_markdown(document.text)
    as_read = document.blocks if document.blocks and text == document.text else _read(text, document.metadata)
    text, blocks = _without_page_ends(text, as_read)
    sections = sections_of(text, blocks)
    chapters = independent_headings(document.title, [section.path for section in sections])
    for group in packed(sections, lambda one: tokens_between(text, one.start, one.end), chunker.max_tokens // 2):
        path = _common_prefix([section.path for section in group])
        title = section_title("" if chapters.intersection(path[:1]) else document.title, path)
        yield from _passages_of(text, blocks[group[0].first : group[-1].stop], chunker, title, document)


def _passages_of(
    text: str, blocks: Sequence[Block], chunker: SentenceChunker, title: str, document: Document
) -> Iterator[Passage]:
    starts, ends = [block.start for block in blocks], [block.end for block in blocks]
    for piece in chunker.slices(text, blocks):
        shift = len(piece.text) - (piece.end - piece.start)  # of what goes on here, and stands in front
        offset = shift - piece.start
        held = [
            replace(block, start=max(block.start, piece.start) + offset, end=min(block.end, piece.end) + offset)
            for block in blocks[bisect_left(ends, piece.start + 1) : bisect_left(starts, piece.end)]
        ]
        if shift and held[0].kind == ROW:
            held.insert(0, replace(held[0], start=0, end=shift - 1, level=1))
        elif shift:
            held[0] = replace(held[0], start=0)
        page = held[0].page
        metadata = {"page": page} if page and "page" not in document.metadata else {}
        yield Passage(piece.text, title=title, metadata=metadata, blocks=tuple(held), repeated=piece.repeated)


def _without_page_ends(text: str, blocks: Sequence[Block]) -> tuple[str, Sequence[Block]]:
    """A text without form feeds: one at the end of a line is nothing, one between words a space."""
    if _PAGE_END not in text:
        return text, blocks
    left_out = [match.span() for match in _LINE_PAGE_END.finditer(text)]
    ends, removed = [end for _, end in left_out], [0]
    for start, end in left_out:
        removed.append(removed[-1] + end - start)
    moved = (
        replace(
            block,
            start=block.start - removed[bisect_left(ends, block.start + 1)],
            end=block.end - removed[bisect_left(ends, block.end + 1)],
        )
        for block in blocks
    )
    return _LINE_PAGE_END.sub("", text).replace(_PAGE_END, " "), tuple(moved)


def _chunk(document: Document, position: int, passage: Passage, spoken: str) -> Chunk:
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
        layout=layout_of(
            passage.blocks or _read(passage.text, metadata),
            passage.repeated,
            stated_language(passage.metadata) or spoken,
        ),
    )


def _read(text: str, metadata: Mapping[str, Any]) -> Sequence[Block]:
    return read_blocks(text, of_values=is_of_values(metadata))


def _common_prefix(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    shared = paths[0]
    for path in paths[1:]:
        same = 0
        while same < min(len(shared), len(path)) and shared[same] == path[same]:
            same += 1
        shared = shared[:same]
    return shared
