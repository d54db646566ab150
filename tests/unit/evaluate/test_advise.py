"""`advise`: questions that a corpus itself gives, recipes measured on them, one recommended for reasons that hold."""

import json

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError
from sire_core.evaluate.advise import CANDIDATES, FEW, advise, corpus_stats, sample
from sire_core.evaluate.made_questions import LinkedPassages, made_questions
from sire_core.files.readers import read_documents
from support.command import run
from support.indexes import indexed


@pytest.fixture(scope="module")
def demo():
    index = indexed(demo_documents(), recipe="sire")
    return index.snapshot()


def test_questions_need_two_passages_and_bridges_do_not_name_the_second(demo):
    linked = LinkedPassages.of(demo)
    found = corpus_stats(demo, linked)
    assert found.titled == found.subjects == 1.0
    assert found.linked > 0.5
    questions = made_questions(linked, 60, seed=1)
    assert questions == made_questions(linked, 60, seed=1)
    texts = {unit.id: unit for unit in linked.units}
    assert {question.kind for question in questions} == {"bridge", "pair"}
    for question in questions:
        first, second = (texts[name] for name in question.passages)
        assert first.id != second.id
        assert (second.title in question.question) == (question.kind == "pair")
        assert any(link.name in first.text for link in linked.links if linked.units[link.subject].id == second.id)


def questions_of(*documents):
    index = indexed([Document(title, text, title=title) for title, text in documents], recipe="sire")
    return {one.question for one in made_questions(LinkedPassages.of(index.snapshot()), 9) if one.kind == "bridge"}


def test_questions_are_those_of_the_sentence_that_connects():
    film = ("The Salt Lantern", "The Salt Lantern is a 1932 British film written by Petra Quillon.")
    person = ("Petra Quillon", "Petra Quillon was a film maker. She was born in Varn Harbour.")
    place = ("Varn Harbour", "Varn Harbour is a town. It has a population of 900.")
    assert questions_of(film, person, place) == {
        "Who wrote The Salt Lantern, and where were they born?",
        "Where was Petra Quillon born, and how many people live there?",
    }
    child = ("Ole Quillon", "Ole Quillon was the younger son of the film maker Petra Quillon.")
    assert questions_of(child, person) == {"Whose son was Ole Quillon, and where were they born?"}


@pytest.mark.parametrize(
    "sentence",
    [
        "The Salt Lantern is a film based on The Drowned Bell, a novel written by Petra Quillon.",  # not the film
        "The Salt Lantern was praised by Petra Quillon.",
        "Its poster shows a lamp. Ole Brandt, directed by Petra Quillon, plays the boy.",
        "The Salt Lantern opened in Orr. Petra Quillon came.",
    ],
)
def test_sentences_that_are_about_something_else_give_no_question(sentence):
    person = ("Petra Quillon", "Petra Quillon was a film maker.")
    assert questions_of(("The Salt Lantern", sentence), person) == set()


def test_what_finds_more_is_recommended_and_the_reasons_say_so():
    makers = [
        f"{first} {last}"
        for first in ("Ada", "Ole", "Una")
        for last in "Marl Teck Lanyon Sorrel Fenner Hask Holt Brack".split()
    ]
    halls = [f"{name} Hall" for name in "Alder Birch Cedar Elm Fir Gorse Hazel Ivy".split()]
    works = [f"{kind} of {hall}" for kind in ("North Wing", "Organ", "Garden") for hall in halls]
    documents = []
    for work, maker in zip(works, makers, strict=True):
        documents.append(Document(work, f"{work} was designed by {maker}.", work))
        documents.append(Document(maker, f"{maker} was born in 1902 and liked music.", maker))
    found = advise(documents, candidates=[CANDIDATES[1], CANDIDATES[3], CANDIDATES[0]], k=3)
    by_name = {measure.candidate.name: measure for measure in found.measures}
    assert by_name["sire"].recall > by_name["flat"].recall + 5
    assert found.recommended.recipe == "sire"
    assert found.measures[0].recall == max(measure.recall for measure in found.measures)
    assert any("best without derived data" in reason for reason in found.reasons)
    assert any("mention the subject of another one" in reason for reason in found.reasons)


def test_equally_good_recipes_leave_the_first_one():
    names = "Alder Birch Cedar Dogwood Elm Fir Gorse Hazel Ivy Juniper Larch Maple Nettle Oak Pine Quince".split()
    documents = []
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        documents.append(
            Document(f"{name} Hall", f"{name} Hall was built by Ada {name}. See {other} Hall.", f"{name} Hall")
        )
        documents.append(Document(f"Ada {name}", f"Ada {name} was born in 1902.", f"Ada {name}"))
    told = []
    found = advise(documents, candidates=CANDIDATES[:3], k=32, progress=lambda *step: told.append(step))
    assert len(found.questions) >= FEW
    assert [step[1:] for step in told if step[0] == "recipes"] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert ("extraction", 32, 32) in told
    assert {measure.recall for measure in found.measures} == {100.0}
    assert found.recommended == CANDIDATES[0]


