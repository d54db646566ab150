"""IndexRAG: atomic knowledge and bridging facts."""

import asyncio
import json

import pytest

from sire_core import Document, Index
from sire_core.extend import text_length
from sire_core.papers.indexrag.bridges import (
    BridgeEvidence,
    JoinedFacts,
    ModelBridges,
    SourceDocument,
    SourceFact,
    cap_documents,
    gather_evidence,
)
from sire_core.recipes import indexrag
from sire_core.testing.doubles import HashEmbedder, PlainExtractor, ScriptedModel
from sire_core.types import UnitKind


def document(name, *facts, title="", names=None):
    """A document whose facts are (text, entities); chunk i states fact i."""
    keys = list(dict.fromkeys(key for _, entities in facts for key in entities))
    return SourceDocument(
        name,
        title,
        names or {key: (key.title(),) for key in keys},
        tuple(SourceFact(text, (f"{name}{i}",), frozenset(entities)) for i, (text, entities) in enumerate(facts)),
    )


@pytest.mark.parametrize(
    ("order", "documents", "facts"),
    [
        ("facts", ["d5", "d2", "d7", "d3", "d4"], [8, 8, 3, 2, 2]),
        ("first", ["d1", "d2", "d3", "d4", "d5"], [1, 8, 2, 2, 8]),
    ],
)
def test_oracle_X4_caps(order, documents, facts):
    counts = [1, 9, 2, 2, 10, 1, 3]
    assert [f"d{i + 1}" for i in cap_documents(counts, 5, order)] == documents
    corpus = [
        document(f"d{i}", *((f"E did thing {i}-{j}.", ["e"]) for j in range(count)), title=f"d{i}")
        for i, count in enumerate(counts, 1)
    ]
    evidence = gather_evidence(corpus, {"e"}, cap_order=order)
    assert [title for title, _ in evidence["e"].documents] == documents
    assert [len(found) for _, found in evidence["e"].documents] == facts


def test_facts_match_whole_words_and_links():
    corpus = [
        document("a", ("Ann met Annabel.", ["ann"]), ("Annabel left.", []), ("ANN, said Bo, came.", []), title="A"),
        document("b", ("She was born in Rye.", ["ann"]), title="Ann"),
    ]
    evidence = gather_evidence(corpus, {"ann"})["ann"]
    assert evidence.name == "Ann"
    assert [fact.text for _, facts in evidence.documents for fact in facts] == [
        "Ann met Annabel.",
        "ANN, said Bo, came.",
        "She was born in Rye.",
    ]
    assert evidence.chunk_ids == ("a0", "a2", "b0")


def test_a_name_that_no_shown_document_spells_out_is_not_used():
    names = {"lord ashby (red)": ("Lord Ashby (Red)",)}
    corpus = [document(d, ("Lord Ashby sailed.", list(names)), names=names) for d in ("a", "b")]
    assert gather_evidence(corpus, set(names)) == {}


FILM = SourceFact("Aylwin is a silent drama film directed by Henry Edwards.", ("film",))
SHORT = SourceFact("Edwards made films.", ("film",))
BORN = SourceFact("Edwards was born in Weston-super-Mare in Somerset.", ("person",))
EVIDENCE = BridgeEvidence("henry edwards", "Henry Edwards", (("Henry Edwards", (BORN,)), ("Aylwin", (SHORT, FILM))))


def join(joined, evidence):
    return asyncio.run(joined.write([evidence]))[0]


def test_a_name_that_only_a_third_document_spells_out_is_not_used():
    sailed = SourceFact("Ashby sailed to the northern islands.", ("a",))
    bought = SourceFact("Ashby bought rope and lamps.", ("c",))
    third = SourceFact("Ashby slept.", ("b",))
    documents = (("", (sailed,)), ("Lord Ashby of Red", (third,)), ("", (bought,)))
    found = join(JoinedFacts(min_new=2), BridgeEvidence("lord ashby of red", "Lord Ashby of Red", documents))
    assert {fact.text for fact in found if fact.chunk_ids == ("a", "c")} == {f"{sailed.text} {bought.text}"}


