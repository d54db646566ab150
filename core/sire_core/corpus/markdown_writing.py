"""Plain text as Markdown: tables, lists and paragraphs that no word of the text turns into marks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sire_core.corpus.html_parser import without_comment_marks

__all__ = ["list_item", "plain_text", "table"]

_STRUCTURE = re.compile(r"^( {0,3})(?=#{1,6}[ \t]|`{3}|~{3}|=+[ \t]*$|-{3,}[ \t]*$|<a (?:id|name)=)", re.MULTILINE)
_LINE = re.compile(r"(?<=\n)(?=[^\n])")
_SPACE = re.compile(r"[^\S\n]+")


def plain_text(text: str) -> str:
    """A paragraph as Markdown that has the same words.

    White space is folded, line ends stay. What would begin a heading, code, a rule or a comment gets an escape; all
    other characters stay as they are, since passages are read by people and counted by words.
    """
    folded = "\n".join(_SPACE.sub(" ", line).strip() for line in text.split("\n")).strip("\n")
    return without_comment_marks(_STRUCTURE.sub(r"\1\\", folded))


def list_item(text: str, label: str, level: int) -> str:
    """An item of a list, with its own label (`-`, `3.`, `b)`), two columns further in for each level."""
    indent = "  " * level
    return f"{indent}{label} " + _LINE.sub(f"{indent}  ", text)


def table(rows: Sequence[Sequence[str]], *, header: bool = True) -> str:
    """A table; columns and rows in which nothing stands are left out. Empty for a table without words."""
    cells = [[" ".join(plain_text(cell).split()).replace("|", "\\|") for cell in row] for row in rows]
    used = sorted({number for row in cells for number, cell in enumerate(row) if cell})
    lines = [
        f"| {' | '.join(row[number] if number < len(row) else '' for number in used)} |" for row in cells if any(row)
    ]
    if not lines:
        return ""
    rule = f"|{' --- |' * len(used)}"
    return "\n".join([lines[0], rule, *lines[1:]] if header else [f"|{'  |' * len(used)}", rule, *lines])
