"""Marks of Markdown: text and tables are written with escapes, and escapes are undone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from html import unescape
from html.entities import html5
from itertools import chain, zip_longest

from sire_core.documents.markdown_lines import block_runs

_STRUCTURE = re.compile(r"^( {0,3})(?=#{1,6}[ \t]|`{3}|~{3}|=+[ \t]*$|-{3,}[ \t]*$|<a (?:id|name)=)", re.MULTILINE)
_LINE = re.compile(r"(?<=\n)(?=[^\n])")
_SPACE = re.compile(r"[^\S\n\f]+")

# Code comes first and stays. It ends in its paragraph, and so near that no text is looked through twice.
_INLINE = re.compile(
    r"`(?P<code>`{0,2})(?!`)(?:[^`\n]|\n(?![ \t]*\n)){1,500}`(?P=code)(?!`)"
    r"|\\(?P<mark>[!-/:-@\[-`{-~])"
    r"|&(?P<name>#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});"
)
_ESCAPED = re.compile(r"\\[!-/:-@\[-`{-~]|&[#A-Za-z]")
_BEGINS_BLOCK = re.compile(r"(#{1,6}(?=[ \t]|$)|`{3}|~{3}|=+[ \t]*$|-{3,}[ \t]*$)")
LIST_ITEM = re.compile(r"[-*+]\s|\d{1,9}[.)]\s")  # Beginning of an item of a list
_BEGINS_MARKUP = re.compile(r"!--|a (?:id|name)=")

ELEMENTS = (
    "a|abbr|article|aside|audio|b|blockquote|br|caption|center|cite|code|col|colgroup|dd|del|details|dfn|div|dl|dt|em|"
    "figcaption|figure|font|footer|h[1-6]|header|hr|i|iframe|img|ins|kbd|li|main|mark|nav|ol|p|picture|pre|q|s|samp|"
    "section|small|source|span|strike|strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|time|tr|tt|u|ul|var|video|wbr"
)
"""Names of the elements of HTML that Markdown holds for its looks, as alternatives of a pattern."""
_READ_AS_MARKS = (
    rf"`(?:[^`\n\f]{{0,200}}`)?|</?(?i:{ELEMENTS})(?:[\s/][^<>\n\f]{{0,200}})?>|<!--"
    r"|\\[!-/:-@\[-`{-~]|&#?\w{1,31};"
    r"|\[[^\[\]\n\f]{0,200}\](?:\([^()\n\f]{0,200}\)|\[[^\[\]\n\f]{0,200}\])|\{[#:.][^{}\n\f]{1,100}"
    r"|^\f*(?:#{1,6}(?=\s|$)|>|\+(?=\s)|~{3,}|=+$|-{3,}$|(?:</?[A-Za-z][^<>\n]{0,200}>\s*)+$)"
)
_EMPHASIS = re.compile(
    r"(?:(?<=\w)\*(?=\w)|(?<![\w*])\*+(?=[^\s*]))[^\n]{0,1000}?(?<=[^\s*])\*"
    r"|(?<!\w)_+(?=[^\s_])[^\n]{0,1000}?(?<=[^\s_])_+(?!\w)"
)
_LITERAL_MARKS = re.compile(_READ_AS_MARKS, re.MULTILINE)
_MARKS_AND_STARS = re.compile(rf"{_READ_AS_MARKS}|\*+(?=\S)|(?<=\S)\*+|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)", re.MULTILINE)
"""Code, tags, escapes, references, links, begins of blocks, and emphasis, which Markdown or `clean_markdown` reads."""
_MAX_SPAN_CHARS = 400

_MIN_FULL_CELLS = 2
_ENDS_SENTENCE = ".!?:;,\u3002\uff01\uff1f"
_FENCE_MARKS = re.compile(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
_CODE_OR_COMMENT = re.compile(r"(`{1,3})(?!`)[^`\n]{1,500}\1(?!`)|<!--")


def plain_text(text: str) -> str:
    """A paragraph as Markdown that has the same words."""
    folded = "\n".join(_SPACE.sub(" ", line).strip() for line in text.split("\n")).strip("\n")
    return without_comment_marks(_STRUCTURE.sub(r"\1\\", folded))


def literal_text(text: str) -> str:
    """Text that is no Markdown as Markdown: words that it would change stand in code, which people see verbatim."""
    spans: list[tuple[int, int]] = []
    for match in (_MARKS_AND_STARS if _EMPHASIS.search(text) else _LITERAL_MARKS).finditer(text):
        above, before = spans[-1] if spans else (-1, -1)
        start, stop = match.span()
        while start > max(before, stop - _MAX_SPAN_CHARS, 0) and not text[start - 1].isspace():
            start -= 1
        while stop < min(len(text), match.end() + _MAX_SPAN_CHARS) and not text[stop].isspace():
            stop += 1
        while stop > match.end() and text[stop - 1] in ".,;:":
            stop -= 1
        if start <= before or (text[before:start] == " " and stop - above < _MAX_SPAN_CHARS):
            spans[-1] = above, max(before, stop)
        else:
            spans.append((start, stop))
    written, end = [], 0
    for start, stop in spans:
        written += [text[end:start], _code_span(text[start:stop])]
        end = stop
    return "".join((*written, text[end:]))


def _code_span(words: str) -> str:
    if "`" not in words:
        return f"`{words}`" if words.strip() else words
    fence = "``" if "``" not in words else "```"
    return f"{fence} {words} {fence}"


def without_comment_marks(text: str) -> str:
    """Escape a literal `<!--`, so that Markdown does not read it as a comment; code is left as it is."""
    if "<!--" not in text:
        return text
    return _CODE_OR_COMMENT.sub(lambda match: match.group() if match.group(1) else "&lt;!--", text)


def list_item(text: str, label: str, level: int) -> str:
    """An item of a list, with its own label (`-`, `3.`, `b)`), two columns further in for each level."""
    indent = "  " * level
    return f"{indent}{label} " + _LINE.sub(f"{indent}  ", text)


def code_block(code: str, language: str = "") -> str:
    """Code within a fence that nothing in it ends; empty without code."""
    code = code.strip("\n")
    if not code.strip():
        return ""
    marks = _FENCE_MARKS.findall(code)
    fence = "```"
    if any(mark[0] == "`" for mark in marks):  # no line of backticks ends one of tildes, however long it is
        fence = "~" * (1 + max((len(mark) for mark in marks if mark[0] == "~"), default=2))
    return f"{fence}{language}\n{code}\n{fence}"


def cell_text(blocks: Iterable[str]) -> str:
    """Blocks as the text of a cell, with an empty line between paragraphs and between the rows of a table within."""
    text = "\n\n".join(map(_block_in_cell, blocks))
    return text if text.strip() else ""


def _block_in_cell(block: str) -> str:
    if block.startswith("|"):
        lines = [line for line in block.split("\n") if line.strip("|- ")]
        return "\n\n".join(" ".join(line.replace("\\|", "\0").replace("|", " ").split()) for line in lines).replace(
            "\0", "|"
        )
    return block.lstrip("#").lstrip() if block.startswith("#") else block


def table(rows: Sequence[Sequence[str]], *, header: bool = True) -> str:
    """A table; columns and rows in which nothing stands are left out. Empty for a table without words."""
    used = sorted({number for row in rows for number, cell in enumerate(row) if cell.strip()})
    filled = ([row[number] if number < len(row) else "" for number in used] for row in rows)
    return "\n".join(table_lines(filled, len(used), header=header))


def table_lines(rows: Iterable[Sequence[str]], columns: int, *, header: bool = True) -> Iterator[str]:
    """The lines of a table of some columns; none for rows in which nothing stands."""
    rule = f"|{' --- |' * columns}"
    begun = False
    for row in chain.from_iterable(map(_rows_within, rows)):
        cells = list(map(_cell, row))
        if not any(cells):
            continue
        if not begun and not header:
            yield from (f"|{'  |' * columns}", rule)
        yield f"| {' | '.join(cells)} |"
        if not begun and header:
            yield rule
        begun = True


def _rows_within(row: Sequence[str]) -> Iterable[Sequence[str]]:
    """The rows of a row: one, or one for each paragraph if all cells have as many, and two cells no empty one."""
    cells = [cell.split("\n\n") for cell in row] if any("\n\n" in cell for cell in row) else []
    paragraphs = [cell for cell in cells if any(cell)]
    if len({len(cell) for cell in paragraphs}) != 1 or sum(map(all, paragraphs)) < _MIN_FULL_CELLS:
        return [row]
    return list(zip_longest(*(cell if any(cell) else [] for cell in cells), fillvalue=""))


@lru_cache(maxsize=8192)
def _cell(text: str) -> str:
    if text.isalnum():
        return text
    return one_line(" ".join(plain_text(part).split()) for part in text.split("\n\n")).replace("|", "\\|")


def one_line(paragraphs: Iterable[str]) -> str:
    """Paragraphs of a cell on one line, with a slash behind one that ends no sentence."""
    filled = [part if part[-1] in _ENDS_SENTENCE else f"{part} /" for part in paragraphs if part]
    return " ".join(filled).removesuffix(" /")


def undo_escapes(text: str) -> str:
    """A Markdown text without escapes and character references."""
    if not _ESCAPED.search(text):
        return text
    runs: list[str] = []
    for kind, lines in block_runs(text.split("\n")):
        if kind == "code":
            runs.append("\n".join(lines))
        elif kind == "table":
            runs.append(undo_inline("\n".join(lines), keep="|"))
        else:
            runs += _without_escapes(lines)
    return "\n".join(runs)


def _without_escapes(lines: list[str]) -> list[str]:
    """Prose in parts: what its indentation sets off as code stays; in a list it sets nothing off."""
    parts: list[tuple[bool, list[str]]] = []
    blank, listed = True, False
    for line in lines:
        words = bool(line.strip())
        indented = line.startswith(("    ", "\t")) and words
        code = indented and not listed and (blank or (bool(parts) and parts[-1][0]))
        if not parts or parts[-1][0] != code:
            parts.append((code, []))
        parts[-1][1].append(line)
        if words and not line[0].isspace():
            listed = LIST_ITEM.match(line) is not None
        blank = not words
    return ["\n".join(part) if code else undo_inline("\n".join(part)) for code, part in parts]


def undo_inline(text: str, keep: str = "") -> str:
    """Text of paragraphs, a heading or a title without escapes and character references."""
    if "\\" not in text and "&" not in text:
        return text

    def undone(match: re.Match[str]) -> str:
        whole = match[0]
        if match["code"] is not None:
            return whole
        mark = match["mark"] or _character(match["name"])
        if not mark or mark in keep or (mark == "<" and _BEGINS_MARKUP.match(text, match.end())):
            return whole
        if mark in "#`~=-" and _starts_line(text, match.start()) and _begins_block(text, mark, match.end()):
            return f"\\{mark}"
        return mark

    return _INLINE.sub(undone, text)


def _character(name: str) -> str:
    """The character of a reference; empty for a name that HTML does not know. White space is a blank."""
    if name[0] != "#" and f"{name};" not in html5:
        return ""
    character = unescape(f"&{name};")
    return " " if character.isspace() else character


def _starts_line(text: str, position: int) -> bool:
    before = text[max(0, position - 4) : position]
    return not before.strip(" ") if position < 4 else "\n" in before and not before.rpartition("\n")[2].strip(" ")


def _begins_block(text: str, mark: str, end: int) -> bool:
    """True if a line would be read as something else with a mark at its beginning."""
    line = text[end : end + 200].partition("\n")[0]
    return _BEGINS_BLOCK.match(mark + line.replace("\\", "")) is not None
