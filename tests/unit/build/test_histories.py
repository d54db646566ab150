"""Histories of changes end as a build of what is left."""

import json
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.errors import ModelError
from sire_core.evaluate import load_dataset
from sire_core.extend import KnowledgeGraph, PlainDerivation
from sire_core.papers.pagerank.rank import PageRank
from sire_core.papers.sirerag.cross_tree import CrossTree
from sire_core.papers.trees.similarity_tree import SimilarityTree
from sire_core.protocols import Recipe
from sire_core.recipes import REGISTRY, iier, indexrag
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from sire_core.types import Entity, ExtractionRecord, Fact, Triple, Unit, UnitKind
from support.indexes import indexed

OF_VECTORS = (UnitKind.SIM_SUMMARY, UnitKind.REL_SUMMARY, UnitKind.REPORT)
"""Clusters follow a change where it happens; the embedder learns again when the corpus has doubled."""
RECIPES = ("indexrag", "pagerank", "msrag", "iier", "sirerag", "hipporag2", "linearrag", "sire", "smart")
OTHER = Document(
    "other", "The ferry Aldous Brack was named after a commander. Mara Quell built it in 1903.", "Aldous Brack"
)


def corpus(name, request):
    if name == "demo":
        return list(demo_documents()[:16])
    folder = request.getfixturevalue("sire_data") / "2wikimultihopqa"
    return list(load_dataset(folder).documents[:60])


def grow(path, documents, recipes):
    """Slices, updates and deletes, under the recipes of the folder in turn; and what is there in the end."""
    third = len(documents) // 3
    changes = [
        lambda index: index.add(documents[third : 2 * third]),
        lambda index: index.update([replace(documents[1], text=OTHER.text)]),
        lambda index: index.add([OTHER, *documents[2 * third :]]),
        lambda index: index.update([documents[1]]),
        lambda index: index.delete(["other", *[document.id for document in documents[3::5]]]),
        lambda index: index.add([documents[3]]),
    ]
    for name in recipes:
        indexed(documents[:third], path, recipe=name).close()
    for name, change in zip(cycle(recipes), changes, strict=False):
        with Index(path, recipe=name) as index:
            change(index)
    with Index(path) as index:
        order = [document.id for document in index.documents()]
    known = {document.id: document for document in documents}
    return [known[name] for name in order]


def edges(contents):
    """Edges but for those that follow vectors, with what says so."""
    kept = [edge for edge in contents.edges if edge.kind != "child"]
    return Counter(
        (edge.kind, edge.source, edge.target, edge.metadata.get("structural"), edge.metadata.get("keywords"))
        for edge in kept
        if edge.kind != "interacts" or set(edge.metadata) - {"similarity", "near"}
    )


@pytest.mark.default_recipe
@pytest.mark.parametrize(
    ("name", "recipes"),
    [
        ("demo", ("msrag", "iier", "hipporag2", "linearrag")),
        pytest.param("demo", RECIPES, marks=pytest.mark.slow),
        pytest.param("2wiki", RECIPES, marks=[pytest.mark.data, pytest.mark.slow]),
    ],
)
def test_what_grew_equals_what_is_built_at_once(name, recipes, request, tmp_path):
    left = grow(tmp_path / "grown", corpus(name, request), recipes)
    for recipe in recipes:
        indexed(left, tmp_path / "fresh", recipe=recipe).close()
    with Index(tmp_path / "grown") as index:
        index.reembed(tmp_path / "again", "lexical")
    for recipe in recipes:
        grown, fresh, again = (read_contents(tmp_path / path, recipe) for path in ("grown", "fresh", "again"))
        exact = [kind for kind in UnitKind if kind not in OF_VECTORS]
        assert grown.said(*exact) == fresh.said(*exact), recipe
        ids = [{unit.id for unit in found.units.values() if unit.kind in exact} for found in (grown, fresh)]
        assert ids[0] == ids[1], recipe
        if recipe != "smart":  # its reports stand on clusters, and mention entities
            assert edges(grown) == edges(fresh), recipe
        # Written anew, it is in everything what a build at once makes: clusters, reports and vectors too.
        assert again.units == fresh.units, recipe
        assert again.vectors == fresh.vectors, recipe
        assert sorted(map(str, again.edges)) == sorted(map(str, fresh.edges)), recipe


