"""What people read on the screen: help, titles, numbers, and what became of tables and images."""

import json

import pytest

from support.command import run


def test_help_keeps_brackets_and_paragraphs():
    shown = run("estimate", "--help").stdout
    assert "[lowest, highest]" in shown
    assert "]}}" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "lexical, or what" in " ".join(run("eval", "--help").stdout.split())


def test_the_list_of_commands_is_not_cut():
    assert "..." not in run("--help").stdout.split("Commands:")[1]


def test_a_report_shows_its_title_once(tmp_path):
    from sire_core.data import demo_documents

    corpus = tmp_path / "corpus.jsonl"
    rows = [{"id": d.id, "title": d.title, "text": d.text} for d in demo_documents()]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("index", corpus, "--to", tmp_path / "ix", "-r", "smart")
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


@pytest.mark.parametrize(
    "command",
    [
        "index",
        "estimate",
        "query",
        "ask",
        "stats",
        "add",
        "update",
        "delete",
        "recipes",
        "eval",
        "train-chains",
        "mcp",
        "demo",
    ],
)
def test_every_option_is_explained(command):
    from typer.main import get_command

    from sire_core.cli.app import app as application

    options = get_command(application).commands[command].params
    assert all(option.help for option in options)
