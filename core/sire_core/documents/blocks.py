"""Blocks: the structure of a document's text as spans, each of one kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

from sire_core.documents.front_matter import front_matter_end

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

HEADING, PARAGRAPH, ITEM, ROW, CODE = "heading", "paragraph", "item", "row", "code"
QUOTE, FIELD, CAPTION, FURNITURE = "quote", "field", "caption", "furniture"
KINDS = (HEADING, PARAGRAPH, ITEM, ROW, CODE, QUOTE, FIELD, CAPTION, FURNITURE)

_KIND_LETTERS = dict(zip(KINDS, "hpircqfau", strict=True))
_KINDS_BY_LETTER = {letter: kind for kind, letter in _KIND_LETTERS.items()}
_STORED_BLOCK = re.compile(r"(?:@(\d+))?([a-z])(\d)(\d+),(\d+)")
_MAX_STORED_LEVEL = 9  # one digit
BRACKETS = "{}[](); "
"""A line of nothing else is no heading."""
_MAX_NESTING = 20  # levels of Markdown; deeper text becomes paragraphs, so that hostile text takes linear time
_MAX_UNDERLINED_CHARS = 200
_MIN_UNDERLINE_DASHES = 3
_WORD = re.compile(r"\w+")
_MIN_LISTED = 4  # headings of a text that lists some of them first
_MIN_LINKS = 3  # links side by side, or below each other, that make a menu
_MIN_REPEATED_PAGES = 3
_MIN_INDEX_LETTERS, _MIN_NAMED_INDEX_LETTERS = 4, 2  # in the order of the alphabet, with entries below each
_MAX_SENTENCES = 0.1  # share of the entries of an index that end like a sentence; those of a glossary do
_MAX_PAGE_LINE_CHARS = 120
_LINE_END = re.compile(r"\r\n?|\n|(?:\A|(?<=\n))\f+")
"""A form feed in front of a line stands on a line of its own: blocks end there."""
_MARKS = re.compile(r"^[ \t\f]*(?:[#>*+=~`-]|\d{1,9}[.)])|^(?: {4}| {0,3}\t)|\|", re.MULTILINE)
"""Without any of these Markdown has only paragraphs."""
_PARAGRAPH = re.compile(r"\S[^\r\n]*(?:\r?\n(?!\f|[^\S\r\n]*(?:[\r\n]|\Z))[^\r\n]*)*")
_FILLED = re.compile(r"\S")
_ATX = re.compile(r"[ \t\f]*#{1,6}[ \t]+")
_MARKER = re.compile(r"(?:[ \t]*>)*[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_QUOTE_MARK = re.compile(r"[ \t]*(?:>[ \t]?)+")
_TABLE_RULE = re.compile(r"\|(?: ?:?-+:? ?\|)+")
_FENCE = re.compile(r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*(`{3,}|~{3,})")
_BARE_ROW = re.compile(r" {0,3}\|[^\n]*\|[ \t]*\Z")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"!?\[[^\[\]\n]{0,300}\]\((?:[^()\s]|\([^()\s]{0,100}\)){0,1000}(?:[ \t]+\"[^\"\n]{0,200}\")?\)")
_IMAGE = re.compile(r"!\[[^\[\]\n]{0,1000}\]\([^()\n]{0,1000}\)\s*\Z")
_CAPTION = re.compile(
    r"(?:figure|fig\.|table|listing|abbildung|abb\.|tabelle|tableau|figura|tabla) ?\d{1,3}(?:[.-]\d{1,3})*"
    r"(?:[.:]| [-\u2013\u2014])\s",
    re.IGNORECASE,
)
_DEFINED_LINK = re.compile(r" {0,3}\[[^\[\]\n]{1,200}\]:[ \t]*\S+(?:[ \t]+[\"'(][^\n]{0,300})?[ \t]*\Z")
_LEADER = re.compile(r"[ \t]{0,9}(?:\d{1,4}|[cilvx]{1,7})?[ \t]{0,9}(?:\.{4}|\.?(?: \.){3}|\u2026{2})")
"""Dots that lead to a page number, at the end of a line of contents that is read backwards."""
_PAGE_NUMBER = re.compile(
    r"\W*(?:(?:page|seite|p\.|pag\.|s\.)\s*)?\d{1,4}(?:\s*(?:of|von|de|/)\s*\d{1,4})?\W*\Z", re.IGNORECASE
)
_FIELD_LINE = re.compile(r"(?P<name>[^\W\d_][\w /.-]{0,40}?)[ \t]{0,2}:(?:[ \t]+\S|[ \t]*\Z)")
_MAIL_FIELDS = frozenset(
    "from to cc bcc date sent subject reply-to message-id in-reply-to importance attachments x-mailer mime-version "
    "content-type von an gesendet betreff datum de \u00e0 a envoy\u00e9 objet enviado para asunto fecha da inviato "
    "oggetto aan verzonden onderwerp".split()
)
"""Names of mail headers, as mail programs write them above what they forward and answer."""
_GREETING = re.compile(
    r"(?:dear|hi|hello|hey|good (?:morning|afternoon|evening)|liebe[rs]?|hallo|guten (?:tag|morgen|abend)|moin"
    r"|sehr geehrte[rs]?|bonjour|bonsoir|ch[e\u00e8]re?s?|madame|monsieur|hola|buen[oa]s|estimad[oa]s?|querid[oa]s?"
    r"|ciao|gentil[ei]|buongiorno|beste|geachte|ol\u00e1|prezad[oa]s?|drog[ia]|szanown[yia]|cze\u015b\u0107)\b[^\n.?]{0,60}[,!:]?\Z",
    re.IGNORECASE,
)
_SIGN_OFF = re.compile(
    r"(?:(?:(?:best|kind|warm|many) )*(?:regards|wishes|thanks)|thanks(?: again)?|thank you|cheers|sincerely"
    r"|yours(?: \w+)?|all the best|best|gru\u00df|mfg|vg|lg"
    r"|(?:mit )?(?:freundliche|beste|viele|liebe|herzliche|sch\u00f6ne)[nr]? gr\u00fc(?:\u00df|ss)en?"
    r"|cordialement|bien \u00e0 (?:vous|toi)|saludos(?: cordiales)?|atentamente|cordiali saluti|saluti"
    r"|(?:met )?vriendelijke groet(?:en)?|atenciosamente|pozdrawiam)[^\w\n]{0,3}(?:\n|\Z)",
    re.IGNORECASE,
)
_MAX_SIGNATURE_LINES, _MAX_SIGNATURE_LINE_CHARS = 8, 80
_CONTENTS = re.compile(
    r"(?:table of )?contents|list of (?:figures|tables)|toc|index|indices and tables"
    r"|inhalt(?:sverzeichnis|s\u00fcbersicht)?"
    r"|table des mati\u00e8res|sommaire|(?:tabla de )?contenidos?|\u00edndice(?: general)?|indice|sommario|sum\u00e1rio"
    r"|inhoud(?:sopgave)?|spis tre\u015bci|\u0441\u043e\u0434\u0435\u0440\u0436\u0430\u043d\u0438\u0435"
    r"|\u043e\u0433\u043b\u0430\u0432\u043b\u0435\u043d\u0438\u0435|\u76ee\u5f55|\u76ee\u6b21",
    re.IGNORECASE,
)

_LICENCE = re.compile(
    r"(?:appendix )?(?:[\dA-Z][\d.]{0,6}:? )?(?:the )?(?:gnu (?:(?:lesser |library |affero )?general public"
    r"|free documentation)|apache|mozilla public|eclipse public|mit|(?:\w+-clause )?bsd) licen[cs]e\b[^\n]{0,40}",
    re.IGNORECASE,
)
_LICENCE_WORDS = (
    *("permitted to copy and distribute", "permission is hereby granted", "redistribution and use in source"),
    *("terms and conditions for", "without warranties or conditions"),
)
_INDEX = re.compile(
    r"(?:\S+ ){0,6}(?:index(?:es)?|indices|\w*verzeichnis|\w*register|skorowidz"
    r"|\u0443\u043a\u0430\u0437\u0430\u0442\u0435\u043b\u044c|\u7d22\u5f15)"
    r"|(?:index|\u00edndice|indice) \w+(?: \w+){0,4}",
    re.IGNORECASE,
)
_INDEX_LETTER = re.compile(r"[\W_]*(?:([^\W\d_])|symbole?s?|numbers|sonderzeichen)[\W_]*", re.IGNORECASE)
_ENDS_WITH_PAGES = re.compile(r"(?:,|[ .]\.) ?\d{1,4}(?:[-\u2013]\d{1,4})?\Z")
_MAX_INDEX_LETTER_CHARS = 40


def is_greeting(text: str) -> bool:
    """True if a text is a greeting of a mail: `Dear Fanny`."""
    return _GREETING.match(text) is not None


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document's text with one kind: a span of the text, which stays verbatim.

    Attributes:
        kind: `heading`, `paragraph`, `item`, `row` (of a table), `code`, `quote`, `field` (name and value: mail
            headers, front matter), `caption` or `furniture` (menus, contents, indexes, licences, greetings, page
            headers and footers).
        start: Of its first character in the text; of code, of the line that it begins in.
        end: Behind its last character.
        level: Of a heading, 1 to 6; of an item, and of what else stands in one, its depth from 1; of a row, 1 for the
            header of its table.
        path: Number of the heading block it stands under, -1 for none.
        page: Page number, 0 where there are none.
    """

    kind: str
    start: int
    end: int
    level: int = 0
    path: int = -1
    page: int = 0


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


