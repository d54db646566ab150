"""Excel files as Markdown, by openpyxl: a table for each sheet, then its comments, text boxes and charts."""

from __future__ import annotations

import datetime as dt
import zipfile
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sire_core.documents.markdown_writing import plain_text, table_lines
from sire_core.documents.titles import first_title
from sire_core.files.charts import graphic_blocks, referred_graphic
from sire_core.files.conversion import spend
from sire_core.files.html import LONGEST_REPEATED
from sire_core.files.office_package import Relation, Source, parse_part, part_relations, read_package
from sire_core.files.raised_text import lowered, raised, write_scripts

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_PLACED = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}"
_SCRIPTS = {"superscript": raised, "subscript": lowered}
_PADDING = 4
"""So many times as many cells as there are words in a table may be empty before its rows become lines of words."""
_MOST_MERGED = 1_000_000  # Cells that repeat the text of a merged cell

_Row = dict[int, str]


def read_xlsx(path: Path) -> tuple[str, str]:
    """Title of the file's properties and Markdown of a workbook: a section for each sheet."""
    return read_package(path, _read_workbook)


def _read_workbook(source: Source) -> tuple[str, str]:
    import openpyxl

    book = openpyxl.load_workbook(source, read_only=True, data_only=True, keep_links=False)
    blocks: list[str] = []
    try:
        with zipfile.ZipFile(source) as archive:
            parts = _sheet_parts(archive)
            strings = _strings_with_scripts(archive)
            for sheet in book:
                texts = [_sheet_table(book, sheet, strings)] if hasattr(sheet, "_get_source") else []
                texts += _beside_cells(archive, parts.get(sheet.title, ""))
                blocks += [f"## {plain_text(sheet.title)}", *filter(None, texts)]
    finally:
        book.close()
    return first_title(book.properties.title, book.properties.subject), "\n\n".join(blocks)


def _sheet_parts(archive: zipfile.ZipFile) -> dict[str, str]:
    books = [relation.part for relation in part_relations(archive, "").values() if relation.kind == "officeDocument"]
    if not books:
        return {}
    relations = part_relations(archive, books[0])
    sheets = parse_part(archive.read(books[0]), mend=True).iter(f"{_MAIN}sheet")
    return {
        sheet.get("name", ""): relations[sheet.get(f"{_RELATION}id")].part
        for sheet in sheets
        if sheet.get(f"{_RELATION}id") in relations
    }


def _strings_with_scripts(archive: zipfile.ZipFile) -> list[str] | None:
    """The texts of cells, where any has raised letters, which openpyxl does not tell."""
    names = [name for name in archive.namelist() if name.lower().endswith("sharedstrings.xml")]
    raw = archive.read(names[0]) if names else b""
    if b"vertAlign" not in raw:
        return None
    return [_rich_text(item) for item in parse_part(raw, mend=True).iter(f"{_MAIN}si")]


def _rich_text(item: Any) -> str:
    """Text of a cell with its raised letters, without how it is pronounced."""
    words: list[str] = []
    for child in item:
        if child.tag == f"{_MAIN}t":
            words.append(child.text or "")
        elif child.tag == f"{_MAIN}r":
            text = "".join(leaf.text or "" for leaf in child.findall(f"{_MAIN}t"))
            position = child.find(f"{_MAIN}rPr/{_MAIN}vertAlign")
            mark = None if position is None else _SCRIPTS.get(position.get("val", ""))
            words.append(mark(text) if mark else text)
    return write_scripts("".join(words))


def _sheet_table(book: Any, sheet: Any, strings: list[str] | None) -> str:
    parser_class = _parser_class()
    with sheet._get_source() as source:  # noqa: SLF001 (openpyxl's own cells repeat empty ones up to the last column)
        parser = parser_class(
            *(source, sheet._shared_strings if strings is None else strings),  # noqa: SLF001 (see above)
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,  # noqa: SLF001 (see above)
            timedelta_formats=book._timedelta_formats,  # noqa: SLF001 (see above)
        )
        numbers: list[int] = []
        rows: list[_Row] = []
        for number, cells in parser.parse():
            row = {cell["column"]: text for cell in cells if (text := _cell_value(cell["value"]))}
            spend("".join(row.values()))  # a cell may repeat a long text that is stored once
            if row:
                numbers.append(number)
                rows.append(row)
    _repeat_merged(numbers, rows, parser.ranges)
    return compact_table(rows.__iter__)


def _repeat_merged(numbers: list[int], rows: list[_Row], ranges: Iterable[str]) -> None:
    """Write the text of a merged cell in each row that it covers."""
    from openpyxl.utils.cell import range_boundaries

    left = _MOST_MERGED
    for reference in ranges:
        with suppress(ValueError, TypeError):
            column, first, _, last = range_boundaries(reference)
            start, stop = bisect_left(numbers, first), bisect_left(numbers, last + 1)
            text = rows[start].get(column, "") if start < stop and numbers[start] == first else ""
            left -= stop - start
            if left < 0:
                return
            for row in rows[start + 1 : stop] if 0 < len(text) <= LONGEST_REPEATED else ():
                row.setdefault(column, spend(text))


