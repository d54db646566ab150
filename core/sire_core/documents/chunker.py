"""Cuts documents into passages at sentence boundaries; the text stays verbatim."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from sire_core.documents.markdown_blocks import block_runs, fence_of, is_closed
from sire_core.documents.markdown_cleaning import clean_markdown
from sire_core.documents.markdown_sections import (
    independent_headings,
    is_cut,
    path_of,
    section_title,
    sections_of_markdown,
)
from sire_core.documents.titles import header_title
from sire_core.errors import ConfigurationError
from sire_core.text.words import LINK_TARGET, is_plain, packed, split_sentences, token_pattern
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
_LINE_PAGE_END = re.compile(r"\f+(?=\n|\Z)|(?:(?<=\n)|\A)\f+")
_HEAD, _REACH = 80, 100_000
"""How much of a passage is looked for to find its page, and how far behind where the one before begins."""


class Slice(NamedTuple):
    """A chunk and its position in the text.

    Attributes:
        start: Place of its first character in the text.
        end: Place behind its last one.
        text: What stands there; in front of it the header of the table, or the fence of the code, that goes on here.
    """

    start: int
    end: int
    text: str


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
        return f"sections-5(max={self.max_tokens},overlap={self.overlap_tokens})"

    def fingerprint_of(self, text: str) -> str:
        """Fingerprint for one text: differs from `fingerprint` for scripts whose letters count as tokens."""
        return self.fingerprint if is_plain(text) else f"{self.fingerprint}+scripts"

    def split(self, text: str) -> list[str]:
        """Cut a text into chunks."""
        return [piece.text for piece in self.slices(text)]

    def slices(self, text: str) -> Iterator[Slice]:
        """Cut a text into chunks with their positions."""
        window: list[_Span] = []
        tokens = 0
        for span in self._spans(text):
            if tokens + span.tokens > self.max_tokens:
                yield _slice(text, window)
                window = self._overlap(window, span.tokens)
                tokens = sum(repeated.tokens for repeated in window)
            if not window:
                tokens = tokens_between(span.head)
            window.append(span)
            tokens += span.tokens
        if window:
            yield _slice(text, window)

    def _overlap(self, window: list[_Span], needed: int) -> list[_Span]:
        budget = min(self.overlap_tokens, self.max_tokens - needed)
        first = len(window)
        while first and window[first - 1].whole and window[first - 1].tokens <= budget:
            first -= 1
            budget -= window[first].tokens
        return window[first:]

    def _spans(self, text: str) -> Iterator[_Span]:
        end = 0
        for kind, unit in text_units(text):
            start = text.index(unit, end)
            end = start + len(unit)
            tokens = tokens_between(text, start, end)
            if tokens <= self.max_tokens:
                yield _Span(start, end, tokens, whole=True)
            elif kind == "text":
                yield from self._pieces(text, start, end, self.max_tokens)
            else:
                yield from self._lines(text, start, end, table=kind == "table")

    def _lines(self, text: str, start: int, end: int, *, table: bool) -> Iterator[_Span]:
        """Spans of the lines of a table or of code; the first line stays with the header or fence."""
        lines = [line for line in map(_stripped_span, _LINE.finditer(text, start, end)) if line[0] < line[1]]
        size = 2 if table else 1
        head = text[start : lines[1][1]] if table else fence_of(text[start : lines[0][1]])
        head_tokens = tokens_between(head)
        if head_tokens <= self.max_tokens // 2:
            stops = [stop for _, stop in lines[size : size + 1] if tokens_between(text, start, stop) <= self.max_tokens]
            stop = stops[0] if stops else lines[size - 1][1]
            yield _Span(start, stop, tokens_between(text, start, stop), whole=False)
            lines = lines[size + len(stops) :]
        else:
            head, head_tokens = "", 0
        if not table and len(lines) > 1 and is_closed(text[start:end].split("\n")):
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


def _slice(text: str, window: Sequence[_Span]) -> Slice:
    start, end, head = window[0].start, window[-1].end, window[0].head
    return Slice(start, end, f"{head}\n{text[start:end]}" if head else text[start:end])


def _stripped_span(line: re.Match[str]) -> tuple[int, int]:
    """Start and end of a line, with its indentation and without trailing space."""
    return line.start(), line.start() + len(line[0].rstrip())


def text_units(text: str) -> Iterator[tuple[str, str]]:
    """Yield units that are cut only if too long: sentences (`text`), fenced code (`code`), tables (`table`)."""
    if "```" not in text and "~~~" not in text and "|" not in text:
        yield from (("text", sentence) for sentence in _sentences(text))
        return
    for kind, lines in block_runs(text.split("\n")):
        block = "\n".join(lines)
        if kind == "text":
            yield from (("text", sentence) for sentence in _sentences(block))
        elif block.strip():
            yield kind, block.strip() if kind == "table" else block.strip("\n").rstrip()


def _sentences(text: str) -> Iterator[str]:
    """Sentences; one that begins with a comment of indented code has its indentation, without which it is a heading."""
    if "    #" not in text:
        yield from split_sentences(text)
        return
    end = 0
    for sentence in split_sentences(text):
        start = text.index(sentence, end)
        end = start + len(sentence)
        is_code = sentence[0] == "#" and text.endswith("    ", 0, start)
        yield f"    {sentence}" if is_code else sentence


def tokens_between(text: str, start: int = 0, end: int | None = None) -> int:
    """Count the tokens of a part of a text as a chunk does."""
    end = len(text) if end is None else end
    return len(_tokens(text, start, end).findall(text, start, end))


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
    return tuple(_chunk(document, position, passage) for position, passage in enumerate(passages))


def cut_document(document: Document, chunker: SentenceChunker | None) -> Document:
    """Return a document with its passages, for an index that would cut it in another way."""
    if document.chunks or not document.text.strip():
        return document
    passages = [
        Passage(
            chunk.text,
            title="" if chunk.title == document.title else chunk.title,
            metadata={key: value for key, value in chunk.metadata.items() if key not in document.metadata},
        )
        for chunk in chunk_document(document, chunker)
    ]
    return replace(document, text="", chunks=tuple(passages))


def joined(passages: Sequence[Passage], chunker: SentenceChunker | None) -> str:
    """Join passages into the text that they were cut from, without the overlap that the chunker repeats."""
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
    """What the next chunk repeats of a table or of code that continues, its header or fence; else an empty text."""
    lines = text.split("\n", 3)
    is_code = bool(fence_of(lines[0]))
    size = 1 if is_code else 2
    head = "\n".join(lines[:size])
    if len(lines) <= size or head.strip() not in before:
        return ""
    goes_on = "\n".join(lines[1:3]) if is_code and is_closed(lines[:3]) else lines[size]
    if tokens_between(before) + tokens_between(goes_on) <= chunker.max_tokens:
        return ""
    kind, last = list(block_runs(before.split("\n")))[-1]
    if is_code:
        return head if kind == "code" and fence_of(last[0]) == head and not is_closed(last) else ""
    return head if kind == "table" and "\n".join(last[:2]).strip() == head else ""


def _repeated(before: str, text: str, chunker: SentenceChunker) -> int:
    """Length of the overlap of two chunks: the longest run of sentences that the chunker repeats."""
    units = [unit for _, unit in text_units(before)]
    start, tokens = len(before), 0
    before_tokens = tokens_between(before)
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
        is_longest = number == 1 or further > chunker.overlap_tokens or further + needed > chunker.max_tokens
        if is_longest and before_tokens + needed > chunker.max_tokens:
            return len(shared)
    return 0


def _passages(document: Document, chunker: SentenceChunker | None) -> Sequence[Passage]:
    if document.passages:
        return document.passages
    if chunker is None or is_cut(document.metadata):
        return [Passage(document.text)]
    pieces = _cut_sections(document, chunker)
    pages = _pages(document.text, [text for _, text in pieces]) if _PAGE_END in document.text else []
    named = [{"page": page} for page in pages] if "page" not in document.metadata else []
    return [
        Passage(_without_page_ends(text), title=title, metadata=metadata)
        for (title, text), metadata in zip(pieces, named or [{}] * len(pieces), strict=True)
    ]


def _pages(text: str, pieces: Sequence[str]) -> list[int]:
    """Number of the page on which each piece begins, from 1; that of the piece before where it is not found."""
    ends = [match.start() for match in re.finditer(_PAGE_END, text)]
    start, pages = 0, []
    for piece in pieces:
        start = max(start, text.find(piece.split("\n", 1)[0][:_HEAD], start, start + _REACH))
        pages.append(1 + bisect_right(ends, start))
    return pages


def _without_page_ends(text: str) -> str:
    """A text without form feeds: one at the end of a line is nothing, one between words a space."""
    return _LINE_PAGE_END.sub("", text).replace(_PAGE_END, " ") if _PAGE_END in text else text


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


def _cut_sections(document: Document, chunker: SentenceChunker) -> list[tuple[str, str]]:
    """Titles and texts of the chunks of a document."""
    sections = sections_of_markdown(clean_markdown(document.text))
    chapters = independent_headings(document.title, [section.path for section in sections])
    pieces = []
    for group in packed(sections, lambda section: tokens_between(section.text), chunker.max_tokens // 2):
        path = _common_prefix([section.path for section in group])
        title = section_title("" if chapters.intersection(path[:1]) else document.title, path)
        pieces += [(title, part) for part in chunker.split("\n\n".join(section.text for section in group))]
    return pieces


def _common_prefix(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The common prefix of some paths."""
    shared = paths[0]
    for path in paths[1:]:
        same = 0
        while same < min(len(shared), len(path)) and shared[same] == path[same]:
            same += 1
        shared = shared[:same]
    return shared
