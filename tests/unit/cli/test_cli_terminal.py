"""What a person sees on a terminal of 80 and of 120 columns."""

import json
import os
import re

import pytest
from rich.terminal_theme import DIMMED_MONOKAI, NIGHT_OWLISH

from sire_core import Document, Index
from support.terminal import on_terminal

PAGES = [
    Document(
        "film.md",
        "# Salt\n\nSalt is a film.\n\n## Making\n\n"
        f"{'Snow fell on the set for days. ' * 12}\n\nIt was directed by **Petra Quillon**, who also wrote it.",
        title="Salt",
    ),
    Document(
        "person.md", "Petra Quillon was born in Varn Harbour, a town of [fishers](town.md).", title="Petra Quillon"
    ),
]
QUESTION = "Where was the director of Salt born?"
STYLE = re.compile(r"\x1b\[([\d;]*)m")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("terminal")
    with Index(path / "ix", recipe="sire", chunker=None) as index:
        index.build(PAGES)
    rows = [{"id": p.id, "title": p.title, "text": p.text} for p in PAGES]
    data = path / "data"
    data.mkdir()
    (data / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = {"id": "q", "question": QUESTION, "answers": ["Varn Harbour"], "supporting": ["film.md", "person.md"]}
    (data / "questions.jsonl").write_text(json.dumps(asked) + "\n")
    return path


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", ["first", "query", "stats", "help"])
def test_what_is_shown(name, columns, folder, request):
    words = {
        "first": (),
        "query": ("query", "ix", QUESTION, "-k", 2),
        "stats": ("stats", "ix"),
        "help": ("query", "--help"),
    }[name]
    shown, _, _ = on_terminal(*words, columns=columns, folder=folder)
    assert all(len(line) <= columns for line in STYLE.sub("", shown).splitlines())
    shown = re.sub(r"score [\d.]+", "score ...", shown)  # last digits differ between machines
    shown = shown.replace("\x1b[", "ESC[")
    expected = request.path.parents[2] / "data" / "terminal" / f"{name}-{columns}.txt"
    if os.environ.get("SIRE_WRITE_SNAPSHOTS"):
        expected.write_text(shown)
    assert shown == expected.read_text()


@pytest.mark.parametrize("columns", [80, 120])
def test_rows_of_an_evaluation_fit(columns, folder):
    words = ("eval", "data", "-r", "sire,flat")
    lines = on_terminal(*words, columns=columns, folder=folder)[0].splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 5
    assert all(len(line) < columns for line in table)
    assert table[0].startswith("| recipe")
    assert " R@5 " in table[0]
    assert "answer@budget" in " ".join(lines).partition("Not shown: ")[2]
    wide, _, _ = on_terminal(*words, "--wide", columns=columns, folder=folder)
    assert "answer@budget" in wide
    assert "Not shown" not in wide


def test_colors_are_readable_on_light_and_on_dark(folder):
    from rich.terminal_theme import DEFAULT_TERMINAL_THEME

    shown, _, _ = on_terminal("query", "ix", QUESTION, columns=80, folder=folder)
    codes = {int(code) for style in STYLE.findall(shown) for code in style.split(";") if code}
    colors = [code - 30 for code in codes if 30 <= code < 38]
    assert colors
    assert not [code for code in codes if code >= 38], "only colors of the palette that the person chose"
    for theme in (DEFAULT_TERMINAL_THEME, DIMMED_MONOKAI, NIGHT_OWLISH):
        background = _luminance(theme.background_color)
        for color in colors:
            low, high = sorted((background, _luminance(theme.ansi_colors[color])))
            assert (high + 0.05) / (low + 0.05) > 2, (color, theme)


def _luminance(color):
    parts = [channel / 255 for channel in color]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
