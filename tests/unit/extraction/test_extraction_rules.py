"""Extraction by rules."""

import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.errors import ConfigurationError
from sire_core.extraction.answer_schemas import (
    AliasesAnswer,
    KeywordsAnswer,
    NamesAnswer,
    ShortFactsAnswer,
    TriplesAnswer,
)
from sire_core.extraction.model_extractor import ModelExtractor
from sire_core.extraction.record import validate
from sire_core.extraction.rules import RulesExtractor
from sire_core.extraction.spacy_tagger import SpacyTagger
from sire_core.extraction.spans import TextSpan
from sire_core.models.answer_parsing import parse_answer
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.faults import RetryPolicy
from sire_core.protocols import ChunkInContext
from sire_core.types import Chunk
from support.scripted_server import ScriptedServer


def extract(text, title="", extractor=None):
    chunk = Chunk("c", "d", 0, title, text)
    (record,) = (extractor or RulesExtractor()).records([chunk])
    assert validate(record, chunk) == record  # clean by construction
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
        ("Jane Roe", "Jane Roe is an actress. In 1993, she married John Doe.", "In 1993, Jane Roe married John Doe."),
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


@pytest.mark.parametrize("opener", ["Furthermore", "Moreover", "Nevertheless", "Alternatively", "Otherwise", "Albeit"])
def test_words_that_open_sentences_name_nothing(opener):
    assert names_of(extract(f"It rains. {opener}, it snows. {opener} it is cold.")) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("%%% Uncomment the following line to add a quote page.", []),
        ("//////////// Symlink the following file to Norway.", ["Norway"]),
        ("The lines are optional. Uncomment to use them at once.", []),
        ("The picture is drawn] % % Uncomment to see the marks.", []),
        ("Lines | Uncomment each of them | none of them at all", []),
        ("Note: Re-run it in Norway when the yard is full.", ["Norway"]),
        ("Remarquez que la valeur est une adresse de la machine.", []),
        ("Packets are lost here. The packets go to Norway.", ["Norway"]),
        ("Packets are lost here. The firm Packets has packets.", ["Packets"]),
        ("Docker is here. It is started by `docker` at once.", ["Docker"]),
        ("Conan the Barbarian is here with all of them.", ["Conan", "Barbarian"]),
        ("| Name | Description |\n| --- | --- |\n| `a` | Synopsis |", []),
        ("It is shown on Tue and on Wed at once.", []),
    ],
)
def test_first_words_that_are_ordinary_name_nothing(text, wanted):
    assert [name for name in names_of(extract(text)) if name[0].isupper()] == wanted


def test_a_choice_in_a_path_is_whole_or_no_name():
    text = "Files go to /usr/lib{,32} and /etc/cron.{daily,weekly}, not to /srv/www{a, b}, /var/log or /opt/{name}."
    names = [name for name in names_of(extract(text)) if name.startswith("/")]
    assert names == ["/usr/lib{,32}", "/etc/cron.{daily,weekly}", "/var/log", "/opt/{name}"]


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
    assert validate(record, chunk) == record


DATA = Path(__file__).parents[2] / "data" / "languages"


def lines(language, name):
    text = (DATA / language / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        (
            "Seit Jahren leitet Ada Vollmer die Vollhard Werke. Die Reederei ist in Falkenau.",
            "Ada Vollmer|Vollhard Werke|Falkenau",
            "Jahren|Seit|Die|Reederei",
        ),
        (
            "Depuis le printemps, Léandre Pontieu préside la société Bonval. Elle est à Isleval.",
            "Léandre Pontieu|Bonval|Isleval",
            "Depuis|Elle",
        ),
        (
            "Desde la primavera, Amparo Villalta dirige la empresa Peñalba. En Hoyales está la sede.",
            "Amparo Villalta|Peñalba|Hoyales",
            "Desde|En",
        ),
        (
            "C'est la société Bonval qui est à Isleval depuis le printemps. Voici son adresse et tous ses ports.",
            "Bonval|Isleval",
            "C'est|Voici",
        ),
        (
            "Если Вы пишете на адрес фирмы Ромашка, то это не верфь. Ваш порт уже не в городе Волна.",
            "Ромашка|Волна",
            "Если Вы|Если|Вы|Ваш",
        ),
        (
            "陆明远现在担任远山机械公司的总经理。公司总部位于临河市，他写了《长河》。",
            "陆明远|远山机械公司|临河市|长河",
            "现在|位于",
        ),
        (
            "藤崎美咲は遠山機械製作所の社長です。本社は雲沢市にあり、「長い川」という本を書いた。",
            "藤崎美咲|遠山機械製作所|雲沢市|長い川",
            "です",
        ),
    ],
)
def test_names_of_a_language(text, wanted, unwanted):
    (record,) = RulesExtractor().records([Chunk("c", "d", 0, "", text)])
    names = {entity.name for entity in record.entities}
    assert set(wanted.split("|")) <= names
    assert not set(unwanted.split("|")) & names
    assert len(record.facts) == 2


