"""`make benchmark-quality` on a small set: it goes on where it ended and prints the same table again."""

import re
import runpy
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "quality.py"
TIMES = re.compile(r"[\d.]+ \| [\d.]+ \|$", re.MULTILINE)


def test_rows_are_kept_and_a_second_run_prints_the_same_table(demo_set, tmp_path, monkeypatch, capsys):
    (tmp_path / "data").mkdir()
    demo_set.rename(tmp_path / "data" / "demo")
    words = [
        "--data",
        tmp_path / "data",
        "--sets",
        "demo",
        "--recipes",
        "pagerank",
        "--work",
        tmp_path / "work",
        "--questions",
        "all",
    ]

    def run():
        monkeypatch.setattr(sys, "argv", ["quality.py", *map(str, words)])
        runpy.run_path(str(SCRIPT), run_name="__main__")
        printed = capsys.readouterr()
        return printed.out, printed.err

    table, work = run()
    kept = sorted((tmp_path / "work" / "rows").glob("*.json"))
    assert len(kept) == 12  # four recipes, three places of the titles
    assert not any((tmp_path / "work" / "index").glob("*"))  # indexes are not kept
    assert "| demo | titled | 8 |" in table
    assert "### demo, titles in text" in table
    assert work.count("pagerank") == 3
    kept[0].unlink()
    kept[-1].write_text("cut off", encoding="utf-8")
    again, work = run()
    assert TIMES.sub("", again) == TIMES.sub("", table)
    lost = [line.rpartition(" ")[2] for line in work.splitlines()]
    assert lost == ["bm25", "pagerank", "bm25"]  # the two rows that were lost, and the vectors of the second
    assert run()[1] == ""
    words[3] = "nope"
    with pytest.raises(SystemExit):
        run()
