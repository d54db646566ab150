"""Which entities bridge documents, from what, and what a change does to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.organize.bridges.entities import (
    Evidence,
    SourceDocument,
    SourceFact,
    affected_entities,
    bridge_entities,
    cap_documents,
    document_frequencies,
    gather_evidence,
)

CORPUS = {"d1": {"x", "y", "hub"}, "d2": {"x", "hub"}, "d3": {"y", "z", "hub"}, "d4": {"hub", "w"}}
NEW = {"x", "z", "w", "new", "hub"}
BEFORE, AFTER = document_frequencies(CORPUS), document_frequencies({**CORPUS, "d5": NEW})


def document(name, *facts, title="", names=None):
    """A document whose facts are (text, entities); chunk i states fact i."""
    keys = list(dict.fromkeys(key for _, entities in facts for key in entities))
    return SourceDocument(
        name,
        title,
        names or {key: (key.title(),) for key in keys},
        tuple(SourceFact(text, (f"{name}{i}",), frozenset(entities)) for i, (text, entities) in enumerate(facts)),
    )


@pytest.mark.parametrize(("tau", "expected"), [(3, {"x", "y"}), (4, {"hub", "x", "y"}), (2, {"x", "y"})])
def test_oracle_X2_bridge_entities(tau, expected):
    assert BEFORE == {"hub": 4, "x": 2, "y": 2, "z": 1, "w": 1}
    assert bridge_entities(BEFORE, tau) == expected


@pytest.mark.parametrize(
    ("tau", "formed", "written", "retired"),
    [
        (3, {"w", "z"}, {"w", "x", "z"}, set()),
        (2, {"w", "z"}, {"w", "z"}, {"x"}),
        (4, {"w", "z"}, {"w", "x", "z"}, {"hub"}),
        (10, {"w", "z"}, {"hub", "w", "x", "z"}, set()),
    ],
)
def test_oracle_X3_adding_a_document(tau, formed, written, retired):
    affected = affected_entities(BEFORE, AFTER, NEW, tau)
    assert (affected.formed, affected.written, affected.retired) == (formed, written, retired)
    assert affected.re_formed == set()


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
    assert bridge_entities(document_frequencies({found.id: found.names for found in corpus}), 10) == {"e"}
    evidence = gather_evidence(corpus, {"e"}, cap_order=order)
    assert [title for title, _ in evidence["e"].documents] == documents
    assert [len(found) for _, found in evidence["e"].documents] == facts


def test_oracle_X5_removing_the_document_again():
    affected = affected_entities(AFTER, BEFORE, NEW, 4)
    assert affected.re_formed == {"hub"}
    assert affected.retired == {"w", "z"}
    assert affected.refreshed == {"x"}
    assert bridge_entities(document_frequencies(CORPUS), 4) == bridge_entities(BEFORE, 4)


COUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 6))


@given(COUNTS, COUNTS, st.sets(st.sampled_from("abcdef")), st.integers(2, 5))
def test_affected_sets_lead_from_one_set_of_bridges_to_the_other(before, after, changed, tau):
    affected = affected_entities(before, after, changed, tau)
    old, new = bridge_entities(before, tau), bridge_entities(after, tau)
    assert (old - affected.retired) | affected.written == new
    parts = [affected.formed, affected.refreshed, affected.retired, affected.re_formed]
    assert sum(map(len, parts)) == len(frozenset().union(*parts))
    assert affected.refreshed <= changed


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


def test_entities_without_facts_in_two_documents_are_no_evidence():
    corpus = [document("a", ("Ann left.", ["ann"])), document("b", ("Rain fell.", []), names={"ann": ("Ann",)})]
    assert document_frequencies({found.id: found.names for found in corpus}) == {"ann": 2}
    assert gather_evidence(corpus, {"ann"}) == {}


def test_a_name_that_no_shown_document_spells_out_is_not_used():
    names = {"lord ashby (red)": ("Lord Ashby (Red)",)}
    corpus = [document(d, ("Lord Ashby sailed.", list(names)), names=names) for d in ("a", "b")]
    assert gather_evidence(corpus, set(names)) == {}


@pytest.mark.parametrize(
    "other",
    [
        Evidence("e", "E", (("A", (SourceFact("x", ("c", "d")),)), ("B", ()))),
        Evidence("e", "E", (("A", (SourceFact("y", ("c",)),)), ("B", ()))),
        Evidence("e", "E", (("A", ()), ("B", (SourceFact("x", ("c",)),)))),
        Evidence("e", "F", (("A", (SourceFact("x", ("c",)),)), ("B", ()))),
    ],
)
def test_digest_sees_every_part_of_the_evidence(other):
    assert other.digest != Evidence("e", "E", (("A", (SourceFact("x", ("c",)),)), ("B", ()))).digest
