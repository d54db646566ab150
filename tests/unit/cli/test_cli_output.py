"""What the command shows on terminals, in pipes and in help."""

import io
import json
import sys

import pytest
from typer.main import get_command

from sire_core.cli import output
from sire_core.cli.app import app
from sire_core.cli.output import prepare_streams, reporting, say, say_json
from support.command import run


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


def test_help_keeps_brackets_and_paragraphs():
    shown = run("estimate", "--help").stdout
    assert "[lowest, highest]" in shown
    assert "]}}" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "for a new folder `semantic` where there is such a model, else `lexical`" in " ".join(
        run("eval", "--help").stdout.split()
    )


def test_the_list_of_commands_is_not_cut():
    assert "..." not in run("--help").stdout.split("Commands:")[1]


def test_a_report_shows_its_title_once(demo_set, tmp_path):
    run("index", demo_set / "corpus.jsonl", "--to", tmp_path / "ix", "-r", "smart")
    words = ("query", tmp_path / "ix", "Who made The Salt Lantern?", "-k", 12, "--returns", "units")
    titles = [hit["title"] for hit in json.loads(run(*words, "--json").stdout) if hit["kind"] == "report"]
    assert titles
    for flags, margin in (((), "    "), (("--explain",), "    | ")):
        lines = run(*words, *flags).stdout.splitlines()
        assert not [line for line in lines for title in titles if line.startswith(margin + title)]
        assert all(any(title in line for line in lines if line.startswith("[")) for title in titles)


def test_numbers_agree_with_their_nouns(tmp_path):
    one = tmp_path / "one.jsonl"
    one.write_text(json.dumps({"id": "m-1", "text": "The Marl is a river."}))
    built = run("index", one, "--to", tmp_path / "ix", "-r", "flat")
    assert "Read 1 document." in built.stderr
    assert "flat: 1 passage in" in built.stdout
    assert "passages         1\n" in run("stats", tmp_path / "ix").stdout
    assert "1 hit among 1 passage\n" in run("query", tmp_path / "ix", "river", "--explain").stdout
    one.write_text(json.dumps({"id": "m-1", "text": "The Marl is a slow river."}))
    assert "with another text: 1 document (m-1)" in run("add", tmp_path / "ix", one, code=1).stderr
    assert "Not in the index: 1 id to delete (m-2)" in run("delete", tmp_path / "ix", "m-2", code=1).stderr
    assert "1 passage, 0 of them extracted already" in run("estimate", one, "--llm", "m").stdout


def test_tables_and_images_are_passages_of_their_own_when_asked_for(tmp_path):
    page = tmp_path / "docs" / "piers.md"
    page.parent.mkdir()
    page.write_text("# Piers\n\nTwo piers.\n\n| pier | built |\n|---|---|\n| north | 1884 |\n\n![A map](map.png)\n")
    words = ("index", page.parent, "--to", tmp_path / "ix", "-r", "flat")
    assert json.loads(run(*words, "--json").stdout)["kinds"] == {"chunk": 1}
    result = run(*words, "--media", "--json")
    assert "Separate passages: 1 table and 1 image." in result.stderr
    assert json.loads(result.stdout)["kinds"] == {"chunk": 3}
    texts = [hit["text"] for hit in json.loads(run("query", tmp_path / "ix", "map", "--json").stdout)]
    assert "Image: A map" in texts
    assert "Nothing changed" in run("update", tmp_path / "ix", page, "--media").stdout
    assert "3 passages" in run("estimate", page.parent, "--media", "--llm", "m").stdout


def test_every_option_of_every_command_is_explained():
    commands = get_command(app).commands
    assert len(commands) > 20
    assert not [(name, option) for name, each in commands.items() for option in each.params if not option.help]
