"""Extraction without a language model."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.extraction.record import validate
from sire_core.extraction.rules import RulesExtractor
from sire_core.extraction.spans import TextSpan
from sire_core.types import Chunk


def extract(text, title="", extractor=None):
    chunk = Chunk("c", "d", 0, title, text)
    (record,) = (extractor or RulesExtractor()).records([chunk])
    assert validate(record, chunk) == (record, 0)  # clean by construction
    return record


def facts_of(text, title=""):
    return [fact.text for fact in extract(text, title).facts]


def names_of(record, fact=None):
    names = {entity.id: entity.name for entity in record.entities}
    ids = names if fact is None else record.facts[fact].entities
    return [names[entity] for entity in ids]


def relations_of(record, fact=0):
    names = {entity.id: entity.name for entity in record.entities}
    return [(names[t.head], t.predicate, names[t.tail]) for t in record.facts[fact].triples]


@pytest.mark.parametrize(
    ("title", "text", "fact"),
    [
        (
            "Aylwin (film)",
            "Aylwin is a 1920 British film. It was directed by Henry Edwards.",
            "Aylwin was directed by Henry Edwards.",
        ),
        (
            "Aylwin (film)",
            "Aylwin is a 1920 British film. The film was directed by Henry Edwards.",
            "Aylwin was directed by Henry Edwards.",
        ),
        ("Aylwin (film)", "Aylwin is a film. The film's score was lost.", "Aylwin's score was lost."),
        ("Lothair II", "Lothair II (835-869) was a king. His mother was X.", "Lothair II's mother was X."),
        (
            "Jane Roe",
            "Jane Roe is an actress. In 1993, she married John Doe.",
            "In 1993, Jane Roe married John Doe.",
        ),
        ("Stanley Kwan", "Stanley Kwan is a director. Kwan made films.", "Stanley Kwan made films."),
    ],
)
def test_subjects_become_the_title(title, text, fact):
    record = extract(text, title)
    assert record.facts[1].text == fact
    assert title.split(" (")[0] in names_of(record, 1)


@pytest.mark.parametrize(
    "sentence",
    [
        "He died young.",  # a film is no he
        "The film version of a play was lost early.",  # not a mention of this film
        "The weather was bad on every day.",  # no named subject
    ],
)
def test_unsafe_subjects_are_prefixed(sentence):
    record = extract(f"Aylwin is a film about Ann. {sentence}", "Aylwin (film)")
    assert record.facts[1].text == f"Aylwin: {sentence}"
    assert names_of(record, 1) == ["Aylwin"]


def test_another_persons_pronoun_is_not_replaced():
    text = "Jane Roe is an actress. When Mary Poe died, she wept. He left."
    assert facts_of(text, "Jane Roe")[1:] == ["When Mary Poe died, she wept.", "Jane Roe: He left."]


def test_named_subjects_stay():
    text = "Aylwin is a film. Henry Edwards directed it. In Norway, the actor Chrissie White liked it."
    assert facts_of(text, "Aylwin")[1:] == text.split(". ", 1)[1].replace(". In", ".|In").split("|")


def test_the_first_fact_names_the_title():
    record = extract("The KU School was founded by Bob Low in 1891.", "University of Kansas")
    assert record.facts[0].text.startswith("University of Kansas: The KU School")
    assert names_of(record, 0)[0] == "University of Kansas"


def test_title_entity_carries_the_full_title_as_alias():
    record = extract("Aylwin is a 1920 film.", "Aylwin (film)")
    assert (record.entities[0].name, record.entities[0].aliases) == ("Aylwin", ("Aylwin (film)",))
    assert record.entities[0].type == "Work"
    assert record.topic == "Aylwin (film)"


def test_aliases_and_last_names_resolve_to_the_full_name():
    record = extract(
        "Onika Tanya Maraj (born December 8, 1982), known professionally as Nicki Minaj, is a rapper. "
        "Margaret Keane painted for Nicki Minaj. Later Keane joined the Federal Art Guild (FAG). Then FAG sued Maraj.",
        "Nicki Minaj",
    )
    assert names_of(record, 0) == ["Nicki Minaj", "December 8, 1982"]
    assert record.entities[0].aliases == ("Onika Tanya Maraj",)
    assert names_of(record, 2) == ["Margaret Keane", "Federal Art Guild"]
    assert names_of(record, 3)[0] == "Federal Art Guild"
    guild = next(entity for entity in record.entities if entity.name == "Federal Art Guild")
    assert guild.aliases == ("FAG",)


def test_two_people_of_one_last_name_stay_apart():
    record = extract("The son of Tony Bettenhausen met Gary Bettenhausen. Later Bettenhausen won.", "Indy")
    assert "Bettenhausen" in names_of(record, 1)
    senior = extract(
        "Tony Bettenhausen Jr. was a driver. He was the son of Tony Bettenhausen.", "Tony Bettenhausen Jr."
    )
    assert names_of(senior, 1) == ["Tony Bettenhausen Jr.", "Tony Bettenhausen"]


def test_honorifics_meet_the_bare_name():
    record = extract("He met Emperor Lothair I and Queen Mary.", "")
    assert names_of(record) == ["Lothair I", "Queen Mary"]
    assert record.entities[0].aliases == ("Emperor Lothair I",)


def test_triples_follow_the_sentence_order():
    record = extract("Aylwin is a 1920 film directed by Henry Edwards, starring Ann Low, Bob Hay and Cy Orr.", "Aylwin")
    assert relations_of(record) == [
        ("Aylwin", "is a", "1920"),
        ("Aylwin", "film directed by", "Henry Edwards"),
        ("Henry Edwards", "starring", "Ann Low"),
        ("Aylwin", "starring", "Ann Low"),
        ("Henry Edwards", "starring", "Bob Hay"),
        ("Aylwin", "starring", "Bob Hay"),
        ("Henry Edwards", "starring", "Cy Orr"),
        ("Aylwin", "starring", "Cy Orr"),
    ]


def test_capitals_at_the_start_of_a_sentence_need_evidence():
    text = "Information is held. Norway is cold. Configures what Kwan has. Quickly they left."
    assert names_of(extract(text)) == ["Norway", "Kwan"]


def test_common_words_name_nothing():
    text = "On Monday in May the American said that She and French people like the President."
    assert names_of(extract(text)) == []


def test_keywords_are_verbatim_and_not_the_title():
    text = 'Aylwin is a silent drama film. Henry Edwards made the silent drama film "Broken Threads" before Aylwin.'
    record = extract(text, "Aylwin (film)")
    assert {"Henry Edwards", "Broken Threads", "silent drama film"} <= set(record.keywords)
    assert not any("aylwin" in keyword.lower() for keyword in record.keywords)
    assert len(record.keywords) <= 5


def test_a_record_depends_on_its_passage_alone():
    chunks = [Chunk(str(n), str(n), 0, "", f"Norway met Kwan {n} times. Midterms were held.") for n in range(3)]
    together = RulesExtractor().records(chunks)
    assert together == [RulesExtractor().records([chunk])[0] for chunk in chunks]
    assert not hasattr(RulesExtractor(), "fit")


def test_a_tagger_replaces_overlapping_names_only():
    class Fixed:
        fingerprint = "fixed/1"

        def tag(self, sentences):
            wanted = [("Taxis", "Organization"), ("thurn", "Person"), ("II", "Person"), ("1920", "Quantity")]
            return [
                [TextSpan(s.index(name), s.index(name) + len(name), name, kind) for name, kind in wanted if name in s]
                for s in sentences
            ]

    extractor = RulesExtractor(Fixed())
    record = extract("Then thurn saw Taxis, Otto II and 1920.", extractor=extractor)
    assert [(entity.name, entity.type) for entity in record.entities] == [
        ("thurn", "Person"),
        ("Taxis", "Organization"),
        ("Otto II", "Person"),
        ("1920", "Date"),
    ]
    assert "fixed/1" in extractor.fingerprint


PIECES = "He It The film Ann Low ( ) . , born is 1920 May 3 of and II Dr. `` '' known as Norway- U.S. &"
WORDS = st.sampled_from([*PIECES.split(), '"', '"Rope"', 'film"', "é"])


@settings(max_examples=150)
@given(st.lists(WORDS, max_size=40), st.sampled_from(["", "Ann Low", "Rope (film)", "II", "The"]))
def test_any_text_gives_a_clean_record(words, title):
    first = extract(" ".join(words), title)
    assert extract(" ".join(words), title) == first
    assert first.abstractiveness == "low"


@settings(max_examples=100)
@given(st.text(max_size=80), st.text(max_size=10))
def test_any_unicode_gives_a_clean_record(text, title):
    chunk = Chunk("c", "d", 0, title, text)
    (record,) = RulesExtractor().records([chunk])
    assert validate(record, chunk) == (record, 0)