DOCUMENTS = list(demo_documents()[:16])


def opened(path, recipe):
    return Index(path, recipe=recipe, embedder=HashEmbedder())


def test_a_record_that_somebody_damages_is_made_again(tmp_path):
    many = [Document(f"d{i}", f"Alma met Boris in Ceuta {i}.") for i in range(1001)]  # so many are not looked up singly
    with opened(tmp_path, "sire") as index:
        index.build(many)
        index.add([OTHER])
        with closing(sqlite3.connect(tmp_path / "calls.sqlite")) as db, db:
            (row,) = db.execute("SELECT hash, body FROM records LIMIT 1").fetchall()
            db.execute("UPDATE records SET body=? WHERE hash=?", (row[1][:-1], row[0]))
        index.add([DOCUMENTS[0]])
        with closing(sqlite3.connect(tmp_path / "calls.sqlite")) as db:
            assert db.execute("SELECT body FROM records WHERE hash=?", row[:1]).fetchone()[0] == row[1]


NAMES = ("Ann", "Ann Lee", "Ann Lee Roe", "Bob", "Robert", "Bo (film)", "Bo", "1912", "The Dun", "Eve, Queen of Bo")
NAME = st.sampled_from(NAMES)
PASSAGE = st.tuples(
    st.lists(NAME, max_size=4),  # that it spells out
    st.lists(  # entities: name, type, aliases
        st.tuples(NAME, st.sampled_from(("", "Person", "Work", "Date")), st.lists(NAME, max_size=2)), max_size=4
    ),
    st.lists(  # triples: numbers of entities, or a literal
        st.tuples(st.integers(0, 4), st.sampled_from(("met", "Met", "saw")), st.integers(0, 4) | NAME), max_size=3
    ),
)
DOCUMENT = st.tuples(
    st.sampled_from([f"d{number}" for number in range(7)]),
    st.sampled_from(("", *NAMES)),
    st.lists(PASSAGE, min_size=1, max_size=2),
    st.sampled_from(({}, {}, {"year": 1999})),
)
BATCH = st.lists(DOCUMENT, min_size=1, max_size=3, unique_by=lambda document: document[0])
STEP = st.one_of(
    st.tuples(st.sampled_from(("put", "put", "put unread", "put while the model is away")), BATCH),
    st.tuples(st.just("delete"), st.sets(st.sampled_from([f"d{number}" for number in range(7)]), min_size=1)),
    st.tuples(st.just("reorder"), st.randoms(use_true_random=False)),
)


class Told:
    """An extractor that says of a passage what a test told it; some passages cannot be read."""

    fingerprint = "told/1"
    links_titles = True

    def __init__(self):
        self.said, self.unread = {}, set()

    def passage(self, title, content):
        """A text that nothing else was told of."""
        spelled = content[0]
        text = f"Here {' and '.join(spelled) or 'nobody'} came."
        while self.said.setdefault((title, text), content) != content:
            text += " Again."
        return text

    async def extract(self, chunks):
        yield [self.record(item.chunk) for item in chunks]

    def record(self, chunk):
        if chunk.text in self.unread:
            return ExtractionRecord(chunk.hash, "told", "1", "failed", reason="unreadable")
        spelled, entities, stated = self.said[chunk.title, chunk.text]
        made = tuple(Entity(f"n{i}", name, kind, tuple(also)) for i, (name, kind, also) in enumerate(entities))
        triples = tuple(Triple(f"n{h}", word, t if isinstance(t, str) else f"n{t}") for h, word, t in stated)
        facts = (Fact("f1", chunk.text, tuple(entity.id for entity in made), triples=triples),)
        return ExtractionRecord(chunk.hash, "told", "1", entities=made, facts=facts, keywords=tuple(spelled))