def ask(*answers, evidence=EVIDENCE):
    model = ScriptedModel(list(answers))
    return asyncio.run(ModelBridges(model).write([evidence]))[0], model


def test_model_answers_are_checked():
    good = "The director of Aylwin was born in Weston-super-Mare."
    answer = [good, good.lower(), BORN.text.upper(), "", "  ", "long " * 100]
    found, model = ask(json.dumps({"facts": answer}))
    assert [fact.text for fact in found] == [good]
    assert found[0].chunk_ids == ("person", "film")
    (call,) = model.log
    assert json.loads(call.data)["documents"][1] == {"title": "Aylwin", "facts": [SHORT.text, FILM.text]}


IDS = [f"d{i}" for i in range(6)]


def told(name, content):
    facts = [(f"{who} {what} in {name}.", [who]) for who, what in content]
    return Document(name, " ".join(text for text, _ in facts) or "Nothing."), facts


@pytest.mark.parametrize(("stage1", "asked"), [("qa", 0), ("summary", 1)])
def test_only_the_changed_document_is_read_again(tmp_path, stage1, asked):
    model = ScriptedModel()
    recipe = indexrag(stage1=stage1, stage2=False)
    documents = [Document(name, f"{name} is a document about Ann and {name}.") for name in IDS]
    with Index(
        tmp_path, recipe=recipe, embedder=HashEmbedder(), extractor=PlainExtractor(), language_model=model
    ) as index:
        index.build(documents[:5])
        before = len(model.log)
        assert index.add(documents[5:]).units["aku"] == 6
        assert len(model.log) - before == asked


CORPUS = {"d1": "x y hub", "d2": "x hub", "d3": "y z hub", "d4": "hub w"}
WHOLE = {**CORPUS, "d5": "x z w new hub"}
STORIES = {name: told(name, [(who, "sang") for who in names.split()]) for name, names in WHOLE.items()}


class Small:
    """An index over the documents of the oracles, with a model that says of each entity that it joins."""

    def __init__(self, tau, names):
        self.model = ScriptedModel(lambda call: json.dumps({"facts": [f"{json.loads(call.data)['entity']} joins."]}))
        self.index = Index(
            recipe=indexrag(tau=tau),
            embedder=HashEmbedder(),
            extractor=PlainExtractor({made.text: facts for made, facts in STORIES.values()}),
            language_model=self.model,
        )
        self.index.build([STORIES[name][0] for name in names])

    def asked(self):
        """Entities that were asked about since the last time."""
        found = {json.loads(call.data)["entity"] for call in self.model.log}
        self.model.log.clear()
        return found

    def bridges(self):
        view = self.index.view()
        return {unit.text.split()[0] for unit in view.units(range(view.size)) if unit.kind == UnitKind.BRIDGE}


@pytest.mark.parametrize(("tau", "expected"), [(3, {"x", "y"}), (4, {"hub", "x", "y"}), (2, {"x", "y"})])
def test_oracle_X2_bridge_entities(tau, expected):
    small = Small(tau, CORPUS)
    with small.index:
        assert small.asked() == small.bridges() == expected


@pytest.mark.parametrize(
    ("tau", "written", "retired"),
    [
        (3, {"w", "x", "z"}, set()),
        (2, {"w", "z"}, {"x"}),
        (4, {"w", "x", "z"}, {"hub"}),
        (10, {"hub", "w", "x", "z"}, set()),
    ],
)
def test_oracle_X3_adding_a_document(tau, written, retired):
    small = Small(tau, CORPUS)
    with small.index:
        before, _ = small.bridges(), small.asked()
        small.index.add([STORIES["d5"][0]])
        assert small.asked() == written
        assert before - small.bridges() == retired
        assert small.bridges() == (before - retired) | written


