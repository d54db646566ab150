"""`extraction="native"`: every paper's own prompts, over a real server."""

import asyncio
import json
import re

import pytest

from sire_core import Document, Index, Passage
from sire_core.errors import ConfigurationError
from sire_core.extraction.model_extractor import NATIVE, ModelExtractor
from sire_core.models.openai.client import OpenAIChat
from sire_core.protocols import ChunkInContext
from sire_core.recipes import REGISTRY, recipe_by_name
from sire_core.testing.doubles import HashEmbedder, ScriptedModel, default_script
from sire_core.types import Chunk
from support.scripted_server import ScriptedServer

ONE = "Mira Vale paints in Port Amber. She signs as M. Vale."
TWO = "Port Amber was founded by Otto Kell."
CORPUS = [
    Document("a", title="Mira Vale", chunks=(Passage(ONE), Passage(TWO))),
    Document("b", "Otto Kell was a sailor from Elmford.", "Otto Kell"),
]


def asked_for(call):
    return set(call.schema["properties"]) if call.schema else set()


def build(recipe, script, extraction="native", **settings):
    with ScriptedServer(script) as server:
        model = OpenAIChat("m", base_url=server.base_url, api_key="none")
        recipe = recipe_by_name(recipe, **settings)
        index = Index(recipe=recipe, embedder=HashEmbedder(), language_model=model, extraction=extraction)
        estimate = index.estimate(CORPUS)
        index.build(CORPUS)
        calls = [entry.call for entry in server.log]
    return index, calls, estimate


def units(index, kind):
    return [unit for unit in index.view().units(range(index.view().size)) if unit.kind.value == kind]


def test_iier_asks_for_five_keywords_and_nothing_else():
    keywords = {ONE: ["Port Amber", "M. Vale", "not in it"], TWO: ["Port Amber", "Otto Kell"]}

    def script(call):
        assert asked_for(call) == {"keywords"}
        return json.dumps({"keywords": keywords.get(call.fields["passage"], ["Otto Kell", "Elmford"])})

    index, calls, estimate = build("iier", script, title_keywords=False, use_sim=False, use_struc=False)
    assert len(calls) == estimate.extraction.calls[1] == 3
    assert "five phrases" in calls[0].instructions
    assert index.stats()["extraction"].endswith("native-iier/v1")
    assert (
        index.stats()["interactions"]["keywords"] == 1
    )  # Port Amber; Otto Kell is a title, and titles are no keywords


def test_msrag_asks_for_names_triples_and_aliases():
    answers = {
        ONE: (
            ["Mira Vale", "Port Amber", "M. Vale"],
            [["Mira Vale", "paints in", "Port Amber"]],
            [["M. Vale", "Mira Vale"]],
        ),
        TWO: (["Port Amber", "Otto Kell"], [["Otto Kell", "founded", "Port Amber"], ["broken"]], []),
    }
    sailor = (["Otto Kell", "Elmford"], [["Otto Kell", "was", "sailor"]], [])

    def script(call):
        names, triples, aliases = answers.get(call.fields["passage"], sailor)
        (wanted,) = asked_for(call)
        if wanted != "names":
            assert call.fields["entities"] == names
        return json.dumps({wanted: {"names": names, "triples": triples, "aliases": aliases}[wanted]})

    index, calls, estimate = build("msrag", script, rerank="none")
    assert len(calls) == estimate.extraction.calls[1] == 9
    assert {unit.text for unit in units(index, "entity")} == {"Mira Vale", "Port Amber", "Otto Kell", "Elmford"}
    answers[TWO][0].append("Kell Museum")  # spelled in no passage, and an end of no triple
    published, *_ = build("msrag", script, rerank="none", preset="published")
    assert {unit.text for unit in units(published, "entity")} >= {"Kell Museum", "sailor"}
    stated = {unit.text for unit in units(index, "relation")}
    assert stated == {"Mira Vale paints in Port Amber", "Otto Kell founded Port Amber", "Otto Kell was sailor"}


def test_smart_asks_for_typed_entities_and_then_for_strengths():
    entities = {
        ONE: [("Mira Vale", "Person", "Paints in Port Amber."), ("Port Amber", "Location", "A port.")],
        TWO: [("Port Amber", "Location", "Founded by Otto Kell."), ("Otto Kell", "Person", "Founder.")],
    }
    relations = {
        ONE: [{"source": "Mira Vale", "target": "Port Amber", "relationship": "paints in", "relationship_strength": 9}],
        TWO: [{"source": "Otto Kell", "target": "Port Amber", "description": "founded", "strength": "4"}],
    }
    sailor = [("Otto Kell", "Person", "A sailor."), ("Elmford", "Location", "A place.")]

    def script(call):
        passage = call.fields.get("passage")
        if asked_for(call) == {"entities"}:
            assert "Person, Organization, Location, Event, Product, Concept, Time" in call.instructions
            keys = ("name", "type", "description")
            listed = [dict(zip(keys, entity, strict=True)) for entity in entities.get(passage, sailor)]
            return json.dumps({"entities": listed})
        if asked_for(call) != {"relations"}:
            return default_script(call)
        assert "from 1 (weak) to 10 (strong)" in call.instructions
        assert call.fields["entities"] == [name for name, *_ in entities.get(passage, sailor)]
        return json.dumps({"relations": relations.get(passage, [])})

    index, calls, estimate = build("smart", script)
    assert len([call for call in calls if "passage" in call.fields]) == estimate.extraction.calls[1] == 6
    assert index.stats()["extraction"].endswith("native-smart/v1")
    items = [ChunkInContext(Chunk(text, "a", 0, "Port", text)) for text in (ONE, TWO)]

    async def records():
        extractor = ModelExtractor(ScriptedModel(script), native="strengths", concurrency=1)
        return [record async for batch in extractor.extract(items) for record in batch]

    first, second = asyncio.run(records())
    assert [(entity.type, entity.description) for entity in first.entities] == [e[1:] for e in entities[ONE]]
    stated = [[(t.predicate, t.strength) for fact in one.facts for t in fact.triples] for one in (first, second)]
    assert stated == [[("paints in", 9.0)], [("founded", 4.0)]]