@pytest.mark.parametrize("language", ["de", "fr", "es", "zh", "ja"])
def test_people_meet_their_companies_in_the_entities(language):
    corpus = lines(language, "corpus")
    records = RulesExtractor().records([Chunk(row["id"], row["id"], 0, "", row["text"]) for row in corpus])
    names = {
        row["id"]: {entity.name for entity in record.entities} for row, record in zip(corpus, records, strict=True)
    }
    pairs = [question["supporting"] for question in lines(language, "questions") if question["hops"] == 2]
    assert sum(bool(names[first] & names[second]) for first, second in pairs) >= 9


PAGE = """---

<!-- YAML
added: v1.0
-->

## Lease pool

Each call of `queue.claim(*, wait=10)` occupies a thread of the lease pool. Raise `BRINDLE_LEASE_THREADS`, or pass
`--allow-worker` to [the server](https://example.com/Some-Link-Target), when the lease pool is full.

* Click Save.
* Step 3: choose Create.

A beat is a short message by which a worker says that it is at work. The service level agreement (SLA) covers ERR_LEASE_LOST
and CVE-2021-46143 in `/etc/brindle/brindle.toml`.

```python
queue.peek(count=1)
total = 3
```
"""


def names(text, title=""):
    return {entity.name for entity in extract(text, title).entities}


def test_a_page_of_a_manual_names_its_identifiers_and_terms():
    found = names(PAGE)
    assert {
        *("queue.claim", "BRINDLE_LEASE_THREADS", "--allow-worker", "ERR_LEASE_LOST", "CVE-2021-46143"),
        *("/etc/brindle/brindle.toml", "Lease pool", "beat", "service level agreement", "queue.peek"),
    } <= found
    assert not {"YAML", "Some-Link-Target", "Click Save", "Save", "Click", "Step 3", "Create", "Step", "Each"} & found


def test_the_heading_is_what_an_untitled_passage_is_about():
    record = extract(PAGE)
    assert record.topic == "Lease pool"
    title = next(entity for entity in record.entities if entity.name == "Lease pool")
    assert title.id in record.facts[0].entities


def test_what_a_passage_defines_carries_its_definition():
    beat = next(entity for entity in extract(PAGE).entities if entity.name == "beat")
    assert beat.description == "a short message by which a worker says that it is at work."


def test_acronyms_meet_their_long_forms():
    record = extract("A service level agreement (SLA) holds. IAM (Identity and Access Management) is on. The SLA ends.")
    aliases = {entity.name: entity.aliases for entity in record.entities}
    assert "SLA" in aliases["service level agreement"]
    assert "IAM" in aliases["Identity and Access Management"]


def test_identifiers_answer_to_their_short_forms():
    record = extract("Call `lookup()` first, then `dns.resolve(name)`. Use `true` or `null`.")
    assert [(entity.name, entity.aliases) for entity in record.entities] == [
        ("lookup()", ("lookup",)),
        ("dns.resolve", ()),
    ]


def test_phrases_that_recur_are_terms():
    text = "First the retention period begins.\n\nNobody may shorten a retention period. The second way is fine."
    assert "retention period" in names(text)
    assert "second way" not in names(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm here. Look at the Differences. Action and Information. Provide Parts.",
        "Get Started. Learn More. You can Get Started now.",
        "See Table 3 and Step 12.",
        "N/A N/A\nX X X\nGET POST",
        "It is the default. By default it is on. Default is on.",
        '<a id="Anchor-Of-Something"></a>It is off. <!-- Reviewed By Nobody --> It is on.',
    ],
)
def test_what_says_nothing_is_no_entity(text):
    assert names(text) == set()


