"""Titles of the corpus as entities of the facts that name them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sire_core.extraction.rules import RulesExtractor
from sire_core.extraction.titles import TitleLinker
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
    linked = TitleLinker(titles).link({"c1": record}, [chunk, Chunk("c2", "d2", 0, "", "no record")])
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
    before = TitleLinker(["Aylwin (film)"]).link({"c1": record}, [chunk])["c1"]
    after = TitleLinker(["Aylwin (film)", "Old Tivoli Theatre"]).link({"c1": record}, [chunk])["c1"]
    assert "Old Tivoli Theatre" not in [entity.name for entity in before.entities]
    assert "Old Tivoli Theatre" in [entity.name for entity in after.entities]


@pytest.mark.parametrize(
    ("question", "titles"),
    [
        ("When did Lothair Ii's mother die?", ["Lothair II"]),
        ("who directed aylwin and the birth of venus?", ["Aylwin (film)", "The Birth of Venus"]),
        ("Was Aylwin shot in Paris or New York?", ["Aylwin (film)", "Paris", "New York"]),
        ("Who is John Smith?", ["John Smith (actor)", "John Smith (politician)"]),
        ("What is it up her?", []),
        ("Which prime minister saw IN LOVE?", ["Prime minister", "In Love"]),
        ("", []),
    ],
)
def test_mentions_in_questions(question, titles):
    assert TitleLinker(TITLES).mentions(question) == titles


@given(st.text(max_size=60), st.lists(st.text(max_size=12), max_size=5))
@example("", ["\xad", "\xad (film)", " > \xad", "\xad > (x)"])
def test_any_text_and_titles(text, titles):
    names = link(text, titles=titles)
    assert len(set(names)) == len(names)
    assert set(TitleLinker(titles).mentions(text)) <= set(titles)
