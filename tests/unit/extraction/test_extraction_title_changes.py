"""What a change of titles reaches: few records, and none too few."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core import Document
from sire_core.corpus.changes import StoredDocument, plan_delete, plan_put
from sire_core.corpus.stored_corpus import StoredCorpus
from sire_core.data import demo_documents
from sire_core.extraction.record import to_json
from sire_core.extraction.rules import RulesExtractor
from sire_core.extraction.titles import (
    WORD,
    PassageTexts,
    SurfaceForm,
    TitleIndex,
    TitleLinker,
    changed_surface_forms,
    first_word,
    folded,
    title_of,
    touched_records,
    words_of_records,
)
from sire_core.protocols import ChunkInContext
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


@settings(deadline=None)
@given(RECORDS, st.lists(st.sampled_from(TITLES)))
def test_titles_out_of_reach_change_nothing(rows, titles):
    records = [record(number, *row) for number, row in enumerate(rows)]
    chunks = [Chunk(f"c{i}", f"d{i}", 0, title, ".") for i, title in enumerate(titles)]
    corpus = corpus_of(chunks)
    in_reach = corpus.following(TitleIndex).beginning_with(words_of_records(records), corpus)
    assert linked(in_reach, records) == linked(titles, records)


FOLLOWED = st.lists(
    st.builds(
        Document,
        id=st.sampled_from([f"d{i}" for i in range(6)]),
        title=st.sampled_from(TITLES),
        text=st.sampled_from(["", *TEXTS]),
    ),
    max_size=4,
    unique_by=lambda document: document.id,
)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), FOLLOWED), max_size=6))
def test_titles_and_texts_follow_the_corpus(steps):
    corpus = StoredCorpus()
    corpus.following(TitleIndex), corpus.following(PassageTexts)
    for put, documents in steps:
        known = corpus.documents
        plan = (
            plan_put(known, documents, None) if put else plan_delete(known, [d.id for d in documents], missing_ok=True)
        )
        corpus = corpus.updated(plan).after
        fresh = StoredCorpus.of(corpus.documents, corpus.chunks)
        words = {first_word(title) for title in TITLES}
        expected = fresh.following(TitleIndex).beginning_with(words, fresh)
        assert corpus.following(TitleIndex).beginning_with(words, corpus) == expected
        assert expected == list(dict.fromkeys(title for c in corpus.chunks if (title := title_of(c)).strip()))
        for wording in ("Old Mill", "Smith and Sons", "Aylwin", "Office Space"):
            pieces = SurfaceForm(wording).pieces
            expected = {c.hash for c in corpus.chunks if all(piece in folded(c.index_text) for piece in pieces)}
            assert corpus.following(PassageTexts).holding([wording]) == expected


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


def test_only_whole_words_are_found():
    bodies = {"a": b'{"text":"A model married."}', "b": b'{"text":"He came to Del\\nMar."}', "c": b'{"text":"Aylwins"}'}
    assert touched_records(bodies, ["Del Mar"]) == {"b"}
    assert touched_records(bodies, ["Aylwin"]) == set()
    assert changed_surface_forms(["Del Mar", "Aylwin"], ["Aylwin", "Del Mar", "Aylwin"]) == []
    assert changed_surface_forms([], ["The Old Mill"]) == ["The Old Mill", "Old Mill"]
    assert changed_surface_forms(["The Old Mill"], ["The Old Mill", "Old Mill (film)"]) == [
        "Old Mill",
        "Old Mill (film)",
    ]


def rules_records(chunks):
    async def run():
        return [
            r async for batch in RulesExtractor().extract([ChunkInContext(chunk) for chunk in chunks]) for r in batch
        ]

    return asyncio.run(run())


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(TITLES), st.lists(st.sampled_from(TEXTS), max_size=3)), min_size=1, max_size=4),
    st.lists(st.sampled_from(TITLES)),
    st.lists(st.sampled_from(TITLES)),
)
def test_passages_tell_which_verbatim_records_may_change(rows, before, after):
    chunks = [Chunk(f"c{i}", f"d{i}", 0, title, " ".join(texts)) for i, (title, texts) in enumerate(rows)]
    wordings = changed_surface_forms(before, after)
    records = rules_records(chunks)
    bodies = {chunk.hash: to_json(r).encode() for chunk, r in zip(chunks, records, strict=True)}
    corpus = corpus_of(chunks)
    assert touched_records(bodies, wordings) <= corpus.following(PassageTexts).holding(wordings)


@settings(deadline=None)
@given(st.lists(st.sampled_from([*TEXTS, *(d.text for d in demo_documents())]), min_size=1, max_size=3))
def test_rules_say_nothing_that_the_passage_does_not(texts):
    assert RulesExtractor().verbatim
    chunk = Chunk("c", "d", 0, "Aylwin (film)", " ".join(texts))
    (record,) = rules_records([chunk])
    said = chunk.index_text.lower()
    for text in (*(e.name for e in record.entities), *(f.text for f in record.facts)):
        assert all(word.lower() in said for word in WORD.findall(text))
