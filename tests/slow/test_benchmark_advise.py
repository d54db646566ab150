"""`benchmarks/advise.py` on a slice of a set: what is advised is within two points of the best recipe."""

import json
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "advise.py"


def test_what_is_advised_is_within_two_points_of_the_best(sire_data, tmp_path, capsys):
    if not (sire_data / "musique").is_dir():
        pytest.skip(f"no set musique in {sire_data}")
    kept = tmp_path / "advise.json"
    words = ["--data", str(sire_data), "--sets", "musique", "--passages", "300", "--own", "60", "--json", str(kept)]
    script = runpy.run_path(str(SCRIPT))
    script["main"](words)
    printed = capsys.readouterr()
    assert printed.err.splitlines() == ["musique, titled", "musique, no titles"]
    rows = json.loads(kept.read_text(encoding="utf-8"))["rows"]
    for row in rows.values():
        assert row["questions"] >= 30
        assert row["found"][row["advised"]] >= max(row["found"].values()) - 2.0
        assert row["found"]["sire"] > row["found"]["flat"]
    assert "Within 2 points of the best recipe: 2 of 2." in printed.out
    script["main"](words)  # everything is there
    again = capsys.readouterr()
    assert (again.out, again.err) == (printed.out, "")


def test_a_set_that_is_left_out_does_not_say_what_is_preferred():
    script = runpy.run_path(str(SCRIPT))
    names = [candidate.name for candidate in script["CANDIDATES"]]

    def row(best, own):
        return {"advised": best, "found": {name: 60.0 + 30 * (name == best) for name in names}, "own": own}

    even = dict.fromkeys(names, "1" * 40)
    rows = {"a, titled": row("sire", even), "a, no titles": row("sire", even), "b": row("pagerank", even)}
    assert script["left_out"]("b", rows) == "sire"
    assert script["left_out"]("a, titled", rows) == "pagerank"  # of the other set, not of its own other text
    rows["b"]["own"] = even | {"iier": "2" * 40}
    assert script["left_out"]("b", rows) == "iier"
