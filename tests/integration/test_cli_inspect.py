"""`sire compare`, `explain`, `doctor`, `models`, `export`, `import`, `skill`, on real indexes and models."""

import json
import re

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError
from sire_core.evaluate.compare import compare
from sire_core.extend import Question
from sire_core.questions import Quote
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import BuildReport, Failure
from support.command import run as run_command
from support.indexes import indexed
from support.tiny_onnx import write_tiny_cross_encoder, write_tiny_embedder

QUESTION = "Who was the mother of the captain who commanded the steamship Northern Wren on her last voyage?"


def run(*arguments, code=0, **environment):
    result = run_command(*arguments, code=code, env=environment)
    return result.stdout if "--json" in arguments else result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("inspect") / "my-index"
    indexed(demo_documents(), path, recipe="sire").close()
    return path


def test_explain_says_why_and_why_not(folder):
    assert "the question names Northern Wren" in run("explain", folder, QUESTION)
    said = json.loads(run("explain", folder, QUESTION, "petra-quillon", "--json"))
    assert said["title"] == "Petra Quillon"
    assert said["rank"] > 5
    assert {reason["examined"] for reason in said["reasons"]} >= {"rank", "vectors", "words"}
    assert "aldous-brack" in run("explain", folder, QUESTION, "aldous-brak", code=1)


def test_export_and_import_keep_every_document(folder, tmp_path):
    file, copied = tmp_path / "documents.jsonl", tmp_path / "copy"
    run("export", folder, "-o", file)
    run("import", file, "--to", copied)
    with Index(folder) as index, Index(copied) as other:
        before, after = index.documents(), other.documents()
    assert [(d.id, d.title, d.text) for d in before] == [(d.id, d.title, d.text) for d in after]
    assert all(dict(d.metadata).items() <= dict(copy.metadata).items() for d, copy in zip(before, after, strict=True))
    lines = run("export", folder, "--filter", "kind=ship").splitlines()
    assert {json.loads(line)["id"] for line in lines} == {"northern-wren", "southern-tern"}


def test_doctor_and_models_list_and_test_what_is_there(folder, tmp_path):
    write_tiny_embedder(tmp_path / "bge-tiny", {"restore": [1.0, 0.0], "wall": [0.0, 1.0], "backup": [1.0, 0.2]})
    write_tiny_cross_encoder(tmp_path / "tiny-reranker", {"restore": 1.0, "wall": -1.0})
    environment = {"SIRE_MODELS": str(tmp_path), "HF_HOME": str(tmp_path / "none")}
    listed = json.loads(run("models", "--json", **environment))
    assert {(row["purpose"], row["spec"]) for row in listed} == {
        ("embedder", f"onnx:{tmp_path / 'bge-tiny'}"),
        ("cross-encoder", f"onnx:{tmp_path / 'tiny-reranker'}"),
    }
    assert all(row["milliseconds"] > 0 and "for an answer" in row["detail"] for row in listed)
    health = json.loads(run("doctor", folder, "--json", **environment))
    assert health["extras"]["langchain"] is True
    assert sorted(health["models"]) == sorted(row["spec"] for row in listed)
    assert health["findings"] == []
    assert "nothing is damaged" in run("doctor", folder, **environment)
    assert "No model was found" in run("models", SIRE_MODELS="", HF_HOME=str(tmp_path / "none"))


def test_a_broken_model_is_said_to_be_broken(tmp_path):
    (tmp_path / "bge-broken").mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / "bge-broken" / name).write_text("{}")
    [row] = json.loads(run("models", "--json", SIRE_MODELS=str(tmp_path), HF_HOME=str(tmp_path / "none")))
    assert row["works"] is False
    assert row["detail"]


def test_a_skill_names_commands_that_run(folder):
    text = run("skill", folder)
    head = text.split("---")[1]
    assert re.search(r"^name: search-documents$", head, re.MULTILINE)
    assert "documents" in head
    commands = re.findall(r"^sire (.+)$", text, re.MULTILINE)
    assert len(commands) >= 2
    for command in commands:
        words = command.replace('"QUESTION"', "QUESTION").replace("DOC_ID", "petra-quillon").split()
        run(*[QUESTION if word == "QUESTION" else word for word in words])
    run("skill", folder, "--name", "Not A Name", code=1)


