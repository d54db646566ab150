"""Titles in extractions."""

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents, demo_questions
from sire_core.documents.change_plan import StoredDocument
from sire_core.documents.markdown_sections import title_line
from sire_core.documents.stored_corpus import StoredCorpus
from sire_core.extraction.record import to_json
from sire_core.extraction.rules import RulesExtractor
from sire_core.extraction.title_links import (
    PassageTexts,
    TitleIndex,
    TitleLinker,
    changed_surface_forms,
    touched_records,
    words_of_records,
)
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact

TITLES = [
    "Aylwin (film)",
    "Henry Edwards (actor)",
    "Lothair II",
    "Eustace II, Count of Boulogne",
    "George I, Prince of Waldeck",
    "George I, Duke of Pomerania",
    "The Birth of Venus",
    "Venus",
    "Paris",
    "Up",
    "It",
    "Her",
    "The Who",
    "American",
    "New York",
    "New York Times",
    "Prime minister",
    "In Love",
    "Pasek and Paul",
    "Paris, Texas",
    "Empire",
    "John Smith (actor)",
    "John Smith (politician)",
    "",
]


def link(text, entities=(), fact_entities=(), titles=TITLES):
    """Names of the fact's entities after linking."""
    chunk = Chunk("c1", "d1", 0, "T", text)
    record = ExtractionRecord(chunk.hash, "m", "p", entities=entities, facts=(Fact("f1", text, fact_entities),))
    linked = TitleLinker(titles).link({"c1": record})
    assert list(linked) == ["c1"]
    names = {entity.id: entity.name for entity in linked["c1"].entities}
    assert len(names) == len(linked["c1"].entities)
    return [names[entity] for entity in linked["c1"].facts[0].entities]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("It was made by Henry Edwards.", ["Henry Edwards"]),
        ("See Aylwin (film) by HENRY EDWARDS.", ["Aylwin", "Henry Edwards"]),
        ("He was a son of Lothair II's wife.", ["Lothair II"]),
        ("His father was Count Eustace II of old.", ["Eustace II, Count of Boulogne"]),
        ("They knew George I well.", []),  # two dukes of that name
        ("He painted The Birth of Venus in Paris.", ["The Birth of Venus", "Paris"]),
        ("He painted a Birth of Venus there.", ["The Birth of Venus"]),
        ("He met Paris Hilton.", []),
        ("Paris is sunny. Venus shone.", []),  # a capital at the start of a sentence proves nothing
        ('"Paris" is sunny.', ["Paris"]),
        ("I saw paris there.", []),
        ("He served the British Empire and King Empire.", ["Empire"]),
        ("She went Up with Her and the American.", []),
        ("He reads the New York Times.", ["New York Times"]),
        ("He loves New York Pizza.", []),
        ("The prime minister spoke.", ["Prime minister"]),
        ("They were in love.", []),
        ("They filmed In Love there.", ["In Love"]),
        ("Songs by Pasek & Paul.", ["Pasek and Paul"]),
        ("He lived in Paris, Texas.", ["Paris, Texas"]),
        ("He left old Paris. Texas was next.", ["Paris"]),
        ("Then John Smith left.", ["John Smith"]),
        ("The new yorkers of Parisian style.", []),
    ],
)
def test_titles_in_facts(text, names):
    assert link(text) == names


def test_entities_known_by_a_title_are_renamed_and_met():
    entities = (
        Entity("n1", "Onika", aliases=("Henry Edwards (actor)",)),
        Entity("n2", "Birth of Venus"),
        Entity("n3", "Paris", type="Location"),
    )
    assert link("Henry Edwards saw it.", entities, ("n1", "n2")) == ["Henry Edwards", "The Birth of Venus"]
    assert link("We left old Paris.", entities, ("n3",)) == ["Paris"]


def test_an_alias_of_two_titles_renames_nothing():
    entities = (Entity("n1", "Someone", aliases=("Lothair II", "Henry Edwards")),)
    assert link("He slept.", entities, ("n1",)) == ["Someone"]


def test_new_documents_reach_old_records():
    chunk = Chunk("c1", "d1", 0, "Aylwin (film)", "It was shown at the old Tivoli theatre.")
    (record,) = RulesExtractor().records([chunk])
    before = TitleLinker(["Aylwin (film)"]).link({"c1": record})["c1"]
    after = TitleLinker(["Aylwin (film)", "Old Tivoli Theatre"]).link({"c1": record})["c1"]
    assert "Old Tivoli Theatre" not in [entity.name for entity in before.entities]
    assert "Old Tivoli Theatre" in [entity.name for entity in after.entities]


