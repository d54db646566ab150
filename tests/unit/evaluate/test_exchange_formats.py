"""A researcher's hour: a BEIR folder in, runs, judgements, tables and significance out, checked by trec_eval."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import pytrec_eval

from sire_core.data import demo_documents, demo_questions
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.evaluate import (
    DataSet,
    EvalConfig,
    EvalRows,
    Experiment,
    load_dataset,
    read_qrels,
    read_run,
    row_of_run,
    write_qrels,
    write_run,
)
from sire_core.evaluate.answer_eval import AnswerConfig
from sire_core.evaluate.bootstrap import holm, randomization_p
from sire_core.evaluate.retrieval import graded_ndcg_at_k
from sire_core.recipes import hipporag2, pagerank
from support.command import run as run_command

WORDS = ("harbour", "glass", "bell", "tower", "salt", "lantern", "ferry", "orchard", "anvil", "quarry")


@pytest.fixture(scope="module")
def beir(tmp_path_factory):
    """A folder in BEIR's form: passages about two words each, questions about one, graded 0 to 2."""
    folder = tmp_path_factory.mktemp("beir")
    rng = np.random.default_rng(0)
    pairs = [(one, other) for one in WORDS for other in WORDS if one < other]
    corpus = [
        {"_id": f"p{n}", "title": "", "text": f"The {one} stands beside the {other}.", "metadata": {"part": n % 3}}
        for n, (one, other) in enumerate(pairs)
    ]
    queries = [{"_id": f"q{n}", "text": f"Where is the {word}?", "metadata": {}} for n, word in enumerate(WORDS)]
    lines = ["query-id\tcorpus-id\tscore"]
    for n, word in enumerate(WORDS[:9]):  # the tenth is not judged
        holders = [f"p{i}" for i, pair in enumerate(pairs) if word in pair]
        lines += [
            f"q{n}\t{name}\t{grade}" for name, grade in zip(holders, rng.integers(0, 3, len(holders)), strict=True)
        ]
        lines.append(f"q{n}\t{holders[0]}\t2" if lines[-len(holders)].endswith("2") else f"q{n}\tp{n}x\t0")
    (folder / "qrels").mkdir()
    (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in corpus))
    (folder / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in queries))
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq9\tp0\t1\n")
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def rows(beir):
    return Experiment(load_dataset(beir), recipes=["sire"], baselines=("bm25", "dense")).run()


def test_a_beir_folder_is_a_data_set_with_the_grades_of_its_test_split(beir):
    dataset = load_dataset(beir)
    assert (len(dataset.documents), len(dataset.questions)) == (45, 9)
    assert dataset.documents[4].metadata == {"part": 1}
    judged = read_qrels(beir / "qrels" / "test.tsv")
    for question in dataset.questions:
        assert dict(question.grades) == judged[question.id]
        assert set(question.supporting) == {name for name, grade in judged[question.id].items() if grade > 0}


def test_a_data_set_of_ir_datasets_is_read_like_its_files(beir, tmp_path):
    with pytest.raises(ConfigurationError, match=r"pip install ir_datasets|ir-datasets\.com"):
        load_dataset("ir_datasets:no/such/set")
    ir_datasets = pytest.importorskip("ir_datasets")
    files = load_dataset(beir)
    texts = {"docs": files.documents, "queries": files.questions}
    for name, items in texts.items():
        lines = [f"{one.id}\t{one.text if name == 'docs' else one.question}\n" for one in items]
        (tmp_path / f"{name}.tsv").write_text("".join(lines))
    write_qrels(tmp_path / "qrels", {question.id: dict(question.grades) for question in files.questions})
    made = {"docs_tsv": str(tmp_path / "docs.tsv"), "queries_tsv": str(tmp_path / "queries.tsv")}
    dataset = load_dataset(ir_datasets.create_dataset(**made, qrels_trec=str(tmp_path / "qrels")))
    assert dataset.questions == files.questions
    assert [(d.id, d.text) for d in dataset.documents] == [(d.id, d.text) for d in files.documents]
    with pytest.raises(CorpusError, match="has no qrels; take a part with all three"):
        load_dataset(ir_datasets.create_dataset(**made))


