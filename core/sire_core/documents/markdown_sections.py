"""Sections of Markdown: text cut at headings, each part with its path of headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from sire_core.documents.blocks import BRACKETS, is_contents
from sire_core.documents.markdown_writing import undo_inline

SEPARATOR = " > "
"""Separator of the headings of a section path in a title."""

_WORD = re.compile(r"\w+")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t])")
_UNDERLINE = re.compile(r" {0,3}(=+|-{3,})[ \t]*$")
_TAG = (
    "a|abbr|b|big|br|center|cite|code|del|details|div|dfn|em|font|h[1-6]|i|img|input|ins|kbd|mark|p|picture|q|s|samp|"
    "small|source|span|strike|strong|sub|summary|sup|svg|tt|u|var|wbr"
)
_MARKS = re.compile(
    r"(?P<ticks>`{1,3})(?!`)(?P<code>[^`\n]{1,500})(?P=ticks)(?!`)|\\(?P<escaped>[!-/:-@\[-`{-~])"
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
_LEVEL = re.compile(r"[Hh](?:eader|eading)?[ _]?([1-6])")
_LONGEST_TITLE = 100
_TITLE_WORDS = 14
_ENDS_NO_TITLE = ".:;,!|\\{(["
_BEGINS_NO_PROSE = "|-*+#>`=_~"
_CODE_MARK = re.compile(r"-{3,}[ \t]*[^\s-][^-]{0,20}-{3,}[ \t]*$")
"""A line around code in plain text: `---%<------`."""
_CONFIGURATION = re.compile(
    r"[ \t]*(?:[\w.$@%*!/-]{1,80}[ \t]*(?:[:+?]?=|\{)|[a-z_][\w.-]{0,80}:(?:[ \t]|$)|[{}()\]$%#]|!\w|</?\w"
    r"|\[[^\[\]]{1,80}\][ \t]*$)|.*[{};\\][ \t]*$"
)
_COMMAND = re.compile(r"(?=[a-z])\S+(?:[ \t]+\S+){0,2}[ \t]*$|(?=[a-z])[^\n]*[=/\\${}|<>]")


class MarkdownSection(NamedTuple):
    """A section: one or more headings and the text up to the next heading.

    Attributes:
        path: Headings from the outermost to the one that the text stands under; empty in front of the first.
        text: The text, its heading lines included.
    """

    path: tuple[str, ...]
    text: str


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


def sections_of_markdown(text: str) -> list[MarkdownSection]:
    """Cut a text at its headings."""
    sections: list[MarkdownSection] = []
    path: list[tuple[int, str]] = []
    part: list[str] = []
    bare = False
    for level, heading, lines in _runs(text.split("\n")):
        if level:
            if bare and level > path[-1][0]:
                part[:] = ["\n".join(part).strip("\n"), ""]
            else:
                _close(sections, path, part)
            path = [(above, name) for above, name in path if above < level] + [(level, heading)]
            bare = True
        else:
            bare = bare and not any(line.strip() for line in lines)
        part += lines
    _close(sections, path, part)
    return sections


def first_heading(text: str) -> str:
    """The first heading of a Markdown text; empty if there is none."""
    return next((heading for level, heading, _ in _runs(text.split("\n")) if level), "")


def naming_heading(text: str) -> str:
    """The first heading of a Markdown text as its title; behind a list of contents, the only one of the top level."""
    headings = [(level, heading) for level, heading, _ in _runs(text.split("\n")) if level]
    others = [(level, heading) for level, heading in headings if not is_contents(heading)]
    if others[:1] == headings[:1]:
        return others[0][1] if others else ""
    highest = min((level for level, _ in others), default=0)
    top = [heading for level, heading in others if level == highest]
    return top[0] if len(top) == 1 else ""


def with_contents_as_list(text: str) -> str:
    """The text with headings that list its contents as items: several above no text whose words come again below."""
    runs = list(_runs(text.split("\n")))
    keys = [" ".join(_WORD.findall(name.casefold())) for _, name, _ in runs]
    last = {key: number for number, key in enumerate(keys)}
    filled = [number for number, (*_, lines) in enumerate(runs) if any(line.strip(" \t\xa0#") for line in lines)]
    announced = {one for one, below in pairwise(filled) if runs[below][0] and one < last[keys[one]]}
    for level, group in groupby(filled, lambda number: runs[number][0] if number in announced else 0):
        entries = list(group)
        if level and len(entries) > 1:
            for number in entries:
                runs[number] = 0, "", [f"- {runs[number][1]}"]
    return "\n".join(line for *_, lines in runs for line in lines)


def _close(sections: list[MarkdownSection], path: Sequence[tuple[int, str]], part: list[str]) -> None:
    body = "\n".join(part).strip("\n")
    if body.strip():
        sections.append(MarkdownSection(tuple(name for _, name in path), body))
    part.clear()


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield each line with the level and words of its heading; level 0 for other lines."""
    from sire_core.documents.markdown_blocks import code_end

    row = 0
    while row < len(lines):
        line = lines[row]
        if ("```" in line or "~~~" in line) and (stop := code_end(lines, row)) > row:
            yield 0, "", list(lines[row:stop])
            row = stop
            continue
        if _stands_apart(lines, row):
            match = _HEADING.match(line)
            if match and (heading := plain_heading(line[match.end() :])).strip(BRACKETS):
                yield len(match.group(1)), heading, [line]
                row += 1
                continue
            under = _UNDERLINE.match(lines[row + 1]) if row + 1 < len(lines) and _could_be_heading(line) else None
            if under:
                yield 1 if under.group(1)[0] == "=" else 2, plain_heading(line), [line, lines[row + 1]]
                row += 2
                continue
        yield 0, "", [line]
        row += 1