CHUNK = Chunk("c1", "d1", 0, "Drava", "Ann met Bob in Paris. Ann founded the Drava mill.")
ENTITIES = [{"id": "n1", "name": "Ann", "aliases": ["A. Kovac"]}, {"id": "n2", "name": "Bob"}]
FACTS = [
    {"text": "Ann met Bob in Paris.", "entities": ["n1", "n2"], "triples": [{"h": "n1", "p": "met", "t": "n2"}]},
    {"text": "Ann founded the Drava mill.", "entities": ["n1"], "triples": []},
]
REST = {"facts": FACTS, "keywords": ["Drava mill"], "topic": "a mill"}
WHOLE = {"entities": ENTITIES, **REST}


def with_(name, value):
    return {**WHOLE, name: value}


def first_fact(**change):
    return with_("facts", [{**FACTS[0], **change}, FACTS[1]])


def other_keys(name):
    return with_("facts", [{name if key == "text" else key: value for key, value in fact.items()} for fact in FACTS])


SLIPS = {
    "in a list": [WHOLE],
    "in result": {"result": WHOLE},
    "in two": {"response": {"data": WHOLE}},
    "in parts": [{"entities": ENTITIES}, {"facts": FACTS, "keywords": ["Drava mill"]}],
    "in a list in an object": {"output": [WHOLE]},
    "single quotes": repr(WHOLE),
    "single quotes in prose": f"Here's the answer: {WHOLE!r}. It's done.",
    "an apostrophe": repr(first_fact(question="Who's Bob?")),
    "null among entities": with_("entities", [None, *ENTITIES, ""]),
    "empty objects": with_("entities", [{}, *ENTITIES, []]),
    "null among facts": with_("facts", [None, *FACTS, {}]),
    "null aliases": with_("entities", [{**ENTITIES[0], "aliases": [None, "A. Kovac", ""]}, ENTITIES[1]]),
    "aliases as text": with_("entities", [{**ENTITIES[0], "aliases": "A. Kovac"}, ENTITIES[1]]),
    "aliases as objects": with_("entities", [{**ENTITIES[0], "aliases": [{"name": "A. Kovac"}]}, ENTITIES[1]]),
    "null keywords": with_("keywords", [None, "Drava mill", ""]),
    "keywords as text": with_("keywords", "Drava mill, "),
    "keywords as objects": with_("keywords", [{"keyword": "Drava mill", "score": 0.9}]),
    "keywords as an object": with_("keywords", {"Drava mill": 0.9}),
    "a list as topic": with_("topic", ["a", "mill"]),
    "ids as numbers": {
        **WHOLE,
        "entities": [{**ENTITIES[0], "id": 1}, {**ENTITIES[1], "id": 2}],
        "facts": [{**FACTS[0], "entities": [1, 2], "triples": [[1, "met", 2]]}, {**FACTS[1], "entities": [1]}],
    },
    "ids as text": first_fact(entities="n1, n2"),
    "entities of a fact as objects": first_fact(entities=[{"id": "n1", "name": "Ann"}, {"name": "Bob"}]),
    "null triples": first_fact(triples=[None, *FACTS[0]["triples"], []]),
    "a triple alone": first_fact(triples=FACTS[0]["triples"][0]),
    "a triple with other keys": first_fact(triples=[{"subject": "n1", "predicate": "met", "object": "n2"}]),
    "triples of heads": first_fact(triples=[{"head": "n1", "relation": "met", "tail": "n2"}]),
    "a null description": with_("entities", [{**ENTITIES[0], "description": None, "type": None}, ENTITIES[1]]),
    "facts by number": with_("facts", {"f1": FACTS[0], "f2": FACTS[1]}),
    **{f"the sentence as {name}": other_keys(name) for name in ("sentence", "statement", "fact", "claim", "content")},
    "entities by id": with_("entities", {"n1": {"name": "Ann", "aliases": ["A. Kovac"]}, "n2": "Bob"}),
    "capital letters": json.loads(
        re.sub(r'"(\w)(\w*)":', lambda key: f'"{key[1].upper()}{key[2]}":', json.dumps(WHOLE))
    ),
    "one object after the other": json.dumps({"entities": ENTITIES}) + "\n" + json.dumps(REST),
    "two fences": f"```json\n{json.dumps({'entities': ENTITIES})}\n```\nAnd:\n```json\n{json.dumps(REST)}\n```",
    "arguments of a call": {"name": "extract", "arguments": json.dumps(WHOLE)},
    "typographic quotes": json.dumps(WHOLE).replace('"', "\u201d"),
    "escaped quotes": json.dumps(WHOLE).replace('"', "&quot;"),
    "bare names of fields": re.sub(r'"(\w+)":', r"\1:", json.dumps(WHOLE)),
    "a list in a list": with_("entities", [ENTITIES]),
    "entities by type": with_("entities", {"person": ENTITIES[:1], "man": ENTITIES[1:]}),
    "a triple as text": first_fact(triples=["(n1, met, n2)"]),
    "no aliases in a word": with_("entities", [ENTITIES[0], {**ENTITIES[1], "aliases": "none"}]),
    "ids with a point": {
        **WHOLE,
        "entities": [{**ENTITIES[0], "id": 1.0}, {**ENTITIES[1], "id": 2.0}],
        "facts": [
            {**FACTS[0], "entities": [1.0, 2.0], "triples": [[1.0, "met", 2.0]]},
            {**FACTS[1], "entities": [1.0]},
        ],
    },
    "entity as key": with_("entities", [{**ENTITIES[0], "name": None, "entity": "Ann"}, ENTITIES[1]]),
}