def test_runs_and_judgements_give_trec_eval_what_the_rows_say(rows, tmp_path):
    files = rows.export(tmp_path / "paper")
    assert [file.name for file in files] == [
        "rows.csv", "rows.tex", "comparisons.csv", "qrels.txt", "01-bm25.run", "02-dense.run", "03-sire.run",
    ]  # fmt: skip
    judged = read_qrels(tmp_path / "paper" / "qrels.txt")
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.5,10", "recall.5", "recip_rank"})
    for file, row in zip(files[4:], rows, strict=True):
        found = theirs.evaluate({q: dict(ranked) for q, ranked in read_run(file).items()})
        for measure, name in (
            ("nDCG@5", "ndcg_cut_5"),
            ("nDCG@10", "ndcg_cut_10"),
            ("R@5", "recall_5"),
            ("MRR", "recip_rank"),
        ):
            ours = row.per_question(measure)
            assert ours == pytest.approx({question: values[name] for question, values in found.items()}), measure


def test_rows_of_cut_documents_are_of_documents_as_their_runs_are(beir, tmp_path):
    dataset = load_dataset(beir)
    long_texts = [" ".join(f"{part.text} It was {part.id} in {n}." for n in range(30)) for part in dataset.documents]
    documents = [replace(part, text=text) for part, text in zip(dataset.documents, long_texts, strict=True)]
    documents[1] = replace(documents[1], text=documents[0].text)  # a copy, of which only one is relevant
    dataset = replace(dataset, documents=tuple(documents))
    ungraded = replace(dataset, questions=tuple(replace(question, grades=()) for question in dataset.questions))
    options = {"recipes": ["sire"], "baselines": ("bm25",), "config": EvalConfig(budget=None)}
    for measured, chunk_tokens in ((dataset, 40), (ungraded, None)):
        made = Experiment(measured, chunk_tokens=chunk_tokens, **options).run()
        assert made[0].passages > 5 * len(documents) or chunk_tokens is None
        for file, row in zip(made.export(tmp_path)[4:], made, strict=True):
            run = read_run(file)
            assert chunk_tokens is None or min(map(len, run.values())) == 20  # documents, not passages
            same = row_of_run(measured, run, "same")
            for measure in ("R@5", "R@20", "nDCG@10", "MRR", "all@10"):
                assert same.per_question(measure) == row.per_question(measure), measure


def test_a_run_of_another_system_is_a_row_beside_ours(beir, rows, tmp_path):
    dataset = load_dataset(beir)
    write_run(
        tmp_path / "same.run",
        {
            q: [(name, 1.0) for name in result.passages]
            for q, result in zip([r.id for r in rows[0].results], rows[0].results, strict=True)
        },
        "BM25 of ours",
    )
    text = (tmp_path / "same.run").read_text().splitlines()
    assert re.fullmatch(r"q0 Q0 p\d+ 1 1\.0 BM25-of-ours", text[0])
    assert float(text[1].split()[4]) < 1.0  # scores fall, so that sorting by them keeps the order
    row = row_of_run(dataset, read_run(tmp_path / "same.run"), "theirs", (5, 10))
    assert row.per_question("nDCG@10") == rows[0].per_question("nDCG@10")
    (equal,) = EvalRows([rows[0], row]).compare("nDCG@10")
    assert (equal.difference, equal.p, equal.significant) == (0.0, 1.0, False)
    with pytest.raises(ConfigurationError, match="has no question of"):
        row_of_run(dataset, {"x": [("p1", 1.0)]}, "other")


def test_the_table_as_csv_latex_and_pandas(rows, tmp_path, monkeypatch):
    table = list(csv.DictReader(rows.to_csv(tmp_path / "rows.csv").splitlines()))
    assert [line["row"] for line in table] == ["bm25", "dense", "sire"]
    assert float(table[2]["nDCG@10"]) == pytest.approx(rows[2].mean("nDCG@10"), abs=1e-4)
    latex = rows.to_latex(measures=("R@5", "answer@budget"))
    assert latex.count(r"\\") == 4
    assert r"\textbf{" in latex
    assert "bm25 & " in latex
    assert latex.splitlines()[4].endswith(r"& -- \\")  # no question has an answer
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ConfigurationError, match="pip install matplotlib"):
        rows.plot()
    with pytest.raises(ConfigurationError, match="pip install pandas"):
        rows.to_pandas()


