"""Sections of Markdown: text cut at headings, each part with its path of headings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from sire_core.documents.block_reading import read_blocks
from sire_core.documents.blocks import FURNITURE, HEADING, Block, block_text, headings_above
from sire_core.documents.furniture import is_contents
from sire_core.documents.markdown_lines import code_end
from sire_core.documents.markdown_writing import undo_inline

_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t])")
_TAG = (
    "a|abbr|b|big|br|center|cite|code|del|details|div|dfn|em|font|h[1-6]|i|img|input|ins|kbd|mark|p|picture|q|s|samp|"
    "small|source|span|strike|strong|sub|summary|sup|svg|tt|u|var|wbr"
)
_MARKS = re.compile(
    r"(?P<ticks>`{1,3})(?!`)(?P<code>(?:[^`\n]|(?<!`)`(?!`)){1,500}?)(?P=ticks)(?!`)|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|&(?P<entity>#?\w{1,31});|`|\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)"
    rf"|</?(?:{_TAG})(?:\s[^<>]{{0,200}})?/?>|<(?P<address>[a-z]{{3,10}}:[^<>\s]{{1,500}})>"
    r"|!?\[(?P<linked>[^\[\]]{0,200})\]\([^()\s]{0,500}\)",
    re.IGNORECASE,
)
"""Markup in a heading; only elements of HTML: the heading `Vec<T>` is about `T`, too."""
ATTRIBUTES = re.compile(
    r"[ \t]*(?:\{:?[ \t]{0,3}[#:.][^{}\s]{1,100}(?:[ \t][^{}\n]{0,100})?\}"
    r"|\{\{[<%][^{}\n]{0,200}[>%]\}\}|\u00b6)[ \t]*$"
)
"""Suffixes that site generators add to headings: `{ #id .class }`, `{: #id}`, `{{< badge >}}`, a pilcrow."""
LONGEST_LINE = 2_000
_LONGEST_TITLE = 100
_TITLE_WORDS = 14
_ENDS_NO_TITLE = ".:;,!|\\{(["
_BEGINS_NO_PROSE = "|-*+#>`=_~"
_CODE_MARK = re.compile(r"-{3,}[ \t]*[^\s-][^-]{0,20}-{3,}[ \t]*$")  # A line around code in plain text: `---%<------`
_CONFIGURATION = re.compile(
    r"[ \t]*(?:[\w.$@%*!/-]{1,80}[ \t]*(?:[:+?]?=|\{)|[a-z_][\w.-]{0,80}:(?:[ \t]|$)|[{}()\]$%#]|!\w|</?\w"
    r"|\[[^\[\]]{1,80}\][ \t]*$)|.*[{};\\][ \t]*$"
)
_COMMAND = re.compile(r"(?=[a-z])\S+(?:[ \t]+\S+){0,2}[ \t]*$|(?=[a-z])[^\n]*[=/\\${}|<>]")


class Section(NamedTuple):
    """A section: one or more headings and the text up to the next heading.

    Attributes:
        path: Headings from the outermost to the one that the text stands under; empty in front of the first.
        first: Number of its first block.
        stop: Number behind its last one.
        start: Of its text.
        end: Of its text.
    """

    path: tuple[str, ...]
    first: int
    stop: int
    start: int
    end: int


def title_line(text: str) -> tuple[str, str]:
    """The title that a text begins with on a line of its own, and the rest; the title is empty if there is none."""
    head, newline, rest = text.lstrip().partition("\n")
    title = " ".join(head.split())
    body = rest.partition("\n")[0].strip()
    first = title[:1]
    if not (
        newline
        and 0 < len(title) <= _LONGEST_TITLE
        and (first.isupper() or first.isdigit() or not first.isascii())
        and title[-1] not in _ENDS_NO_TITLE
        and len(title.split()) <= _TITLE_WORDS
        and len(body) >= 2 * len(title)
        and body[0] not in _BEGINS_NO_PROSE
        and " | " not in title
    ):
        return "", text
    return title, rest


def sections_of(text: str, blocks: Sequence[Block]) -> list[Section]:
    """Cut a text at its headings; a heading that only holds deeper ones is in the section of the first of these."""
    starts = [
        number
        for number, (before, block) in enumerate(pairwise([Block("", 0, 0), *blocks]))
        if not number or (block.kind == HEADING and not (before.kind == HEADING and before.level < block.level))
    ]
    names = {block: plain_heading(block_text(text, block)) for block in blocks if block.kind == HEADING}
    sections: list[Section] = []
    for first, stop in pairwise([*starts, len(blocks)]):
        last = blocks[stop - 1]
        path = tuple(names[block] for block in (*headings_above(blocks, stop - 1), last) if block.kind == HEADING)
        sections.append(Section(path, first, stop, blocks[first].start, last.end))
    return sections


def paths_of(text: str) -> list[tuple[str, ...]]:
    """Heading paths of the sections of a Markdown text."""
    return [section.path for section in sections_of(text, read_blocks(text))]


def heading_texts(text: str, blocks: Sequence[Block]) -> list[str]:
    """Words of the headings of a text, in order."""
    return [plain_heading(block_text(text, block)) for block in blocks if block.kind == HEADING]


def naming_heading(text: str, blocks: Sequence[Block]) -> str:
    """The first heading of a text as its title; behind a list of contents, the only one of the top level."""
    headings = [block for block in blocks if block.kind == HEADING]
    opening = next((block for block in blocks if block.kind == HEADING or is_contents_heading(text, block)), None)
    others = [block for block in headings if not is_contents_heading(text, block)]
    if opening is not None and is_contents_heading(text, opening):
        highest = min((block.level for block in others), default=0)
        others = [block for block in others if block.level == highest]
        others = others if len(others) == 1 else []
    return plain_heading(block_text(text, others[0])) if others else ""


def is_contents_heading(text: str, block: Block) -> bool:
    """True if a block is a heading, or was one, that only announces a list of contents."""
    return block.kind in (HEADING, FURNITURE) and is_contents(
        plain_heading(text[block.start : block.end].strip("# \t"))
    )


def with_comments_as_code(text: str, *, headings: bool = True) -> str:
    """A plain text whose comments of configuration and code stand behind four blanks, where Markdown has code.

    A line that begins with `#` is a heading where it stands like one, between blank lines or above prose, unless more
    such lines are comments; with `headings=False` none is.
    """
    lines = text.split("\n")
    if not any(map(_HEADING.match, lines)):
        return text
    marks = [row for row, line in enumerate(lines) if line.startswith("---") and _CODE_MARK.match(line)]
    marked = {row for first, last in zip(marks[::2], marks[1::2], strict=False) for row in range(first, last)}
    heading_rows: list[int] = []
    comments: list[int] = []
    row = 0
    while row < len(lines):
        stop = code_end(lines, row)
        if stop == row and _HEADING.match(lines[row]):
            is_heading = headings and row not in marked and _stands_like_heading(lines, row)
            (heading_rows if is_heading else comments).append(row)
        row = max(stop, row + 1)
    unmarked = sum(row not in marked for row in comments)
    for row in comments if unmarked <= len(heading_rows) else [*comments, *heading_rows]:
        lines[row] = f"    {lines[row]}"
    return "\n".join(lines)


def _stands_like_heading(lines: Sequence[str], row: int) -> bool:
    """True if a line with `#` in plain text is apart from what is above it, and above a blank line or prose."""
    above, below = lines[row - 1] if row else "", lines[row + 1] if row + 1 < len(lines) else ""
    level = _level(lines[row])
    if lines[row][0] != "#" or (above.strip() and not 0 < _level(above) < level):
        return False
    if below.strip():
        return _level(below) > level or (not below[0].isspace() and _is_prose(below))
    after = next((line for line in lines[row + 2 : row + 5] if line.strip()), "")
    return not after or _level(after) > 0 or after.startswith(("    ", "\t", "```", "~~~")) or _is_prose(after)


def _level(line: str) -> int:
    match = _HEADING.match(line)
    return len(match.group(1)) if match else 0


def _is_prose(line: str) -> bool:
    return len(line) > LONGEST_LINE or not (_CONFIGURATION.match(line) or _COMMAND.match(line))


def plain_heading(line: str) -> str:
    """Words of a heading without markup and escapes."""
    text = line.strip()
    if text.endswith(("}", "\u00b6")) and len(text) <= LONGEST_LINE:
        text = ATTRIBUTES.sub("", text)
    bare = text.rstrip("#")
    text = bare.rstrip() if not bare or bare[-1:].isspace() else text
    for _ in range(2 if "[![" in text else 1):  # a picture in a link
        text = _MARKS.sub(_unmarked, text)
    return " ".join(text.split())


def _unmarked(match: re.Match[str]) -> str:
    if match["entity"]:
        return undo_inline(match[0])
    return match["code"] or match["escaped"] or match["address"] or match["linked"] or ""