async def extracted(answer):
    text = answer if isinstance(answer, str) else json.dumps(answer)
    with ScriptedServer(lambda _: text) as server:
        model = OpenAIChat("m", base_url=server.base_url, retry=RetryPolicy(max_retries=0), structured="none")
        async with model:
            (records,) = [batch async for batch in ModelExtractor(model).extract([ChunkInContext(CHUNK)])]
        return records[0], server.received


@pytest.mark.parametrize("slip", SLIPS)
async def test_a_slip_costs_nothing(slip):
    record, calls = await extracted(SLIPS[slip])
    assert calls == 1, record.reason
    assert [(entity.name, entity.aliases) for entity in record.entities] == [("Ann", ("A. Kovac",)), ("Bob", ())]
    assert [fact.text for fact in record.facts] == [fact["text"] for fact in FACTS]
    ids = [entity.id for entity in record.entities]
    assert record.facts[0].entities == tuple(ids)
    assert [(t.head, t.predicate, t.tail) for t in record.facts[0].triples] == [(ids[0], "met", ids[1])]
    assert record.keywords == ("Drava mill",)
    assert record.reason == ""


LOSSES = {
    "a number among entities": (with_("entities", [*ENTITIES, 7.5]), 1),
    "facts without a sentence": (with_("facts", [*FACTS, {"id": "f3"}, 4]), 2),
    "an entity without a name": (with_("entities", [*ENTITIES, {"type": "town"}]), 1),
    "an object for a sentence": (with_("facts", [*FACTS, {"text": {"en": "x"}}]), 1),
    "half a triple": (first_fact(triples=[*FACTS[0]["triples"], {"h": "n1", "p": "met"}]), 1),
    "a keyword without a name": (with_("keywords", ["Drava mill", {"score": 1}]), 1),
}


@pytest.mark.parametrize("loss", LOSSES)
async def test_what_cannot_be_read_is_left_out_and_counted(loss, caplog):
    answer, lost = LOSSES[loss]
    record, calls = await extracted(answer)
    assert (calls, record.status) == (1, "ok")
    assert [entity.name for entity in record.entities] == ["Ann", "Bob"]
    assert [fact.text for fact in record.facts] == [fact["text"] for fact in FACTS]
    said = f"{lost} item{'s' if lost > 1 else ''} of the answer could not be read"
    assert record.reason.startswith(said)
    assert said in caplog.text


