"""Sections of Markdown: text without what readers never see, cut at headings, each part with its path of headings."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = [
    "SEPARATOR",
    "MarkdownSection",
    "clean_markdown",
    "is_cut",
    "path_of",
    "plain_heading",
    "section_title",
    "sections_of_markdown",
    "title_line",
    "without_comments",
]

SEPARATOR = " > "
"""Stands between the headings of a section's path where the path is written as a title."""

_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t])")
_UNDERLINE = re.compile(r" {0,3}(=+|-{3,})[ \t]*$")
_ANCHOR = re.compile(r"<a (?:id|name)=[\"']?[^<>\"']{0,200}[\"']?\s*/?>(?:</a>)?")
_ATTRIBUTES = re.compile(r"[ \t]*\{[#:.][^{}\s]{1,100}(?: [^{}\n]{0,100})?\}[ \t]*$")
_LINK = re.compile(r"!?\[[^\[\]]{0,200}\]\([^()\s]{0,500}\)")
_BETWEEN_LINKS = re.compile(r"[\s|\u00b7\u2022\u2039\u203a\u00ab\u00bb<>*/,\u2190\u2192-]*")
_MARKS = re.compile(r"`|\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)|<[^<>]{0,200}>|!?\[([^\[\]]{0,200})\]\([^()\s]{0,500}\)")
_LEVEL = re.compile(r"[Hh](?:eader|eading)?[ _]?([1-6])")
_LONGEST_LINE = 2_000
_INLINE_CODE = re.compile(r"(`{1,3})(?!`)[^`\n]{1,500}\1(?!`)")
_LONGEST_TITLE = 100
_TITLE_WORDS = 14
_ENDS_NO_TITLE = ".:;,!|\\{(["
_BEGINS_NO_PROSE = "|-*+#>`=_~"


class MarkdownSection(NamedTuple):
    """A heading and the text up to the next one.

    Attributes:
        path: Headings from the outermost to the section's own; empty in front of the first.
        text: The text, its heading line included.
    """

    path: tuple[str, ...]
    text: str


