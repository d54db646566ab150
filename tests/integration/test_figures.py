"""Figures of the documentation agree: one value per row, set and measure; prose repeats tables; claims name cells."""

import re
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))
FIGURE = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?: \(.*\))?")
MEASURE = re.compile(r"(R|all|nDCG|answer)@[\d, k]+|MRR|BM25|hybrid|`?sire`?.*|dense|bm25|match")
COMMAND = re.compile(r"`((?:sire|python) [^`]*)`")


def tables(text):
    """Yield heading, command above, head and rows of every table; the command is that of the section, or empty."""
    heading = command = ""
    table = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            if table:
                yield table
            table = None
            if line.startswith("#"):
                heading, command = line, ""
            command = (COMMAND.findall(line) or [command])[-1]
        elif table is None:
            table = (heading, command, cells, [])
        elif not set("".join(cells)) <= set("-: "):
            table[3].append(cells)
    if table:
        yield table


def figures(text):
    """Yield a key of heading, command, labels of the row and column, and the value, for every figure."""
    for heading, command, head, rows in tables(text):
        first = ""
        for row in rows:
            first = row[0] or first
            labels = [first, *(cell for cell in row[1:] if re.match(r"[`*\w]", cell) and not FIGURE.fullmatch(cell))]
            for column, value in zip(head[1:], row[1:], strict=False):
                if MEASURE.fullmatch(column) and FIGURE.fullmatch(value):
                    yield (heading, command, head[0], *labels, column), value


def contradictions(text):
    """Keys with more than one value."""
    values = {}
    for key, value in figures(text):
        values.setdefault(key, set()).add(value)
    return {key: found for key, found in values.items() if len(found) > 1}


@pytest.mark.parametrize("page", [*RESULTS, ROOT / "README.md"], ids=lambda page: page.name)
def test_a_row_has_one_value_per_set_and_measure(page):
    assert contradictions(page.read_text(encoding="utf-8")) == {}


def test_a_table_changed_by_hand_is_noticed():
    table = "## T\n`sire eval X`\n| row | R@5 |\n|---|--:|\n| a | 50.0 |\n\nand again\n\n| row | R@5 |\n|---|--:|\n| a | 51.0 |\n"
    assert list(contradictions(table).values()) == [{"50.0", "51.0"}]
    assert contradictions(table.replace("51.0", "50.0")) == {}


def test_figures_in_the_prose_of_readme_and_limits_stand_in_a_table():
    shown = {
        number
        for page in (*RESULTS, ROOT / "README.md")
        for *_, rows in tables(page.read_text(encoding="utf-8"))
        for row in rows
        for cell in row
        for number in re.findall(r"\d+\.\d+", cell)
    }
    for page in (ROOT / "README.md", ROOT / "docs" / "limits.md"):
        prose = "\n".join(line for line in page.read_text(encoding="utf-8").splitlines() if not line.startswith("|"))
        assert [number for number in re.findall(r"(?<![\w.])\d+\.\d(?![\w.])", prose) if number not in shown] == []


def test_claims_name_rows_and_columns_of_their_pages():
    claims = tomllib.loads((ROOT / "benchmarks" / "claims.toml").read_text(encoding="utf-8"))["claims"]
    for claim in claims:
        found = [
            (head, rows)
            for heading, _, head, rows in tables((ROOT / claim["page"]).read_text(encoding="utf-8"))
            if heading.startswith(claim["heading"])
        ]
        for row, column, *_ in claim["figures"]:
            assert any(column in head and row in [cells[0] for cells in rows] for head, rows in found), (claim, row)


STAMP = re.compile(r"^\*Tables of commit `[0-9a-f]{7,10}`, 20\d\d-\d\d-\d\d(; .*)?\.\*$", re.MULTILINE)
MOST_UNSTAMPED = 3
"""Pages of results that may lack the line `*Tables of commit ..., DATE; ...*`: it may only fall, to the index alone."""


def test_pages_of_results_say_of_which_commit_and_day_they_are():
    unstamped = [page.name for page in RESULTS if STAMP.search(page.read_text(encoding="utf-8")) is None]
    assert len(unstamped) <= MOST_UNSTAMPED, f"End with `*Tables of commit COMMIT, DATE.*`: {unstamped}"