def test_rows_are_a_frame_and_lines_of_a_plot(rows, tmp_path):
    frame = pytest.importorskip("pandas") and rows.to_pandas(["R@5"])
    assert list(frame["R@5"]) == pytest.approx([row.recall_passages(5) for row in rows])
    pytest.importorskip("matplotlib")
    axes = rows.plot(path=tmp_path / "recall.svg")
    assert [line.get_label() for line in axes.lines] == ["bm25", "dense", "sire"]
    assert list(axes.lines[2].get_ydata()) == [rows[2].recall_passages(k) for k in rows[2].ks]
    assert (tmp_path / "recall.svg").stat().st_size > 1000
    assert [list(line.get_xdata()) for line in rows.plot("cost").lines] == [[row.query_p50_ms()] for row in rows]
    with pytest.raises(ConfigurationError, match="measured over 'tokens'"):
        rows.plot("tokens")


def test_budgets_without_quotes_or_answers_are_refused_before_anything_is_built(beir, tmp_path):
    with pytest.raises(ConfigurationError, match=r"has neither quotes .* nor answers .* R@budget is of gold documents"):
        Experiment(load_dataset(beir), budgets=(300,), folder=tmp_path).run()
    assert not list(tmp_path.iterdir())


def test_comparisons_are_of_any_two_rows_and_measures_and_corrected(rows):
    found = rows.compare("MRR")
    assert [(one.first, one.second) for one in found] == [("dense", "bm25"), ("sire", "bm25"), ("sire", "dense")]
    assert str(found[0]).endswith(f"p = {found[0].p_corrected:.3f} (corrected, Holm)")
    assert [one.p_corrected for one in found] == holm([one.p for one in found])
    for one in rows.compare("nDCG@5", baseline="dense"):
        assert one.second == "dense"
        assert one.low <= one.difference <= one.high
    for wrong, message in (
        ({"measure": "P@5"}, "no measure 'P@5'"),
        ({"baseline": "x"}, "no row 'x'"),
        ({"measure": "tokens@300"}, r"no question with tokens@300: .* need budgets="),
    ):
        with pytest.raises(ConfigurationError, match=message):
            rows.compare(**wrong)


def test_rows_of_one_recipe_have_labels_of_their_own(beir):
    recipes = [pagerank(), pagerank(damping=0.3), hipporag2(preset="published", recognition="none"), hipporag2()]
    made = Experiment(load_dataset(beir), recipes=recipes, baselines=("dense",)).run()
    made.append(made[1])
    names = ["dense", "pagerank", "pagerank damping=0.3", "hipporag2, published recognition=none", "hipporag2"]
    assert [line["row"] for line in csv.DictReader(made.to_csv().splitlines())] == [*names, "pagerank (2)"]
    assert [made.row(name) for name in names] == made[:5]
    assert made.row("hipporag2, published") is made[3]
    assert [one.first for one in EvalRows(made[:5]).compare(baseline="dense")] == names[1:]
    assert all(f"| {name} " in str(made) for name in names)
    assert re.search(r"^\| recipe .*\| +R@5 \|", str(made), re.MULTILINE)
    with pytest.raises(ConfigurationError, match=r"Several rows begin with 'pagerank'; .*damping=0.3"):
        EvalRows(made[2:3] * 2).row("pagerank")
    with pytest.raises(ConfigurationError, match="no row 'sire'; choose one of: dense; pagerank; "):
        made.row("sire")


def test_p_values_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.9]) == pytest.approx([1.0, 1.0])
    # Of 2 ** 8 assignments of signs two are as extreme.
    assert randomization_p(np.ones(8)) == pytest.approx(2 / 256, abs=0.003)
    assert randomization_p(np.array([1.0, -1.0])) == 1.0