def test_a_skill_names_the_whole_path_and_documents_from_all_parts(tmp_path, monkeypatch):
    with Index(tmp_path / "ix", recipe="flat") as index:
        index.build(
            [Document(f"{room}/{n}", f"Page {n}.", f"{room} {n}") for room in ("Mill", "Quay") for n in range(9)]
        )
    monkeypatch.chdir(tmp_path)
    text = run("skill", "ix")
    assert f"sire query {tmp_path / 'ix'} " in text
    titles = text.split("(")[1].split(";")
    assert {"Mill", "Quay"} <= {title.split()[0] for title in titles}


def test_compare_says_what_may_be_chance():
    documents = demo_documents()
    questions = [
        Question(f"q{i}", f"What is said of {d.title}?", (), (d.id,)) for i, d in enumerate(documents) if d.title
    ]
    result = compare(documents, questions, reranker="")
    assert [name for name, _, _ in result.table()] == ["BM25", "vectors", "hybrid (both)", "sire"]
    for _, [mean], milliseconds in result.table():
        assert 0 <= mean.low <= mean.difference <= mean.high <= 100
        assert milliseconds > 0
    assert re.search(
        rf"on {len(questions)} questions: R@5: [\d.]+ points (above|below) .* may be chance\.$", result.verdict()
    )


