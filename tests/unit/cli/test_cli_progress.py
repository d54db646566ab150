"""Progress on stderr."""

import io
import sys

from sire_core.cli import output
from sire_core.cli.output import reporting


def test_without_a_terminal_lines_are_rare(capsys, monkeypatch):
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(output.time, "monotonic", lambda: next(clock))
    with reporting() as report:
        for done in range(1, 9):
            report("embedding", done * 1024, 8192)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "embedding: 4,096 of 8,192\nembedding: 8,192 of 8,192\n"


def test_a_terminal_gets_bars_that_go_away(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with reporting() as report:
        report("[bold]stage", 0, 10)
        report("[bold]stage", 10, 10)
        report("[bold]stage", 3, 20)  # comes again with another total
    drawn = terminal.getvalue()
    assert "[bold]stage" in drawn
    assert "3/20" in drawn
    assert drawn.endswith("\x1b[2K")