def title_line(text: str) -> tuple[str, str]:
    """The title that a text begins with on a line of its own, and the rest; an empty title where there is none.

    Splitters and exports write a page's title above its text without any mark. It is a short first line that no
    punctuation ends, in front of a line that is at least twice as long: wrapped lines are of one length.

    Args:
        text: Of a passage.
    """
    head, found, rest = text.lstrip().partition("\n")
    title = " ".join(head.split())
    body = rest.partition("\n")[0].strip()
    first = title[:1]
    if not (
        found
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


def clean_markdown(text: str) -> str:
    """Leave out front matter, comments, anchors and lines of nothing but links to other pages.

    Code keeps every character. Text without any of these comes back as it is.
    """
    from sire_core.corpus.front_matter import front_matter_end  # here: those who search only need titles

    lines = text.split("\n")
    return "\n".join(_kept(lines[front_matter_end(lines) :], _tidied))


def without_comments(text: str) -> str:
    """The text without HTML comments, and without lines that hold nothing else.

    A comment that is never closed stays as it is, and so does one in code. One that begins in the middle of a line
    has to end in its paragraph: prose that speaks of `<!--` is no comment.
    """
    return "\n".join(_kept(text.split("\n"), lambda line: line)) if "<!--" in text else text


def _kept(lines: list[str], tidied: Callable[[str], str | None]) -> list[str]:
    """Lines without comments; outside of code each is tidied, and left out when that leaves nothing."""
    from sire_core.corpus.markdown_blocks import code_end

    comments = _Comments(lines)
    kept: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.startswith(("    ", "\t")) and (not kept or _indented(kept[-1])):
            kept.append(line)  # code that is set off by its indentation
            place += 1
            continue
        if (stop := code_end(lines, place)) > place:
            kept += lines[place:stop]
            place = stop
            continue
        rests, place = comments.left_out(place)
        for rest in rests:
            cleaned = tidied(rest)
            if cleaned is not None and (cleaned == line or cleaned.strip()):
                kept.append(cleaned)
    return kept


def _indented(line: str) -> bool:
    return not line.strip() or line.startswith(("    ", "\t"))


def _tidied(line: str) -> str | None:
    cleaned = _without_anchors(line)
    return None if _navigates(cleaned) else cleaned


def _without_anchors(line: str) -> str:
    if len(line) > _LONGEST_LINE:
        return line
    line = _ANCHOR.sub("", line) if "<a " in line else line
    return _ATTRIBUTES.sub("", line) if line.endswith("}") else line


class _Comments:
    """Where comments end; lines are looked through once, however many comments they begin and never close."""

    def __init__(self, lines: Sequence[str]) -> None:
        seen = any("<!--" in line for line in lines)
        self._lines = lines
        self._closing = [number for number, line in enumerate(lines) if "-->" in line] if seen else []
        self._breaks = [number for number, line in enumerate(lines) if _ends_paragraph(line)] if self._closing else []
        self._searched = -1  # a line with no further end of a comment

    def left_out(self, place: int) -> tuple[list[str], int]:
        """What is left of a line, and of the one that its last comment ends in; and the number of the next line."""
        line = self._lines[place]
        if not self._closing:
            return [line], place + 1
        rests: list[str] = []
        left: list[str] = []
        bare, at = True, 0
        start = _opening(line, 0)
        while start >= 0:
            bare = bare and not line[at:start].strip()
            found = self._end(place, start, bare)
            if found is None:
                bare, start = False, _opening(line, start + 4)
                continue
            left.append(line[at:start])
            if found[0] > place:
                rests.append("".join(left))
                left, line = [], self._lines[found[0]]
            place, at = found
            start = _opening(line, at)
        left.append(line[at:])
        return [*rests, "".join(left)], place + 1

    def _end(self, place: int, start: int, bare: bool) -> tuple[int, int] | None:
        """Line and column behind a comment; None when it is never closed."""
        if place != self._searched:
            end = self._lines[place].find("-->", start + 4)
            if end >= 0:
                return place, end + 3
            self._searched = place
        following = bisect_right(self._closing, place)
        if following == len(self._closing):
            return None
        closing = self._closing[following]
        ends_before = bisect_right(self._breaks, place) < bisect_right(self._breaks, closing)
        return (closing, self._lines[closing].find("-->") + 3) if bare or not ends_before else None


def _ends_paragraph(line: str) -> bool:
    bare = line.strip()
    return not bare or bare.startswith(("```", "~~~"))


def _opening(line: str, place: int) -> int:
    """Where the next comment begins; code between backticks is none."""
    start = line.find("<!--", place)
    while start >= 0 and line.find("`", place, start) >= 0:
        code = _INLINE_CODE.search(line, place, start + 600)
        if code is None or code.start() > start:
            break
        place = code.end()
        start = start if place <= start else line.find("<!--", place)
    return start


def _navigates(line: str) -> bool:
    """Whether a line is two or more links side by side and nothing else."""
    if "](" not in line or len(line) > _LONGEST_LINE or line.lstrip().startswith(("- ", "* ", "+ ")):
        return False
    links = len(_LINK.findall(line))
    return links > 1 and _BETWEEN_LINKS.fullmatch(_LINK.sub("", line)) is not None


def sections_of_markdown(text: str) -> list[MarkdownSection]:
    """Cut a text at its headings.

    A heading is a line of `#` with a blank line before or behind it, or a line underlined by `=` or `-`, outside of
    code. Text without headings is one section with an empty path.
    """
    found: list[MarkdownSection] = []
    path: list[tuple[int, str]] = []
    part: list[str] = []
    for level, heading, lines in _runs(text.split("\n")):
        if level:
            _close(found, path, part)
            path = [(above, name) for above, name in path if above < level] + [(level, heading)]
        part += lines
    _close(found, path, part)
    return found


def _close(found: list[MarkdownSection], path: Sequence[tuple[int, str]], part: list[str]) -> None:
    body = "\n".join(part).strip("\n")
    if body.strip():
        found.append(MarkdownSection(tuple(name for _, name in path), body))
    part.clear()


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Lines one by one, with the level and words of the heading that each is; 0 for all others."""
    from sire_core.corpus.markdown_blocks import code_end

    place = 0
    while place < len(lines):
        if (stop := code_end(lines, place)) > place:
            yield 0, "", list(lines[place:stop])
            place = stop
            continue
        line = lines[place]
        if _stands_apart(lines, place):
            match = _HEADING.match(line)
            if match and (heading := plain_heading(line[match.end() :])):
                yield len(match.group(1)), heading, [line]
                place += 1
                continue
            under = _UNDERLINE.match(lines[place + 1]) if place + 1 < len(lines) and _could_be_heading(line) else None
            if under:
                yield 1 if under.group(1)[0] == "=" else 2, plain_heading(line), [line, lines[place + 1]]
                place += 2
                continue
        yield 0, "", [line]
        place += 1


def _stands_apart(lines: Sequence[str], place: int) -> bool:
    """Whether a line may be a heading: a comment in the middle of code that nothing fences is none."""
    before = place == 0 or not lines[place - 1].strip() or lines[place - 1].startswith("#")
    return before or place + 1 == len(lines) or not lines[place + 1].strip()


def _could_be_heading(line: str) -> bool:
    return 0 < len(line.strip()) <= 200 and "|" not in line and not line.lstrip().startswith(("#", "-", "*", ">", "+"))


def plain_heading(line: str) -> str:
    """Words of a heading without marks of code, emphasis, links, anchors."""
    text = line.strip()
    text = _ATTRIBUTES.sub("", text) if text.endswith("}") and len(text) <= _LONGEST_LINE else text
    bare = text.rstrip("#")
    text = bare.rstrip() if not bare or bare[-1:].isspace() else text
    return " ".join(_MARKS.sub(lambda match: match.group(1) or "", text).split())


def path_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The path that a framework's splitter left in the metadata: `Header 1`, `Header 2` .. or `header_path`."""
    path = metadata.get("header_path")
    if isinstance(path, str):
        return tuple(part.strip() for part in path.split("/") if part.strip())
    levels = {
        int(match.group(1)): " ".join(value.split())
        for key, value in metadata.items()
        if (match := _LEVEL.fullmatch(key)) and isinstance(value, str) and value.strip()
    }
    return tuple(levels[level] for level in sorted(levels))


def is_cut(metadata: Mapping[str, Any]) -> bool:
    """Whether the metadata say that a splitter cut the text already; it is not cut again then."""
    return isinstance(metadata.get("start_index"), int) or bool(path_of(metadata))


def section_title(title: str, path: Sequence[str]) -> str:
    """What stands in front of a passage: the document's title, then the headings that it does not repeat."""
    names = [" ".join(title.split())] if title.strip() else []
    for name in path:
        if name and (not names or name.casefold() != names[-1].casefold()):
            names.append(name)
    return SEPARATOR.join(names)
