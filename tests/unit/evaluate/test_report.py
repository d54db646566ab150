"""Tables, and figures on pages."""

from dataclasses import replace

import numpy as np
import pytest

from sire_core.cli.output import write_rows
from sire_core.errors import ConfigurationError
from sire_core.evaluate import EvalRow, EvalRows
from sire_core.evaluate.bootstrap import mark_same, mean_interval, paired_bootstrap, with_intervals, with_spread
from sire_core.evaluate.report import format_ablations, format_comparison, format_groups, format_table, published_rows
from sire_core.evaluate.rows import QuestionResult, Setup
from sire_core.recipes.published import ablations_of


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
            passages=("g",) if hit else ("x",),
            hops=2,
        )
        for i, hit in enumerate(found)
    )
    made = EvalRow(Setup(name, "hash", "none", 1234, 2.0), dataset, 5, (2, 5), 1500, results)
    return replace(made, **changes)


def test_bootstrap_interval_matches_the_normal_approximation():
    found = np.arange(400) % 2 == 0
    interval = paired_bootstrap(row(found), row(np.zeros(400, bool)))
    assert interval.difference == pytest.approx(50)
    half = 1.96 * 50 / np.sqrt(400)
    assert interval.low == pytest.approx(50 - half, abs=0.3)
    assert interval.high == pytest.approx(50 + half, abs=0.3)
    assert interval.significant


def test_bootstrap_refuses_rows_over_different_questions():
    with pytest.raises(ConfigurationError, match="2 and 3 questions with it, 2 in common"):
        paired_bootstrap(row([1, 0]), row([1, 0, 1]))


def test_every_row_is_compared_with_hybrid_and_what_is_significant_is_marked():
    base = row(np.arange(40) % 4 == 0, "hybrid")
    rows = with_intervals([base, row(np.arange(40) % 4 != 1, "better"), row(np.arange(40) % 4 == 0, "same")])
    better = rows[1].as_json()["interval"]
    assert (better["baseline"], better["k"], better["difference"], better["significant"]) == ("hybrid", 5, 50.0, True)
    assert 0 < better["low"] < 50 < better["high"]
    assert rows[2].as_json()["interval"]["significant"] is False
    assert rows[0].as_json()["interval"] is None
    cells = {line.split("|")[1].strip(): line for line in format_table(rows).splitlines() if line.startswith("|")}
    assert f"| +50.0 [{better['low']}, {better['high']}]* |" in cells["better"]
    assert "| +0.0 [0.0, 0.0] |" in " ".join(cells["same"].split())
    assert with_intervals([row([1], "flat")])[0].interval is None
    assert with_intervals([base, row([1], "other questions")])[1].interval is None


def test_a_mean_has_an_interval():
    interval = mean_interval([0.0, 1.0] * 100)
    assert (interval.difference, round(interval.low + interval.high)) == (50, 100)
    assert 40 < interval.low < 45
    with pytest.raises(ConfigurationError):
        mean_interval([])


def test_rows_whose_switch_had_no_effect_are_marked():
    full, same, other = (
        replace(row(found), setup=Setup(name, pool=9, family="sirerag"))
        for name, found in (("full", [1, 0]), ("switch", [1, 0]), ("other", [1, 1]))
    )
    foreign = replace(row([1, 0]), setup=Setup("flat", pool=9))
    larger = replace(same, setup=replace(same.setup, recipe="larger", pool=10))
    marked = mark_same([full, same, other, foreign, larger])
    assert [found.same_as for found in marked] == ["", "full", "", "", ""]
    table = format_ablations(marked)
    assert [("no effect: as full" in line) for line in table.splitlines()[4:]] == [False, True, False, False, False]
    assert marked[1].as_json()["same_as"] == "full"


def test_repeated_builds_show_their_spread():
    (made,) = with_spread([[row([1, 0, 1, 0])], [row([1, 1, 1, 0])], [row([1, 1, 1, 1])]])
    assert made.as_json()["repeats"]["recall_passages"]["5"] == {"mean": 75.0, "sd": 25.0, "min": 50.0, "max": 100.0}
    assert made.recall_passages(5) == 75
    assert r"75.0} $\pm$ 25.0 \\" in EvalRows([made]).to_latex(measures=("R@5",))
    assert "flat (3 builds)" in format_table([made])
    assert "sd 25.0" in format_table([made])


