"""Source code with its definitions as headings, notations like Markdown (Org, AsciiDoc, LaTeX, Typst), notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sire_core.documents.markdown_cleaning import clean_markdown
from sire_core.documents.markdown_writing import undo_escapes
from sire_core.errors import CorpusError
from sire_core.files.html import fence_around
from sire_core.files.source_files import parse_json, read_text

SOURCES = {
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".tsx", ".mts"), "typescript"),
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp"), "cpp"),
    **dict.fromkeys((".sh", ".bash", ".zsh"), "bash"),
    **dict.fromkeys((".kt", ".kts"), "kotlin"),
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".cs": "csharp",
    ".rb": "ruby",
    ".php": "php",
    ".swift": "swift",
    ".scala": "scala",
    ".lua": "lua",
    ".pl": "perl",
    ".r": "r",
    ".jl": "julia",
    ".ps1": "powershell",
    ".sql": "sql",
    ".vue": "vue",
    ".svelte": "svelte",
    ".ex": "elixir",
    ".hs": "haskell",
    ".dart": "dart",
    ".tf": "hcl",
    ".groovy": "groovy",
    ".zig": "zig",
    ".m": "objectivec",
}
"""Languages by file suffix."""

_BEFORE = (
    "abstract|async|const|default|defp?|export|extern|final|inline|internal|open|override|private|protected|pub|public|"
    "sealed|static|unsafe|virtual|create|or|replace|declare|data|partial"
)
_KINDS = (
    "class|def|defmodule|enum|fn|fun|func|function|impl|interface|macro_rules!|mod|module|namespace|object|package|"
    "procedure|protocol|record|resource|struct|sub|table|trait|type|union|view"
)
_DEFINITION = re.compile(
    rf"(?P<indent>[ \t]{{0,8}})(?P<words>(?:(?:{_BEFORE})(?:\([a-z]{{1,10}}\))?\s+){{0,5}}"
    rf"(?:{_KINDS})\s+(?:\([^()]{{0,80}}\)\s*)?"
    r"[\w$.:\"'<>?!@/-]{1,100})|(?P<sized>[\w:<>*&,\s]{1,80}?\b\w{1,80}\([^;{}]{0,200}\)\s*\{)",
    re.IGNORECASE,
)
_INNER = ("python", "ruby", "java", "csharp", "kotlin", "scala", "swift", "php", "dart", "elixir")
"""Languages in which members of a class have a heading, too."""
_BRACES = ("c", "cpp", "java", "csharp", "dart", "objectivec")
"""Languages whose functions have no keyword."""
_MARKS = re.compile(r"[*<&\[\\]")
"""Characters that Markdown may read as markup; not so between backticks."""
_CALLS = re.compile(r"\s*(?:if|for|while|switch|return|else|catch|do|using|lock)\b")

NOTATIONS = (".org", ".adoc", ".asciidoc", ".tex", ".latex", ".typ", ".djot")
"""Suffixes of texts with their own markup."""
_MARKED = {
    ".org": re.compile(r"(\*{1,6})[ \t]+(?=\S)"),
    **dict.fromkeys((".adoc", ".asciidoc", ".typ"), re.compile(r"(={1,6})[ \t]+(?=\S)")),
}
_SECTIONS = {"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5}
_SECTION = re.compile(
    r"[ \t]*\\(part|chapter|(?:sub){0,2}section|paragraph)\*?(?:\[[^\[\]]{0,200}\])?\{([^{}]{1,300})\}"
)
_TITLE = re.compile(
    r"^(?:#\+title:[ \t]*(?P<org>.+)|[ \t]*\\title(?:\[[^\[\]]{0,200}\])?\{(?P<tex>[^{}]{1,500})\})",
    re.MULTILINE | re.IGNORECASE,
)


def read_source(text: str, suffix: str) -> str:
    """Source code as Markdown: each definition (`class Queue`, `def claim`) is a section with its code."""
    language = SOURCES[suffix]
    parts: list[tuple[str, list[str]]] = [("", [])]
    waiting = 0  # lines of decorators and comments at the end of a part: they belong to what follows
    for line in text.replace("\f", "").rstrip().split("\n"):
        heading = _heading(line, language)
        if heading:
            lines = parts[-1][1]
            above = lines[len(lines) - waiting :]
            del lines[len(lines) - waiting :]
            parts.append((heading, [*above, line]))
            waiting = 0
            continue
        parts[-1][1].append(line)
        waiting = waiting + 1 if line.lstrip()[:1] in ("@", "#", "/", "*") and line.strip() else 0
    return "\n\n".join(filter(None, (_section(heading, "\n".join(lines), language) for heading, lines in parts)))


def _heading(line: str, language: str) -> str:
    if len(line) > 500 or not line.strip():
        return ""
    definition = _DEFINITION.match(line)
    if not definition:
        return ""
    if definition["sized"]:
        if language not in _BRACES or line[:1].isspace() or _CALLS.match(line):
            return ""
        words = definition["sized"].rstrip("{ ").partition("(")[0]
        return f"## {' '.join(words.split())}"
    indent = len(definition["indent"].expandtabs(4))
    if indent > (4 if language in _INNER else 0):
        return ""
    words = " ".join(definition["words"].rstrip(":").split())
    words = f"`{words}`" if _MARKS.search(words) else words
    return f"{'###' if indent else '##'} {words}"


def _section(heading: str, code: str, language: str) -> str:
    code = code.strip("\n")
    if not code.strip():
        return heading
    fence = fence_around(code)
    return "\n\n".join(filter(None, [heading, f"{fence}{language}\n{code}\n{fence}"]))


def read_notation(text: str, suffix: str) -> tuple[str, str]:
    """Title and text, with headings as in Markdown; the rest stays as it is."""
    title_match = _TITLE.search(text)
    title = (
        " ".join((title_match["org"] or title_match["tex"] or "").replace("\\\\", " ").split()) if title_match else ""
    )
    marked = _MARKED.get(suffix)
    lines: list[str] = []
    for line in text.split("\n"):
        section = _SECTION.match(line) if suffix in (".tex", ".latex") else None
        mark = marked.match(line) if marked else None
        if section:
            lines += ["", f"{'#' * _SECTIONS[section[1]]} {section[2]}", "", line[section.end() :]]
        elif mark:
            lines += ["", f"{'#' * len(mark[1])} {line[mark.end() :]}", ""]
        else:
            lines.append(line)
    return title, re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def read_notebook(path: Path) -> tuple[str, str]:
    """Title and Markdown of a notebook; pictures in the outputs are left out."""
    notebook = parse_json(read_text(path))
    if not isinstance(notebook, Mapping):
        raise CorpusError("is not a notebook: it is not a JSON object")
    sheets = notebook.get("worksheets")  # of notebooks before version 4
    cells = notebook.get("cells") or (sheets[0].get("cells") if isinstance(sheets, list) and sheets else None) or []
    metadata = notebook.get("metadata") or {}
    language = str((metadata.get("language_info") or metadata.get("kernelspec") or {}).get("name") or "")
    language = "python" if language.startswith("python") else language
    return str(metadata.get("title") or ""), "\n\n".join(
        part for cell in cells for part in _cell(cell, language) if part
    )


def _cell(cell: Mapping[str, Any], language: str) -> Iterator[str]:
    text = _text(cell.get("source", cell.get("input")))
    if cell.get("cell_type") != "code":
        yield undo_escapes(clean_markdown(text)).strip("\n") if cell.get("cell_type") == "markdown" else text
        return
    yield _fenced(text, language)
    for output in cell.get("outputs") or ():
        data = output.get("data") or {}
        printed = output.get("text") or data.get("text/plain")
        if data.get("text/markdown"):
            yield _text(data["text/markdown"])
        elif output.get("output_type") != "error" and printed:
            yield _fenced(_text(printed), "")


def _text(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _fenced(code: str, language: str) -> str:
    code = code.strip("\n")
    fence = fence_around(code)
    return f"{fence}{language}\n{code}\n{fence}" if code.strip() else ""