@pytest.mark.parametrize("answer", [with_("facts", [{"id": 1}, {"id": 2}]), {"entities": ENTITIES}, {"a": 1}, [], "no"])
async def test_where_nothing_can_be_read_a_repair_call_is_the_last_step(answer):
    record, calls = await extracted(answer)
    assert (calls, record.status) == (2, "failed")


async def test_no_facts_are_an_answer():
    for facts in (None, [], {}, [None]):
        record, calls = await extracted(with_("facts", facts))
        assert (calls, record.status, record.facts) == (1, "ok", ())


@pytest.mark.parametrize(
    ("schema", "answer", "field", "value"),
    [
        (NamesAnswer, ["Ann", None, {"name": "Bob"}, 7], "names", ["Ann", "Bob", "7"]),
        (NamesAnswer, {"names": "Ann; Bob"}, "names", ["Ann", "Bob"]),
        (NamesAnswer, {"entities": ["Ann"]}, "names", ["Ann"]),
        (KeywordsAnswer, {"result": {"keywords": [{"text": "mill"}, None]}}, "keywords", ["mill"]),
        (AliasesAnswer, {"aliases": [None, ["Ann", None, 5], {"name": "Bob", "aliases": ["B."]}]}, "aliases", None),
        (AliasesAnswer, {"aliases": {"Ann": ["A."]}}, "aliases", [["Ann", "A."]]),
        (AliasesAnswer, {"aliases": None}, "aliases", []),
    ],
)
def test_other_answers(schema, answer, field, value):
    found = getattr(parse_answer(json.dumps(answer), schema), field)
    assert found == ([["Ann", "5"], ["Bob", "B."]] if value is None else value)


def test_triples_and_short_facts():
    given = {"triples": [["Ann", "met", "Bob"], None, {"subject": "Bob", "relation": "saw", "object": "Ann"}]}
    assert [(t.h, t.p, t.t) for t in parse_answer(json.dumps(given), TriplesAnswer).triples] == [
        ("Ann", "met", "Bob"),
        ("Bob", "saw", "Ann"),
    ]
    facts = parse_answer(json.dumps([{"facts": ["Ann met Bob.", None, {"sentence": "Bob left."}]}]), ShortFactsAnswer)
    assert [fact.text for fact in facts.whole()] == ["Ann met Bob.", "Bob left."]


@pytest.mark.parametrize(
    ("sentence", "works"),
    [
        ('"My dear Emma," said Ole, "You Are Quite Right."', []),
        ('He came. "Emma, you have been no friend to Harriet Smith," cried Ole.', []),
        ('"Indeed!" said Ole; "Miss Sorrel?"', []),
        ('Ole read "The Long Night," a novel, and heard "Heroes" by Hedda Sorrel.', ["The Long Night", "Heroes"]),
        (
            'He is in "City Lights", "When Ole Met Sally...", and "Good Evening, Karn".',
            ["City Lights", "When Ole Met Sally...", "Good Evening, Karn"],
        ),
        ('"Who\'s Afraid of Virginia Woolf?" is a play of 1962.', ["Who's Afraid of Virginia Woolf?"]),
        ('To leave the gates open," Karn put it, "we have only to wait."', []),
    ],
)
def test_speech_is_no_work(sentence, works):
    found = [entity.name for entity in extract(sentence).entities if entity.type == "Work"]
    assert [name.rstrip(".") for name in found] == [name.rstrip(".") for name in works]


def test_citations_openers_and_halves_of_compounds_are_no_names():
    found = names("Needless to say, the Millers were right. [Op. Cit., p. 4] It is non-aligned. Ibid.", "Aligned")
    assert not found & {"Needless", "Op", "Cit", "Ibid"}
    record = extract("The mode is non-aligned for Ole Karn.\n\nThe aligned mode follows Marxists.", "Aligned")
    assert record.facts[0].text.startswith("Aligned: The mode is non-aligned")
    (marxists,) = (entity for entity in record.entities if entity.name == "Marxists")
    assert marxists.aliases == ("Marxist",)