def read_blocks(text: str, *, markdown: bool = True) -> tuple[Block, ...]:
    """Parse a text into blocks, in order; they are disjoint and hold all that is not white space.

    Args:
        text: Markdown as CommonMark defines it, with tables, or plain text. A form feed ends a page.
        markdown: Read marks of Markdown. Otherwise only lists, quoted lines and fields are told from paragraphs.
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
    leaves = [leaf for part in _joined(_with_gaps(leaves, lines)) for leaf in _by_lines(part, lines, opening)]
    pages = _pages(text, leaves, starts) if "\f" in text else [0] * len(leaves)
    return _placed(_with_furniture(leaves, lines, pages), pages, lines, starts)


def block_text(text: str, block: Block) -> str:
    """Text of a block without the marks of its kind: of a heading its words, of code its lines without fences."""
    span = text[block.start : block.end]
    if block.kind == HEADING:
        if mark := _ATX.match(span):
            return _without_closing_hashes(span[mark.end() :])
        return span.partition("\n")[0].strip()
    if block.kind == CODE:
        return _code_text(span)
    if block.kind == ROW:
        return " | ".join(row_cells(text, block))
    if block.kind not in (ITEM, QUOTE) and not block.level:
        return span
    lines = _LINE_END.split(span)
    lines[0] = lines[0][mark.end() :] if (mark := _MARKER.match(lines[0])) else lines[0]
    bare = (line[mark.end() :] if (mark := _QUOTE_MARK.match(line)) else line.strip() for line in lines)
    return "\n".join(bare).strip()


def _without_closing_hashes(words: str) -> str:
    bare = words.strip()
    open_end = bare.rstrip("#")
    return open_end.rstrip() if not open_end or open_end[-1].isspace() else bare


def layout_of(blocks: Iterable[Block], repeated: int = 0, language: str = "") -> str:
    """Blocks as a text of about eight letters each, for storage.

    `blocks_of`, `repeated_of` and `language_of` read it.

    Args:
        blocks: Blocks of a passage.
        repeated: Number of letters that the passage repeats of the one before.
        language: Code of its language.
    """
    parts = ([f"{language}!"] if language else []) + ([f"{repeated}+"] if repeated else [])
    end = page = 0
    for block in blocks:
        feed = f"@{block.page}" if block.page != page else ""
        level = min(block.level, _MAX_STORED_LEVEL)
        parts.append(f"{feed}{_KIND_LETTERS[block.kind]}{level}{block.start - end},{block.end - block.start}")
        end, page = block.end, block.page
    return "".join(parts)


@lru_cache(16)  # who reads a passage asks for its blocks more than once
def blocks_of(layout: str) -> tuple[Block, ...]:
    """Blocks that `layout_of` wrote."""
    blocks: list[Block] = []
    headings: list[tuple[int, int]] = []
    end = page = 0
    for feed, letter, level, gap, length in _STORED_BLOCK.findall(layout, layout.find("!") + 1):
        page = int(feed) if feed else page
        start = end + int(gap)
        end = start + int(length)
        path = _heading_above(headings, letter == _KIND_LETTERS[HEADING], int(level), len(blocks))
        blocks.append(Block(_KINDS_BY_LETTER[letter], start, end, int(level), path, page))
    return tuple(blocks)


def stored_blocks(text: str, layout: str) -> tuple[Block, ...]:
    """Blocks of a text; read anew where the stored ones are missing or of another text."""
    blocks = blocks_of(layout)
    fits = bool(blocks) and blocks[-1].end <= len(text) and not text[blocks[-1].end :].strip()
    return blocks if fits else read_blocks(text)


def repeated_of(layout: str) -> int:
    """Number of letters that a passage repeats of the one before."""
    repeated, mark, _ = layout[layout.find("!") + 1 :].partition("+")
    return int(repeated) if mark else 0


def language_of(layout: str) -> str:
    """Code of the language of a passage; empty where an older version stored none."""
    language, mark, _ = layout.partition("!")
    return language if mark else ""


def _heading_above(headings: list[tuple[int, int]], is_heading: bool, level: int, number: int) -> int:
    """Number of the heading that a block stands under; a heading joins `headings`, the levels and numbers around."""
    while is_heading and headings and headings[-1][0] >= level:
        headings.pop()
    path = headings[-1][1] if headings else -1
    if is_heading:
        headings.append((level, number))
    return path


def row_cells(text: str, block: Block) -> list[str]:
    """Cells of a row, without marks of the table."""
    line = _LINE_END.split(text[block.start : block.end])[0]
    line = line[mark.end() :] if (mark := _QUOTE_MARK.match(line)) else line
    cells = _CELL_BORDER.split(line.strip().removeprefix("|").removesuffix("|"))
    return [cell.replace("\\|", "|").strip() for cell in cells]


def headings_above(blocks: Sequence[Block], number: int) -> list[Block]:
    """Headings that a block stands under, from the outermost; the block itself is left out."""
    above: list[Block] = []
    while (number := blocks[number].path) >= 0:
        above.insert(0, blocks[number])
    return above


def is_contents(heading: str) -> bool:
    """True if a heading only announces a list of contents or an index, in any of ten languages."""
    return _CONTENTS.fullmatch(heading.strip(" .:")) is not None


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
    ends = [match.span() for match in _LINE_END.finditer(text)]
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
    """Paragraphs of a text without marks."""
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
        if leaf.kind != CODE or not (opened := _FENCE.match(lines[leaf.first])):
            continue
        bare = lines[leaf.first].strip() == opened[1]
        behind_code = leaf.first > 0 and bool(lines[leaf.first - 1].strip())
        above_text = leaf.first + 1 < len(lines) and not lines[leaf.first + 1].strip()
        is_open = not code_fences("\n".join(lines[leaf.first : leaf.stop]))[1]
        return leaf.first + 1 if bare and behind_code and above_text and is_open else 0
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
        if not _without_closing_hashes(line.lstrip("#")).strip(BRACKETS):
            return False
        above = lines[first - 1] if first else ""
        below = lines[first + 1] if first + 1 < len(lines) else ""
        return not above.strip() or not below.strip() or above.startswith("#")
    is_rule = token.markup[0] == "-" and len(lines[stop - 1].strip()) < _MIN_UNDERLINE_DASHES
    is_short = stop - first == 2 and len(line) <= _MAX_UNDERLINED_CHARS
    return is_short and not is_rule and "|" not in line and bool(line.strip(BRACKETS))


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


def _by_lines(leaf: _Leaf, lines: Sequence[str], opening: int) -> Iterator[_Leaf]:
    """A leaf; one row for each line of a table without a header, one field for each of the head of a mail or page."""
    if leaf.kind != PARAGRAPH or leaf.level:
        yield leaf
        return
    if all(_BARE_ROW.match(lines[row]) for row in range(leaf.first, leaf.stop)):
        yield from (_Leaf(ROW, row, row + 1) for row in range(leaf.first, leaf.stop))
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


def _with_furniture(leaves: list[_Leaf], lines: Sequence[str], pages: Sequence[int]) -> list[_Leaf]:
    """Leaves with captions, menus, contents, greetings, signatures, page headers and footers told from text."""
    texts = ["\n".join(lines[leaf.first : leaf.stop]).strip() for leaf in leaves]
    kinds = [_kind_of(leaf, words) for leaf, words in zip(leaves, texts, strict=True)]
    _mark_menus(kinds, texts)
    _mark_indexes(kinds, texts)
    _mark_licences(kinds, [leaf.level for leaf in leaves], texts)
    _mark_contents(kinds, [leaf.level for leaf in leaves], texts)
    if FIELD in kinds:
        _mark_signatures(kinds, leaves, texts)
    if any(pages):
        _mark_page_lines(kinds, texts, pages)
    return [
        leaf if kind == leaf.kind else leaf._replace(kind=kind, level=0 if leaf.kind == HEADING else leaf.level)
        for leaf, kind in zip(leaves, kinds, strict=True)
    ]


def _kind_of(leaf: _Leaf, words: str) -> str:
    """Kind of a leaf by its words alone."""
    if leaf.kind not in (PARAGRAPH, ITEM, QUOTE):
        return leaf.kind
    if not any(map(str.isalnum, words)):
        return FURNITURE
    rows = words.split("\n")
    of_text = leaf.kind == PARAGRAPH and not leaf.level and len(rows) == 1
    if ("](" in words and _IMAGE.match(words)) or (of_text and _CAPTION.match(words)):
        return CAPTION
    greets = of_text and words[-1] in ",!" and is_greeting(words)
    defines = "]:" in words and all(map(_DEFINED_LINK.match, rows))
    return FURNITURE if greets or defines or _is_contents_list(words, rows) else leaf.kind


def _is_contents_list(words: str, rows: Sequence[str]) -> bool:
    """True if dots lead to page numbers in most lines."""
    if not any(dots in words for dots in ("....", ". . .", "\u2026\u2026")):
        return False
    return 2 * sum(_LEADER.match(row[:-41:-1]) is not None for row in rows) > len(rows)


def _mark_menus(kinds: list[str], texts: Sequence[str]) -> None:
    """Paragraphs and items next to each other that hold nothing but links are a menu if the links are enough."""
    counts = [
        _link_count(words) if "](" in words and kind in (PARAGRAPH, ITEM, QUOTE) else 0
        for kind, words in zip(kinds, texts, strict=True)
    ]
    for _, group in groupby(range(len(kinds)), lambda number: counts[number] > 0):
        numbers = list(group)
        if sum(counts[number] for number in numbers) >= _MIN_LINKS:
            for number in numbers:
                kinds[number] = FURNITURE


def _link_count(words: str) -> int:
    """Number of links in a text of nothing else; 0 if there is anything else in it."""
    rest, count = _LINK.subn("", words)
    return 0 if any(map(str.isalpha, rest)) else count


def _mark_signatures(kinds: list[str], leaves: Sequence[_Leaf], texts: Sequence[str]) -> None:
    """Closings of mails, and the few short lines below them."""
    room = 0  # lines that may still belong to a signature
    for number, (kind, words) in enumerate(zip(kinds, texts, strict=True)):
        if kind != PARAGRAPH or leaves[number].level:
            room = 0 if kind != FURNITURE else room
            continue
        rows = words.split("\n")
        is_short = max(map(len, rows)) <= _MAX_SIGNATURE_LINE_CHARS
        begins = is_short and (_SIGN_OFF.match(words) is not None or rows[0].rstrip() == "--")
        room = _MAX_SIGNATURE_LINES if begins else room
        if is_short and room >= len(rows) and (begins or not words.endswith((".", "?"))):
            kinds[number], room = FURNITURE, room - len(rows)
        else:
            room = 0


def _mark_indexes(kinds: list[str], texts: Sequence[str]) -> None:
    """Entries below letters of the alphabet, if the heading is that of an index or most end with pages."""
    letters = {
        number: (match[1] or "").casefold()
        for number, words in enumerate(texts)
        if len(words) <= _MAX_INDEX_LETTER_CHARS and (match := _INDEX_LETTER.fullmatch(words))
    }
    if len(letters) < _MIN_NAMED_INDEX_LETTERS:
        return
    heads = [number for number, kind in enumerate(kinds) if kind == HEADING and number not in letters]
    for head, stop in pairwise([-1, *heads, len(kinds)]):
        marks = [number for number in range(head + 1, stop) if number in letters]
        marks = [number for number in marks if kinds[number] == HEADING] or marks
        order = [letters[number] for number in marks]
        is_named = head >= 0 and _INDEX.fullmatch(texts[head].strip("# \t")) is not None
        least = _MIN_NAMED_INDEX_LETTERS if is_named else _MIN_INDEX_LETTERS
        if len(set(order)) < least or order != sorted(order):
            continue
        entries = [number for number in range(marks[0], stop) if number not in marks]
        ends = [texts[number] for number in entries if kinds[number] not in (ROW, FURNITURE)]
        if sum(words.endswith((".", "?", "!")) for words in ends) > _MAX_SENTENCES * len(entries):
            continue
        if is_named or 2 * sum(_ENDS_WITH_PAGES.search(words[-10:]) is not None for words in ends) > len(entries):
            first = head if is_named else marks[0]
            kinds[first:stop] = [FURNITURE] * (stop - first)


def _mark_licences(kinds: list[str], levels: Sequence[int], texts: Sequence[str]) -> None:
    """Texts of well-known licences in documents that are mostly about something else, with their headings."""
    sizes = list(accumulate(map(len, texts), initial=0))
    for number, (kind, level) in enumerate(zip(kinds, levels, strict=True)):
        if kind != HEADING or not _LICENCE.fullmatch(texts[number].strip("# \t").split("\n")[0]):
            continue
        behind = range(number + 1, len(kinds))
        stop = next((row for row in behind if kinds[row] == HEADING and levels[row] <= level), len(kinds))
        is_part = 2 * (sizes[stop] - sizes[number]) < sizes[-1]
        if is_part and any(mark in words.lower() for words in texts[number:stop] for mark in _LICENCE_WORDS):
            kinds[number:stop] = [FURNITURE] * (stop - number)


def _mark_contents(kinds: list[str], levels: Sequence[int], texts: Sequence[str]) -> None:
    """Items and short lines below a heading that announces contents, up to the next heading; it too if all are such."""
    _mark_listed_headings(kinds, levels, texts)
    heads = [number for number, kind in enumerate(kinds) if kind == HEADING]
    for number, stop in pairwise([*heads, len(kinds)]):
        if not is_contents(texts[number].partition("\n")[0].strip("# \t")):
            continue
        for below in range(number + 1, stop):
            is_line = kinds[below] == PARAGRAPH and not texts[below].endswith((".", "?", "!", ":"))
            if is_line or kinds[below] in (ITEM, ROW):
                kinds[below] = FURNITURE
        if stop > number + 1 and all(kind == FURNITURE for kind in kinds[number + 1 : stop]):
            kinds[number] = FURNITURE


def _mark_listed_headings(kinds: list[str], levels: Sequence[int], texts: Sequence[str]) -> None:
    """Headings that list contents: several above no text whose words come again below."""
    heads = [number for number, kind in enumerate(kinds) if kind == HEADING]
    if len(heads) < _MIN_LISTED:
        return
    keys = {number: " ".join(_WORD.findall(texts[number].casefold())) for number in heads}
    last = {key: number for number, key in keys.items()}
    announced = {one for one, below in pairwise(heads) if below == one + 1 and one < last[keys[one]]}
    for level, group in groupby(heads, lambda number: levels[number] if number in announced else 0):
        listed = list(group)
        if level and len(listed) > 1:
            for number in listed:
                kinds[number] = FURNITURE


def _mark_page_lines(kinds: list[str], texts: Sequence[str], pages: Sequence[int]) -> None:
    """Page numbers, and lines that come again at the beginning or end of pages."""
    edges: dict[int, str] = {}
    for _, group in groupby(range(len(pages)), lambda number: pages[number]):
        numbers = list(group)
        for number in (numbers[0], numbers[-1]):
            if kinds[number] == PARAGRAPH and len(texts[number]) <= _MAX_PAGE_LINE_CHARS:
                edges[number] = re.sub(r"\d+", "0", " ".join(texts[number].split()))
    repeated = Counter(edges.values())
    least = max(_MIN_REPEATED_PAGES, pages[-1] // 3)
    for number, key in edges.items():
        if repeated[key] >= least or _PAGE_NUMBER.match(texts[number]):
            kinds[number] = FURNITURE


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
        path = _heading_above(headings, leaf.kind == HEADING, leaf.level, len(blocks))
        blocks.append(Block(leaf.kind, start, end, leaf.level, path, page))
    return tuple(blocks)


def _code_text(span: str) -> str:
    lines = _LINE_END.split(span)
    fence, is_closed = code_fences(span)
    if fence:
        lines = lines[1:-1] if is_closed else lines[1:]
    elif not lines[-1].strip(" \t`~"):
        lines = lines[:-1]
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines)


def code_fences(span: str) -> tuple[str, bool]:
    """The fence that opens a piece of code, indented as it stands, and whether one closes it; empty without fences."""
    first, *lines = _LINE_END.split(span)
    opened = _FENCE.match(first)
    if opened is None:
        return "", False
    column = len(first[: opened.start(1)].expandtabs(4))
    last = lines[-1].strip(" \t>") if lines else ""
    is_closed = last.startswith(opened[1]) and not last.strip(opened[1][0])
    return f"{' ' * column}{first[opened.start(1) :].rstrip()}", is_closed
