"""Graphs follow histories of changes."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from graph_definition import find_mentions
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sire_core import Document, Index
from sire_core.algorithms.text import name_key
from sire_core.corpus.stored_corpus import chunk_units
from sire_core.derive.derivation import PlainDerivation
from sire_core.extraction.titles import TitleLinker
from sire_core.knowledge.knowledge_graph import KnowledgeGraph, entity_id
from sire_core.protocols import Recipe
from sire_core.recipes import REGISTRY, iier
from sire_core.recipes.iier.graph import ChainGraph, PassageKeywords
from sire_core.recipes.pagerank.rank import PageRank
from sire_core.recipes.sirerag.cross_tree import CrossTree
from sire_core.storage.index_files import IndexFiles
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from sire_core.trees.similarity_tree import SimilarityTree
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact, Triple, Unit, UnitKind, unit_id

PHASES = (Phase.explicit, Phase.generate)
"""Shrinking a history takes minutes; a failing one is short enough to read."""
NAMES = (
    "Ann",
    "Ann Lee",
    "Ann Lee Roe",
    "Bob",
    "Robert",
    "Bo (film)",
    "Bo",
    "1912",
    "The Dun",
    "Dun",
    "Eve, Queen of Bo",
)
WORD = st.sampled_from(NAMES)
ENTITY = st.tuples(WORD, st.sampled_from(("", "Person", "Work", "Date")), st.lists(WORD, max_size=2))
STATED = st.tuples(st.integers(0, 4), st.sampled_from(("met", "Met", "saw")), st.integers(0, 4) | WORD)
CONTENT = st.tuples(
    st.sampled_from(("", *NAMES)),
    st.lists(WORD, max_size=4),
    st.lists(ENTITY, max_size=4),
    st.lists(STATED, max_size=3),
)
IDS = [f"d{i}" for i in range(7)]


class Told:
    """An extractor that says of a passage what a test told it."""

    fingerprint = "told/1"
    links_titles = True

    def __init__(self, said):
        self.said = said

    async def extract(self, chunks):
        yield [self.record(item.chunk) for item in chunks]

    def record(self, chunk):
        entities, stated = self.said[(chunk.title, chunk.text)]
        made = tuple(Entity(f"n{i}", name, kind, tuple(also)) for i, (name, kind, also) in enumerate(entities))
        end = lambda found: found if isinstance(found, str) else f"n{found}"  # noqa: E731 - short, and of this place only
        triples = tuple(Triple(end(head), predicate, end(tail)) for head, predicate, tail in stated)
        facts = (Fact("f1", chunk.text, tuple(entity.id for entity in made), triples=triples),)
        return ExtractionRecord(chunk.hash, "told", "1", entities=made, facts=facts)


def opened(path, graph, said, model=None):
    recipe = Recipe(name="graph", summary="", paper="", organizers=(graph,), ranker=PageRank())
    return Index(path, recipe=recipe, embedder=HashEmbedder(), extractor=Told(said), language_model=model)


def summarized(call):
    """Says of an element what its first passage says."""
    data = json.loads(call.data)
    said = [
        {"id": element["id"], "summary": f"{element['name']}: {data['passages'][element['passages'][0]]}"}
        for element in data["elements"]
    ]
    return json.dumps({"summaries": said})


class Histories(RuleBasedStateMachine):
    """Adds, updates and deletes; a fresh index is made of what is left."""

    graph = KnowledgeGraph(hub_floor=2, max_names=3)
    compared = 0

    def __init__(self):
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.said = {}
        self.corpus = {}
        self.index = self.open("grown")

    def open(self, name):
        model = ScriptedModel(summarized) if self.graph.summaries else None
        return opened(self.place / name, self.graph, self.said, model)

    def teardown(self):
        self.index.close()
        shutil.rmtree(self.place)

    def make(self, name, content):
        title, spelled, entities, stated = content
        text = f"Here {' and '.join(spelled) or 'nobody'} came."
        while self.said.get((title, text), (entities, stated)) != (entities, stated):
            text += " Again."
        self.said[(title, text)] = (entities, stated)
        return Document(name, text, title)

    @initialize(contents=st.lists(CONTENT, min_size=2, max_size=4))
    def build(self, contents):
        made = [self.make(name, content) for name, content in zip(IDS, contents, strict=False)]
        self.corpus = {document.id: document for document in made}
        self.index.build(made)

    @rule(name=st.sampled_from(IDS), content=CONTENT)
    def put(self, name, content):
        change = self.index.update if name in self.corpus else self.index.add
        self.corpus[name] = self.make(name, content)
        change([self.corpus[name]])

    @rule(name=st.sampled_from(IDS))
    def drop(self, name):
        if name in self.corpus and len(self.corpus) > 1:
            del self.corpus[name]
            self.index.delete([name])

    @invariant()
    def equals_a_rebuild(self):
        if not self.corpus:
            return
        order = dict.fromkeys(chunk.doc_id for chunk in read_contents(self.place / "grown").chunks.values())
        with self.open("fresh") as index:
            index.build([self.corpus[name] for name in order])
        type(self).compared += 1
        grown = contents(self.place / "grown")
        assert grown == contents(self.place / "fresh")
        shutil.rmtree(self.place / "fresh")
        if self.graph.similar_names is None:
            self.equals_its_definition(grown)

    def equals_its_definition(self, grown):
        """What the graph is, without any of the arrays that it is kept in."""
        with closing(IndexFiles(self.place / "grown")) as library, library.store.snapshot():
            (owner,) = library.refresh().find(None).owners
            passages = chunk_units(library.store.chunks())
        records = TitleLinker([unit.title for unit in passages]).link(
            {unit.id: Told(self.said).record(as_chunk(unit)) for unit in passages}, passages
        )
        units, edges = expected([(unit, records[unit.id]) for unit in passages], owner, self.graph)
        made = {unit.id: (unit.kind.value, unit.text, unit.chunk_ids) for unit in grown[0].values()}
        assert {found: unit for found, unit in made.items() if unit[0] != "chunk"} == units
        assert {
            (edge.kind, edge.source, edge.target): (edge.metadata.get("names", []), "title" in edge.metadata)
            for edge in grown[1]
        } == edges


def as_chunk(unit):
    return Chunk(unit.id, "", 0, unit.title, unit.text)


def expected(passages, fingerprint, graph):
    """Units and edges by their definition, from all records at once (MS-RAG)."""
    found = find_mentions(
        passages,
        disambiguate=graph.disambiguate,
        max_names=graph.max_names,
        skip_types=graph.skip_types,
    )
    chunks_of = {unit.id: unit.chunk_ids for unit, _ in passages}
    limit = max(graph.hub_floor, int(graph.max_df * len(passages)))
    units, edges, nodes = {}, {}, {}
    for key, mentions in found.entities.items():
        chunks = tuple(chunk for passage in mentions for chunk in chunks_of[passage])
        names = [name for mention in mentions.values() for name in mention.names]
        text = next((name for name in names if name_key(name) == key), "") or max(names, key=len, default="")
        nodes[key] = (entity_id(fingerprint, key), text)
        if text:
            units[nodes[key][0]] = ("entity", text, chunks)
        for passage, mention in mentions.items():
            if mention.is_title or len(mentions) <= limit:
                edges[("mentions", passage, nodes[key][0])] = (list(mention.names), mention.is_title)
    stated = {}
    for triple in found.triples:
        stated.setdefault((triple.head, name_key(triple.predicate), triple.tail), []).append(triple)
    for (head, predicate, tail), triples in stated.items() if graph.index_units else ():
        chunks = tuple(dict.fromkeys(chunk for triple in triples for chunk in chunks_of[triple.chunk_id]))
        relation = unit_id("relation", fingerprint, (), f"{head}\x1f{predicate}\x1f{tail}")
        units[relation] = ("relation", triples[0].text, chunks)
        ends = [entity_id(fingerprint, end) for end in (head, tail)]
        edges.update((("relates", relation, end), ([], False)) for end in ends)
    return (units if graph.index_units else {}), edges


def contents(path):
    found = read_contents(path)
    with closing(IndexFiles(path)) as library, library.store.snapshot():
        (owner,) = library.refresh().find(None).owners
        state = library.store.state(owner)
        names = {key: body for key, *_, body in library.store.tables(owner).all_outputs("entities/names")}
    return found.units, found.edges, state, names


GRAPHS = {
    "edges": KnowledgeGraph(hub_floor=2, max_names=3),
    "units": KnowledgeGraph(hub_floor=2, index_units=True),
    "apart": KnowledgeGraph(hub_floor=1, max_df=0.5, index_units=True, disambiguate=False),
    "moving": KnowledgeGraph(hub_floor=1, max_df=0.5, max_names=3),
    "similar": KnowledgeGraph(hub_floor=2, index_units=True, similar_names=0.5),
    "summaries": KnowledgeGraph(hub_floor=2, index_units=True, summaries=True),
}


@pytest.mark.quick(graph=[GRAPHS["edges"], GRAPHS["summaries"]])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_every_history_equals_a_rebuild(graph):
    history = type("History", (Histories,), {"graph": graph})
    machine = history.TestCase
    machine.settings = settings(
        max_examples=4, stateful_step_count=6, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES
    )
    machine().runTest()
    assert history.compared > 4, "every state of every history was compared with a rebuild"


def test_missing_summaries_are_asked_for_again_and_no_others(tmp_path):
    said = {("", "Ann met Bob."): ([("Ann", "", []), ("Bob", "", [])], [(0, "met", 1)]), ("", "Dun."): ([], [])}
    silent = ["Ann"]

    def script(call):
        rows = json.loads(summarized(call))["summaries"]
        return json.dumps({"summaries": [row for row in rows if not row["summary"].startswith((*silent, "?"))]})

    model = ScriptedModel(script)
    graph = KnowledgeGraph(index_units=True, summaries=True)
    with opened(tmp_path / "i", graph, said, model) as index:
        index.build([Document("a", "Ann met Bob.")])
        silent.clear()
        asked = len(model.log)
        index.add([Document("b", "Dun.")])
    again = [element["name"] for call in model.log[asked:] for element in json.loads(call.data)["elements"]]
    assert sorted(again) == ["Ann", "Ann met Bob"]
    units = read_contents(tmp_path / "i").units.values()
    assert {unit.text: unit.metadata.get("summary") for unit in units if unit.kind.value != "chunk"} == {
        name: f"{name}: Ann met Bob." for name in ("Ann", "Bob", "Ann met Bob")
    }


WORDS = ("harbor", "bridge", "mill", "ferry", "lamp", "tide")
SETTINGS = {
    "default": {},
    "mutual": {"links": "mutual", "n_sim": 1},
    "raw": {"raw_kw": True, "kw_min": 2, "kw_df_cap": 3, "title_keywords": False},
    "capped": {"kw_df_cap": 2, "n_sim": 2},
    "approximate": {"exact_below": 7, "n_sim": 2},
    "keywords": {"use_sim": False, "use_struc": False, "kw_df_cap": 4},
    "similarity": {"use_kw": False, "use_struc": False, "n_sim": 3},
}


class Keywords:
    """The words of the list that a passage contains are its keywords, as they are written there."""

    fingerprint = "keywords"
    links_titles = False

    async def extract(self, chunks):
        for item in chunks:
            words = [word.strip(".") for word in item.chunk.text.split()]
            found = tuple(word for word in words if word.lower() in WORDS)
            yield [ExtractionRecord(item.chunk.hash, "m", "p", keywords=found[:5])]


PASSAGES = st.lists(
    st.lists(st.sampled_from((*WORDS, "Harbor", "old", "new")), min_size=1, max_size=4).map(" ".join),
    min_size=1,
    max_size=3,
)
CONTENTS = st.tuples(PASSAGES, st.sampled_from(("", "Harbor", "Mill (film)", "Mill")), st.sampled_from(({}, {"a": 1})))
CHANGES = st.lists(
    st.one_of(
        st.lists(CONTENTS, min_size=1, max_size=4),
        st.tuples(st.integers(0, 20), CONTENTS),
        st.lists(st.integers(0, 20), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=6,
)


def document(name, contents):
    passages, title, metadata = contents
    return Document(name, title=title, chunks=tuple(passages), metadata=metadata)


def changed(index, documents, change, number):
    """Apply a change: contents to add, (which, contents) to replace, or whom to delete."""
    names = list(documents)
    if isinstance(change, tuple):
        if names:
            name = names[change[0] % len(names)]
            documents[name] = document(name, change[1])
            index.update([documents[name]])
    elif isinstance(change[0], tuple):
        new = {f"d{number}-{i}": document(f"d{number}-{i}", contents) for i, contents in enumerate(change)}
        index.add(list(new.values()))
        documents |= new
    elif names:
        gone = list(dict.fromkeys(names[i % len(names)] for i in change))
        index.delete(gone)
        for name in gone:
            del documents[name]


def told(index):
    """What the store holds, and what queries read."""
    view = index.view()
    graph = ChainGraph.of(view)
    words = PassageKeywords(view, graph.positions)
    edges = {(e.kind, e.source, e.target): (e.weight, dict(e.metadata)) for e in view.edges()}
    arrays = {
        name: getattr(graph, name).tolist() for name in ("positions", "vectors", "indptr", "neighbors", "features")
    }
    arrays |= {f"keywords of {node}": graph.keywords.of(node).tolist() for node in range(graph.size)}
    arrays |= {f"holders of {key}": graph.postings.of(number).tolist() for number, key in enumerate(graph.keys)}
    found = {word: words.with_phrase(word).tolist() for word in (*WORDS, "old", "harbor mill")}
    titles = {title: words.titled(title).tolist() for title in ("Mill", "Mill (film)", "harbor")}
    return edges, arrays, list(graph.keys), dict(graph.keyword_of), found, titles


def opened_iier(name, embedder=None, path=None):
    return Index(path, recipe=iier(**SETTINGS[name]), embedder=embedder or HashEmbedder(8), extractor=Keywords())


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(sorted(SETTINGS)), start=st.lists(CONTENTS, min_size=1, max_size=8), changes=CHANGES)
@example("default", [(["harbor"], "", {}), (["harbor"], "", {})], [(0, (["harbor"], "", {"a": 1}))])
def test_any_history_ends_as_a_build_of_what_is_left(name, start, changes):
    documents = {f"s{i}": document(f"s{i}", contents) for i, contents in enumerate(start)}
    with opened_iier(name) as grown, opened_iier(name) as fresh:
        grown.build(list(documents.values()))
        for number, change in enumerate(changes):
            changed(grown, documents, change, number)
        if documents:
            fresh.build(list(documents.values()))
            assert told(grown) == told(fresh)
        else:
            assert not grown.view().edges()


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
