"""Tables of README and of the documentation: measured, stored, and written into the pages.

    python benchmarks/release.py                     # write the stored tables into the pages
    python benchmarks/release.py --measure NAME ...  # run the commands of these tables first (`all`: of every table)
    python benchmarks/release.py --release           # print those with `--questions` for the test part, once a release
    python benchmarks/release.py --list

`benchmarks/results/*.toml` holds every table once: what its command printed, at which commit, on which day, with which
embedder. A page shows it between `<!-- table NAME -->` and `<!-- end -->`; nothing there is written by hand. A view
shows columns of several tables, with other labels. In commands DATA is the folder SIRE_DATA, and BGE, COLBERT, MINILM
and MANUALS are the folders SIRE_BGE, SIRE_COLBERT, SIRE_MINILM and SIRE_MANUALS (three models, and the packages of
`tried_manuals.py`). Tables of one command are measured together. `tests/integration/test_figures.py` fails where a page
or two tables disagree, where prose has a figure that no table has, and where the default embedder is another than the
one that was measured; costs do not depend on what its vectors say, so their tables have that of their day.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
DEFAULT, OF_ITS_DAY = "default", "default embedder of that day"
FOLDERS = ("DATA", "BGE", "COLBERT", "MINILM", "MANUALS")
_SHOWN = re.compile(r"^<!-- table ([\w-]+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
_RULE = re.compile(r"[|:\- ]+")
_SIRE = "from sire_core.cli import main; main()"
_PROBED = 8
_PART = re.compile(r"--questions ([a-z]+)")
_NUMBER = re.compile(r"[-+*]*\d.*|")
_FIXED_TEXTS = (
    "The server closes a connection after ten seconds without an answer.",
    "A doctor should look at a fever that lasts more than three days.",
    "Who founded the company that built the bridge over the river?",
    "Set the limit to zero to turn the check off.",
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table as its command printed it.

    Attributes:
        name: What pages call it.
        commit: The version that was measured.
        date: The day.
        head: Names of the columns.
        rows: Cells; the first one is the row's label, an empty one repeats the label above. None: not measured yet.
        command: What prints it; empty if no command prints it as it is, as `note` says.
        embedder: `default`, another, or empty where none matters or a column names it; `OF_ITS_DAY` of costs.
        fingerprint: Of the default embedder, if that was used.
        part: Part of the questions, where there are any; see `DataSet.part`.
        about: What all figures are of (such as `set` or `measure`); tables that share it must agree, whatever their
            command.
        note: What readers should know of it.
    """

    name: str
    commit: str
    date: str
    head: list[str]
    rows: list[list[str]] = field(default_factory=list)
    command: str = ""
    embedder: str = ""
    fingerprint: str = ""
    part: str = ""
    about: dict[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def origin(self) -> str:
        """Commit, day, embedder and command, in a line."""
        embedder = f"{self.embedder} embedder" if self.embedder == DEFAULT else self.embedder
        part = f"questions: {self.part}" if self.part else ""
        facts = ", ".join(filter(None, (f"commit `{self.commit}`", self.date, embedder, part)))
        command = f": `{self.command}`" if self.command else ""
        return f"*{facts[0].upper()}{facts[1:]}{command}. {self.note}".strip() + "*"

    def figures(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """What every figure is of, and the figure; as many first cells are labels as tell the rows apart."""
        firsts = list(accumulate((row[0] for row in self.rows), lambda label, cell: cell or label))
        rows = [[first, *row[1:]] for first, row in zip(firsts, self.rows, strict=True)]
        widths = range(1, len(self.head) + 1)
        width = next((n for n in widths if len({tuple(row[:n]) for row in rows}) == len(rows)), 1)
        shared = sorted(self.about.values()) or [self.command or self.name]
        for row in rows:
            for number, (column, cell) in enumerate(zip(self.head[width:], row[width:], strict=True)):
                column_name = column if self.head.count(column) == 1 else f"{column} ({number})"
                embedder = "" if column == "BM25" else self.embedder
                yield (*shared, embedder, self.part, *row[:width], column_name), cell

    def markdown(self) -> str:
        """The table and where it comes from."""
        if not self.rows:
            return f"*Not measured yet: `{self.command}`. {self.note}".strip() + "*\n"
        return _markdown(self.head, self.rows, [self.origin])


@dataclass(frozen=True, slots=True)
class View:
    """Columns of tables, side by side.

    Attributes:
        name: What pages call it.
        head: Names of the columns, the first one that of the labels.
        columns: For each but the first `TABLE:COLUMN`.
        rows: Labels of rows of the tables (the first cell, or the first two with a comma), and how they are shown.
    """

    name: str
    head: list[str]
    columns: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The columns and where they come from."""
        tables = stored_tables()
        chosen = [(tables[table], column) for table, _, column in (name.partition(":") for name in self.columns)]
        rows = []
        for label, shown in self.rows:
            cells = (
                row[table.head.index(column)]
                for table, column in chosen
                for row in table.rows
                if label in (row[0], ", ".join(row[:2]))
            )
            rows.append([shown, *cells])
        origins = dict.fromkeys(table.origin for table, _ in chosen)
        return _markdown(self.head, rows, origins)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]], notes: Iterable[str]) -> str:
    columns = list(zip(*rows, strict=True))
    rule = ["--:" if all(map(_NUMBER.fullmatch, column)) else "---" for column in columns]
    escaped = ([cell.replace("|", "\\|") for cell in row] for row in (head, *rows))
    lines = [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in escaped]
    return "\n".join([lines[0], f"|{'|'.join(rule)}|", *lines[1:], "", "\n\n".join(notes), ""])


@cache
def _stored() -> dict[Path, dict[str, list[dict[str, Any]]]]:
    return {path: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.toml"))}


@cache
def stored_tables() -> dict[str, Table]:
    """Every table by name."""
    return {each["name"]: Table(**each) for file in _stored().values() for each in file.get("table", ())}


@cache
def stored_views() -> dict[str, View]:
    """Every view by name."""
    return {each["name"]: View(**each) for file in _stored().values() for each in file.get("view", ())}


def rendered(page: str) -> str:
    """A page with its tables as they are stored."""
    shown = {**stored_tables(), **stored_views()}

    def table(match: re.Match[str]) -> str:
        if match[1] not in shown:
            raise SystemExit(f"There is no table {match[1]!r} in benchmarks/results.")
        return f"<!-- table {match[1]} -->\n{shown[match[1]].markdown()}<!-- end -->"

    return _SHOWN.sub(table, page)


def parsed(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Heads and rows of the Markdown tables of a text."""
    lines: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            if not _RULE.fullmatch(line):
                lines.append([cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif lines:
            yield lines[0], lines[1:]
            lines = []


def default_fingerprint() -> str:
    """Fingerprint of the default embedder, fitted on fixed texts, with what it makes of one of them."""
    from sire_core.models.embedders import answer_text, resolve_embedder
    from sire_core.models.sync import run_sync

    fitted = resolve_embedder(None).fit(_FIXED_TEXTS)

    def both_ends(_: str) -> list[float]:  # of a vector: its words, and what they mean
        vector = run_sync(fitted.embed([_FIXED_TEXTS[0]], "passage"))[0]
        return [*vector[:_PROBED], *vector[-_PROBED:]]

    return f"{fitted.fingerprint}:{answer_text('The default embedder', both_ends)}"


def run(command: str) -> list[tuple[list[str], list[list[str]]]]:
    """The tables that a command prints."""

    def folder(match: re.Match[str]) -> str:
        if not (path := os.environ.get(f"SIRE_{match[0]}")):
            raise SystemExit(f"{command}\nneeds the folder SIRE_{match[0]}; set it and run this again.")
        return path

    words = [re.sub(rf"\b({'|'.join(FOLDERS)})\b", folder, word) for word in shlex.split(command)]
    words[:1] = [sys.executable] if words[0] == "python" else [sys.executable, "-c", _SIRE]
    print(command, flush=True)
    return list(parsed(subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout))


def measured(tables: Sequence[Table]) -> Iterator[Table]:
    """Tables as their commands print them now; every command runs once."""
    commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, text=True).strip()
    now = {"commit": commit, "date": dt.datetime.now(dt.timezone.utc).date().isoformat()}
    for command in dict.fromkeys(table.command for table in tables):
        printed = run(command)
        for table in (table for table in tables if table.command == command):
            match = next((one for one in printed if set(table.head) <= set(one[0])), None)
            if match is None:
                raise SystemExit(
                    f"{command}\nprints no table with the columns {', '.join(table.head)} of {table.name}."
                )
            printed.remove(match)
            same_head = table.head == match[0]  # where several columns may have one name
            columns = list(range(len(table.head)) if same_head else map(match[0].index, table.head))
            fingerprint = default_fingerprint() if table.embedder == DEFAULT else ""
            rows = [[row[column] for column in columns] for row in match[1]]
            part = _PART.search(command)
            yield replace(table, rows=rows, fingerprint=fingerprint, part=part[1] if part else table.part, **now)


def write_results(changed: Mapping[str, Table]) -> None:
    """Store tables in the files that have them, and write the pages."""
    for path, file in _stored().items():
        tables = [changed.get(each["name"], Table(**each)) for each in file.get("table", ())]
        entries = [("table", asdict(table)) for table in tables] + [("view", view) for view in file.get("view", ())]
        path.write_text("\n".join(_toml(kind, values) for kind, values in entries), encoding="utf-8")
    for cached in (_stored, stored_tables, stored_views):
        cached.cache_clear()
    for page in PAGES:
        page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")


def _toml(kind: str, values: Mapping[str, Any]) -> str:
    """An entry; JSON's strings and lists are TOML's, too."""

    def value(one: Any) -> str:
        if isinstance(one, dict):
            return f"{{ {', '.join(f'{name} = {value(each)}' for name, each in one.items())} }}"
        if isinstance(one, list) and one and isinstance(one[0], list):
            return "[\n" + "".join(f"    {value(row)},\n" for row in one) + "]"
        return json.dumps(one, ensure_ascii=False)

    return f"[[{kind}]]\n" + "".join(f"{name} = {value(one)}\n" for name, one in values.items() if one)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--release", action="store_true", help="measure on the test part, and store nothing")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    tables = stored_tables()
    if options.list:
        for table in tables.values():
            print(f"{table.name} ({table.commit}, {table.date}): {table.command or table.note}")
        return
    if missing := set(options.measure) - {*tables, "all"}:
        parser.error(f"there is no table {', '.join(missing)}; see --list")
    if options.release:
        asked = [table for table in tables.values() if _PART.search(table.command)]
        for table in measured([replace(one, command=_PART.sub("--questions test", one.command)) for one in asked]):
            print(f"\n{table.name}\n\n{table.markdown()}", flush=True)
        return
    commands = {table.command for table in tables.values() if {table.name, "all"} & set(options.measure)}
    for table in measured([table for table in tables.values() if table.command and table.command in commands]):
        write_results({table.name: table})
    write_results({})


if __name__ == "__main__":
    main()
