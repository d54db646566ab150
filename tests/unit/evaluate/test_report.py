"""Comparing rows and writing them down."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sire_core.errors import ConfigurationError
from sire_core.evaluate.bootstrap import paired_bootstrap
from sire_core.evaluate.report import format_table, write_rows
from sire_core.evaluate.rows import QuestionResult, Row, Setup


def row(found, name="flat", dataset="toy", **changes):
    """A row whose question i has its one gold passage on top where `found[i]` is true."""
    results = tuple(
        QuestionResult(
            f"q{i}",
            "bridge",
            ("g",),
            ("g",) if hit else ("x",),
            ("chunk",),
            ("g",) if hit else ("x",),
            ("chunk",),
            0.002,
        )
        for i, hit in enumerate(found)
    )
    made = Row(Setup(name, "hash", "none", 1234, 2.0), dataset, 5, (2, 5), 1500, results)
    return replace(made, **changes)


def test_bootstrap_interval_matches_the_normal_approximation():
    found = np.arange(400) % 2 == 0
    interval = paired_bootstrap(row(found), row(np.zeros(400, bool)))
    assert interval.difference == pytest.approx(50)
    half = 1.96 * 50 / np.sqrt(400)
    assert interval.low == pytest.approx(50 - half, abs=0.3)
    assert interval.high == pytest.approx(50 + half, abs=0.3)
    assert interval.significant


def test_bootstrap_pairs_questions_so_equal_rows_differ_by_nothing():
    found = np.arange(50) % 3 == 0
    interval = paired_bootstrap(row(found), row(found))
    assert (interval.difference, interval.low, interval.high) == (0, 0, 0)
    assert not interval.significant


def test_bootstrap_is_seeded_and_signed():
    better, worse = row([1, 1, 0, 1, 0, 1]), row([1, 0, 0, 0, 1, 1])
    interval = paired_bootstrap(better, worse, samples=1200, seed=5)
    assert interval == paired_bootstrap(better, worse, samples=1200, seed=5)
    assert interval.difference == pytest.approx(100 / 6)
    assert paired_bootstrap(worse, better).difference == pytest.approx(-100 / 6)
    assert not interval.significant


def test_bootstrap_refuses_rows_over_different_questions():
    with pytest.raises(ConfigurationError, match="same questions"):
        paired_bootstrap(row([1, 0]), row([1, 0, 1]))


def test_table_has_a_block_per_data_set_and_a_line_per_row():
    table = format_table([row([1, 0]), row([1], dataset="other"), row([1, 1], "sire|x")])
    assert table.splitlines() == [
        "**toy**: 5 passages, 2 questions, budget of 1,500 tokens",
        "",
        "| recipe  | embedder | extraction |  pool |   R@2 |   R@5 | all@5 | R@5 literal |   MRR | R@budget | answer@budget | build s | p50 ms |",
        "| ------- | -------- | ---------- | ----: | ----: | ----: | ----: | ----------: | ----: | -------: | ------------: | ------: | -----: |",
        "| flat    | hash     | none       | 1,234 |  50.0 |  50.0 |  50.0 |        50.0 |  50.0 |        - |             - |     2.0 |    2.0 |",
        "| sire\\|x | hash     | none       | 1,234 | 100.0 | 100.0 | 100.0 |       100.0 | 100.0 |        - |             - |     2.0 |    2.0 |",
        "",
        "**other**: 5 passages, 1 question, budget of 1,500 tokens",
        "",
        "| recipe | embedder | extraction |  pool |   R@2 |   R@5 | all@5 | R@5 literal |   MRR | R@budget | answer@budget | build s | p50 ms |",
        "| ------ | -------- | ---------- | ----: | ----: | ----: | ----: | ----------: | ----: | -------: | ------------: | ------: | -----: |",
        "| flat   | hash     | none       | 1,234 | 100.0 | 100.0 | 100.0 |       100.0 | 100.0 |        - |             - |     2.0 |    2.0 |",
    ]
    assert format_table([]) == ""


def test_table_columns_cover_the_cut_offs_of_every_row():
    lines = format_table([row([1], ks=(1,), budget=None), row([0], ks=(3,), budget=None)]).splitlines()
    assert lines[0] == "**toy**: 5 passages, 1 question"
    assert "R@1 |   R@3 | all@1 | R@1 literal" in lines[2]


def test_rows_are_replaced_in_one_step(tmp_path):
    path = tmp_path / "rows.json"
    write_rows(path, [row([1, 0])])
    write_rows(path, [row([1, 0]), row([1, 1])])
    assert json.loads(path.read_text(encoding="utf-8")) == [row([1, 0]).as_json(), row([1, 1]).as_json()]
    assert [file.name for file in tmp_path.iterdir()] == ["rows.json"]


def test_a_file_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path):
    with pytest.raises(ConfigurationError, match=r"nowhere.*cannot be written"):
        write_rows(tmp_path / "nowhere" / "rows.json", [row([1])])
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigurationError, match=r"folder.*cannot be written"):
        write_rows(tmp_path / "folder", [row([1])])
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]