def graph(**chosen):
    organizer = KnowledgeGraph(**chosen)
    return Recipe(name="graph", summary="", paper="", organizers=(organizer,), ranker=PageRank())


HISTORIES = {
    "edges": graph(hub_floor=2, max_names=3),
    "units": graph(hub_floor=2, index_units=True),
    "names apart": graph(hub_floor=1, max_df=0.5, index_units=True, disambiguate=False),
    "moving hubs": graph(hub_floor=1, max_df=0.5, max_names=3),
    "similar names": graph(hub_floor=2, index_units=True, similar_names=0.5),
    "summaries": graph(hub_floor=2, index_units=True, summaries=True),
    "iier": iier(),
    "iier, mutual": iier(links="mutual", n_sim=1),
    "iier, few keywords": iier(kw_min=2, kw_df_cap=3, title_keywords=False),
    "iier, capped": iier(kw_df_cap=2, n_sim=2),
    "iier, approximate": iier(exact_below=7, n_sim=2),
    "indexrag": indexrag(base_store="any", tau=3, max_docs=2, max_facts=2),
    "indexrag, first": indexrag(base_store="any", cap_order="first", entity_key="exact", skip_types=(), split_tokens=9),
    "indexrag, summary": indexrag(base_store="any", stage1="summary", tau=2, max_pairs=2),
    "indexrag, chunks": indexrag(base_store="any", stage1="chunks", tau=4),
}
QUICK = ["edges", "iier, raw", "indexrag"]


def answer(call):
    """Tells all that it was shown."""
    if call.schema is None:
        return f"Of {call.data[:60]!r}."
    data = json.loads(call.data)
    if "elements" in data:
        said = {e["id"]: f"{e['name']}: {data['passages'][e['passages'][0]]}" for e in data["elements"]}
        return json.dumps({"summaries": [{"id": name, "summary": text} for name, text in said.items()]})
    facts = [fact for document in data["documents"] for fact in document["facts"]]
    return json.dumps({"facts": [f"{data['entity']}: {' / '.join(facts)}", f"{len(facts)} facts."]})


class Grown:
    """An index that goes through a history, and what a fresh build of its documents is."""

    def __init__(self, folder, recipe, *, with_model):
        self.folder, self.recipe = folder, recipe
        self.reader, self.documents, self.is_away = Told(), {}, False
        self.model = ScriptedModel(self.answer) if with_model else None
        self.index = self.opened("grown", self.model)

    def opened(self, name, model):
        options = {"embedder": HashEmbedder(8), "chunker": None, "max_failure_ratio": 1.0}
        return Index(self.folder / name, recipe=self.recipe, extractor=self.reader, language_model=model, **options)

    def answer(self, call):
        if self.is_away:
            raise ModelError("the model is away")
        return answer(call)

    def document(self, name, title, passages, metadata):
        texts = tuple(self.reader.passage(title, content) for content in passages)
        return Document(name, title=title, chunks=texts, metadata=metadata)

    def step(self, how, what):
        """Take a step and compare; where something failed, the index need not be that of a rebuild."""
        self.reader.unread, self.is_away = set(), "away" in how
        if how == "delete":
            gone = sorted(what & set(self.documents))
            self.documents = {name: kept for name, kept in self.documents.items() if name not in gone}
            report = self.index.delete(gone)
        elif how == "reorder":
            order = list(self.documents.values())
            what.shuffle(order)
            report = self.index.build(order)
        else:
            made = [self.document(*content) for content in what]
            self.reader.unread = {made[0].chunks[0]} if "unread" in how else set()
            self.documents |= {document.id: document for document in made}
            report = self.index.update(made)
        if not report.failures and self.documents:
            self.equals_a_rebuild()

    def equals_a_rebuild(self):
        order = [self.documents[stored.id] for stored in self.index.documents()]
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            with self.opened(place, ScriptedModel(answer) if self.model else None) as fresh:
                fresh.build(order)
                expected = [[(hit.unit.id, hit.score) for hit in fresh.search(name, 9)] for name in NAMES[:3]]
            grown, anew = read_contents(self.folder / "grown"), read_contents(Path(place))
        assert grown.units == anew.units
        assert grown.edges == anew.edges
        assert [[(hit.unit.id, hit.score) for hit in self.index.search(name, 9)] for name in NAMES[:3]] == expected


