"""Preformatted prose as Markdown: manual pages, standards and mails that a page shows as they were printed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from sire_core.documents.markdown_cleaning import without_hyphenation
from sire_core.documents.markdown_sections import LONGEST_LINE
from sire_core.documents.markdown_writing import code_block, plain_text
from sire_core.text.languages import find_language, language

_MIN_PROSE_SHARE = 0.5  # Letters in paragraphs, of those of a text that is no code
_MIN_FILLED_LINES, _MIN_FUNCTION_WORDS = 3, 0.2  # Lines of its paragraphs, and the share of function words in them
_MIN_WORDS, _MIN_WORD_SHARE = 5, 0.65  # Words of a paragraph, and the share of those that hold letters alone
_MIN_LINE_SHARE, _MIN_LINE_CHARS = 0.7, 40
"""Right end of all lines of a paragraph but its last one, as a share of the furthest; and of that one."""
_MAX_TERM_CHARS, _MAX_HEADING_CHARS = 120, 80
_TAB, _MIN_REPEATED = 8, 3
_PLAIN_WORD = re.compile(r"[\"'(\[\u201c\u2018]*[^\W\d_]+(?:['\u2019/-][^\W\d_]+)*[\"')\]\u201d\u2019,.;:?!]*")
_STOP = re.compile(r"[.:?!][\"')\]\u201d\u2019]*\Z")
_COMMENT = re.compile(r"#|//|/\*|\*[ /]|--|;|%|>|\{|\$ |\d+(?://|#)")
_CODE_END = re.compile(r"[;{}\\]\Z|\)[ \t]*\Z(?<=\w\(\))")
_BULLET = re.compile(r"(?:(?P<bullet>[-*+o\u2022\u00b7])|(?P<number>\d{1,3}[.)]))[ \t]+(?=[^\W_]|[^\s\w-])")
_TERM_GAP = re.compile(r"\S+(?: \S+){0,3}  +(?=\S)")
_WIDE_GAP = re.compile(r"\S {3,}\S")
_TABLE_GAP = re.compile(r"\S {6,}\S")
_DRAWN = re.compile(r"-{3}|={3}|_{3}|[.|] ?[.|]")
_LEADER = re.compile(r"(?:\.{3}|(?: \.){3}) *[\divxlc]{1,5}\Z")
_NUMBERED = re.compile(
    r"(?:\d{1,2}(?P<deeper>(?:\.\d{1,2}){0,4})\.?|[A-Z](?P<below>(?:\.\d{1,2}){0,4})\.)[ \t]+[^\W\d_]"
)
_UNDERLINE = re.compile(r"\s*([-=~^*#])\1{2,}\s*\Z")
_FIELD = re.compile(r"\A *[A-Z][A-Za-z-]{1,20}: +\S")
_REPLY_LINE = re.compile(r"\A ?>(?: ?\S|\Z)")
_PAGE_NAME = re.compile(r"[^\s()]{1,80}\(\d\w{0,9}\)")  # Name of a manual page: `tar(1)`


class _Stanza(NamedTuple):
    """Lines between blank ones, or a part of them."""

    lines: list[str]  # The lines, with their indentation
    is_first: bool  # True if a blank line, or nothing, stands above

    @property
    def column(self) -> int:
        return _column(self.lines[-1])

    @property
    def words(self) -> list[str]:
        return " ".join(self.lines).split()

    def is_prose(self) -> bool:
        """True if its lines are filled with words; a line alone is a sentence."""
        words, lines = self.words, self.lines
        comments = [_COMMENT.match(line.lstrip()) is not None for line in lines]
        if len(words) < _MIN_WORDS or comments[0] or 4 * sum(comments) > len(lines):
            return False
        if 4 * sum(_CODE_END.search(line) is not None for line in lines) > len(lines):
            return False
        if sum(_PLAIN_WORD.fullmatch(word) is not None for word in words) < _MIN_WORD_SHARE * len(words):
            return False
        if 2 * sum(_TABLE_GAP.search(line) is not None for line in lines) > len(lines):
            return False
        width = max(map(len, lines))
        is_filled = width >= _MIN_LINE_CHARS and min(map(len, lines[:-1]), default=0) >= _MIN_LINE_SHARE * width
        return is_filled if len(lines) > 1 else self.is_sentence

    @property
    def is_sentence(self) -> bool:
        return _STOP.search(self.lines[-1]) is not None


class Preformatted(str):
    """Text of a `pre` element among the lines of a page; `level` is that of the heading above it, 0 for none."""

    __slots__ = ("level",)
    level: int

    def __new__(cls, text: str, level: int) -> Preformatted:
        """Create one of a text with its line ends."""
        new = super().__new__(cls, text)
        new.level = level
        return new


def written_lines(lines: Sequence[str]) -> Iterator[str]:
    """Lines of Markdown, of preformatted texts paragraphs, headings, items and terms if they are prose, else code.

    Texts with nothing between them are one, as the pages of a standard are.
    """
    texts: list[Preformatted] = []
    for line in [*lines, "\n"]:
        if isinstance(line, Preformatted):
            texts.append(line)
        elif line:
            yield from _markdown(texts)
            texts = []
        if not isinstance(line, Preformatted):
            yield line


def _markdown(texts: Sequence[Preformatted]) -> Iterator[str]:
    if len(texts) > 1 and (whole := _prose_markdown("\n\n".join(texts), texts[0].level)):
        yield whole
    else:
        for text in texts:
            yield from (_prose_markdown(text, text.level) or code_block(text), "")


def _prose_markdown(text: str, level: int) -> str:
    """Markdown of a preformatted text; empty for code."""
    if any(len(line) > LONGEST_LINE for line in text.split("\n")):
        return ""
    lines = [line.expandtabs(_TAB).rstrip() for line in text.split("\n")]
    if not _is_prose(lines, prose := [stanza for stanza in _stanzas(lines) if stanza.is_prose()]):
        return ""
    body = Counter(stanza.column for stanza in prose for _ in stanza.lines).most_common(1)[0][0]
    joined = without_hyphenation("\n".join(_without_page_lines(lines)))
    return "\n\n".join(_written(list(_stanzas(joined.split("\n"))), body, max(level, 1)))


def _is_prose(lines: Sequence[str], paragraphs: Sequence[_Stanza]) -> bool:
    """True if most of a text, quoted lines of a mail aside, are paragraphs of sentences."""
    filled = [stanza for stanza in paragraphs if len(stanza.lines) > 1]
    if sum(len(stanza.lines) for stanza in filled if stanza.is_sentence) < _MIN_FILLED_LINES:
        return False
    words = [word for stanza in filled for word in stanza.words]
    letters = sum(len("".join(line.split())) for line in lines if not _REPLY_LINE.match(line))
    if sum(map(len, words)) < _MIN_PROSE_SHARE * letters:
        return False
    small = language(find_language(" ".join(words))).listed_words
    return sum(word.lower() in small for word in words) >= _MIN_FUNCTION_WORDS * len(words)


def _without_page_lines(lines: Sequence[str]) -> Iterator[str]:
    """Lines, those at the edges of pages once and names of the manual page not at all; paragraphs go on behind them."""
    forms = [re.sub(r"\d+", "0", line.strip()) if _WIDE_GAP.search(line) else "" for line in lines]
    counts = Counter(forms)
    seen = {""}
    blank = is_cut = is_open = False
    for line, form in zip(lines, forms, strict=True):
        names = _PAGE_NAME.findall(form)
        is_name = len(names) > 1 and names[0] == names[-1] and form.endswith(names[0])
        if form and (is_name or counts[form] >= _MIN_REPEATED):
            is_cut, is_new = is_name or form in seen, form not in seen
            seen.add(form)
            if is_new and not is_name:
                yield from ("", line, "")
        elif line:
            goes_on = is_cut and is_open and line.lstrip()[:1].islower()
            if blank and not goes_on:
                yield ""
            yield line
            blank, is_cut, is_open = False, False, not _STOP.search(line)
        else:
            blank = True


def _column(line: str) -> int:
    return len(line) - len(line.lstrip())


def _stanzas(lines: Sequence[str]) -> Iterator[_Stanza]:
    """Runs of lines without blank ones between them, in parts whose lines begin in one column."""
    for is_filled, group in groupby(lines, bool):
        if not is_filled:
            continue
        run = list(group)
        starts = [row for row in range(len(run)) if row == 0 or _begins_part(run, row)]
        for start, stop in zip(starts, [*starts[1:], len(run)], strict=True):
            yield _Stanza(run[start:stop], start == 0)


def _begins_part(run: Sequence[str], row: int) -> bool:
    """True if a line does not go on with the text of the line above it."""
    column, above = _column(run[row]), run[row - 1]
    if _BULLET.match(run[row], column) or _UNDERLINE.match(above):
        return True
    if column == _column(above) or column == _text_column(above):
        return False
    follows = row + 1 == len(run) or _column(run[row + 1]) == column
    is_set_in = row == 1 and follows and len(above) >= _MIN_LINE_SHARE * max(len(run[row]), _MIN_LINE_CHARS)
    return not (is_set_in and column < _column(above))


def _text_column(line: str) -> int:
    """Column of the text behind a mark or a short term that begins a line; -1 for none."""
    start = _column(line)
    mark = _BULLET.match(line, start) or _TERM_GAP.match(line, start)
    return mark.end() if mark else -1


def _written(stanzas: Sequence[_Stanza], body: int, level: int) -> Iterator[str]:
    heads = Counter(stanza.column for stanza in stanzas if stanza.column < body and stanza.is_first)
    columns = sorted(heads)
    code: list[str] = []
    for number, stanza in enumerate(stanzas):
        below = stanzas[number + 1] if number + 1 < len(stanzas) else None
        text = _heading(stanza, below, body, columns, level) or _paragraph(stanza, below)
        if not text:
            code += ["", *stanza.lines] if code and stanza.is_first else stanza.lines
            continue
        if code:
            yield code_block(_unindented(code))
            code = []
        yield text
    if code:
        yield code_block(_unindented(code))


def _unindented(lines: Sequence[str]) -> str:
    margin = min(_column(line) for line in lines if line)
    return "\n".join(line[margin:] for line in lines)


def _heading(stanza: _Stanza, below: _Stanza | None, body: int, columns: Sequence[int], level: int) -> str:
    """A heading, or nothing: a line alone, underlined, left of the text, in capitals or behind a number."""
    is_underlined = len(stanza.lines) == 2 and _UNDERLINE.match(stanza.lines[1]) is not None
    words = " ".join(stanza.lines[0].split())
    is_alone = stanza.is_first and (is_underlined or len(stanza.lines) == 1)
    if not is_alone or below is None or len(words) > _MAX_HEADING_CHARS or not words[0].isalnum():
        return ""
    is_outermost = stanza.column == columns[0] if columns else False
    is_above = below.is_first or (below.column > stanza.column and (is_outermost or below.is_prose()))
    if _STOP.search(words) or _PAGE_NAME.search(words) or not is_above:
        return ""
    numbered = _NUMBERED.match(words)
    is_left = stanza.column < min(body, below.column) and not _WIDE_GAP.search(stanza.lines[0].strip())
    is_marked = len(words) > 3 and stanza.column <= body and (words.isupper() or numbered is not None)
    is_marked = is_marked and (below.is_first or stanza.column < body)
    if not (is_underlined or is_left or is_marked):
        return ""
    depth = (numbered["deeper"] or numbered["below"] or "").count(".") if numbered else 0
    rank = 0 if numbered or stanza.column not in columns else columns.index(stanza.column)
    return f"{'#' * min(6, level + 1 + depth + rank)} {words}"


def _paragraph(stanza: _Stanza, below: _Stanza | None) -> str:
    """A paragraph, an item, or a term above its definition; empty for code."""
    first = stanza.lines[0].strip()
    for pattern in (_FIELD, _REPLY_LINE, _LEADER):
        if all(map(pattern.search, stanza.lines)) and (len(stanza.lines) > 1 or pattern is not _FIELD):
            return "\n".join(map(str.strip, stanza.lines))
    if mark := _BULLET.match(first):
        words = " ".join([first[mark.end() :], *stanza.lines[1:]]).split()
        return f"{mark['number'][:-1] + '.' if mark['number'] else '-'} {' '.join(words)}"
    gap = _text_column(stanza.lines[0])
    if gap == stanza.column or (len(stanza.lines) == 1 and _WIDE_GAP.search(stanza.lines[0][: gap + 1])):
        rest = _Stanza([f"{'':{gap}}{stanza.lines[0][gap:]}", *stanza.lines[1:]], is_first=False)
        if rest.is_prose():
            return f"{plain_text(stanza.lines[0][:gap])}\n\n{plain_text(' '.join(rest.words))}"
    plain = sum(_PLAIN_WORD.fullmatch(word) is not None for word in stanza.words)
    is_phrase = len(stanza.lines) == 1 and plain > _MIN_WORD_SHARE * len(stanza.words)
    is_phrase = is_phrase and not _COMMENT.match(first) and not _DRAWN.search(first)
    if stanza.is_prose() or (is_phrase and plain > 1 and not _WIDE_GAP.search(first)):
        return plain_text(" ".join(stanza.words))
    is_term = below is not None and not below.is_first and below.column > stanza.column and below.is_prose()
    return plain_text(first) if is_term and len(stanza.lines) == 1 and len(first) <= _MAX_TERM_CHARS else ""
