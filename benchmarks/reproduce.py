"""Picks a figure of README or of the documentation at random, runs its command again, and compares.

    python benchmarks/reproduce.py                    # any figure
    python benchmarks/reproduce.py --only musique     # of a command that has the word in it
    python benchmarks/reproduce.py --list

`claims.toml` lists pages, commands, and which cell of a page's table is which cell of the command's. `DATA` in a
command is the folder SIRE_DATA, `MANUALS` the folder SIRE_MANUALS of unpacked Debian packages (`tried_manuals.py`). A
figure holds when both cells differ by at most the claim's `within` (1 if left out).
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {
    "DATA": os.environ.get("SIRE_DATA", "../shared/data"),
    "MANUALS": os.environ.get("SIRE_MANUALS", "../manuals"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A cell of a page, by row and column, the command that prints it, and where in its output; see `claims.toml`."""

    page: str
    command: str
    row: str
    column: str
    printed_row: str
    printed_column: str
    heading: str = ""
    within: float = 1.0

    def stated(self) -> float:
        """The number on the page."""
        text = (ROOT / self.page).read_text(encoding="utf-8")
        return number(text.partition(self.heading)[2], self.row, self.column)

    def measured(self) -> float:
        """The number that the command prints now."""
        words = [sys.executable if word == "python" else word for word in shlex.split(self.command)]
        words = [re.sub(r"^(DATA|MANUALS)\b", lambda match: FOLDERS[match[0]], word) for word in words]
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        return number(done.stdout, self.printed_row, self.printed_column)


def number(text: str, row: str, column: str) -> float:
    """The first number in a cell of the first Markdown table of a text that has such a row and column."""
    header: list[str] = []
    before: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if cells and not set("".join(cells)) - set("-: "):
            header = before
        elif row in cells and column in header:
            found = re.search(r"-?\d[\d,]*(?:\.\d+)?", cells[header.index(column)])
            if found:
                return float(found[0].replace(",", ""))
        before = cells
    raise SystemExit(f"No table has a number in row {row!r} and column {column!r}.")


def figures(path: Path) -> Iterator[Figure]:
    """Every figure of a file of claims."""
    for claim in tomllib.loads(path.read_text(encoding="utf-8"))["claims"]:
        shared: dict[str, Any] = {name: value for name, value in claim.items() if name != "figures"}
        for row, column, printed_row, printed_column in claim["figures"]:
            yield Figure(**shared, row=row, column=column, printed_row=printed_row, printed_column=printed_column)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=Path, default=Path(__file__).with_name("claims.toml"))
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    known = [figure for figure in figures(options.claims) if options.only in figure.command]
    if not known:
        raise SystemExit(f"No command has {options.only!r} in it.")
    if options.list:
        for figure in known:
            print(f"{figure.page}: {figure.row}, {figure.column}: {figure.stated()}\n    {figure.command}")
        return
    figure = random.choice(known)
    print(f"{figure.page}: {figure.row}, {figure.column}\n{figure.command}", flush=True)
    stated, measured = figure.stated(), figure.measured()
    holds = abs(stated - measured) <= figure.within
    print(f"stated {stated}, measured {measured}: {'holds' if holds else f'differs by more than {figure.within}'}")
    raise SystemExit(0 if holds else 1)


if __name__ == "__main__":
    main()
