"""Figures of README and of the documentation are those of `benchmarks/results`, agree, and are of today's embedder."""

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import pytest

from sire_core.models.embedders import same_model

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("release", ROOT / "benchmarks" / "release.py")
release = importlib.util.module_from_spec(_spec)
sys.modules["release"] = release
_spec.loader.exec_module(release)

TABLES = release.stored_tables()
PAGES = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in release.PAGES}
RESULTS = {name: text for name, text in PAGES.items() if name.startswith("docs/results/")}
NUMBER = re.compile(r"(?<![\w.])(?<!\w-)\d+\.\d(?![\w.])")
MAX_WITHOUT_COMMAND = 0
MAX_NOT_MEASURED = 1
MAX_OF_ANOTHER_PART = 9
"""Tables that no command prints, that are not measured yet, and whose command asks another part of the questions than they are of: may only fall."""


def unmarked(text):
    """A page without its tables of `benchmarks/results`."""
    return release._SHOWN.sub("", text)


def disagreements(tables):
    figures = {}
    for table in tables:
        for what, figure in table.figures():
            figures.setdefault(what, set()).add(figure.strip("*"))
    return {what: values for what, values in figures.items() if len(values) > 1}


def numbers(text):
    """Figures with one decimal of the prose of a text: without code, links and tables."""
    prose = re.sub(r"```.*?```|`[^`\n]*`|\]\([^)\s]*\)|^\|.*$", "", text, flags=re.DOTALL | re.MULTILINE)
    return NUMBER.findall(prose)


def loose_figures(page, text):
    """Figures of a page's prose that are neither in its tables nor in those of pages that it links to."""
    links = {(ROOT / page).parent / link for link in re.findall(r"\]\(([^)\s#]+\.md)", text)}
    texts = [text, *(PAGES.get(str(link.resolve().relative_to(ROOT)), "") for link in links)]
    shown = {
        number
        for one in texts
        for line in one.splitlines()
        if line[:1] == "|"
        for number in re.findall(r"\d+\.\d+", line)
    }
    return [number for number in numbers(unmarked(text)) if number not in shown]


@pytest.mark.parametrize("page", PAGES)
def test_tables_of_pages_are_those_of_the_results(page):
    assert release.rendered(PAGES[page]) == PAGES[page], (
        "Run python benchmarks/release.py; a table is changed in its TOML."
    )


def test_a_table_changed_by_hand_is_noticed_and_written_again():
    name, text = next((name, text) for name, text in RESULTS.items() if release._SHOWN.search(text))
    table = release._SHOWN.search(text)
    changed = text.replace(table[0], re.sub(r"\d", "7", table[0].replace(table[1], "KEEP")).replace("KEEP", table[1]))
    assert changed != text
    assert release.rendered(changed) == text, name


@pytest.mark.parametrize("page", RESULTS)
def test_pages_of_results_have_no_other_tables_with_figures(page):
    cells = [cell for _, rows in release.parsed(unmarked(RESULTS[page])) for row in rows for cell in row[1:]]
    assert [cell for cell in cells if re.match(r"[-+]?\d+\.\d", cell)] == []


def test_rows_of_readme_are_rows_of_the_results():
    measured = [set(row) for table in TABLES.values() for row in table.rows]
    for _, rows in release.parsed(unmarked(PAGES["README.md"])):
        for row in rows:
            figures = {cell for cell in row if re.match(r"[-+]?\d+\.\d", cell)}
            assert any(figures <= cells for cells in measured), row


def test_a_table_is_measured_by_its_command():
    printed = "| set | n | R@5 |\n|---|--:|--:|\n| x\\|y | 3 | 70.0 |"
    stored = {"commit": "0", "date": "2026-01-01", "rows": [["x|y", "60.0"]], "embedder": release.DEFAULT}
    table = release.Table(
        "t", head=["set", "R@5"], command=shlex.join(["python", "-c", f"print({printed!r})"]), **stored
    )
    (measured,) = release.measured([table])
    assert measured.rows == [["x|y", "70.0"]]
    assert same_model(measured.fingerprint, release.default_fingerprint())
    assert measured.date > "2026"
    assert "| x\\|y | 70.0 |" in measured.markdown()
    with pytest.raises(SystemExit, match="prints no table with the columns set, R@9"):
        list(release.measured([release.replace(table, head=["set", "R@9"])]))


def test_two_rows_of_one_thing_agree():
    assert disagreements(TABLES.values()) == {}
    one = next(table for table in TABLES.values() if table.rows)
    rows = [[one.rows[0][0], *("99.9" for _ in one.rows[0][1:])]]
    assert disagreements([one, release.replace(one, rows=rows)])


def test_tables_carry_commit_date_and_embedder_and_are_of_todays_vectors():
    today = release.default_fingerprint()
    for table in TABLES.values():
        assert re.fullmatch(r"[0-9a-f]{7,10}", table.commit), table.name
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", table.date), table.name
        assert bool(table.fingerprint) == (table.embedder == release.DEFAULT), table.name
        assert not table.fingerprint or same_model(table.fingerprint, today), (
            f"{table.name} is of other vectors: measure"
        )
    assert sum(not table.command for table in TABLES.values()) <= MAX_WITHOUT_COMMAND
    assert sum(not table.rows for table in TABLES.values()) <= MAX_NOT_MEASURED
    parts = [(table.part, release._PART.search(table.command)) for table in TABLES.values()]
    assert sum(bool(asked) and asked[1] != part for part, asked in parts) <= MAX_OF_ANOTHER_PART


def test_only_costs_stay_when_the_default_vectors_change():
    costs = [table for table in TABLES.values() if table.embedder == release.OF_ITS_DAY]
    assert [table.name for table in costs if re.search(r"R@|MRR|nDCG|EM|F1|recall|answer@", " ".join(table.head))] == []
    assert {table.name for table in TABLES.values() if table.embedder == "default"} > {"left-out", "own-words"}


def test_tables_name_scripts_and_commands_that_are_there():
    words = [shlex.split(table.command) for table in TABLES.values() if table.command]
    assert {first for first, *_ in words} == {"python", "sire"}
    assert [script for first, script, *_ in words if first == "python" and not (ROOT / script).is_file()] == []
    shown = {name for text in PAGES.values() for name, _ in release._SHOWN.findall(text)}
    used = {column.partition(":")[0] for view in release.stored_views().values() for column in view.columns}
    assert {*TABLES, *release.stored_views()} == shown | used


def test_figures_of_prose_stand_in_tables():
    loose = {page: loose_figures(page, text) for page, text in PAGES.items()}
    assert {page: figures for page, figures in loose.items() if figures} == {}
    text = "It finds 98.7 instead of 12.3, 4.5 less, with gpt-3.5-turbo. [More](results/index.md)\n| a | 12.3 |"
    assert loose_figures("docs/limits.md", text) == ["98.7", "4.5"]
