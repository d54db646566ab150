"""Parses texts into blocks, by markdown-it-py."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, NamedTuple

from sire_core.documents.blocks import (
    CODE,
    FIELD,
    FURNITURE,
    GAP,
    HEADING,
    ITEM,
    LINE_END,
    PARAGRAPH,
    QUOTE,
    ROW,
    Block,
    blocks_of,
    code_fences,
    heading_above,
    line_cells,
    without_closing_hashes,
)
from sire_core.documents.front_matter import front_matter_end
from sire_core.documents.furniture import with_furniture

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_CODE_SIGNS = "{}[](); "  # A line of nothing else is no heading
_MAX_NESTING = 20  # levels of Markdown; deeper text becomes paragraphs, so that hostile text takes linear time
_MAX_UNDERLINED_CHARS = 200
_MIN_UNDERLINE_DASHES = 3
_MARKS = re.compile(r"^[ \t\f]*(?:[#>*+=~`-]|\d{1,9}[.)])|^(?: {4}| {0,3}\t)|\|", re.MULTILINE)
"""Without any of these Markdown has only paragraphs."""
_PARAGRAPH = re.compile(r"\S[^\r\n]*(?:\r?\n(?!\f|[^\S\r\n]*(?:[\r\n]|\Z))[^\r\n]*)*")
_FILLED = re.compile(r"\S")
_TABLE_RULE = re.compile(r"\|(?: ?:?-+:? ?\|)+")
_BARE_ROW = re.compile(r" {0,3}\|[^\n]*\|[ \t]*\Z")
_COLUMN = r"(?![\d_])\w(?:[\w /.:%()#&$\u20ac-]{0,40}[\w.%)#])?"
_HEADER_LINE = re.compile(
    rf"\"?{_COLUMN}\"?(?P<separator>[\t;,]|[ ]?\|[ ]?)\"?{_COLUMN}\"?(?:(?P=separator)\"?{_COLUMN}\"?)+"
)
"""The names of at least three columns, without a space behind the commas: it begins a table of values."""
_NUMERIC_OR_EMPTY = re.compile(r"[-+$\u20ac(]? ?\d|\s*\Z")
_MIN_LINES_OF_VALUES = 3
_FIELD_LINE = re.compile(r"(?P<name>[^\W\d_][\w /.-]{0,40}?)[ \t]{0,2}:(?:[ \t]+\S|[ \t]*\Z)")
_MAIL_FIELDS = frozenset(
    "from to cc bcc date sent subject reply-to message-id in-reply-to importance attachments x-mailer mime-version "
    "content-type von an gesendet betreff datum de \u00e0 a envoy\u00e9 objet enviado para asunto fecha da inviato "
    "oggetto aan verzonden onderwerp".split()
)
"""Names of mail headers, as mail programs write them above what they forward and answer."""
_TOKEN_KINDS = {
    "heading_open": HEADING,
    "paragraph_open": PARAGRAPH,
    "tr_open": ROW,
    "fence": CODE,
    "code_block": CODE,
    "hr": FURNITURE,
}


class _Leaf(NamedTuple):
    """A block before its place is known: a range of lines."""

    kind: str
    first: int
    stop: int
    level: int = 0


def read_blocks(text: str, *, markdown: bool = True, of_values: bool = False) -> tuple[Block, ...]:
    """Parse a text into blocks, in order; they are disjoint and hold all that is not white space.

    Markdown as CommonMark defines it, with tables; a form feed ends a page. Without `markdown` only lists, quoted lines
    and fields are told from paragraphs. Lines of as many values, between commas, semicolons, tabs or bars, are rows if
    the first names columns of numbers; in a text `of_values`, a part of a file of CSV, always.
    """
    lines, starts = _lines(text)
    if markdown and _MARKS.search(text):
        head = front_matter_end(lines) if text.startswith(("---", "+++")) else 0
        body = [*[""] * head, *lines[head:]] if head else lines
        leaves = [*_head_leaves(lines, head), *_leaves(body, _parser(markdown=True))]
        if (stop := _end_of_cut_code(leaves, lines)) and not head:
            rest = _leaves([*[""] * stop, *lines[stop:]], _parser(markdown=True))
            leaves = [_Leaf(CODE, 0, stop), *rest]
    elif markdown or "\n" not in text:
        leaves = _paragraphs(text, starts)
    else:
        leaves = list(_leaves(lines, _parser(markdown=False)))
    opening = next((row for row, line in enumerate(lines) if line.strip()), 0)
    leaves = [
        leaf for part in _joined(_with_gaps(leaves, lines)) for leaf in _by_lines(part, lines, opening, of_values)
    ]
    pages = _pages(text, leaves, starts) if "\f" in text else [0] * len(leaves)
    texts = ["\n".join(lines[leaf.first : leaf.stop]).strip() for leaf in leaves]
    kinds = with_furniture([leaf.kind for leaf in leaves], [leaf.level for leaf in leaves], texts, pages)
    marked = [_with_kind(leaf, kind) for leaf, kind in zip(leaves, kinds, strict=True)]
    return _placed(marked, pages, lines, starts)


def _with_kind(leaf: _Leaf, kind: str) -> _Leaf:
    """A leaf with the kind that its words show; what was a heading has no level."""
    return leaf if kind == leaf.kind else leaf._replace(kind=kind, level=0 if leaf.kind == HEADING else leaf.level)


def stored_blocks(text: str, layout: str) -> tuple[Block, ...]:
    """Blocks of a text; read anew where the stored ones are missing or of another text."""
    blocks = blocks_of(layout)
    fits = bool(blocks) and blocks[-1].end <= len(text) and not text[blocks[-1].end :].strip()
    return blocks if fits else read_blocks(text)


@cache
def _parser(*, markdown: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).enable("table")
    unread = ["html_block", "reference", "inline", "text_join"]
    return parser.disable(unread if markdown else [*unread, "table", "heading", "lheading", "fence", "code", "hr"])


def _lines(text: str) -> tuple[list[str], list[int]]:
    """Lines of a text, and where each begins."""
    if "\r" not in text and "\n\f" not in text and text[:1] != "\f":
        lines = text.split("\n")
        return lines, [0, *accumulate(len(line) + 1 for line in lines[:-1])]
    ends = [match.span() for match in LINE_END.finditer(text)]
    starts = [0, *(end for _, end in ends)]
    return [text[start:end] for start, (end, _) in zip(starts, [*ends, (len(text), 0)], strict=True)], starts


def _head_leaves(lines: Sequence[str], stop: int) -> Iterator[_Leaf]:
    """Front matter: each name with the lines of its value, between two rules."""
    first = 0
    for row in range(1, stop + 1 if stop else 0):
        begins = row >= stop - 1 or row == 1 or lines[row][:1] not in (" ", "\t", "-", "]", "}", "")
        if begins and first < row:
            is_rule = first in (0, stop - 1)
            yield _Leaf(FURNITURE if is_rule else FIELD, first, row)
            first = row


def _paragraphs(text: str, starts: Sequence[int]) -> list[_Leaf]:
    leaves: list[_Leaf] = []
    row, size = 0, len(starts)
    for match in _PARAGRAPH.finditer(text):
        while row + 1 < size and starts[row + 1] <= match.start():
            row += 1
        first = row
        while row + 1 < size and starts[row + 1] < match.end():
            row += 1
        leaves.append(_Leaf(PARAGRAPH, first, row + 1))
    return leaves


def _leaves(lines: Sequence[str], parser: MarkdownIt) -> Iterator[_Leaf]:
    """Blocks of Markdown that hold no other ones; inner rows of tables are read without the parser, which is slow."""
    numbers = _parsed_lines(lines)
    for leaf in _parsed_leaves([lines[number] for number in numbers], parser):
        yield _Leaf(leaf.kind, numbers[leaf.first], numbers[leaf.stop - 1] + 1, leaf.level)
        if leaf.kind == ROW and leaf.stop < len(numbers):
            yield from (_Leaf(ROW, row, row + 1) for row in range(numbers[leaf.stop - 1] + 1, numbers[leaf.stop]))


def _parsed_lines(lines: Sequence[str]) -> Sequence[int]:
    """Numbers of the lines that are parsed: of the rows below the rule of a table only the first and the last."""
    if not any(map(_TABLE_RULE.fullmatch, lines)):
        return range(len(lines))
    numbers: list[int] = []
    row = 0
    while row < len(lines):
        numbers.append(row)
        row += 1
        if _TABLE_RULE.fullmatch(lines[row - 1]):
            stop = next((below for below in range(row, len(lines)) if lines[below][:1] != "|"), len(lines))
            numbers += [row] if row < stop else []
            row = max(min(row + 1, stop), stop - 1)
    return numbers


def _parsed_leaves(lines: Sequence[str], parser: MarkdownIt) -> Iterator[_Leaf]:
    depth = quotes = 0
    item = -1  # first line of an item that nothing stands in yet
    is_head = False
    for token in parser.parse("\n".join(lines).replace("\f", " ")):
        if token.type in _TOKEN_KINDS:
            kind, first, stop, level = _leaf(token, lines, is_head=is_head, is_inside=depth + quotes > 0)
            if stop:
                if kind == PARAGRAPH and (item >= 0 or (quotes and not depth)):
                    kind = ITEM if item >= 0 else QUOTE
                yield _Leaf(kind, item if item >= 0 else first, stop, level or depth)
                item = -1
        elif token.type.startswith("list_item"):
            depth += token.nesting
            item = -1 if token.nesting < 0 else item if item >= 0 else _rows(token)[0]
        elif token.type.startswith("blockquote"):
            quotes += token.nesting
        elif token.type.startswith("thead"):
            is_head = token.nesting > 0


def _end_of_cut_code(leaves: Sequence[_Leaf], lines: Sequence[str]) -> int:
    """Number of lines of code that a passage begins within: up to a fence behind it that nothing closes; 0 for none."""
    for leaf in leaves:
        fence, is_closed = code_fences("\n".join(lines[leaf.first : leaf.stop])) if leaf.kind == CODE else ("", False)
        if not fence:
            continue
        bare = lines[leaf.first].strip() == fence.strip() and not fence.strip(" `~")
        behind_code = leaf.first > 0 and bool(lines[leaf.first - 1].strip())
        above_text = leaf.first + 1 < len(lines) and not lines[leaf.first + 1].strip()
        return leaf.first + 1 if bare and behind_code and above_text and not is_closed else 0
    return 0


def _leaf(token: Token, lines: Sequence[str], *, is_head: bool, is_inside: bool) -> _Leaf:
    """Block of a token that begins one; without lines, it is none."""
    first, stop = _rows(token)
    kind, level = _TOKEN_KINDS[token.type], 0
    if kind == HEADING:
        level = int(token.tag[1])
        if is_inside or not _is_heading(token, lines):
            kind, level = PARAGRAPH, 0
    elif kind == ROW and is_head:
        stop, level = stop + 1, 1
    elif kind == ROW and "|" not in lines[first]:
        kind = PARAGRAPH
    return _Leaf(kind, first, stop, level)


def _rows(token: Token) -> tuple[int, int]:
    return (token.map[0], token.map[1]) if token.map else (0, 0)


def _joined(leaves: Iterable[_Leaf]) -> Iterator[_Leaf]:
    """Leaves, paragraphs without a blank line between them as one: comments in code that nothing marks as code."""
    last: _Leaf | None = None
    for leaf in leaves:
        goes_on = last is not None and last[2:] == (leaf.first, 0) and last.kind == leaf.kind == PARAGRAPH
        if last is not None and goes_on and not leaf.level:
            last = last._replace(stop=leaf.stop)
            continue
        if last is not None:
            yield last
        last = leaf
    if last is not None:
        yield last


def _is_heading(token: Token, lines: Sequence[str]) -> bool:
    """True if a heading of CommonMark is meant as one: not a comment in unfenced code, nor prose above a rule."""
    first, stop = _rows(token)
    line = lines[first].strip()
    if token.markup[0] == "#":
        if not without_closing_hashes(line.lstrip("#")).strip(_CODE_SIGNS):
            return False
        above = lines[first - 1] if first else ""
        below = lines[first + 1] if first + 1 < len(lines) else ""
        return not above.strip() or not below.strip() or above.startswith("#")
    is_rule = token.markup[0] == "-" and len(lines[stop - 1].strip()) < _MIN_UNDERLINE_DASHES
    is_short = stop - first == 2 and len(line) <= _MAX_UNDERLINED_CHARS
    return is_short and not is_rule and "|" not in line and bool(line.strip(_CODE_SIGNS))


def _with_gaps(leaves: Sequence[_Leaf], lines: Sequence[str]) -> Iterator[_Leaf]:
    """Leaves, and what the parser made no block of, as paragraphs."""
    row = 0
    for leaf in [*leaves, _Leaf("", len(lines), len(lines))]:
        rows = ((bool(lines[number].strip()), number) for number in range(row, leaf.first))
        for filled, group in groupby(rows, lambda pair: pair[0]):
            if filled:
                numbers = [number for _, number in group]
                yield _Leaf(PARAGRAPH, numbers[0], numbers[-1] + 1)
        if leaf.kind:
            yield leaf
        row = max(row, leaf.stop)


def _by_lines(leaf: _Leaf, lines: Sequence[str], opening: int, of_values: bool) -> Iterator[_Leaf]:
    """A leaf; one row for each line of a table without a header, one field for each of the head of a mail or page."""
    if leaf.kind != PARAGRAPH or leaf.level:
        yield leaf
        return
    if all(_BARE_ROW.match(lines[row]) for row in range(leaf.first, leaf.stop)):
        yield from (_Leaf(ROW, row, row + 1) for row in range(leaf.first, leaf.stop))
        return
    if "  " in lines[leaf.stop - 1] and (rows := list(_rows_in_columns(leaf, lines))):
        yield from rows
        return
    is_headed = any(_HEADER_LINE.fullmatch(line.strip()) for line in lines[leaf.first : leaf.first + 2])
    if (of_values or is_headed) and (rows := list(_rows_of_values(leaf, lines, of_values))):
        yield from rows
        return
    names: list[str] = []
    first_rows: list[int] = []
    for row in range(leaf.first, leaf.stop):
        line = lines[row]
        if match := _FIELD_LINE.match(line):
            names.append(match["name"].lower())
            first_rows.append(row)
        elif not (names and line[:1] in (" ", "\t")):
            yield leaf
            return
    of_mail = len(_MAIL_FIELDS.intersection(names))
    if of_mail > 1 or (leaf.first == opening and (of_mail or "title" in names)):
        for first, stop in zip(first_rows, [*first_rows[1:], leaf.stop], strict=True):
            yield _Leaf(FIELD, first, stop)
    else:
        yield leaf


def _rows_of_values(leaf: _Leaf, lines: Sequence[str], of_values: bool) -> Iterator[_Leaf]:
    """The lines of a leaf that have as many values as most, each as a row, the first a header if it reads as one."""
    values = [line_cells(line) for line in lines[leaf.first : leaf.stop]]
    width, count = Counter(map(len, values)).most_common(1)[0]
    has_header = _is_header(*(row for row in values if len(row) == width))
    title = int(len(values[0]) < width)
    is_whole = has_header and count >= _MIN_LINES_OF_VALUES and {*map(len, values[title:-1])} == {width}
    if min(width, count) < 2 or not (of_values or is_whole):
        return
    number = leaf.first
    for is_row, group in groupby(values, lambda row: len(row) == width):
        stop = number + len(list(group))
        if not is_row:
            yield _Leaf(PARAGRAPH, number, stop)
        for row in range(number, stop) if is_row else ():
            yield _Leaf(ROW, row, row + 1, int(has_header))
            has_header = False
        number = stop


def _rows_in_columns(leaf: _Leaf, lines: Sequence[str]) -> Iterator[_Leaf]:
    """The lines of a leaf that spaces set in columns, each as a row; a line above them may name what they are."""
    starts = [{gap.end() for gap in GAP.finditer(line.rstrip())} for line in lines[leaf.first : leaf.stop]]
    title = int(not starts[0])
    if len(starts) - title >= _MIN_LINES_OF_VALUES and set.intersection(*starts[title:]):
        if title:
            yield _Leaf(PARAGRAPH, leaf.first, leaf.first + 1)
        rows = range(leaf.first + title, leaf.stop)
        values = [line_cells(lines[row]) for row in rows]
        has_header = len({*map(len, values)}) == 1 and _is_header(*values)
        yield from (_Leaf(ROW, row, row + 1, int(has_header and row == rows[0])) for row in rows)


def _is_header(first: Sequence[str], *others: Sequence[str]) -> bool:
    """True if the first of some rows names its columns, and the others have numbers in one of them."""
    is_named = len(set(first)) == len(first) and not any(map(_NUMERIC_OR_EMPTY.match, first))
    return is_named and any(all(map(_NUMERIC_OR_EMPTY.match, column)) for column in zip(*others, strict=True))


def _pages(text: str, leaves: Sequence[_Leaf], starts: Sequence[int]) -> list[int]:
    """Page on which each leaf begins, from 1."""
    pages, page, counted = [], 1, 0
    for leaf in leaves:
        match = _FILLED.search(text, starts[leaf.first])
        start = match.start() if match else counted
        page += text.count("\f", counted, start)
        counted = start
        pages.append(page)
    return pages


def _placed(
    leaves: Sequence[_Leaf], pages: Sequence[int], lines: Sequence[str], starts: Sequence[int]
) -> tuple[Block, ...]:
    """Blocks of leaves: spans in characters, and the heading above."""
    blocks: list[Block] = []
    headings: list[tuple[int, int]] = []  # levels and numbers of the headings around
    for leaf, page in zip(leaves, pages, strict=True):
        first, last = leaf.first, leaf.stop - 1
        while first <= last and not lines[last].strip():
            last -= 1
        while first < last and not lines[first].strip():
            first += 1
        if first > last:
            continue
        line = lines[first]
        start = starts[first] + (0 if leaf.kind == CODE else len(line) - len(line.lstrip()))
        end = starts[last] + len(lines[last].rstrip())
        path = heading_above(headings, leaf.kind == HEADING, leaf.level, len(blocks))
        blocks.append(Block(leaf.kind, start, end, leaf.level, path, page))
    return tuple(blocks)
