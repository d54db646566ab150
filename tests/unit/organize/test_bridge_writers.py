"""Bridging facts: joined without a model, and written by one."""

import asyncio
import json

from sire_core.recipes.indexrag.bridges import BridgeEvidence, JoinedFacts, ModelBridges, SourceFact
from sire_core.testing.doubles import ScriptedModel
from sire_core.types import Failure

FILM = SourceFact("Aylwin is a silent drama film directed by Henry Edwards.", ("film",))
SHORT = SourceFact("Edwards made films.", ("film",))
BORN = SourceFact("Edwards was born in Weston-super-Mare in Somerset.", ("person",))
EVIDENCE = BridgeEvidence("henry edwards", "Henry Edwards", (("Henry Edwards", (BORN,)), ("Aylwin", (SHORT, FILM))))


def join(joined, evidence):
    return asyncio.run(joined.write([evidence]))[0]


def test_joined_facts_read_on_from_the_mention_to_what_is_mentioned():
    (found,) = join(JoinedFacts(), EVIDENCE)
    assert found.text == f"{FILM.text} Henry Edwards: {BORN.text}"
    assert found.chunk_ids == ("film", "person")


def test_a_name_that_only_a_third_document_spells_out_is_not_used():
    sailed = SourceFact("Ashby sailed to the northern islands.", ("a",))
    bought = SourceFact("Ashby bought rope and lamps.", ("c",))
    third = SourceFact("Ashby slept.", ("b",))
    documents = (("", (sailed,)), ("Lord Ashby of Red", (third,)), ("", (bought,)))
    found = join(JoinedFacts(min_new=2), BridgeEvidence("lord ashby of red", "Lord Ashby of Red", documents))
    assert {fact.text for fact in found if fact.chunk_ids == ("a", "c")} == {f"{sailed.text} {bought.text}"}


def test_pairs_that_tell_nothing_new_are_left_out():
    same = SourceFact("Henry Edwards directed a silent drama film, Aylwin.", ("other",))
    assert join(JoinedFacts(), BridgeEvidence("henry edwards", "Henry Edwards", (("A", (FILM,)), ("B", (same,))))) == ()
    assert join(JoinedFacts(max_chars=60), EVIDENCE) == ()
    assert join(JoinedFacts(min_new=30), EVIDENCE) == ()


def test_no_more_pairs_than_allowed_and_the_most_informative_first():
    titles = [
        (f"T{i}", (SourceFact(f"Rye has {' '.join(f'word{i}x{j}' for j in range(i + 3))}.", (f"c{i}",)),))
        for i in range(4)
    ]
    found = join(JoinedFacts(max_pairs=2), BridgeEvidence("rye", "Rye", tuple(titles)))
    assert [fact.chunk_ids for fact in found] == [("c2", "c3"), ("c1", "c2")]


def ask(*answers, evidence=EVIDENCE):
    model = ScriptedModel(list(answers))
    return asyncio.run(ModelBridges(model).write([evidence]))[0], model


def test_model_answers_are_checked():
    good = "The director of Aylwin was born in Weston-super-Mare."
    answer = [good, good.lower(), BORN.text.upper(), "", "  ", "long " * 100]
    found, model = ask(json.dumps({"facts": answer}))
    assert [fact.text for fact in found] == [good]
    assert found[0].chunk_ids == ("person", "film")
    (call,) = model.log
    assert json.loads(call.data)["documents"][1] == {"title": "Aylwin", "facts": [SHORT.text, FILM.text]}


def test_what_cannot_be_read_is_a_failure_not_an_empty_answer():
    found, model = ask("no", "no again")
    assert isinstance(found, Failure)
    assert "Henry Edwards" in found.where
    assert len(model.log) == 2