def test_words_alone_are_measured_and_not_recommended():
    bm25 = next(candidate for candidate in CANDIDATES if candidate.shown_only)
    found = advise(demo_documents(), candidates=[bm25, CANDIDATES[3]], n=30, k=3)
    assert len(found.measures) == 2
    assert found.recommended == CANDIDATES[3]
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
    assert advise(demo_documents(), candidates=[CANDIDATES[3], bm25], k=3, embedder=Noise()).undecided
    assert not advise(demo_documents(), candidates=[CANDIDATES[0], bm25], k=3).undecided


def test_a_sample_keeps_documents_with_those_that_they_name():
    documents = [Document(str(n), f"Work number {n}. It was made by Maker {n}.", f"Work {n}") for n in range(40)]
    documents += [Document(f"m{n}", "Born in Orr.", f"Maker {n}") for n in range(40)]
    chosen = {document.id for document in sample(documents, 30, seed=3)}
    assert 30 <= len(chosen) <= 32
    works = [name for name in chosen if not name.startswith("m")]
    assert sum(f"m{name}" in chosen for name in works) >= len(works) - 1
    assert sample(documents, 1000) == documents


def test_a_name_of_a_file_is_no_title_unless_the_text_says_it(tmp_path):
    for number in range(8):
        (tmp_path / f"page-{number}.md").write_text(f"Lamp oil of sort {number} is bought weekly.\n", encoding="utf-8")
    (tmp_path / "Karn Lamp.md").write_text("The Karn Lamp was lit by Ole Brandt.\n", encoding="utf-8")
    index = indexed(read_documents([tmp_path]).documents, recipe="sire")
    snapshot = index.snapshot()
    linked = LinkedPassages.of(snapshot)
    assert "Karn Lamp" in linked.about  # its text says it too
    assert corpus_stats(snapshot, linked).titled == pytest.approx(1 / 9)


@pytest.mark.parametrize("number", [0, 1])
def test_with_few_questions_nothing_is_measured_and_the_advice_is_that_it_cannot_tell(number):
    documents = [
        Document("q", f"The Tarn Bridge was built by {['hand', 'Edda Marl'][number]}.", title="Tarn Bridge"),
        Document("e", "Edda Marl was born in Varn Harbour.", title="Edda Marl"),
    ]
    told = []
    found = advise(documents, progress=lambda *step: told.append(step))
    assert (found.undecided, found.measures, found.recommended) == (True, (), CANDIDATES[0])
    assert ("only 2 questions" if number else "no question") in found.reasons[0]
    assert [step[1:] for step in told if step[0] == "recipes"] == [(0, len(CANDIDATES))]
    assert found.as_json()["rows"] == []


def test_the_command_says_that_it_cannot_tell(tmp_path):
    (tmp_path / "a.md").write_text("# Queue\n\nThe queue holds jobs.\n", encoding="utf-8")
    done = run("advise", tmp_path)
    assert "Undecided. The default is sire." in done.stdout
    assert "Write 20 questions of your own" in done.stdout
    assert "recall@" not in done.stdout


@pytest.mark.parametrize(
    ("page", "language"), [("它使用密钥。", "zh"), ("The button of the page says 设置 in Chinese.", "en")]
)
def test_a_few_letters_of_another_script_are_no_language(page, language):
    with indexed([Document("d", page, "Keys")], recipe="sire") as index:
        snapshot = index.snapshot()
        assert list(corpus_stats(snapshot, LinkedPassages.of(snapshot)).languages) == [language]


@pytest.mark.slow
def test_command_advises_on_files(demo_set):
    path = demo_set / "corpus.jsonl"
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


def test_a_pair_is_asked_one_way_round_and_headings_are_paired_only_where_a_sentence_names_them():
    def names_of(*documents):
        index = indexed(documents, recipe="sire")
        return [
            sorted(q.question[8:-11].split(" and ")) for q in made_questions(LinkedPassages.of(index.snapshot()), 9)
        ]

    one = Document("a", "Ada Frame is a poet. She met Tom Wray.", "Ada Frame")
    other = Document("b", "Tom Wray is a smith. He met Ada Frame.", "Tom Wray")
    assert names_of(one, other) == [["Ada Frame", "Tom Wray"]]
    text = "It is long. " * 200
    guide = Document(
        "g", f"# Quiet Nights\n\nSee Loud Days. {text}\n\n# Loud Days\n\nSee Quiet Nights. {text}", "Guide"
    )
    assert names_of(guide) == []