def _stands_apart(lines: Sequence[str], row: int) -> bool:
    """True if the line may be a heading and not a comment in unfenced code."""
    before = row == 0 or not lines[row - 1].strip() or lines[row - 1].startswith("#")
    return before or row + 1 == len(lines) or not lines[row + 1].strip()


def _could_be_heading(line: str) -> bool:
    bare = line.strip()
    return 0 < len(bare.strip(BRACKETS)) <= 200 and "|" not in bare and not bare.startswith(("#", "-", "*", ">", "+"))


def with_comments_as_code(text: str, *, headings: bool = True) -> str:
    """A plain text whose comments of configuration and code stand behind four blanks, where Markdown has code.

    A line that begins with `#` is a heading where it stands like one, between blank lines or above prose, unless more
    such lines are comments; with `headings=False` none is.
    """
    from sire_core.documents.markdown_blocks import code_end

    lines = text.split("\n")
    if not any(map(_HEADING.match, lines)):
        return text
    marks = [row for row, line in enumerate(lines) if line.startswith("---") and _CODE_MARK.match(line)]
    marked = {row for first, last in zip(marks[::2], marks[1::2], strict=False) for row in range(first, last)}
    found: list[int] = []
    comments: list[int] = []
    row = 0
    while row < len(lines):
        stop = code_end(lines, row)
        if stop == row and _HEADING.match(lines[row]):
            is_heading = headings and row not in marked and _stands_like_heading(lines, row)
            (found if is_heading else comments).append(row)
        row = max(stop, row + 1)
    unmarked = sum(row not in marked for row in comments)
    for row in comments if unmarked <= len(found) else [*comments, *found]:
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


def path_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The section path that a framework's splitter left in the metadata: `Header 1`, `Header 2` .. or `header_path`."""
    path = metadata.get("header_path")
    if isinstance(path, str):
        return tuple(part.strip() for part in path.split("/") if part.strip())
    levels = {
        int(match.group(1)): " ".join(value.split())
        for key, value in metadata.items()
        if (match := _LEVEL.fullmatch(key)) and isinstance(value, str) and value.strip()
    }
    return tuple(levels[level] for level in sorted(levels))


def naming_title(title: str, text: str) -> str:
    """Return the name of a passage: its title, else the title line of its text; empty for a section path."""
    if SEPARATOR in title:
        return ""
    return title or title_line(text)[0]


def title_of(metadata: Mapping[str, Any], keys: str | Sequence[str]) -> str:
    """The title in the metadata: the text values of the keys, as a path from the outermost."""
    values = [metadata.get(key) for key in ([keys] if isinstance(keys, str) else keys)]
    return section_title("", [name for name in values if isinstance(name, str) and name.strip()])


def is_cut(metadata: Mapping[str, Any]) -> bool:
    """True if the metadata show that a splitter cut the text already, so that it is not cut again."""
    return isinstance(metadata.get("start_index"), int) or bool(path_of(metadata))


def independent_headings(title: str, paths: Sequence[tuple[str, ...]]) -> set[str]:
    """Top-level headings next to the one that is the document's title, which their sections do not belong to.

    The first heading is a chapter like them, and not above them, if it has headings of its own as they have. Numbers
    and single words ("Note", "References") stand for a part of a document.
    """
    chapters = dict.fromkeys(path[0] for path in paths if len(path) > 1)
    first = next((path[0] for path in paths if path), "")
    if first not in chapters or first.casefold() != title.casefold():
        return set()
    return {name for name in chapters if name != first and " " in name and not name[0].isdigit()}


def section_title(title: str, path: Sequence[str]) -> str:
    """Title of a passage: the document's title and the headings that it does not already end with."""
    whole = " ".join(title.split())
    names: list[str] = []
    for name in path:
        if name and (not names or name.casefold() != names[-1].casefold()):
            names.append(name)
    ends = f"{SEPARATOR}{whole}".casefold()
    known = (n for n in range(len(names), 0, -1) if ends.endswith(SEPARATOR.join(["", *names[:n]]).casefold()))
    return SEPARATOR.join([*([whole] if whole else []), *names[next(known, 0) :]])