def test_oracle_X5_removing_the_document_again():
    small = Small(4, WHOLE)
    with small.index:
        assert small.bridges() == small.asked() == {"w", "x", "y", "z"}
        small.index.delete(["d5"])
        assert small.asked() == {"hub", "x"}  # formed again, and known by less
        assert small.bridges() == {"hub", "x", "y"}
        small.index.add([STORIES["d5"][0]])
        assert small.asked() == set()  # nothing is paid for twice
        assert small.bridges() == {"w", "x", "y", "z"}


def test_stats_count_what_the_papers_table_3_counts(tmp_path):
    facts = {
        "Ann met Bob. Ann saw Cid.": [("Ann met Bob.", ["Ann", "Bob"]), ("Ann saw Cid.", ["Ann", "Cid"])],
        "Ann sang. Bob slept.": [("Ann sang.", ["Ann"]), ("Bob slept.", ["Bob"])],
        "Cid left.": [("Cid left.", ["Cid"])],
    }
    answers = {
        "Ann": ["Ann met Bob and sang.", "Ann saw Cid and sang."],
        "Bob": [],
        "Cid": ["Cid, whom Ann saw, left."],
    }

    def script(call):
        return json.dumps({"facts": answers[json.loads(call.data)["entity"]]})

    corpus = [Document(str(i), text) for i, text in enumerate(facts)]
    recipe, embedder, reader = indexrag(), HashEmbedder(), PlainExtractor(facts)
    model = ScriptedModel(script)
    with Index(tmp_path / "i", recipe=recipe, embedder=embedder, extractor=reader, language_model=model) as index:
        index.build(corpus[:2])
        two = {"entities": 2, "entities_with_facts": 1, "facts": 2, "non_empty_rate": 50.0}
        assert index.stats()["bridging"] == two
        index.add(corpus[2:])
        assert index.stats()["bridging"] == {
            "entities": 3,
            "entities_with_facts": 2,
            "facts": 3,
            "non_empty_rate": 66.7,
        }
        index.delete(["2"])
        assert index.stats()["bridging"] == two


CHAPTERS = [" ".join(f"Keeper{number} lit lamp{number}x{line} at dusk." for line in range(4)) for number in range(6)]


def open_index(extractor=None, model=None, **settings):
    return Index(
        recipe=indexrag(stage2=False, **settings),
        embedder=HashEmbedder(),
        extractor=extractor or PlainExtractor(),
        language_model=model,
        chunker=None,
        max_failure_ratio=1,
    )


def units(index):
    view = index.view()
    return [unit for unit in view.units(range(view.size)) if unit.kind == UnitKind.AKU]


def chunk_texts(index):
    view = index.view()
    return {unit.chunk_ids[0]: unit.text for unit in view.units(range(view.size)) if unit.kind == UnitKind.CHUNK}


def test_a_long_document_becomes_units_that_stand_on_the_passages_that_state_them():
    with open_index(split_tokens=40) as index:
        index.build([Document("log", title="Log", chunks=tuple(CHAPTERS)), Document("short", CHAPTERS[0][:22])])
        short, *parts = sorted(units(index), key=lambda unit: len(unit.text))
        texts = chunk_texts(index)
        assert short.text == CHAPTERS[0][:22]
        assert len(parts) > 2
        facts = [fact for part in parts for fact in part.text.split("\n")]
        assert sorted(facts) == sorted(f"{fact}." for chapter in CHAPTERS for fact in chapter[:-1].split(". "))
        for part in parts:
            assert text_length(part.text) <= 40
            for fact in part.text.split("\n"):
                assert sum(fact in texts[chunk] for chunk in part.chunk_ids) == 1
            assert all(any(fact in texts[chunk] for fact in part.text.split("\n")) for chunk in part.chunk_ids)


def test_a_document_that_states_nothing_stands_as_it_is_in_parts():
    with open_index(PlainExtractor({}), split_tokens=10) as index:
        index.build([Document("log", title="Log", chunks=tuple(CHAPTERS))])
        found = units(index)
        assert all(text_length(unit.text) <= 10 for unit in found)
        said = "".join("".join(unit.text.split()) for unit in found)
        assert sorted(said) == sorted("".join(("Log " + " ".join(CHAPTERS)).split()))
