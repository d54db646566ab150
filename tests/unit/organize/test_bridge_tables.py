"""What bridging facts and atomic knowledge remember between changes: nothing is lost, and every change shows."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.organize.bridges.document_table import DocumentTable, positions
from sire_core.organize.bridges.document_units import DocumentUnits
from sire_core.organize.bridges.entities import SourceDocument, SourceFact
from sire_core.organize.bridges.source_documents import DocumentPassages, document_from_note, document_to_note
from sire_core.organize.bridges.table import Bridge, BridgeTable, bridge_from_note
from sire_core.organize.facts.aggregates import hash64
from sire_core.types import Unit, UnitKind

TEXT = st.text(st.characters(), max_size=6)  # lone surrogates too
BRIEF = settings(max_examples=50, deadline=None)
KEYS = st.sampled_from(["ann", "bob", "cid", "\ud800"])


@st.composite
def documents(draw, names=("d0", "d1", "d2", "d3")):
    """Documents of one or two passages, as their passages and as what their records say."""
    found = []
    for name in draw(st.lists(st.sampled_from(names), unique=True)):
        sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
        units = tuple(
            Unit(f"{name}.{i}", UnitKind.CHUNK, "", (f"{name}.{i}", f"copy.{name}.{i}")[: 1 + i], title=name)
            for i in range(len(sizes))
        )
        keys = draw(st.lists(KEYS, unique=True))
        links = st.frozensets(st.sampled_from(keys)) if keys else st.just(frozenset())
        facts = tuple(
            SourceFact(draw(TEXT), unit.chunk_ids, draw(links))
            for unit, size in zip(units, sizes, strict=True)
            for _ in range(size)
        )
        forms = {key: tuple(draw(st.lists(TEXT, min_size=1, max_size=2))) for key in keys}
        found.append((DocumentPassages(name, name, units), SourceDocument(name, name, forms, facts)))
    return found


def table_of(found, before=None):
    passages = [document for document, _ in found]
    fresh = {document.head: said for document, said in found}
    return (before or DocumentTable()).with_documents(passages, [d.version for d in passages], fresh, "reader")


def same(left, right):
    return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in left.__slots__)


@BRIEF
@given(documents())
def test_documents_come_back_from_their_notes(found):
    for passages, said in found:
        assert document_from_note(document_to_note(said, passages), passages) == said


@BRIEF
@given(documents())
def test_the_document_table_counts_and_comes_back(found):
    table = table_of(found)
    assert same(DocumentTable.from_note(table.to_note()), table)
    listings = table.listings()
    rows = [key for _, said in found for key in said.names]
    hashes = {key: hash64(key) for key in rows}
    wanted = np.array(list(hashes.values()), dtype=np.uint64)
    assert listings.frequencies_of(wanted) == [rows.count(key) for key in hashes]
    places = positions(listings.keys, wanted).tolist()
    assert listings.first[places].tolist() == [rows.index(key) for key in hashes]
    assert listings.entity_of.tolist() == [places[list(hashes).index(key)] for key in rows]
    assert listings.frequencies_of(np.array([7], dtype=np.uint64)) == [0]


@BRIEF
@given(documents(), documents())
def test_an_entity_changes_with_what_any_document_says_of_it(old, new):
    def evidence(found):
        """All that an entity's evidence may be made from."""
        about = {}
        for passages, said in found:
            facts = tuple((fact.text, fact.chunk_ids) for fact in said.facts)
            for key, forms in said.names.items():
                about.setdefault(key, []).append((passages.title, forms, facts, tuple(said.linked.get(key, ()))))
        return about

    before, after = table_of(old).listings(), table_of(new, table_of(old)).listings()
    was, now = evidence(old), evidence(new)
    changed = {hash64(key) for key in now if was.get(key) != now[key]}
    assert set(after.keys[after.unlike(before)].tolist()) == changed


@BRIEF
@given(st.lists(documents(), min_size=1, max_size=3))
def test_a_table_that_grew_is_one_made_at_once(history):
    table = DocumentTable()
    for found in history:
        table = table_of(found, table)
    assert same(table, table_of(history[-1]))


def test_documents_are_read_again_when_a_passage_or_the_reader_changes():
    def passages(name, *chunks):
        return DocumentPassages(name, "", tuple(Unit(same[0], UnitKind.CHUNK, "", same) for same in chunks))

    there = [passages("d0", ("a",)), passages("d1", ("b", "c"), ("d",)), passages("d2", ("e",))]
    versions = [document.version for document in there]
    empty = {document.head: SourceDocument(document.id, "", {}, ()) for document in there}
    table = DocumentTable().with_documents(there, versions, empty, "reader")
    assert table.outdated(there, versions, set(), "reader") == []
    assert table.outdated(there, versions, set(), "another") == there
    assert table.outdated(there, versions, {"d"}, "reader") == [there[1]]
    now = [there[0], passages("d1", ("b",), ("d",)), passages("d3", ("f",))]
    assert table.outdated(now, [document.version for document in now], set(), "reader") == now[1:]


BRIDGES = st.lists(
    st.builds(
        Bridge,
        KEYS,
        st.sampled_from(["", "0" * 24, "a" * 24]),
        st.lists(st.tuples(TEXT, st.lists(TEXT, min_size=1).map(tuple)), max_size=2).map(tuple),
    ),
    unique_by=lambda bridge: bridge.key,
)


@BRIEF
@given(BRIDGES, BRIDGES, st.data())
def test_bridges_that_stay_are_kept_and_others_replaced(old, new, data):
    before = BridgeTable().with_bridges(np.zeros(0, dtype=bool), old)
    written = {hash64(bridge.key) for bridge in new}
    kept = np.array([key not in written and data.draw(st.booleans()) for key in before.keys.tolist()], dtype=bool)
    staying = [bridge for bridge in old if hash64(bridge.key) in before.keys[kept].tolist()]
    after = before.with_bridges(kept, new)
    assert same(after, BridgeTable().with_bridges(np.zeros(0, dtype=bool), [*new, *staying]))
    assert same(BridgeTable.from_note(after.to_note()), after)
    assert after.known() == {hash64(b.key): b.digest for b in (*new, *staying) if b.digest}
    assert set(after.failed.tolist()) == {hash64(b.key) for b in (*new, *staying) if not b.digest}
    assert [bridge_from_note(bridge.to_note()) for bridge in new] == new


def test_units_of_documents_come_back_from_their_note():
    found = DocumentUnits("reader", {2**64 - 1: "a" * 24, 7: "b" * 24}, frozenset({7}))
    assert DocumentUnits.from_note(found.to_note()) == found
    assert DocumentUnits.from_note(DocumentUnits().to_note()) == DocumentUnits.from_note(None) == DocumentUnits()