def test_groups_show_recall_by_hops_and_by_type():
    table = format_groups([row([1, 0])])
    assert [cell.strip() for cell in table.splitlines()[2].split("|")[1:-1]] == ["recipe", "2 hops", "bridge"]
    assert [cell.strip() for cell in table.splitlines()[4].split("|")[1:-1]] == ["flat", "50.0", "50.0"]


def test_table_has_a_block_per_data_set_and_a_line_per_row():
    table = format_table([row([1, 0]), row([1], dataset="other"), row([1, 1], "sire|x")])
    lines = [" ".join(line.split()) for line in table.splitlines()]
    header = (
        "| recipe | embedder | extraction | pool | R@2 | R@5 | vs hybrid | all@5 | nDCG@5 | MRR | R@5 prov | R@5 literal "
        "| R@budget | answer@budget | build s | p50 ms |"
    )
    assert [line for line in lines if "---" not in line] == [
        "**toy**: 5 passages, 2 questions, budget of 1,500 tokens",
        "",
        header,
        "| flat | hash | none | 1,234 | 50.0 | 50.0 | - | 50.0 | 50.0 | 50.0 | 50.0 | 50.0 | - | - | 2.0 | 2.0 |",
        "| sire\\|x | hash | none | 1,234 | 100.0 | 100.0 | - | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | - | - | 2.0 | 2.0 |",
        "",
        "**other**: 5 passages, 1 question, budget of 1,500 tokens",
        "",
        header,
        "| flat | hash | none | 1,234 | 100.0 | 100.0 | - | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | - | - | 2.0 | 2.0 |",
    ]
    assert len({len(line) for line in table.splitlines()[2:6]}) == 1  # columns are aligned
    assert format_table([]) == ""


def test_a_file_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path):
    with pytest.raises(ConfigurationError, match=r"nowhere.*cannot be written"):
        write_rows(tmp_path / "nowhere" / "rows.json", [row([1])])
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigurationError, match=r"folder.*cannot be written"):
        write_rows(tmp_path / "folder", [row([1])])
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_published_figures_stand_beside_ours_with_what_they_were_measured_with():
    ours = row([1, 0], dataset="musique, odd questions", answers={"via": "single", "EM": 12.5, "F1": 20.0, "Acc": 15.0})
    lines = [[cell.strip() for cell in line.split("|")] for line in format_comparison([ours]).splitlines()[2:]]
    cells = {line[1]: dict(zip(lines[0], line, strict=True)) for line in lines[2:]}
    assert cells["flat"]["R@5"] == "50.0"
    assert cells["flat"]["EM"] == "12.5"
    assert cells["flat"]["pool"] == "2 questions, 5 passages"
    assert cells["flat"]["reader"] == "single"
    assert cells["HippoRAG 2"]["R@5"] == "74.7"
    assert cells["SiReRAG"]["EM"] == "40.5"
    assert (cells["IndexRAG"]["Acc"], cells["IndexRAG"]["R@10 literal"]) == ("24.4", "52.8")
    assert cells["MS-RAG"]["R@2"] == "47.3"
    assert cells["IIER"]["Acc"] == "62.5"
    for name in ("method", "source", "pool", "model", "embedder", "reader"):
        assert all(line[name] for line in cells.values())
    with pytest.raises(ConfigurationError, match="No published figures for toy"):
        format_comparison([row([1])])


def test_the_papers_figures_are_the_same_wherever_they_stand():
    """The table of methods and the recipes' ablations are two files with some of the same numbers."""
    names = {"SiReRAG": "sirerag", "IndexRAG": "indexrag", "MS-RAG": "msrag", "IIER": "iier", "SMART": "smart"}
    compared = 0
    for dataset in ("musique", "2wiki", "hotpotqa"):  # SMART prints two figures for its default on MultiHop-RAG
        for paper, figures in published_rows(dataset):
            recipe = names.get(paper["method"])
            for ablation in ablations_of(recipe) if recipe else ():
                theirs = ablation.paper.get(dataset, {})
                if ablation.recipe == recipe and not ablation.settings and not ablation.answer:
                    for metric in theirs.keys() & figures.keys():
                        assert theirs[metric] == figures[metric]
                        compared += 1
    assert compared > 20
