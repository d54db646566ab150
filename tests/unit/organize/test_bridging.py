"""Bridging facts of IndexRAG."""

import asyncio
import json
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sire_core.algorithms.text import name_key
from sire_core.corpus.stored_corpus import chunk_units
from sire_core.errors import ModelError
from sire_core.extraction.titles import TitleLinker
from sire_core.index import Index
from sire_core.recipes import indexrag
from sire_core.recipes.indexrag.bridges import (
    BridgeEvidence,
    JoinedFacts,
    ModelBridges,
    SourceDocument,
    SourceFact,
    cap_documents,
    gather_evidence,
)
from sire_core.testing.contracts import read_contents, sample_corpus
from sire_core.testing.doubles import HashEmbedder, PlainExtractor, ScriptedModel
from sire_core.types import Document, Entity, ExtractionRecord, Fact, UnitKind


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
        """Entities that have bridging facts."""
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


WHO = ("Ann", "Bob", "Cid", "1999")
WHOM = ("Dora Vale", "Robert", "Ann", "1999", "nobody")
SENTENCE = re.compile(rf"({'|'.join(WHO)}) (?:sang|slept) with ({'|'.join(WHOM)}) (?:in \w+|here)\.")
KINDS = (UnitKind.AKU, UnitKind.BRIDGE)
SETTINGS = st.fixed_dictionaries(
    {
        "tau": st.integers(2, 4),
        "max_docs": st.integers(2, 3),
        "max_facts": st.integers(1, 3),
        "cap_order": st.sampled_from(["facts", "first"]),
        "max_pairs": st.integers(1, 3),
        "entity_key": st.sampled_from(["norm", "exact"]),
        "skip_types": st.sampled_from([("Date",), ()]),
        "stage1": st.sampled_from(["qa", "summary", "chunks"]),
        "split_tokens": st.sampled_from([9, 1024]),
    }
)


class Reader:
    """Facts are sentences, their entities who acts; others may be linked by title. Some passages cannot be read."""

    fingerprint = "reader/1"
    links_titles = True

    def __init__(self):
        self.broken, self.read = set(), {}

    async def extract(self, chunks):
        for chunk in [item.chunk for item in chunks]:
            if chunk.text in self.broken:
                yield [ExtractionRecord(chunk.hash, "reader", "1", "failed", reason="unreadable")]
            else:
                self.read[chunk.hash] = self.record(chunk)
                yield [self.read[chunk.hash]]

    def record(self, chunk):
        found = [(match.group(0), match.group(1)) for match in SENTENCE.finditer(chunk.text)]
        ids = {name: f"n{i}" for i, name in enumerate(dict.fromkeys(who for _, who in found), 1)}
        return ExtractionRecord(
            chunk.hash,
            "reader",
            "1",
            entities=tuple(
                Entity(local, name, "Date" if name.isdigit() else "Person", ("Robert",) if name == "Bob" else ())
                for name, local in ids.items()
            ),
            facts=tuple(Fact(f"f{i}", text, (ids[who],)) for i, (text, who) in enumerate(found, 1)),
        )


def write_all(call):
    """Tells all that it was shown; two entities may say the same."""
    if call.schema is None:
        return f"Of {call.data[:60]!r}."
    data = json.loads(call.data)
    facts = [fact for document in data["documents"] for fact in document["facts"]]
    return json.dumps({"facts": [f"{data['entity']}: {' / '.join(facts)}", f"{len(facts)} facts."]})


@dataclass
class Outcome:
    """What a change did: keys it asked the model for and those it had reason to, and the units it left.

    Units are none where something failed, for then they need not be those of a rebuild.
    """

    asked: list = field(default_factory=list)
    allowed: set = field(default_factory=set)
    units: dict | None = None
    rebuilt: dict | None = None


