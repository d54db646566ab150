"""Slips of models in the shape of an answer: what can be read is read, item by item, without another call."""

import json
import re

import pytest

from sire_core.extraction.answers import AliasesAnswer, KeywordsAnswer, NamesAnswer, ShortFactsAnswer, TriplesAnswer
from sire_core.extraction.model import ModelExtractor
from sire_core.models.answers import parse_answer, tolerant_json
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.faults import RetryPolicy
from sire_core.protocols import ChunkInContext
from sire_core.types import Chunk
from support.scripted_server import ScriptedServer

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


@pytest.mark.parametrize("text", ["{'a': '" * 20_000, "'" * 200_000, "{'a': 'b' " * 30_000, "['\\" * 50_000])
def test_single_quotes_without_end_take_no_time(text):
    with pytest.raises(ValueError, match=r".+"):
        tolerant_json(text)
