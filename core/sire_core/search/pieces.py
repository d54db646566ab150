"""Pieces of passages: blocks, long ones cut at sentences, short ones joined with what follows; or single sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain, takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sire_core.documents.block_reading import stored_blocks
from sire_core.documents.blocks import (
    CODE,
    FIELD,
    FURNITURE,
    HEADING,
    ITEM,
    PARAGRAPH,
    QUOTE,
    ROW,
    Block,
    block_text,
)
from sire_core.documents.heading_paths import title_path
from sire_core.models.word_vectors import text_vectors
from sire_core.text.languages import Language
from sire_core.text.snippets import text_stems
from sire_core.text.words import FINAL_MARKS, count_tokens, split_sentences

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import FloatArray

_PIECE_CHARS, _MAX_PIECE_CHARS, _MIN_PIECE_CHARS = 240, 360, 60
_MAX_BLOCKS = 8  # Between a value and the name of what has it
_MAX_LED_TOKENS = 120  # Of code, an item or rows that a colon leads to
_SIGN = re.compile(r"\**`[^`\w]{1,12}`\**")  # A term of a list that has no word
_EMPHASIS = "*_` "  # Of Markdown, behind a colon
_TERM = re.compile(r"[-*+\s]*([^:\s]{1,40}(?: [^:\s]{1,40}){0,3}): ")  # Of an item that explains it
_NAMED_VALUE = re.compile(r"[^:\n]{1,40}: [^\n]+")
_ENDS = FINAL_MARKS + ':\uff1a\u300d\u201d"'  # Of a line that says something by itself
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n")

_Spans = tuple[tuple[int, int], ...]


class Piece(NamedTuple):
    """A block of a text, or a part of one, or short blocks together."""

    start: int
    end: int
    kind: str
    headings: _Spans = ()  # Of the headings above it in the text
    header: tuple[int, int] = (0, 0)  # Span of the header of its table, of what leads to its list, of the item around


@dataclass(frozen=True, slots=True)
class PassagePieces:
    """Pieces of a passage with what scoring and filling need of each."""

    text: str
    pieces: tuple[Piece, ...]
    words: tuple[str, ...]  # stems of each, see `stem_text`
    headings: tuple[str, ...]  # stems of the title and of the headings above each
    tokens: tuple[int, ...]  # by `count_tokens`
    links: tuple[int, ...]
    led: tuple[bool, ...]  # whether each is short and begins with code, an item or a row that a colon leads to, or
    # with code in the middle of a sentence
    is_mail: bool
    is_english: bool
    vectors: list[NDArray[np.float16]] = field(default_factory=list, compare=False, repr=False)  # See `piece_vectors`


def stem_text(stems: Iterable[str]) -> str:
    """Stems as one string, each between spaces: a tenth of the memory of a set, and many passages are remembered."""
    return f" {' '.join(stems)} "


def stem_set(text: str) -> frozenset[str]:
    """The stems of a `stem_text`."""
    return frozenset(text.split())


@lru_cache(8192)
def passage_pieces(title: str, text: str, layout: str, spoken: Language, *, by_sentence: bool = False) -> PassagePieces:
    """Cut a passage into pieces, or into sentences, rows and pieces of code, and read their words in a language."""
    blocks = stored_blocks(text, layout)
    pieces = tuple(_sentences(text, blocks, title) if by_sentence else _joined(_cut(text, blocks, title), text))
    of_title = text_stems(title, spoken)
    spans = [text[piece.start : piece.end] for piece in pieces]
    items = {piece.start for piece in pieces if piece.kind == ITEM}  # one around another is shown only
    has_head = [(by_sentence or piece.kind == ROW) and piece.header[0] not in items for piece in pieces]
    heads = [(*one.headings, one.header) if has else one.headings for one, has in zip(pieces, has_head, strict=True)]
    tokens = tuple(map(count_tokens, spans))
    kinds = {block.start: block.kind for block in blocks}
    colons = [False, *map(_leads_on, spans)]
    broken = [False, *(piece.kind == PARAGRAPH and not _ends(span) for piece, span in zip(pieces, spans, strict=True))]
    stems_above = {span: text_stems(text[slice(*span)], spoken) for span in {*chain(*heads)}}
    above = {spans_: stem_text(of_title.union(*map(stems_above.__getitem__, spans_))) for spans_ in set(heads)}
    return PassagePieces(
        text,
        pieces,
        tuple(stem_text(text_stems(span, spoken)) for span in spans),
        tuple(map(above.__getitem__, heads)),
        tokens,
        tuple(span.count("](") for span in spans),
        tuple(
            size <= _MAX_LED_TOKENS
            and kinds.get(piece.start) in (((CODE, ITEM, ROW) if colon else ()) or ((CODE,) if breaks_off else ()))
            for colon, breaks_off, piece, size in zip(colons, broken, pieces, tokens, strict=False)
        ),
        _is_mail(blocks),
        spoken.is_english,
    )


def piece_vectors(read: Sequence[PassagePieces]) -> FloatArray:
    """`text_vectors` of the pieces of passages, zeros where they are not English, `[pieces, WIDTH]`; kept with them."""
    unread = list({id(each): each for each in read if not each.vectors}.values())
    spans = [each.text[one.start : one.end] if each.is_english else "" for each in unread for one in each.pieces]
    vectors, end = text_vectors(spans), 0
    for each in unread:
        start, end = end, end + len(each.pieces)
        each.vectors.append(vectors[start:end].astype(np.float16))
    return np.concatenate([each.vectors[0] for each in read]).astype(np.float32)


def _is_mail(blocks: Sequence[Block]) -> bool:
    """True if what a text quotes is what another person wrote."""
    return any(block.kind == FIELD for block in blocks)


def line_above(text: str, blocks: Sequence[Block], start: int) -> str:
    """The short line above the paragraph that goes on at `start`, such as the name of a setting; empty without one.

    Above a value (`Default: 60`) it may stand further up. Of an item that goes on there it is the term before its
    colon. A sign in backticks, which is no sentence, stands above the first sentence, too.
    """
    number = next((number for number, block in enumerate(blocks) if block.start <= start < block.end), 0)
    if blocks and blocks[number].kind == ITEM and start > blocks[number].start:
        term = _TERM.match(block_text(text, blocks[number]))
        return term[1] if term else ""
    if not number or blocks[number].kind != PARAGRAPH:
        return ""
    line, kind, is_first = block_text(text, blocks[number - 1]), blocks[number - 1].kind, start == blocks[number].start
    if kind == FURNITURE:
        return line if _SIGN.fullmatch(line) else ""
    if _NAMED_VALUE.fullmatch(block_text(text, blocks[number])):
        before = reversed(blocks[max(number - _MAX_BLOCKS, 0) : number])
        section = takewhile(lambda block: block.kind != HEADING, before)
        return next((block_text(text, block) for block in section if _is_name(text, block)), "")
    return line if not is_first and _is_name(text, blocks[number - 1]) else ""


def _is_name(text: str, block: Block) -> bool:
    """True for a short line that says nothing by itself, such as the name of a setting above what explains it."""
    line = block_text(text, block)
    is_short = block.kind == PARAGRAPH and 0 < len(line) < _MIN_PIECE_CHARS and "\n" not in line
    return is_short and not _ends(line) and line[-1] != ","


def _cut(text: str, blocks: Sequence[Block], title: str) -> Iterator[Piece]:
    """Pieces of blocks: headings open the piece below them, long blocks are cut."""
    names = set(title_path(title))
    headings_above = _headings_above(blocks, text, names)
    opened = -1  # start of a heading that nothing stands below yet
    header = (0, 0)
    for number, block in enumerate(blocks):
        above = headings_above(block.path)
        if block.kind == HEADING:
            if block_text(text, block) not in names:
                opened = block.start if opened < 0 else opened
            continue
        if block.kind == ROW:
            follows = number > 0 and blocks[number - 1].kind == ROW
            header = (block.start, block.end) if block.level else header if follows else (0, 0)
        start = block.start if opened < 0 else opened
        opened = -1
        above_row = header if block.kind == ROW else (0, 0)
        for first, end in spans_of(text, start, block.end, _PIECE_CHARS, _MAX_PIECE_CHARS):
            if any(map(str.isalnum, text[first:end])):
                yield Piece(first, end, block.kind, above, above_row)
    if opened >= 0:
        yield Piece(opened, blocks[-1].end, HEADING)


def _sentences(text: str, blocks: Sequence[Block], title: str) -> Iterator[Piece]:
    """Sentences, rows and code of blocks; a short line that says nothing by itself goes with what follows."""
    headings_above, is_mail = _headings_above(blocks, text, set(title_path(title))), _is_mail(blocks)
    short: Piece | None = None
    lead = header = (0, 0)
    led = ""
    for block, outer in zip(blocks, _outer_items(blocks), strict=True):
        if block.kind in (HEADING, FURNITURE, FIELD):
            short, lead = None, (0, 0)
            continue
        if block.kind == ROW and block.level:
            header = (block.start, block.end)
            continue
        led = led or block.kind
        lead = lead if block.kind in (led, CODE) and led in (ITEM, CODE) else (0, 0)
        leading = outer or lead
        whole = Piece(block.start, block.end, block.kind, headings_above(block.path))
        spans = [(block.start, block.end)] if block.kind == ROW else sentence_spans(text, whole)
        if block.kind == CODE:
            spans = list(spans_of(text, block.start, block.end, _PIECE_CHARS, _MAX_PIECE_CHARS))
        for start, end in spans:
            above = header if block.kind == ROW else leading if block.kind == CODE or start == block.start else (0, 0)
            piece = whole._replace(start=start, end=end, header=above)
            if short is not None and short.headings == piece.headings and not (is_mail and block.kind == QUOTE):
                piece = piece._replace(start=short.start)
            is_short = block.kind == PARAGRAPH and end - piece.start < _MIN_PIECE_CHARS and not _ends(text[start:end])
            short = piece if is_short else None
            if not is_short and any(map(str.isalnum, text[start:end])):
                yield piece
        if block.kind != CODE and _leads_on(text[block.start : block.end]):
            lead, led = spans[-1], ""
    if short is not None:
        yield short


def _outer_items(blocks: Sequence[Block]) -> Iterator[tuple[int, int] | None]:
    """Span of the item that each block stands in; None for none."""
    outer: dict[int, tuple[int, int]] = {}
    for block in blocks:
        outer = {level: span for level, span in outer.items() if block.kind == ITEM and level < block.level}
        yield outer[max(outer)] if outer else None
        if block.kind == ITEM:
            outer[block.level] = (block.start, block.end)


def _ends(line: str) -> bool:
    """True if a line says something by itself: with a final mark, or a value behind its name (`Default: 60`)."""
    return line.rstrip(_EMPHASIS)[-1:] in _ENDS or _NAMED_VALUE.fullmatch(line) is not None


def _leads_on(text: str) -> bool:
    """True if a text ends with a colon."""
    return text.rstrip(_EMPHASIS).endswith((":", "\uff1a"))


def _headings_above(blocks: Sequence[Block], text: str, names: set[str]) -> Callable[[int], _Spans]:
    """Spans of the headings of a block's `path`, from the outermost, without those that the title has."""

    @cache
    def above(path: int) -> _Spans:
        if path < 0:
            return ()
        outer, block = above(blocks[path].path), blocks[path]
        return outer if block_text(text, block) in names else (*outer, (block.start, block.end))

    return above


