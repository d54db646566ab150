"""Whatever the settings and the history, IndexRAG's units are those of a rebuild, and only what changed is asked for."""

import json
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sire_core.algorithms.text import name_key
from sire_core.corpus.stored_corpus import chunk_units
from sire_core.errors import ModelError
from sire_core.extraction.titles import TitleLinker
from sire_core.index import Index
from sire_core.recipes import indexrag
from sire_core.recipes.indexrag.bridges import SourceDocument, SourceFact, gather_evidence
from sire_core.testing.contracts import read_contents, sample_corpus
from sire_core.testing.doubles import HashEmbedder, PlainExtractor, ScriptedModel
from sire_core.types import Document, Entity, ExtractionRecord, Fact, UnitKind
from support.damage import forget_steps

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


def write(call):
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
        return write(call)

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
            with self.open(place, ScriptedModel(write) if self.with_model else None, Reader()) as fresh:
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


def pairs(*numbers):
    """Documents 2i and 2i + 1 share an entity."""
    return [Document(f"d{i}", f"Person{i // 2} sold stone{i}, glass{i} and paper{i}.") for i in numbers]


def test_an_index_without_tables_is_built_again(tmp_path):
    def contents(name):
        return units(tmp_path / name)

    def open_index(name):
        return Index(
            tmp_path / name, recipe=indexrag(), embedder=HashEmbedder(), extractor=PlainExtractor(), chunker=None
        )

    with open_index("ix") as index, open_index("fresh") as fresh:
        index.build(pairs(*range(6)))
        forget_steps(tmp_path / "ix")
        index.update([*pairs(6), Document("d0", "Person9 left.")])
        fresh.build([Document("d0", "Person9 left."), *pairs(*range(1, 7))])
        assert contents("ix") == contents("fresh")


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
