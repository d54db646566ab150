"""Any row of builds, additions, updates and deletions leaves what its last state would give."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sire_core.errors import CorpusError
from sire_core.index import Index
from sire_core.recipes import sirerag
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, PlainExtractor
from sire_core.types import Document, Passage, UnitKind

NAMES = ["Alma", "Boris", "Ceuta", "Drava", "Ewa Fell", "Port Guam"]
SENTENCES = [f"{a} met {b}." for a in NAMES for b in NAMES if a != b] + ["It rained.", "", "Nobody came!"]
DOCUMENTS = st.builds(
    Document,
    id=st.sampled_from([f"d{i}" for i in range(7)]),
    text=st.lists(st.sampled_from(SENTENCES), max_size=4).map(" ".join),
    title=st.sampled_from(["", "Alma", "A Title"]),
    metadata=st.sampled_from([{}, {"tenant": "red"}, {"tenant": "blue"}]),
)
CORPORA = st.lists(DOCUMENTS, max_size=7, unique_by=lambda document: document.id)
STEPS = st.lists(st.tuples(st.sampled_from(["build", "update", "delete"]), CORPORA), min_size=1, max_size=4)
SLOW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def index_at(path, **options):
    recipe = sirerag(variant="B", max_cluster_tokens=60, summary_tokens=25)
    return Index(path, recipe=recipe, embedder=HashEmbedder(), extractor=PlainExtractor(), **options)


def said(path):
    return read_contents(path).said(UnitKind.CHUNK, UnitKind.AGGREGATE, UnitKind.PROPOSITION)


def check_invariants(path, corpus):
    found = read_contents(path)
    assert {chunk.doc_id for chunk in found.chunks.values()} == {d.id for d in corpus.values() if d.text.strip()}
    covered = {}
    for unit in found.units.values():
        assert unit.chunk_ids
        assert set(unit.chunk_ids) <= set(found.chunks)
        texts = " ".join(f"{found.chunks[c].title} {found.chunks[c].text}" for c in unit.chunk_ids)
        for line in unit.text.splitlines():
            assert line.removeprefix("A Title: ").removeprefix("Alma: ") in texts
        if unit.kind in (UnitKind.CHUNK, UnitKind.SIM_SUMMARY):
            covered.setdefault(unit.level, set()).update(unit.chunk_ids)
    assert all(chunks == set(found.chunks) for chunks in covered.values())
    for edge in found.edges:
        assert {edge.source, edge.target} <= set(found.units)


@SLOW
@given(STEPS)
def test_a_row_of_changes_equals_a_fresh_build(steps):
    corpus = {}
    with tempfile.TemporaryDirectory() as place:
        grown, fresh = Path(place, "grown"), Path(place, "fresh")
        with index_at(grown) as index:
            for action, documents in steps:
                if action == "delete":
                    gone = [document.id for document in documents if document.id in corpus]
                    report = index.delete(gone)
                    assert report.removed == len(gone)
                    corpus = {name: document for name, document in corpus.items() if name not in gone}
                elif action == "update":
                    report = index.update(documents)
                    new = [document for document in documents if document.id not in corpus]
                    assert report.added == len(new)
                    corpus |= {document.id: document for document in documents}
                else:
                    report = index.build(documents)
                    given = {document.id: document for document in documents}
                    # What stays keeps its place, what is new comes behind it.
                    corpus = {name: given[name] for name in corpus if name in given} | given
                assert sum(report.units.values()) == (index.stats()["units"] if corpus or report.generation else 0)
        with index_at(fresh) as index:
            index.build(corpus.values())
        assert said(grown) == said(fresh)
        check_invariants(grown, corpus)


def test_mistakes_change_nothing(tmp_path):
    path = tmp_path / "a"
    documents = [Document("d0", "Alma met Boris."), Document("d1", "Ewa Fell slept.")]
    with index_at(path) as index:
        index.build(documents)
        before = read_contents(path)
        with pytest.raises(CorpusError, match="Update them"):
            index.add([Document("new", "New."), Document("d0", "Other words.")])
        with pytest.raises(CorpusError, match="nowhere"):
            index.delete(["d0", "nowhere"])
        with pytest.raises(CorpusError, match="d9"):
            index.build([Document("d9", "One."), Document("d9", "Two.")])
        assert read_contents(path) == before
        assert index.delete("d0").removed == 1


def test_another_seed_is_kept_by_the_folder(tmp_path):
    documents = [Document(f"d{i}", f"{NAMES[i % 6]} met {NAMES[i % 5]}. It was day {i}.") for i in range(40)]
    with index_at(tmp_path / "a", seed=5) as index:
        index.build(documents[:39])
    with index_at(tmp_path / "a", seed=9) as index:
        index.add(documents[39:])
    with index_at(tmp_path / "b", seed=5) as index:
        index.build(documents[:39])
        index.add(documents[39:])
    assert read_contents(tmp_path / "a") == read_contents(tmp_path / "b")


def test_deleted_passages_leave_what_their_documents_without_them_would_give(tmp_path):
    pieces = {name: Passage(f"{name} met Alma.", name, metadata={"own": name}) for name in ("Boris", "Ceuta", "Drava")}
    first = Document("first", title="A Title", metadata={"tenant": "red"}, chunks=tuple(pieces.values()))
    others = [Document("second", chunks=(Passage("Ewa Fell met Alma.", "Ewa"),)), Document("cut", "Alma met Boris.")]
    with index_at(tmp_path / "a") as index, index_at(tmp_path / "b") as fresh:
        index.build([first, *others])
        (passage,) = [name for document, name in index.snapshot().passage_ids() if document == "cut"]
        with pytest.raises(CorpusError, match="cut was given whole"):
            index.delete_passages(["Boris", passage])
        report = index.delete_passages(["Boris", "Ewa", "nobody"])
        assert (report.updated, report.removed) == (1, 1)
        assert index.delete_passages("Boris").updated == 0
        left = [replace(first, chunks=(pieces["Ceuta"], pieces["Drava"])), others[1]]
        fresh.build(left)
        assert index.documents() == fresh.documents()
    assert said(tmp_path / "a") == said(tmp_path / "b")


def test_a_build_keeps_documents_as_they_are_stored(tmp_path):
    a, b, c, d = (Document(name, f"{name} met Alma.") for name in ("Boris", "Ceuta", "Drava", "Ewa"))
    with index_at(tmp_path / "i") as index:
        index.build([a, b, c])
        report = index.build([d], keep=["Boris", "nobody"])
        assert (report.added, report.unchanged, report.removed) == (1, 1, 2)
        assert [document.id for document in index.documents()] == ["Boris", "Ewa"]
        index.build([], keep="Ewa")
        assert [document.id for document in index.documents()] == ["Ewa"]


@pytest.mark.parametrize("recipe", ["sire", "pagerank", "msrag", "smart", "indexrag"])
def test_a_change_of_nothing_commits_nothing(tmp_path, recipe):
    documents = [Document("one", "Boris met Alma."), Document("two", "Alma founded Drava.")]
    with Index(tmp_path, recipe=recipe, embedder=HashEmbedder()) as index:
        index.build(documents)
        edges = len(index.view().edges())
    before = (tmp_path / "index.sqlite").read_bytes()
    with Index(tmp_path, recipe=recipe, embedder=HashEmbedder()) as index:
        index.view()
        index.build(documents)
        index.update(documents[:1])
        index.delete(["nobody"], missing_ok=True)
        assert len(index.view().edges()) == edges
    assert (tmp_path / "index.sqlite").read_bytes() == before