def spans_of(text: str, start: int, end: int, size: int, longest: int) -> Iterator[tuple[int, int]]:
    """A span; one longer than `longest` characters cut at sentences and lines into spans of about `size`."""
    if end - start > longest:
        last = start
        for match in _SENTENCE_END.finditer(text, start, end):
            if match.start() - start > size and last > start:
                yield start, len(text[:last].rstrip())
                start = last
            last = match.end()
        if end - start > longest and last > start:
            yield start, len(text[:last].rstrip())
            start = last
    if start < end:
        yield start, end


def _joined(pieces: Iterable[Piece], text: str) -> Iterator[Piece]:
    """Pieces, short ones together with the next under the same heading, the header of a table with its first row."""
    last: Piece | None = None
    for piece in pieces:
        if last is not None and _goes_with(last, piece, text):
            last = piece._replace(start=last.start)
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last


def _goes_with(last: Piece, piece: Piece, text: str) -> bool:
    """True if a piece belongs to the one before: the first row of a table, and what is too short to stand alone."""
    if FURNITURE in (last.kind, piece.kind) or last.headings != piece.headings:
        return False
    if last.kind == piece.kind == ROW:
        return last.end == piece.header[1]
    is_short = last.end - last.start < _MIN_PIECE_CHARS and ROW not in (last.kind, piece.kind)
    is_whole = text[last.end - 1] in FINAL_MARKS and any(map(str.isalpha, text[last.start : last.end]))  # not `9.`
    return is_short and (not is_whole or piece.end - last.start <= _PIECE_CHARS)


def sentence_spans(text: str, piece: Piece) -> list[tuple[int, int]]:
    """Spans of the sentences of a piece; of code and tables, of their lines."""
    body = text[piece.start : piece.end]
    parts = body.split("\n") if piece.kind in (CODE, ROW) else split_sentences(body)
    spans, at = [], piece.start
    for part in filter(str.strip, parts):
        start = text.index(part, at)
        at = start + len(part)
        spans.append((start, at))
    return spans or [(piece.start, piece.end)]