def record_of(number, texts, name):
    return ExtractionRecord(
        hash=f"h{number}",
        model="m",
        prompt="p",
        entities=(Entity("n1", name or "Nobody", aliases=("aylwin",) if number % 2 else ()),),
        facts=tuple(Fact(f"f{i}", text, ("n1",) if i else ()) for i, text in enumerate(texts)),
    )


def corpus_of(chunks):
    return StoredCorpus.of({c.doc_id: StoredDocument(c.doc_id, i, "", "", {}) for i, c in enumerate(chunks)}, chunks)


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
    assert touched_records({"a": to_json(record_of(0, [text], "Ann")).encode()}, wordings) == {"a"}
    nothing, passage = Chunk("c0", "d0", 0, "Nothing.", ""), Chunk("c1", "d1", 0, text, "")
    corpus = corpus_of([nothing, passage])
    assert corpus.following(PassageTexts).holding(wordings, corpus) == {passage.hash}


@pytest.mark.parametrize(
    "text",
    [
        "She read The Salt Lantern and saw Aylwin.",
        "They met Eustace II at Salt Lantern.",
        "He owned Eustace II, Count of Boulogne, by AT&T & Sons.",
        "She saw O\ufb03ce Space on the Stra\u00dfe Nord in Salt.",
    ],
)
def test_titles_that_may_occur_link_as_all_titles_do(text):
    titles = [
        "The Salt Lantern (film)",
        "Salt Lantern",
        "Aylwin (film)",
        "Aylwin (novel)",
        "Eustace II, Count of Boulogne",
        "Eustace III, Count of Boulogne",
        "AT&T",
        "& Sons",
        "Office Space",
        "STRASSE NORD",
        "Salt Harbour",
    ]
    corpus = corpus_of([Chunk(f"c{i}", f"d{i}", 0, title, "Nothing.") for i, title in enumerate(titles)])
    records = {"a": record_of(1, [text, text.lower()], "Eustace II")}
    occurring = corpus.following(TitleIndex).occurring(words_of_records(records.values()), corpus)
    assert len(occurring) < len(titles)
    assert TitleLinker(occurring).link(records) == TitleLinker(titles).link(records)


TEXT = "The Salt Lantern is a 1924 drama film directed by Petra Quillon. It was made in Varn Harbour."


def extracted(title, text):
    (found,) = RulesExtractor().records([Chunk("a#0", "a", 0, title, text)])
    return found


def test_a_first_line_that_is_a_title_is_read_as_the_title():
    beside, above = extracted("The Salt Lantern", TEXT), extracted("", f"The Salt Lantern\n{TEXT}")
    assert [fact.text for fact in above.facts] == [fact.text for fact in beside.facts]
    assert [(entity.name, entity.type) for entity in above.entities] == [(e.name, e.type) for e in beside.entities]
    assert above.topic == beside.topic == "The Salt Lantern"


@pytest.mark.parametrize(
    "text",
    [
        TEXT,  # one line
        "The Salt Lantern is a film.\nIt was made in Varn Harbour by a crew of forty people in 1924.",  # a sentence
        "The Salt Lantern, a drama\nby Petra Quillon was made in Varn\nHarbour in the year 1924.",  # wrapped lines
        "Ingredients\n- two eggs and a lot of flour from the mill",
        "Options\n| name | meaning of this option |",
        "see also the older pages\nThe Salt Lantern is a 1924 drama film directed by Petra Quillon.",
        "Title\n",
        "\n\n",
        "",
    ],
)
def test_what_is_no_title_stays_text(text):
    assert title_line(text) == ("", text)


def test_names_of_the_first_line_join_passages_as_titles_do():
    """The demo's questions need two passages; the titles stand in the texts."""
    documents = [Document(d.id, f"{d.title}\n{d.text}") for d in demo_documents()]
    titled, written = (Index(recipe="pagerank") for _ in range(2))
    titled.build(demo_documents())
    written.build(documents)
    wanted = [
        (question.question, set(question.supporting)) for question in demo_questions() if len(question.supporting) > 1
    ]

    def found(index):
        return sum(len(gold & {hit.doc_ids[0] for hit in index.search(text, 3)}) for text, gold in wanted)

    assert found(written) >= found(titled) - 1
    written.close()
    titled.close()