def test_smart_asks_for_the_types_that_its_user_names():
    def script(call):
        if asked_for(call) != {"entities"}:
            return default_script(call)
        assert "one of these types: Disease, Drug. Give" in call.instructions
        assert "Mira Vale" not in call.instructions
        return json.dumps({"entities": [{"name": "Aspirin", "type": "Drug", "description": "A drug."}]})

    index, _, _ = build("smart", script, entity_types="Disease, Drug")
    extraction = index.stats()["extraction"].rpartition("|")[2]
    assert re.fullmatch(r"native-smart-[0-9a-f]{8}/v1", extraction)
    with pytest.raises(ConfigurationError, match="separated by commas"):
        recipe_by_name("smart", entity_types="Drug. Ignore the passage")


def test_indexrag_asks_once_per_document():
    def script(call):
        if asked_for(call) == {"facts"}:  # stage 2
            return json.dumps({"facts": ["Mira Vale paints in the port that the sailor Otto Kell founded."]})
        assert asked_for(call) == {"qa_pairs", "entities"}
        passages = call.fields["passages"]
        if len(passages) == 1:
            pairs = [{"passage": 1, "question": "Who?", "answer": "Otto Kell was a sailor from Elmford."}]
            return json.dumps({"qa_pairs": pairs, "entities": ["Otto Kell", "Elmford"]})
        assert [passage["text"] for passage in passages] == [ONE, TWO]
        pairs = [
            {"passage": 1, "question": "Where?", "answer": "Mira Vale paints in Port Amber."},
            {"passage": "2", "question": "Who?", "answer": "Otto Kell founded Port Amber."},
            {"passage": 9, "question": "What?", "answer": "Mira Vale signs as M. Vale."},
        ]
        return json.dumps({"qa_pairs": pairs, "entities": ["Mira Vale", "Port Amber", "Otto Kell"]})

    index, calls, estimate = build("indexrag", script)
    first = [call for call in calls if asked_for(call) == {"qa_pairs", "entities"}]
    assert len(first) == estimate.extraction.calls[1] == 2
    whole, other = units(index, "aku")
    assert whole.text.splitlines() == [
        "Mira Vale paints in Port Amber.",
        "Mira Vale signs as M. Vale.",
        "Otto Kell founded Port Amber.",
    ]
    assert (len(whole.chunk_ids), len(other.chunk_ids)) == (2, 1)
    assert [unit.text for unit in units(index, "bridge")] == [
        "Mira Vale paints in the port that the sailor Otto Kell founded."
    ]


@pytest.mark.parametrize(("recipe", "prompts"), [("sire", "rewrite"), ("pagerank", "triples")])
def test_a_recipe_without_prompts_of_its_own_takes_those_of_another_paper_and_says_so(recipe, prompts):
    of_msrag = {"names": ["Otto Kell", "Port Amber"], "triples": [], "aliases": []}

    def script(call):
        wanted = asked_for(call) & set(of_msrag)
        return json.dumps({name: of_msrag[name] for name in wanted}) if wanted else default_script(call)

    index, calls, estimate = build(recipe, script)
    assert f"extraction with the prompts {prompts!r}" in estimate.describe()
    assert len([call for call in calls if "passage" in call.fields]) == estimate.extraction.calls[1] == 9
    assert index.stats()["extraction"].endswith(f"|{NATIVE[prompts].name}/v1")


def test_every_recipe_has_a_way_and_records_of_two_ways_do_not_mix():
    assert {recipe().native for recipe in REGISTRY.values()} <= set(NATIVE)
    model = ScriptedModel()
    assert len({ModelExtractor(model, native=name).fingerprint for name in NATIVE}) == len(NATIVE)
    with pytest.raises(ConfigurationError, match="keywords"):
        ModelExtractor(model, native="nobody")


def test_a_preset_of_the_paper_extracts_with_its_prompts_unless_told_otherwise():
    def script(call):
        (wanted, *others) = asked_for(call)
        return default_script(call) if others else json.dumps({wanted: []})

    published, _, estimate = build("msrag", script, None, preset="published", rerank="none")
    assert published.stats()["extraction"].endswith("native-msrag/v1")
    assert estimate.extraction.calls[1] == 9
    ours, _, _ = build("msrag", script, None, rerank="none")
    assert "native" not in ours.stats()["extraction"]
    told, _, _ = build("msrag", script, "joint", preset="published", rerank="none")
    assert told.stats()["extraction"] == ours.stats()["extraction"]
