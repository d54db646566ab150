"""What a change of titles reaches: few records, and none too few."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.corpus.changes import StoredDocument
from sire_core.corpus.stored_corpus import StoredCorpus
from sire_core.extraction.record import to_json
from sire_core.extraction.titles import (
    PassageTexts,
    TitleLinker,
    changed_surface_forms,
    touched_records,
)
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact

TITLES = [
    "Aylwin (film)",
    "Aylwin",
    "The Old Mill",
    "Old Mill",
    "A Old Mill",
    "Eustace II, Count of Boulogne",
    "Smith & Sons",
    "It (2017 film)",
    "Del Mar",
    "\u0130stanbul Nights",
    "Stra\u00dfe",
    "AT&T",
    "& Sons",
    "O\ufb03ce Space",
    "",
]
TEXTS = [
    "Aylwin was seen.",
    "They saw AYLWIN at the old mill.",
    "The Old Mill burned; a model married there.",
    'He said "Old Mill" twice.',
    "Eustace II of Smith and Sons.",
    "It was Smith & Sons of Del Mar.",
    "\u0130stanbul nights in Stra\u00dfe.",
    'He joined AT&T, then "& Sons".',
    "Office Space; she saw O\ufb03ce Space.",
    "Nothing at all.",
]
RECORDS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(TEXTS), max_size=2),
        st.sampled_from([*TITLES[:10], "Boulogne", "old  mill.", "STRASSE", "Office Space"]),
    ),
    min_size=1,
    max_size=4,
)


def record(number, texts, name):
    return ExtractionRecord(
        hash=f"h{number}",
        model="m",
        prompt="p",
        entities=(Entity("n1", name or "Nobody", aliases=("aylwin",) if number % 2 else ()),),
        facts=tuple(Fact(f"f{i}", text, ("n1",) if i else ()) for i, text in enumerate(texts)),
    )


def corpus_of(chunks):
    return StoredCorpus.of({c.doc_id: StoredDocument(c.doc_id, i, "", "", {}) for i, c in enumerate(chunks)}, chunks)


def linked(titles, records):
    chunks = [Chunk(f"c{i}", f"d{i}", 0, "", "") for i in range(len(records))]
    found = TitleLinker(titles).link({f"c{i}": record for i, record in enumerate(records)}, chunks)
    return [found[chunk.id] for chunk in chunks]


@settings(deadline=None)
@given(RECORDS, st.lists(st.sampled_from(TITLES)), st.lists(st.sampled_from(TITLES)))
def test_all_records_that_change_are_found(rows, before, after):
    records = [record(number, *row) for number, row in enumerate(rows)]
    touched = touched_records({r.hash: to_json(r).encode() for r in records}, changed_surface_forms(before, after))
    for r, was, now in zip(records, linked(before, records), linked(after, records), strict=True):
        assert was == now or r.hash in touched


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("AT&T", "Ann joined AT&T there."),
        ("& Sons", "They met & sons there."),
        ("O\ufb03ce Space", "She saw Office Space there."),
        ("Office Space", "She saw O\ufb03ce Space there."),
        ("STRASSE NORD", "It is the Stra\u00dfe Nord."),
    ],
)
def test_spellings_that_mean_the_same_are_found(title, text):
    wordings = changed_surface_forms([], [title])
    assert touched_records({"a": to_json(record(0, [text], "Ann")).encode()}, wordings) == {"a"}
    nothing, passage = Chunk("c0", "d0", 0, "Nothing.", ""), Chunk("c1", "d1", 0, text, "")
    corpus = corpus_of([nothing, passage])
    assert corpus.following(PassageTexts).holding(wordings) == {passage.hash}
