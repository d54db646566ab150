"""Source code with its definitions as headings, and notebooks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sire_core.documents.markdown_cleaning import clean_markdown
from sire_core.documents.markdown_writing import code_block, undo_escapes
from sire_core.errors import CorpusError
from sire_core.files.html import html_to_markdown
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
_SYNTAX_KINDS = (
    "class|def|defmodule|enum|fn|fun|func|function|impl|interface|macro_rules!|mod|module|namespace|object|package|"
    "procedure|protocol|record|resource|struct|sub|table|trait|type|union|view"
)
_DEFINITION = re.compile(
    rf"(?P<indent>[ \t]{{0,8}})(?P<words>(?:(?:{_BEFORE})(?:\([a-z]{{1,10}}\))?\s+){{0,5}}"
    rf"(?:{_SYNTAX_KINDS})\s+(?:\([^()]{{0,80}}\)\s*)?"
    r"[\w$.:\"'<>?!@/-]{1,100})|(?P<sized>[\w:<>*&,\s]{1,80}?\b\w{1,80}\([^;{}]{0,200}\)\s*\{)",
    re.IGNORECASE,
)
_INNER = ("python", "ruby", "java", "csharp", "kotlin", "scala", "swift", "php", "dart", "elixir")
"""Languages in which members of a class have a heading, too."""
_BRACES = ("c", "cpp", "java", "csharp", "dart", "objectivec")  # Languages whose functions have no keyword
_MARKDOWN_MARKS = re.compile(r"[*<&\[\\]")  # Characters that Markdown may read as markup; not so between backticks
_CALLS = re.compile(r"\s*(?:if|for|while|switch|return|else|catch|do|using|lock)\b")

_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]{0,100}[ -/]{0,9}[@-~]|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|[@-Z\\^_]|[()][A-Z0-9])"
)
"""Colours, titles and movements of the cursor in what a program prints."""
_OBJECT = re.compile(r"\s*<(?:[\w.]+ object(?: at 0x[0-9a-f]+)?|Figure size [^<>]{1,80}|[\w.]+ at 0x[0-9a-f]+)>\s*")
"""The name of an object that a notebook shows in another form."""


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
    blocks = (block for heading, lines in parts for block in (heading, code_block("\n".join(lines), language)))
    return "\n\n".join(filter(None, blocks))


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
    words = f"`{words}`" if _MARKDOWN_MARKS.search(words) else words
    return f"{'###' if indent else '##'} {words}"


def read_notebook(path: Path) -> tuple[str, str]:
    """Title and Markdown of a notebook; pictures in the outputs are left out."""
    notebook = parse_json(read_text(path))
    if not isinstance(notebook, Mapping):
        raise CorpusError("is not a notebook: it is not a JSON object")
    sheets = notebook.get("worksheets")  # of notebooks before version 4
    sheet = sheets[0] if isinstance(sheets, list) and sheets and isinstance(sheets[0], Mapping) else {}
    cells = notebook.get("cells") or sheet.get("cells")
    cells = cells if isinstance(cells, list) else []
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    kernel = metadata.get("language_info") or metadata.get("kernelspec")
    language = str(kernel.get("name") or "") if isinstance(kernel, Mapping) else ""
    language = "python" if language.startswith("python") else language
    return str(metadata.get("title") or ""), "\n\n".join(
        part for cell in cells for part in _cell(cell, language) if part
    )


def _cell(cell: Any, language: str) -> Iterator[str]:
    if not isinstance(cell, Mapping):
        return
    text = _text(cell.get("source", cell.get("input")))
    if cell.get("cell_type") != "code":
        yield undo_escapes(clean_markdown(text)).strip("\n") if cell.get("cell_type") == "markdown" else text
        return
    yield code_block(text, language)
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, Mapping):
            yield _output(output)


def _output(output: Mapping[str, Any]) -> str:
    """A cell's output: Markdown, else the text, unless that only names an object; else a page, a formula, values."""
    if output.get("output_type") in ("error", "pyerr"):
        trace = output.get("traceback")
        lines = "\n".join(map(str, trace)) if isinstance(trace, list) else ""
        return code_block(printed_text(lines or f"{output.get('ename', '')}: {output.get('evalue', '')}"))
    data = output.get("data")
    data = data if isinstance(data, Mapping) else {f"text/{name}": output.get(name) for name in ("html", "latex")}
    shown = _text(output.get("text") or data.get("text/plain"))
    if data.get("text/markdown"):
        return _text(data["text/markdown"])
    if shown.strip() and not _OBJECT.fullmatch(shown):
        return code_block(printed_text(shown))
    if data.get("text/html"):
        return html_to_markdown(_text(data["text/html"]))[1]
    if data.get("text/latex"):
        return _text(data["text/latex"]).strip()
    values = data.get("application/json")
    return code_block(json.dumps(values, ensure_ascii=False, indent=1), "json") if values else ""


def printed_text(text: str) -> str:
    """Printed text as a terminal shows it: without colours, and of a line written again and again the last form."""
    text = _TERMINAL.sub("", text).replace("\r\n", "\n")
    if "\r" in text or "\b" in text:
        text = "\n".join(_last_form(line) for line in text.split("\n"))
    return text


def _last_form(line: str) -> str:
    line = next((form for form in reversed(line.split("\r")) if form.strip()), "")
    letters: list[str] = []
    for letter in line if "\b" in line else "":
        if letter != "\b":
            letters.append(letter)
        elif letters:
            letters.pop()
    return "".join(letters) or line


def _text(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")
