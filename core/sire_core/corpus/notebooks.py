"""Jupyter notebooks (`.ipynb`) as Markdown: their texts, code, and what the code printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sire_core.corpus.files import parse_json, read_text
from sire_core.corpus.html_parser import fence_around
from sire_core.corpus.markdown_cleaning import clean_markdown
from sire_core.corpus.markdown_escapes import undo_escapes
from sire_core.errors import CorpusError

__all__ = ["read_notebook"]


def read_notebook(path: Path) -> tuple[str, str]:
    """Title of the properties (mostly empty) and Markdown of a notebook; pictures among the outputs are left out."""
    notebook = parse_json(read_text(path))
    if not isinstance(notebook, Mapping):
        raise CorpusError("is no notebook: it is not a JSON object")
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