@pytest.mark.quick(name=QUICK)
@pytest.mark.parametrize("name", HISTORIES)
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),  # shrinking a history takes minutes; a failing one is short
)
@given(first=BATCH, steps=st.lists(STEP, min_size=1, max_size=5), with_model=st.booleans())
def test_every_history_ends_where_a_rebuild_does(name, first, steps, with_model):
    """Entities of like names, aliases, hubs, literals, copies, passages that cannot be read, a model that is away."""
    with tempfile.TemporaryDirectory() as place:
        grown = Grown(
            Path(place), HISTORIES[name], with_model=(with_model or name == "summaries") and "iier" not in name
        )
        with grown.index:
            for how, what in [("put", first), *steps]:
                grown.step(how, what)
        asked = [(call.instructions, call.data) for call in grown.model.log] if grown.model else []
    if not any("away" in how for how, _ in steps):
        assert len(set(asked)) == len(asked), "nothing is paid for twice"


def pages(overviews):
    texts = [f"Ship number {n} sailed from Hull to port {n}." for n in range(6)]
    return [
        Document(str(n), text, metadata={"abstractiveness": "high" if n < overviews else "low"})
        for n, text in enumerate(texts)
    ]


def derived(index):
    """Level, text and number of passages of what stands beside the passages."""
    view = index.view()
    units = [unit for unit in view.units(range(view.size)) if unit.kind is not UnitKind.CHUNK]
    return sorted((unit.level, len(unit.chunk_ids), unit.text) for unit in units)


def by_label(passages):
    groups = {}
    for passage in passages:
        groups.setdefault(passage.unit.metadata["abstractiveness"], []).append(passage.unit)
    return [
        Unit("", UnitKind.SIM_SUMMARY, f"{label}: {len(units)}", tuple(c for u in units for c in u.chunk_ids))
        for label, units in groups.items()
    ], []


ORGANIZERS = {
    "plain": (PlainDerivation("plain", by_label, needs_records=False),),
    "similarity": (SimilarityTree(hierarchy=True),),
    "cross": (*REGISTRY["sirerag"]().organizers[:2], CrossTree(mode="add", hierarchy=True)),
}


@pytest.mark.parametrize("name", ORGANIZERS)
def test_an_update_of_metadata_is_followed(name):
    recipe = replace(REGISTRY["raptor"](), name="own", organizers=ORGANIZERS[name])
    with Index(recipe=recipe, embedder=HashEmbedder()) as grown, Index(recipe=recipe, embedder=HashEmbedder()) as fresh:
        grown.build(pages(0))
        before = derived(grown)
        grown.update(pages(3))
        fresh.build(pages(3))
        assert derived(grown) == derived(fresh) != before


def test_missing_summaries_are_asked_for_again_and_no_others(tmp_path):
    silent = ["Ann"]

    def script(call):
        rows = json.loads(answer(call))["summaries"]
        return json.dumps({"summaries": [row for row in rows if not row["summary"].startswith((*silent, "?"))]})

    grown = Grown(tmp_path, HISTORIES["summaries"], with_model=False)
    content = ["Ann", "Bob"], [("Ann", "", []), ("Bob", "", [])], [(0, "met", 1)]
    model = ScriptedModel(script)
    with grown.opened("grown", model) as index:
        index.build([grown.document("a", "", [content], {})])
        silent.clear()
        asked = len(model.log)
        index.add([grown.document("b", "", [([], [], [])], {})])
    again = [element["name"] for call in model.log[asked:] for element in json.loads(call.data)["elements"]]
    assert sorted(again) == ["Ann", "Ann met Bob"]
    units = read_contents(tmp_path / "grown").units.values()
    assert {unit.text: unit.metadata.get("summary") for unit in units if unit.kind.value != "chunk"} == {
        name: f"{name}: Here Ann and Bob came." for name in ("Ann", "Bob", "Ann met Bob")
    }