def test_graded_ndcg_by_hand():
    grades = {"a": 2, "b": 1, "c": 0, "d": -1}
    assert graded_ndcg_at_k(["a", "b"], grades, 10) == 1.0
    assert graded_ndcg_at_k(["c", "b", "a"], grades, 2) == pytest.approx((1 / np.log2(3)) / (2 + 1 / np.log2(3)))
    assert graded_ndcg_at_k(["d"], {"d": -1}, 5) == 0.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 p1 high\n", "expected `question 0 document grade`"),
        ("q1 0 p1 2\nq1 0 p1 1\n", "'p1' has two grades for 'q1'"),
        ("q1 0 p1 2 tag\n", "expected `question 0 document grade`"),
        ("q1\n", "expected `question 0 document grade`"),
    ],
)
def test_wrong_judgements_say_where(tmp_path, text, message):
    (tmp_path / "qrels.txt").write_text(text)
    with pytest.raises(CorpusError, match=message):
        read_qrels(tmp_path / "qrels.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 Q0 p1 1 0.5\n", "expected `question Q0 document rank score tag`"),
        ("q1 Q0 p1 1 0.5 t\nq1 Q0 p1 2 0.4 t\n", "stands twice"),
        ("q1 Q0 p1 1 nan t\n", "no finite score"),
    ],
)
def test_wrong_runs_say_where(tmp_path, text, message):
    (tmp_path / "a.run").write_text(text)
    with pytest.raises(CorpusError, match=message):
        read_run(tmp_path / "a.run")
    with pytest.raises(ConfigurationError, match="white space"):
        write_qrels(tmp_path / "b.txt", {"a question": {"p": 1}})


def test_the_command_reads_the_folder_and_a_run_and_writes_everything(beir, rows, tmp_path):
    rows.export(tmp_path / "first")
    done = run_command(
        "eval", beir, "-r", "flat", "-k", 5, "--run", tmp_path / "first" / "03-sire.run", "--export", tmp_path / "all"
    )
    assert "03-sire" in done.output
    names = {file.name for file in (tmp_path / "all").iterdir()}
    assert {"rows.csv", "rows.tex", "comparisons.csv", "qrels.txt", "01-bm25.run"} <= names
    compared = list(csv.DictReader((tmp_path / "all" / "comparisons.csv").read_text().splitlines()))
    assert {line["first"] for line in compared} >= {"03-sire"}


def test_answers_that_no_question_has_are_not_asked_for_and_cost_nothing(beir, tmp_path, monkeypatch):
    lines = []
    options = {"config": EvalConfig(answer=AnswerConfig()), "baselines": ("dense",), "log": lines.append}
    experiment = Experiment(load_dataset(beir), ["hipporag2"], settings={"preset": "published"}, **options)
    assert {stage: cost.calls for stage, cost in experiment.cost().items()} == {"searches": (9, 9)}
    assert len(lines) == 1
    assert "no accepted answers" in lines[0]
    demo = DataSet("demo", tuple(demo_documents()), tuple(demo_questions()))
    answerable = sum(bool(question.answers) for question in demo.questions)
    assert Experiment(demo, ["pagerank"], **options).cost()["answers"].calls == (2 * answerable, 2 * answerable)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(tmp_path)
    refused = run_command("reproduce", "hipporag2", beir, "--llm", "gpt-4o-mini", code=2).stderr
    assert re.findall(r"^  (\w+): .*\$", refused, re.MULTILINE) == ["extraction", "searches"]
    assert refused.count("no accepted answers") == 1


def test_a_beir_folder_without_judgements_says_what_is_missing(beir, tmp_path):
    for name in ("corpus.jsonl", "queries.jsonl"):
        (tmp_path / name).write_text((beir / name).read_text())
    with pytest.raises(CorpusError, match=r"no qrels/test\.tsv"):
        load_dataset(tmp_path)


def test_ablations_are_repeated_with_other_seeds_and_every_build_is_exported(beir, tmp_path):
    found = Experiment(load_dataset(beir), recipes=["raptor"], ablations=True, repeats=2, settings={"depth": 1}).run()
    assert all(row.repeats["builds"] == 2 for row in found)
    names = [file.name for file in found.export(tmp_path)]
    assert names[4:6] == ["01-dense-build-1.run", "01-dense-build-2.run"]
    assert len(names) == 4 + 2 * len(found)
    for line, row in zip(csv.DictReader((tmp_path / "rows.csv").read_text().splitlines()), found, strict=True):
        figures = [build.mean("nDCG@10") for build in row.builds]
        assert line["builds"] == "2"
        assert float(line["nDCG@10"]) == pytest.approx(np.mean(figures), abs=1e-3)
        assert float(line["nDCG@10 sd"]) == pytest.approx(np.std(figures, ddof=1), abs=0.01)
