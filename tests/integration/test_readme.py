"""Every snippet of the README runs."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.scripted_server import ScriptedServer

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
CONSOLE = [
    line[2:].split("#")[0].strip()
    for block in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
]
IRCOT = (
    '{"reasoning": "The novel is by Ilse Marrable.", "search": "When did Ilse Marrable die?"}',
    '{"reasoning": "She died on 2 November 1931.", "search": "DONE"}',
    '{"answer": "1931", "citations": [2], "sufficient": true}',
)
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
    if "ChatOpenAI" not in code:
        assert run(command, tmp_path).strip()
        return
    with ScriptedServer(lambda call: IRCOT[call.number - 1]) as server:  # in the place of the service
        shown = run(command, tmp_path, OPENAI_API_KEY="sk-scripted", OPENAI_BASE_URL=server.base_url)
    lines = shown.splitlines()
    assert [line.split()[0] for line in lines] == [
        "retrieved",
        "thought",
        "sub_question",
        "retrieved",
        "thought",
        "answer",
    ]
    assert lines[-1] == "answer 1931 [2] []"


def test_two_document_snippet_finds_both_documents(tmp_path: Path) -> None:
    output = run(
        [sys.executable, "-c", next(code for code in PYTHON if "Ten lines" not in code and "my-folder" in code)],
        tmp_path,
    )
    assert "film" in output
    assert "person" in output


def test_every_recipe_has_its_line_in_the_table() -> None:
    from sire_core.recipes import REGISTRY

    table = README.split("\n## Recipes")[1].split("\n## ")[0]
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
    assert len(README.splitlines()) < 200


def test_figures_are_those_of_the_results() -> None:
    folder = Path(__file__).parents[2] / "benchmarks"
    results = (folder / "RESULTS.md").read_text(encoding="utf-8")
    measured = README.split("\n## Measured")[1].split("\n## ")[0]
    recalls = re.findall(r"([\d.]+) / ([\d.]+) / \*\*([\d.]+)\*\*", measured)
    assert len(recalls) == 6
    assert [row for row in recalls if f"| {' | '.join(row)} |" not in results] == []
    peers = (folder / "results" / "peers.md").read_text(encoding="utf-8").split("| 500 passages |")[1].split("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in peers.splitlines()]
    known = [[float(row[at]) for at in (1, 2, 4, 6, 7, 9)] for row in rows if len(row) == 10 and row[7][0].isdigit()]
    shown = measured.split("| 500 passages |")[1].split("\n\n")[0].splitlines()[2:]
    assert len(shown) == 7
    for line in shown:  # index, calls, query, peak, disk, R@5
        values = [float(value) for value in line.strip("| ").split(" | ")[1:]]
        room = (0.051, 0.051, 0.001, 0.001, 0.501, 0.001)  # the README rounds
        assert any(all(abs(a - b) < by for a, b, by in zip(values, row, room, strict=True)) for row in known), line
