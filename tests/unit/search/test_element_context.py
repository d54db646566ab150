import json

from sire_core import Document, Index
from sire_core.reason import collect, single
from sire_core.recipes import msrag
from sire_core.testing.doubles import HashEmbedder, PlainExtractor, ScriptedModel

CORPUS = [
    Document("film", "The Long Tide is a film directed by Mira Vale.", "The Long Tide", {"tenant": "a"}),
    Document("vale", "Mira Vale married Anna Vale in Port Amber.", "Mira Vale", {"tenant": "a"}),
    Document("secret", "The Long Tide hides a Zanzibar code.", "Notes", {"tenant": "b"}),
]
QUESTION = "Who directed The Long Tide?"


def script(call):
    if '"elements"' in call.data:
        data = json.loads(call.data)
        return json.dumps(
            {"summaries": [{"id": e["id"], "summary": f"SUMMARY OF {e['name']}"} for e in data["elements"]]}
        )
    return '{"answer": "Mira Vale [1]", "citations": [1], "sufficient": true}'


def built(summaries, model):
    index = Index(
        recipe=msrag(summaries=summaries, rerank="none"),
        embedder=HashEmbedder(),
        language_model=model,
        extractor=PlainExtractor(),
    )
    index.build(CORPUS)
    return index


async def asked(index, **more):
    model = index.language_model
    before = len(model.log)
    trace = await collect(single(index, QUESTION, **more))
    return trace.answer, model.log[before:]


async def test_lazy_summaries_are_asked_when_an_answer_needs_them_and_then_kept():
    index = built("lazy", ScriptedModel(script))
    answer, calls = await asked(index)
    assert answer.text == "Mira Vale [1]"
    assert len(calls) == 2
    assert "SUMMARY OF The Long Tide" in calls[1].data
    assert answer.usage.calls == 2
    _, again = await asked(index)
    assert len(again) == 1
    assert "SUMMARY OF The Long Tide" in again[0].data


async def test_eager_summaries_cost_nothing_at_question_time():
    _, calls = await asked(built("eager", ScriptedModel(script)))
    assert len(calls) == 1
    assert "SUMMARY OF The Long Tide" in calls[0].data


async def test_a_filter_keeps_foreign_words_out_of_summaries():
    _, calls = await asked(built("lazy", ScriptedModel(script)), filter={"tenant": "a"})
    assert len(calls) == 2
    assert not any("Zanzibar" in call.data for call in calls)


async def test_a_failed_call_costs_the_background_only():
    model = ScriptedModel(lambda call: "garbage" if '"elements"' in call.data else script(call))
    answer, calls = await asked(built("lazy", model))
    assert answer.text == "Mira Vale [1]"
    assert "background" not in json.loads(calls[-1].data)
