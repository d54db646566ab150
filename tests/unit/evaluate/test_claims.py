"""Every figure of `benchmarks/claims.toml` is on its page; a figure is measured again and compared."""

import runpy
import shlex
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from sire_core.cli.app import app

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "benchmarks" / "reproduce.py"
FIGURES = list(runpy.run_path(str(SCRIPT))["figures"](ROOT / "benchmarks" / "claims.toml"))


def test_every_figure_stands_on_its_page_and_its_command_exists():
    assert len(FIGURES) > 20
    for figure in FIGURES:
        assert figure.stated() >= 0
        program, command, *words = shlex.split(figure.command)
        if program == "python":
            assert (ROOT / command).is_file()
        else:
            known = {option for parameter in get_command(app).commands[command].params for option in parameter.opts}
            assert {word for word in words if word.startswith("-")} <= known, figure.command


@pytest.mark.parametrize(("measured", "says"), [("41.5", "holds"), ("48.0", "differs by more than 1.0")])
def test_a_figure_is_measured_again(tmp_path, monkeypatch, capsys, measured, says):
    page = tmp_path / "page.md"
    page.write_text(
        "# Other\n\n| set | R@5 |\n|---|--:|\n| a | 1.0 |\n\n# This\n\n| set | R@5 |\n|--|--|\n| a | 41.2 |\n"
    )
    script = tmp_path / "measure.py"
    script.write_text(f"print('| recipe | R@2 | R@5 |')\nprint('|---|--:|--:|')\nprint('| sire | 9 | {measured}* |')")
    claims = tmp_path / "claims.toml"
    figures = '[["a", "R@5", "sire", "R@5"]]'
    claims.write_text(
        f'[[claims]]\npage = "{page}"\nheading = "# This"\ncommand = "python {script}"\nfigures = {figures}\n'
    )
    monkeypatch.setattr(sys, "argv", ["reproduce.py", "--claims", str(claims)])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert end.value.code == (0 if says == "holds" else 1)
    assert f"stated 41.2, measured {measured}: {says}" in capsys.readouterr().out


def test_a_figure_that_is_not_on_the_page_is_an_error(tmp_path):
    number = runpy.run_path(str(SCRIPT))["number"]
    with pytest.raises(SystemExit, match="'b'"):
        number("| set | R@5 |\n|---|--:|\n| a | 1.0 |\n", "b", "R@5")
