"""Excel files (`.xlsx`) and files of values (`.csv`, `.tsv`) as Markdown tables without empty rows and columns."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sire_core.corpus.markdown_writing import plain_text, table
from sire_core.corpus.titles import first_title
from sire_core.errors import CorpusError

__all__ = ["read_values", "read_xlsx"]

_COLUMNS = 20_000
"""Excel has 16,384. A file with more is no table that someone reads."""
_LETTERS = 100_000_000
"""A cell may repeat a long text that is stored once; so many letters are no table any more."""
_PADDING = 4
"""So many times as many cells as there are words in a table may be empty before its rows become lines of words."""


def read_xlsx(path: Path) -> tuple[str, str]:
    """Title of the file's properties and Markdown of a workbook: a section and a table for each sheet."""
    import openpyxl

    book = openpyxl.load_workbook(str(path), read_only=True, data_only=True, keep_links=False)
    parts: list[str] = []
    try:
        for sheet in book:
            if not hasattr(sheet, "_get_source"):  # a sheet that is a chart
                parts.append(f"## {plain_text(sheet.title)}")
                continue
            rows = _compact([dict(row) for row in _sparse_rows(book, sheet)])
            parts += filter(None, [f"## {plain_text(sheet.title)}", rows])
    finally:
        book.close()
    return first_title(book.properties.title, book.properties.subject), "\n\n".join(parts)


def _sparse_rows(book: Any, sheet: Any) -> Iterator[list[tuple[int, str]]]:
    """Cells with a value, by column, of each row that has any.

    openpyxl's own rows are filled up with empty cells: two cells in far corners would make billions of them.
    """
    from openpyxl.worksheet._reader import WorkSheetParser

    with sheet._get_source() as source:  # noqa: SLF001 (see above)
        parser = WorkSheetParser(
            *(source, sheet._shared_strings),  # noqa: SLF001 (see above)
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,  # noqa: SLF001 (see above)
            timedelta_formats=book._timedelta_formats,  # noqa: SLF001 (see above)
        )
        left = _LETTERS
        for _, row in parser.parse():
            cells = [(cell["column"], text) for cell in row if (text := _shown(cell["value"]))]
            left -= sum(len(text) for _, text in cells)
            if left < 0:
                raise CorpusError(f"a sheet has more than {_LETTERS:,} letters; that is no table")
            if cells:
                yield cells


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, dt.datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return str(value).strip()


def _compact(rows: Sequence[dict[int, str]]) -> str:
    """A table of the columns that hold anything; lines of words where nearly all cells of that would be empty."""
    columns = sorted({column for row in rows for column in row})
    if len(columns) * len(rows) > _PADDING * sum(map(len, rows)) + 100:
        return "\n".join(plain_text(" ; ".join(row[column] for column in sorted(row))) for row in rows)
    return table([[row.get(column, "") for column in columns] for row in rows])


def read_values(text: str, delimiter: str) -> str:
    """Values between commas (or what stands in their place: `;`, tabs) as a Markdown table."""
    head = text[:10_000].split("\n", 1)[0]
    delimiter = delimiter or max(",;\t|", key=head.count)
    rows: list[dict[int, str]] = []
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if len(row) > _COLUMNS:
                raise CorpusError(
                    f"a row has {len(row):,} columns; that is no table. Read it as text: rename it to .txt"
                )
            cells = {number: cell.strip() for number, cell in enumerate(row) if cell.strip()}
            rows += [cells] if cells else []
    except csv.Error as error:
        raise CorpusError(f"cannot be read as a table: {error}") from error
    return _compact(rows)