class Library:
    """An index, and what its documents should come to."""

    def __init__(self, folder, chosen, *, with_model):
        self.folder, self.chosen, self.with_model = folder, chosen, with_model
        self.reader, self.documents, self.away = Reader(), {}, set()
        self.model = ScriptedModel(self.answer) if with_model else None
        self.index = self.open("index", self.model, self.reader)
        self.known, self.bridging, self.failed = {}, set(), set()

    def open(self, name, model, reader):
        unused = ("split_tokens",) if self.chosen["stage1"] == "chunks" else ()
        recipe = indexrag(base_store="any", **{n: value for n, value in self.chosen.items() if n not in unused})
        return Index(
            self.folder / name,
            recipe=recipe,
            embedder=HashEmbedder(),
            extractor=reader,
            language_model=model,
            max_failure_ratio=1.0,
            chunker=None,
        )

    def answer(self, call):
        name = json.loads(call.data)["entity"] if call.schema is not None else call.data.split()[0]
        if name in self.away:
            raise ModelError("the model is away")
        return write_all(call)

    def change(self, action):
        """Do it, and say what came of it."""
        before, asked = self.bridging, len(self.model.log) if self.model else 0
        report = action()
        evidence = self.evidence()
        changed = {key for key in {**evidence, **self.known} if evidence.get(key) != self.known.get(key)}
        self.known = evidence
        outcome = Outcome()
        if self.model:
            names = [json.loads(call.data)["entity"] for call in self.model.log[asked:] if call.schema is not None]
            outcome.asked = [name_key(name, self.chosen["entity_key"]) for name in names]
            outcome.allowed = set(evidence) & ((self.bridging - before) | changed | self.failed)
            known = {found.name: key for key, found in evidence.items()}
            self.failed = {key for name, key in known.items() if any(repr(name) in f.where for f in report.failures)}
        if not report.failures:
            outcome.units, outcome.rebuilt = units(self.folder / "index"), self.rebuilt()
        return outcome

    def evidence(self):
        """From the corpus as it is, without any memory."""
        chunks = self.index._reader.files().store.chunks()
        records = {chunk.id: self.reader.read[chunk.hash] for chunk in chunks if chunk.hash in self.reader.read}
        records = TitleLinker(list(dict.fromkeys(chunk.title for chunk in chunks))).link(records, chunks)
        c = self.chosen
        document_of = {chunk.id: chunk.doc_id for chunk in chunks}
        documents = {}
        for unit in chunk_units(chunks):
            documents.setdefault(document_of[unit.chunk_ids[0]], []).append(unit)
        documents = [source_document(name, found, records, c) for name, found in documents.items()]
        frequencies = Counter(key for document in documents for key in document.names)
        self.bridging = {key for key, count in frequencies.items() if 2 <= count <= c["tau"]}
        return gather_evidence(documents, self.bridging, c["max_docs"], c["max_facts"], c["cap_order"], c["entity_key"])

    def rebuilt(self):
        order = [self.documents[stored.id] for stored in self.index.documents()]
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            with self.open(place, ScriptedModel(write_all) if self.with_model else None, Reader()) as fresh:
                fresh.build(order)
            return units(Path(place)) if order else {}


def source_document(name, passages, records, chosen):
    """What the records of its passages say of a document."""
    names, facts = {}, []
    for unit in passages:
        record = records.get(unit.chunk_ids[0])
        keys = {}
        for entity in record.entities if record else ():
            if entity.type not in chosen["skip_types"]:
                keys[entity.id] = name_key(entity.name, chosen["entity_key"])
                names.setdefault(keys[entity.id], []).extend([entity.name, *entity.aliases])
        for fact in record.facts if record else ():
            linked = frozenset(keys[found] for found in fact.entities if found in keys)
            facts.append(SourceFact(fact.answer or fact.text, unit.chunk_ids, linked))
    forms = {key: tuple(dict.fromkeys(found)) for key, found in names.items()}
    return SourceDocument(name, passages[0].title, forms, tuple(facts))


def units(path):
    return {name: unit for name, unit in read_contents(path).units.items() if unit.kind in KINDS}