@pytest.mark.parametrize(
    ("sentence", "options"),
    [
        ("He came--and went; Ole saw it.--How odd!--He left.", []),
        ('"Well,"--and here Ole stopped,--"I know."--Oh, the mill!', []),
        ("Ole asked whether it was so? --How could it be, said Karn.", []),
        (
            "Start it with --dry-run, (--enable-X11) or -h,--help and '--config' always.",
            ["--dry-run", "--enable-X11", "--help", "--config"],
        ),
        ("The service takes --StartMode and `--Jvm` from the line.", ["--StartMode", "--Jvm"]),
    ],
)
def test_dashes_between_words_are_no_options(sentence, options):
    assert {entity.name for entity in extract(sentence).entities if entity.name.startswith("-")} == set(options)


@pytest.mark.parametrize(
    "heading", ["State in 60 Seconds", "Control Group v2 plugin", "Content-type: application/json"]
)
def test_names_of_headings_stand_in_the_text(heading):
    record = extract(f"## {heading}\n\nOle Brandt explains the mill at Karn to Hedda Sorrel.")
    assert heading in names_of(record)


MAIL = (
    "From: Tomasz Bielak <t@bielak.example>\nTo: Anna Quill\nDate: 2024-05-02\n\nLiebe Kolleginnen,\n\n"
    "the pump of the Varn Mill broke on Monday.\n\nKind regards,\nTomasz Bielak\nHead of Water"
)


@pytest.mark.parametrize(
    ("text", "names", "others"),
    [
        (MAIL, {"Varn Mill"}, {"Tomasz Bielak", "Liebe Kolleginnen", "Kind", "Water"}),
        ("Dear Ada,\n\nThe Holt Museum opens.", {"Holt Museum"}, {"Dear Ada", "Ada"}),
        (
            "# Contents\n\n- Osby Harbour\n- Lene Bridge\n\n# Ferries\n\nFerries leave Kolm at noon.",
            {"Kolm"},
            {"Osby Harbour", "Lene Bridge"},
        ),
        ("[Osby](a) | [Lene](b) | [Holt](c)\n\nFerries leave Kolm at noon.", {"Kolm"}, {"Osby", "Lene", "Holt"}),
    ],
)
def test_fields_and_furniture_hold_no_names(text, names, others):
    (record,) = RulesExtractor().records([Chunk("c", "d", 0, "", text)])
    found = {entity.name for entity in record.entities}
    assert names <= found
    assert not others & found


def pipeline(spacy):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns(
        [
            {"label": "PERSON", "pattern": "Thurn and Taxis"},
            {"label": "ORG", "pattern": "the Zeta group"},
            {"label": "NORP", "pattern": "Canadian"},
            {"label": "GPE", "pattern": "american"},
            {"label": "DATE", "pattern": "two years later"},
            {"label": "PERSON", "pattern": "Otto"},
        ]
    )
    return nlp


def test_tagged_spans_replace_and_augment():
    spacy = pytest.importorskip("spacy")
    tagger = SpacyTagger(pipeline(spacy))
    sentences = ["Then Thurn and Taxis bought the Zeta group in 1920.", "two years later a Canadian met Otto II."]
    assert [[(span.name, span.type) for span in row] for row in tagger.tag(sentences)] == [
        [("Thurn and Taxis", "Person"), ("Zeta group", "Organization")],
        [("Otto", "Person")],
    ]
    for sentence, row in zip(sentences, tagger.tag(sentences), strict=True):
        assert all(sentence[span.start : span.end] == span.name for span in row)
    chunk = Chunk("c", "d", 0, "", " ".join(sentences).replace("two", "Two"))
    (record,) = RulesExtractor(tagger).records([chunk])
    assert [entity.name for entity in record.entities] == ["Thurn and Taxis", "Zeta group", "1920", "Otto II"]
    assert "spacy:en" in RulesExtractor(tagger).fingerprint


def test_missing_spacy_says_how_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ConfigurationError, match=r"pip install \"sire-rag\[spacy\]\""):
        SpacyTagger()


def test_missing_pipeline_says_what_to_do():
    pytest.importorskip("spacy")
    with pytest.raises(ConfigurationError, match="no_such_pipeline"):
        SpacyTagger("no_such_pipeline")
