"""Every snippet of the README runs."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
CONSOLE = [
    line[2:].split("#")[0].strip()
    for block in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
]
SIRE = shutil.which("sire", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


def run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", PYTHON, ids=[re.search(r"from (\w+)", code).group(1) for code in PYTHON])
def test_python_snippet_runs_and_prints(code: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error::DeprecationWarning:sire_core", "-c", code]
    assert run(command, tmp_path).strip()


def test_two_document_snippet_finds_both_documents(tmp_path: Path) -> None:
    output = run(
        [sys.executable, "-c", next(code for code in PYTHON if "Ten lines" not in code and "my-folder" in code)],
        tmp_path,
    )
    assert "film" in output
    assert "person" in output


def test_every_recipe_has_its_line_in_the_table() -> None:
    from sire_core.recipes import REGISTRY

    page = (ROOT / "docs" / "recipes" / "which.md").read_text(encoding="utf-8")
    table = page.split("\n## All recipes")[1].split("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == sorted(REGISTRY)


def test_console_lines_run_in_order(tmp_path: Path) -> None:
    for folder, name, text in (
        ("docs", "bridge.md", "# The Slate Bridge\n\nThe Slate Bridge was built by Hale & Dunmore in 1884."),
        ("docs", "company.md", "# Hale & Dunmore\n\nHale & Dunmore is a company that was founded by Ada Hale."),
        ("more-docs", "person.md", "# Ada Hale\n\nAda Hale was an engineer from Port Ansel."),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(text, encoding="utf-8")
    assert SIRE is not None
    outputs = {}
    for line in CONSOLE:
        words = shlex.split(line)
        assert words[0] == "sire"
        outputs[line] = run([SIRE, *words[1:]], tmp_path)
    assert "Slate Bridge" in next(output for line, output in outputs.items() if "-k 5" in line)
    assert "Ada Hale" not in next(output for line, output in outputs.items() if "--json" in line)


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_figures_are_those_of_the_results() -> None:
    pages = [ROOT / "docs" / "results" / f"{name}.md" for name in ("documents", "encyclopaedias")]
    results = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    measured = README.split("\n## Measured")[1].split("\n## ")[0]
    documents, encyclopaedia = (
        [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:]]
        for table in re.findall(r"(?:^\|.*\n)+", measured, flags=re.MULTILINE)
    )
    assert len(documents) == 5
    for name, *cells in documents:
        row = next(line for line in results.splitlines() if line.startswith(f"| {name.split('`')[1]} |"))
        assert cells == [cell.strip() for cell in row.split("|")[2:6]]
    assert len(encyclopaedia) == 3
    assert all(f"| {' | '.join([*cells[:-1], cells[-1]])} |" in results for _, *cells in encyclopaedia)