SENTENCES = st.lists(
    st.tuples(st.sampled_from(WHO), st.sampled_from(("sang", "slept")), st.sampled_from(WHOM)), max_size=4
)
DOCUMENTS = st.builds(
    lambda name, title, parts, everywhere, metadata: Document(
        name,
        title=title,
        metadata=metadata,
        chunks=tuple(
            " ".join(f"{who} {what} with {whom} {'here' if everywhere else f'in {name}'}." for who, what, whom in part)
            or "Nothing."
            for part in parts
        ),
    ),
    st.sampled_from([f"d{i}" for i in range(7)]),
    st.sampled_from(("", "Letters", "Dora Vale", "Robert")),
    st.lists(SENTENCES, min_size=1, max_size=2),
    st.booleans(),
    st.sampled_from(({}, {}, {"year": 1999})),
)
BATCHES = st.lists(DOCUMENTS, min_size=1, max_size=3, unique_by=lambda document: document.id)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), BATCHES),
        st.tuples(st.just("put while a passage cannot be read"), BATCHES),
        st.tuples(st.just("put while the model is away"), BATCHES),
        st.tuples(st.just("delete"), st.sets(st.sampled_from([f"d{i}" for i in range(7)]), min_size=1, max_size=2)),
        st.tuples(st.just("reorder"), st.randoms(use_true_random=False)),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(SETTINGS, st.booleans(), st.lists(DOCUMENTS, min_size=3, max_size=6, unique_by=lambda d: d.id), STEPS)
def test_every_history_ends_where_a_rebuild_does(chosen, with_model, first, steps):
    with tempfile.TemporaryDirectory() as place:
        library = Library(Path(place), chosen, with_model=with_model)
        with library.index as index:
            library.documents = {document.id: document for document in first}
            outcomes = [library.change(lambda: index.build(first))]
            for step, what in steps:
                library.reader.broken, library.away = set(), set()
                if step.startswith("put"):
                    library.documents |= {document.id: document for document in what}
                    if "read" in step:
                        library.reader.broken = {what[0].chunks[0]}
                    if "away" in step:
                        library.away = {"Ann", "Cid", "Dora"}
                    outcomes.append(library.change(lambda batch=what: index.update(batch)))
                elif step == "delete":
                    gone = sorted(what & set(library.documents))
                    library.documents = {name: doc for name, doc in library.documents.items() if name not in what}
                    outcomes.append(library.change(lambda names=gone: index.delete(names)))
                else:
                    order = list(library.documents.values())
                    what.shuffle(order)
                    outcomes.append(library.change(lambda given=order: index.build(given)))
        for outcome in outcomes:
            assert set(outcome.asked) <= outcome.allowed
            assert len(set(outcome.asked)) == len(outcome.asked)
            assert outcome.units == outcome.rebuilt


SAMPLE = sample_corpus()


def with_the_text_of_another(documents, place):
    """One of the first eight, which no later step adds again."""
    return replace(documents[place % 8], text=documents[(place + 1) % 8].text)


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.permutations(SAMPLE), st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=5))
def test_every_history_ends_where_a_rebuild_does_with_the_default_configuration(documents, steps):
    """Rules read the passages, and the embedder learns from them."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place)
        first, *rest = documents[:8], *documents[8:]
        with Index(path / "grown", recipe="indexrag") as index:
            index.build(first)
            for come, go in steps:
                there = [stored.id for stored in index.documents()]
                index.delete(there[: 2 * go : 2])
                index.update([*rest[:come], with_the_text_of_another(documents, come)])
                rest = rest[come:]
            known = {document.id: document for document in documents}
            known |= {found.id: found for found in (with_the_text_of_another(documents, come) for come, _ in steps)}
            order = [known[stored.id] for stored in index.documents()]
        with Index(path / "fresh", recipe="indexrag") as fresh:
            fresh.build(order)
        assert read_contents(path / "grown").units == read_contents(path / "fresh").units


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
