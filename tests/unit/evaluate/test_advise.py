"""`advise`: questions that a corpus itself gives, recipes measured on them, one recommended for reasons that hold."""

import json

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.corpus.readers import read_documents
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.evaluate.advise import CANDIDATES, advise, corpus_stats, sample, synthetic_questions
from support.command import run


@pytest.fixture(scope="module")
def demo():
    index = Index(recipe="sire")
    index.build(demo_documents())
    return index.snapshot()


def test_questions_need_two_passages_and_do_not_name_the_second(demo):
    found = corpus_stats(demo)
    assert found.titled == found.subjects == 1.0
    assert found.linked > 0.5
    questions = synthetic_questions(found, demo.view.matrix[: found.passages], 60, seed=1)
    assert questions == synthetic_questions(found, demo.view.matrix[: found.passages], 60, seed=1)
    texts = {unit.id: unit for unit in found.units}
    kinds = {question.kind for question in questions}
    assert kinds == {"bridge", "comparison", "topic"}
    for question in questions:
        first, second = (texts[name] for name in question.passages)
        assert first.id != second.id
        if question.kind == "bridge":  # over a name that stands in the first passage and not in the question
            assert second.title not in question.question
            assert any(link.name in first.text for link in found.links if found.units[link.subject].id == second.id)


def test_what_finds_more_is_recommended_and_the_reasons_say_so():
    found = advise(demo_documents(), candidates=[CANDIDATES[1], CANDIDATES[3], CANDIDATES[0]], n=60, k=3)
    by_name = {measure.candidate.name: measure for measure in found.measures}
    assert by_name["sire"].recall > by_name["flat"].recall + 5
    assert found.recommended.candidate.recipe == "sire"
    assert found.measures[0].recall == max(measure.recall for measure in found.measures)
    assert any("best without derived data" in reason for reason in found.reasons)
    assert any("mention the subject of another one" in reason for reason in found.reasons)


def test_equally_good_recipes_leave_the_first_one():
    words = "alder birch cedar dogwood elm fir gorse hazel ivy juniper larch maple".split()
    documents = [
        Document(str(n), f"the {words[n]} and the {words[(n + 1) % 12]} grow by the {words[(n + 2) % 12]} near water")
        for n in range(12)
    ]
    told = []
    found = advise(documents, candidates=CANDIDATES[:3], n=12, k=12, progress=lambda *step: told.append(step))
    assert [step[1:] for step in told if step[0] == "recipes"] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert ("extraction", 12, 12) in told
    assert {measure.recall for measure in found.measures} == {100.0}
    assert found.recommended.candidate == CANDIDATES[0]


def test_words_alone_are_measured_and_not_recommended():
    bm25 = next(candidate for candidate in CANDIDATES if candidate.shown_only)
    found = advise(demo_documents(), candidates=[bm25, CANDIDATES[3]], n=30, k=3)
    assert len(found.measures) == 2
    assert found.recommended.candidate == CANDIDATES[3]
    with pytest.raises(ConfigurationError, match="recommended"):
        advise(demo_documents(), candidates=[bm25])


class Noise:
    """Vectors that say nothing of the texts."""

    fingerprint = "noise"
    dimension = 16

    async def embed(self, texts, kind="document"):
        drawn = np.random.default_rng(len(texts) + len(kind)).normal(size=(len(texts), self.dimension))
        return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def test_where_words_alone_find_more_the_advice_says_that_it_cannot_tell():
    bm25 = next(candidate for candidate in CANDIDATES if candidate.shown_only)
    assert advise(demo_documents(), candidates=[CANDIDATES[3], bm25], n=40, k=3, embedder=Noise()).undecided
    assert not advise(demo_documents(), candidates=[CANDIDATES[0], bm25], n=40, k=3).undecided


def test_a_sample_keeps_documents_with_those_that_they_name():
    documents = [Document(str(n), f"Work number {n}. It was made by Maker {n}.", f"Work {n}") for n in range(40)]
    documents += [Document(f"m{n}", "Born in Orr.", f"Maker {n}") for n in range(40)]
    chosen = {document.id for document in sample(documents, 30, seed=3)}
    assert 30 <= len(chosen) <= 32
    works = [name for name in chosen if not name.startswith("m")]
    assert sum(f"m{name}" in chosen for name in works) >= len(works) - 1
    assert sample(documents, 1000) == documents


def test_names_of_files_and_addresses_are_no_words_of_questions(tmp_path):
    shared = ["lamp oil", "bell rope", "tar kettle", "slate roof"]  # of two pages on one matter
    others = ["weekly", "monthly", "winter", "harvest"]  # of two pages on different ones
    for number in range(8):
        text = f"The {shared[number // 2]} is bought {others[number % 4]}. See https://example.org/{number}.\n"
        (tmp_path / f"page-{number}.md").write_text(text, encoding="utf-8")
    (tmp_path / "Karn Lamp.md").write_text("The Karn Lamp was lit by Ole Brandt.\n", encoding="utf-8")
    index = Index(recipe="sire")
    index.build(read_documents([tmp_path]).documents)
    snapshot = index.snapshot()
    found = corpus_stats(snapshot)
    assert "Karn Lamp" in found.about  # its text says it too
    assert found.titled == pytest.approx(1 / 9)
    asked = " ".join(q.question for q in synthetic_questions(found, snapshot.view.matrix[: found.passages], 40))
    assert asked
    assert not [word for word in ("page-", "http", "www", "example") if word in asked]


def test_nothing_in_common_is_said(tmp_path):
    with pytest.raises(CorpusError, match="too few"):
        advise([Document("a", "One sentence about nothing.")], candidates=CANDIDATES[:2])


@pytest.mark.slow
def test_command_advises_on_files(tmp_path):
    path = tmp_path / "docs.jsonl"
    lines = [json.dumps({"id": d.id, "title": d.title, "text": d.text}) for d in demo_documents()]
    path.write_text("\n".join(lines), encoding="utf-8")
    done = run("advise", path, "--questions", 30)
    assert "Recommended: sire" in done.stdout
    assert f"sire index {path} --to my-index --recipe sire" in done.stdout


def test_command_advises_on_an_index_and_leaves_it_as_it_is(tmp_path):
    Index(tmp_path, recipe="flat").build(demo_documents())
    done = run("advise", tmp_path, "--questions", 30, "--json")
    found = json.loads(done.stdout)
    assert len(found["rows"]) == len(CANDIDATES)
    assert found["recommended"] == "sire"
    assert Index(tmp_path).stats()["recipes"] == ["flat"]


def test_few_questions_are_no_reason():
    found = advise(
        [
            Document("q", "The Tarn Bridge was built by Edda Marl.", title="Queue"),
            Document("e", "Edda Marl was born in Varn Harbour.", title="Edda Marl"),
        ]
    )
    assert found.reasons == ("1 question could be generated: too few to tell recipes apart, so sire is recommended.",)
    assert found.recommended.candidate == CANDIDATES[0]