def _parser_class() -> Any:
    from openpyxl.worksheet._reader import WorkSheetParser
    from openpyxl.xml.functions import iterparse

    class Parser(WorkSheetParser):  # type: ignore[misc]
        """Reads cells and merged ranges; a formula without a stored value is its value.

        Attributes:
            ranges: The merged ranges.
        """

        def parse(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
            self.ranges: list[str] = []
            for _, element in iterparse(self.source):
                if element.tag == f"{_MAIN}row":
                    row = self.parse_row(element)
                    element.clear()
                    yield row
                elif element.tag == f"{_MAIN}mergeCell":
                    self.ranges.append(element.get("ref", ""))
                    element.clear()

        def parse_cell(self, element: Any) -> dict[str, Any]:
            try:
                cell: dict[str, Any] = super().parse_cell(element)
            except (ValueError, IndexError, KeyError, TypeError, OverflowError):
                cell = {"column": self.col_counter, "value": element.findtext(f"{_MAIN}v")}
            if element.get("t") == "inlineStr":
                inline = element.find(f"{_MAIN}is")
                cell["value"] = None if inline is None else _rich_text(inline)
            elif cell["value"] is None and element.find(f"{_MAIN}f") is not None:
                is_empty_text = element.get("t") == "str" and element.find(f"{_MAIN}v") is not None
                cell["value"] = None if is_empty_text else self._formula(element)
            return cell

        def _formula(self, element: Any) -> str:
            with suppress(Exception):  # a formula that openpyxl cannot read
                formula = self.parse_formula(element)
                words = str(getattr(formula, "text", formula))
                return "" if words == "=" else words
            return ""

    return Parser


def _cell_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, dt.datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, dt.timedelta):  # as Excel shows it, without days
        minutes, seconds = divmod(round(abs(value.total_seconds())), 60)
        return f"{'-' if value < dt.timedelta() else ''}{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return str(value).strip()


def compact_table(rows: Callable[[], Iterable[Mapping[int, str]]]) -> str:
    """A table of the columns that hold anything; lines of words where nearly all cells of that would be empty.

    `rows` gives the cells of each row that are not empty, by column, and is called twice: millions of them take memory.
    """
    held: set[int] = set()
    number = cells = 0
    for row in rows():
        held.update(row)
        number, cells = number + 1, cells + len(row)
    columns = sorted(held)
    if len(columns) * number > _PADDING * cells + 100:
        lines = (" ; ".join(row[column] for column in sorted(row)) for row in rows())
        return "\n".join(plain_text(line.replace("\n\n", " / ")) for line in lines)
    return "\n".join(table_lines(([row.get(column, "") for column in columns] for row in rows()), len(columns)))


def _beside_cells(archive: zipfile.ZipFile, part: str) -> Iterator[str]:
    """Comments, text boxes, pictures' texts, charts and diagrams of a sheet."""
    relations = part_relations(archive, part) if part else {}
    threaded = dict(_comments(archive, relations.values(), "threadedComment"))
    comments = {**dict(_comments(archive, relations.values(), "comments")), **threaded}
    yield "\n\n".join(f"{cell}: {text}" for cell, text in comments.items())
    for relation in relations.values():
        if relation.kind == "drawing":
            with suppress(Exception):  # a drawing that cannot be read never costs the file
                yield from _drawing(archive, relation.part)


def _comments(archive: zipfile.ZipFile, relations: Iterable[Relation], kind: str) -> Iterator[tuple[str, str]]:
    """Cells and texts of comments; the answers to one stand behind it."""
    texts: dict[str, list[str]] = {}
    for relation in relations:
        if relation.kind == kind:
            with suppress(Exception):  # see above
                for comment in parse_part(archive.read(relation.part), mend=True).iter(
                    f"{_MAIN}comment",
                    "{http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments}threadedComment",
                ):
                    words = (
                        leaf.text or "" for leaf in comment.iter() if str(leaf.tag).rpartition("}")[2] in ("t", "text")
                    )
                    texts.setdefault(comment.get("ref", ""), []).append("".join(words))
    yield from ((cell, text) for cell, words in texts.items() if (text := plain_text("\n".join(words))))


def _drawing(archive: zipfile.ZipFile, part: str) -> Iterator[str]:
    """Texts of the boxes, pictures, charts and diagrams of a drawing, in their order."""
    relations = part_relations(archive, part)
    for element in parse_part(archive.read(part), mend=True).iter(
        f"{_PLACED}txBody", f"{_PLACED}pic", f"{_DRAWING}graphicData"
    ):
        if element.tag == f"{_PLACED}txBody":
            paragraphs = (
                "".join(leaf.text or "" for leaf in p.iter(f"{_DRAWING}t")) for p in element.iter(f"{_DRAWING}p")
            )
            yield "\n\n".join(filter(None, map(plain_text, paragraphs)))
        elif element.tag == f"{_PLACED}pic":
            yield plain_text(next((name.get("descr", "") for name in element.iter(f"{_PLACED}cNvPr")), ""))
        else:
            for name in referred_graphic(element):
                if name in relations:
                    yield from graphic_blocks(parse_part(archive.read(relations[name].part), mend=True))