def test_compare_finds_a_real_difference_and_takes_a_reranker(tmp_path):
    people = [Document(f"p{i}", f"Name{i}x Olm was born in Town{i}q.", f"Name{i}x Olm") for i in range(30)]
    films = [Document(f"f{i}", f"Film{i}z is a drama. Its maker was Name{i}x Olm.", f"Film{i}z") for i in range(30)]
    file = tmp_path / "questions.jsonl"
    rows = [
        {"id": f"q{i}", "question": f"Where was the maker of Film{i}z born?", "supporting": [f"p{i}", f"f{i}"]}
        for i in range(30)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(
        "".join(json.dumps({"id": d.id, "title": d.title, "text": d.text}) + "\n" for d in [*people, *films])
    )
    write_tiny_cross_encoder(tmp_path / "reranker", {"born": 0.1})
    said = json.loads(
        run("compare", corpus, "--questions", file, "--reranker", f"onnx:{tmp_path / 'reranker'}", "--json")
    )
    assert [row["name"] for row in said["rows"]] == ["BM25", "vectors", "hybrid (both)", "sire", "sire, reranked"]
    assert said["against_best"]["R@5"]["significant"]
    assert said["against_best"]["R@5"]["difference"] > 20
    assert re.search(r"30 questions: R@5: [\d.]+ points above \w+ \[[\d., ]+\]", said["verdict"])
    assert said["questions"] == 30
    wanted = [("good", "p1", "born in Town1q"), ("bad", "p2", "born in Berlin")]
    needs = [{"id": name, "question": "Born?", "needs": [[{"doc": doc, "quote": text}]]} for name, doc, text in wanted]
    file.write_text("".join(json.dumps(row) + "\n" for row in needs))
    shown = " ".join(run("compare", corpus, "--questions", file, "--reranker", "none").split())
    assert "1 of 2 needs are met by no passage of the index and count as missed: bad (need 1, p2)" in shown
    assert "1,000 tokens" in shown
    assert "every search: 1 question without all evidence in the first five bad: Born? -> p2" in shown
    file.write_text('{"id": "a", "text": "A lamp."}\n')
    assert "too few to compare" in run("compare", file, code=1)


def test_compare_looks_at_the_questions_before_it_reads_documents(tmp_path):
    assert "none.jsonl" in run("compare", tmp_path / "nowhere", "--questions", tmp_path / "none.jsonl", code=1)


def test_compare_refuses_questions_without_gold_before_any_work(tmp_path):
    questions = [{"id": "1", "question": "Who?", "answers": ["Otto Brack"], "gold": ["a.md"]}]
    (tmp_path / "q.json").write_text(json.dumps(questions), encoding="utf-8")
    message = run("compare", tmp_path / "nothing", "--questions", tmp_path / "q.json", code=1)
    assert "has 'supporting' or 'needs', without which nothing can be measured" in message
    with pytest.raises(ConfigurationError, match="No question of here has 'supporting' or 'needs'"):
        compare([], [Question("1", "Who?", answers=("Otto Brack",))], name="here", index=tmp_path / "nothing")


def test_compare_lists_what_one_search_alone_misses():
    topics = "bread rivers violins winter bridges coins horses ink tents maps clouds salt".split()
    documents = [Document(topic, f"A page about {topic} and nothing else.", topic) for topic in topics]
    documents.append(Document("erasing", "To erase a record press the red key.", "erasing"))
    asked = [Question(topic, f"Which page is about {topic}?", (), (topic,)) for topic in topics[:4]]
    asked += [Question("other words", "How do I delete entries?", (), ("erasing",))]
    asked += [
        Question("nowhere", "Which page is about bread?", (), ("salt", "maps", "coins", "ink", "tents", "clouds"))
    ]
    result = compare(documents, asked, reranker="")
    missed = {entry["name"]: [] for entry in result.as_json()["rows"]} | result.as_json()["missed"]
    assert missed["BM25"] == [{"id": "other words", "question": "How do I delete entries?", "expected": ["erasing"]}]
    assert [entry["id"] for entry in missed["every search"]] == ["nowhere"]
    assert "  other words: How do I delete entries? -> erasing" in result.missed_lines()


DOCUMENTS = demo_documents()[:16]
QUOTED = [
    Question(f"q{i}", f"What is said of {d.title}?", needs=((Quote(d.id, d.text[:40]),),))
    for i, d in enumerate(DOCUMENTS)
    if d.title
]


def test_compare_measures_what_is_delivered_where_gold_is_quoted():
    result = compare(DOCUMENTS, QUOTED, reranker="")
    assert list(result.measures) == ["R@5", "1,000 tokens", "2,000 tokens"]
    names = [name for name, _, _ in result.table()]
    assert names == ["BM25", "vectors", "hybrid (both)", "BM25, pieces", "hybrid, pieces", "sire"]
    assert all(
        within_1000.difference <= within_2000.difference for _, (_, within_1000, within_2000), _ in result.table()
    )
    assert result.table()[-1][1][2].difference > 90
    *others, (_, ours, _) = result.table()
    for column, (name, (best, points)) in enumerate(result.against_best().items()):
        means = {row: values[column].difference for row, values, _ in others}
        assert means[best] == max(means.values())
        assert points.difference == pytest.approx(ours[column].difference - means[best])
        side = "below" if points.difference < 0 else "above"
        chance = "" if points.significant else ", which may be chance"
        said = (
            f"{name}: {abs(points.difference):.1f} points {side} {best} [{points.low:.1f}, {points.high:.1f}]{chance}"
        )
        assert said in result.verdict()


def test_a_report_prints_as_a_sentence():
    assert str(BuildReport()) == "Nothing changed."
    report = BuildReport(added=2, removed=1, units={"chunk": 14}, failures=(Failure("a.md", "no text"),))
    assert str(report) == "Documents: 2 added, 1 removed; the index has 14 units; 1 failure, first a.md."


def test_help_names_all_tools_and_commands():
    from sire_core.serve.tools import IndexTools

    with indexed(demo_documents()[:3]) as index:
        names = [spec.name for spec in IndexTools(index).specs()]
    said = run("mcp", "--help")
    assert all(name in said for name in names)
    overview = run("--help")
    for command in "compare explain doctor models export import skill reextract".split():
        assert re.search(rf"\b{command}\b", overview)
    run("forget", code=2)


class Counting(HashEmbedder):
    embedded = 0

    async def embed(self, texts, kind="document"):
        self.embedded += len(texts)
        return await super().embed(texts, kind)


@pytest.mark.quick(recipe=["sire"])
@pytest.mark.parametrize("recipe", ["sire", "flat"])
def test_compare_takes_passages_and_vectors_of_an_index(tmp_path, recipe):
    embedder = Counting()
    with indexed(DOCUMENTS, tmp_path / "ix", recipe=recipe, embedder=embedder) as index:
        before, passages = index.stats(), len(index.snapshot().passage_ids())
    start = embedder.embedded
    anew = compare(DOCUMENTS, QUOTED, reranker="", embedder=embedder)
    made, start = embedder.embedded - start, embedder.embedded
    assert "hybrid, pieces" not in [name for name, _, _ in anew.table()]
    assert not anew.has_all_pieces
    taken = compare(DOCUMENTS, QUOTED, reranker="", embedder=embedder, index=tmp_path / "ix")
    assert made - (embedder.embedded - start) >= passages
    assert [row[:2] for row in taken.table()] == [row[:2] for row in anew.table()]
    with Index(tmp_path / "ix", embedder=embedder) as index:
        assert index.stats() == before
    start = embedder.embedded
    asked_for = compare(DOCUMENTS, QUOTED, reranker="", embedder=embedder, index=tmp_path / "ix", pieces=True)
    assert asked_for.has_all_pieces
    assert embedder.embedded - start > passages
