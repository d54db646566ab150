"""`sire_core.extend` is all that a method needs; two published ones are made of it."""

from dataclasses import dataclass

import numpy as np
import pytest

import sire_core.extend
from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.extend import ScoreRanker
from sire_core.recipes import Recipe, recipe_by_name
from sire_core.testing.doubles import HashEmbedder, ScriptedModel, default_script
from support.command import run_python
from support.indexes import indexed

NAMES = ("hipporag2", "linearrag")
QUESTION = "Who was the mother of the captain who commanded the steamship Northern Wren on her last voyage?"


ANNOTATIONS = set(  # exist for type checkers alone
    "BoolArray DoubleArray FloatArray HashArray IdArray Int32Array IntArray".split()
)


def test_every_name_of_the_list_is_there():
    names = set(dir(sire_core.extend)) - ANNOTATIONS
    assert len(names) > 100
    assert all(getattr(sire_core.extend, name) for name in names)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = sire_core.extend.Nothing


def test_naming_what_a_recipe_is_made_of_loads_no_arrays():
    code = (
        "import sys\nfrom sire_core.extend import Component, Derivation, KnowledgeGraph, Recipe, Step, register, setting"
        "\nprint('numpy' in sys.modules)"
    )
    assert run_python(code).stdout.strip() == "False"


@dataclass(frozen=True, slots=True)
class Shortest(ScoreRanker):
    """Short passages first, as far as they are visible."""

    def scores(self, query, visible):
        assert len(visible.cosines) == len(visible.positions) == len(visible.units())
        return visible.cosines - np.array([len(unit.text) for unit in visible.units()])


@pytest.mark.parametrize("where", [None, {"kind": "long"}, {"kind": "none"}])
def test_a_ranker_of_visible_units_is_right_under_filters(where):
    texts = {"a": "Ice.", "b": "Old snow is firn.", "c": "Rime is a crust of ice that grows against the wind."}
    documents = [
        Document(name, text, metadata={"kind": "long" if name > "a" else "short"}) for name, text in texts.items()
    ]
    recipe = Recipe("shortest", "short passages", "", organizers=(), ranker=Shortest())
    with indexed(documents, recipe=recipe, embedder=HashEmbedder(64)) as index:
        hits = index.search("ice", 5, filter=where)
    visible = [document for document in documents if where is None or document.metadata["kind"] == where["kind"]]
    assert [hit.doc_ids for hit in hits] == [(document.id,) for document in visible]
    for hit, document in zip(hits, visible, strict=True):
        cosine = hit.score + len(document.text)
        assert hit.path[-1].note == f"score {hit.score:.3f}, cosine {cosine:.3f} with the question"


def opened(path, name, **settings):
    return Index(path, recipe=recipe_by_name(name, **settings), embedder=HashEmbedder(256))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    for name in NAMES:
        with opened(folder, name) as index:
            index.build(demo_documents())
    return folder


def test_passages_of_one_document_are_beside_each_other(tmp_path):
    parts = ("Mara Quell built ferries.", "They were painted green.", "Nothing is said here.")
    with opened(tmp_path, "linearrag") as index:
        index.build([Document("d", chunks=parts), Document("e", "An oak is a tree. Oaks grow in Varn.")])
        hits = index.search("Where did Mara Quell work?", 4)
    beside = {hit.unit.text: [step.note for step in hit.path] for hit in hits}[parts[1]]
    assert beside[-2] == "the passage beside it in the document"
    assert beside[0] == "the question names Mara Quell"


class TestRecognition:
    """A model keeps the triples that help, if it can."""

    @staticmethod
    def search(built, answer, **settings):
        def script(call):
            return answer if "numbered facts" in call.instructions else default_script(call)

        model = ScriptedModel(script)
        recipe = recipe_by_name("hipporag2", **settings)
        with Index(built, recipe=recipe, embedder=HashEmbedder(256), language_model=model) as index:
            return index.search(QUESTION, 5), model.log

    def test_kept_triples_alone_start_the_walk(self, built):
        hits, log = self.search(built, "1")
        assert len(log) == 1
        reasons = {step.note for hit in hits for step in hit.path if step.step == "question"}
        assert len({reason.partition(": ")[2] for reason in reasons}) == 1

    def test_without_a_triple_the_cosine_ranks(self, built):
        hits, _ = self.search(built, "none")
        with indexed(demo_documents(), built, recipe="flat", embedder=HashEmbedder(256)) as index:
            assert [hit.unit.id for hit in hits] == [hit.unit.id for hit in index.search(QUESTION, 5)]

    def test_an_answer_without_a_number_keeps_all_and_says_so(self, built, caplog):
        hits, _ = self.search(built, "I am not sure.")
        assert all(step.note.startswith("all triples were kept") for hit in hits for step in hit.path[-1:])
        assert "all triples near the question are kept" in caplog.text
        plain, log = self.search(built, "1", recognition="none")
        assert log == []
        assert [hit.unit.id for hit in hits] == [hit.unit.id for hit in plain]


@pytest.mark.parametrize("link", ["phrase", "name"])
def test_other_ways_from_the_question_to_phrases(built, link):
    with opened(built, "hipporag2", link=link) as index:
        hits = index.search("Who commanded the SS Northern Wren?", 3)
    assert "SS Northern Wren" in [hit.unit.title for hit in hits]
    word = "names" if link == "name" else "cosine"
    assert any(word in step.note for step in hits[0].path if step.step == "question")
