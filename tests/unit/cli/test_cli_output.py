"""What is printed, and how."""

import io
import json
import sys

import pytest

from sire_core.cli.output import prepare_streams, say, say_json


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_passages_are_neither_markup_nor_terminal_control(capsys):
    say("[bold]x[/bold] \x1b[31mred\x07 \x9b0m tab\there")
    assert capsys.readouterr().out == "[bold]x[/bold] \ufffd[31mred\ufffd \ufffd0m tab\there\n"


def test_a_terminal_gets_style_and_wrapped_lines_with_their_indent(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    say("[red]one[/red] two three four five six seven eight", "bold", indent=4)
    printed = sys.stdout.getvalue()
    lines = printed.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    assert printed.startswith("\x1b[1m")
    assert len(lines) == 2
    assert all(line.startswith("    ") and len(line) <= 30 for line in lines)
    assert " ".join(" ".join(lines).split()) == "[red]one[/red] two three four five six seven eight"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_json_in_every_encoding(monkeypatch, encoding):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    prepare_streams()
    say_json({"text": "Москва \udc80"})
    assert json.loads(raw.getvalue().decode(encoding))["text"].startswith("Москва ")


def test_a_stream_that_cannot_encode_gets_escapes(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    prepare_streams()
    say("Žižek")
    assert raw.getvalue() == b"\\u017di\\u017eek\n"
