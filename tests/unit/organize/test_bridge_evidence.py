"""What bridging facts may be made from: documents and facts of an entity, and its name."""

import pytest

from sire_core.recipes.indexrag.bridges import SourceDocument, SourceFact, cap_documents, gather_evidence


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
