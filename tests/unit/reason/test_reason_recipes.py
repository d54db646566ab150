"""Reasoning over every recipe: selection at the end, filters, a pinned snapshot, models of rankers on the same bill."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace

import pytest
from reason_scripts import QUESTION, answer, search

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.errors import ModelError, SireError
from sire_core.reason import (
    Answer,
    IRCoTConfig,
    ReasoningLimits,
    Retrieved,
    SelfAskConfig,
    Thought,
    collect,
    ircot,
    iterate_sync,
    reason,
    self_ask,
    settings_of,
    single,
)
from sire_core.recipes import REGISTRY, recipe_by_name
from sire_core.testing.doubles import HashEmbedder, ScriptedModel, default_script
from support.indexes import indexed

CANARY = "zanzibarcanary"
VARIANTS = [*((name, {}) for name in sorted(REGISTRY)), ("flat", {"ranker": "bm25"}), ("flat", {"ranker": "hybrid"})]


def tenants():
    for number, document in enumerate(demo_documents()):
        if number % 2:
            yield replace(document, metadata={"tenant": "a"})
        else:
            text = f"{document.text} {CANARY.title()} knew {document.title}."
            yield replace(document, text=text, metadata={"tenant": "b"})


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda v: "-".join([v[0], *v[1].values()]))
def shared(request):
    name, settings = request.param
    with indexed(tenants(), recipe=recipe_by_name(name, **settings), embedder=HashEmbedder(), chunker=None) as built:
        yield built


def script(call):
    if "sufficient" in call.instructions:
        return answer()
    if "Follow up:" in call.instructions:
        return "So the final answer is: x" if "followups" in call.fields else "Follow up: Who is Petra Quillon?"
    if "unknown" in call.instructions:
        return "a director"
    if "followups" in (call.schema or {}).get("properties", {}):
        return json.dumps({"followups": [{"q": "Who?", "a": "Petra Quillon"}]})
    if call.schema is None:
        return "So the answer is: x" if "reasoning" in call.fields else "Petra Quillon directed The Salt Lantern."
    return search("DONE") if "reasoning" in call.fields else search("Who is Petra Quillon?")


STRATEGIES = [
    ("single", {}),
    ("ircot", {}),
    ("ircot", {"config": IRCoTConfig("hipporag")}),
    ("ircot", {"config": IRCoTConfig("original")}),
    ("self-ask", {}),
    ("self-ask", {"config": SelfAskConfig("two_call")}),
]


async def test_no_word_of_another_tenant_in_hits_or_prompts(shared):
    for strategy, settings in STRATEGIES:
        model = ScriptedModel(script)
        steps = reason(strategy, shared, QUESTION, model=model, filter={"tenant": "a"}, **settings)
        trace = await collect(steps)
        assert trace.answer.text == "Varn Harbour [1]"
        assert len(trace.answer.hits) >= 6
        assert not any(CANARY in call.data.lower() for call in model.log)
        hits = [hit for step in trace.steps for hit in getattr(step, "hits", ())]
        assert not any(CANARY in str(hit).lower() for hit in hits)
        model = ScriptedModel(script)
        await collect(reason(strategy, shared, QUESTION, model=model, **settings))
        assert any(CANARY in call.data.lower() for call in model.log)


async def test_context_is_distinct_bounded_and_repeatable(shared):
    for strategy, settings in STRATEGIES:
        traces = [
            await collect(reason(strategy, shared, QUESTION, model=ScriptedModel(script), k=6, **settings))
            for _ in range(2)
        ]
        assert traces[0] == traces[1]
        ids = [hit.unit.id for hit in traces[0].answer.hits]
        assert len(ids) == len(set(ids)) == 6


async def test_single_gives_what_search_gives(shared):
    trace = await collect(single(shared, QUESTION, k=8, answer=False))
    assert trace.answer.hits == tuple(await shared.asearch(QUESTION, 8, returns="units"))


@pytest.mark.parametrize("per_step", [False, True])
async def test_quotas_hold_over_what_all_steps_found_and_in_every_step_by_switch(per_step):
    recipe = recipe_by_name("indexrag", per_step=per_step)
    with indexed(demo_documents(), recipe=recipe, embedder=HashEmbedder(), chunker=None) as index:
        queries = [QUESTION, "Who commanded the Northern Wren?", "Which lighthouse did Maren Holt build?"]
        model = ScriptedModel([search(queries[1]), search(queries[2]), search("DONE"), answer()])
        trace = await collect(ircot(index, QUESTION, model=model))
        found = [step for step in trace.steps if isinstance(step, Retrieved)]
        # One store of facts and bridges, as published: no raw passages, and the plain ranking of it in each step.
        counts = [Counter(str(hit.unit.kind) for hit in step.hits) for step in found]
        assert all(set(count) == {"aku", "bridge"} and count.total() == 20 for count in counts)
        assert all((count["bridge"] == 3) if per_step else (count["bridge"] > 3) for count in counts)
        best = {}
        for step in found:
            for hit in step.hits:
                best[hit.unit.id] = max(hit.score / step.hits[0].score, best.get(hit.unit.id, 0.0))
        hits = trace.answer.hits
        assert Counter(str(hit.unit.kind) for hit in hits)["bridge"] == 3
        assert [hit.score for hit in hits] == pytest.approx([best[hit.unit.id] for hit in hits])
        kinds = {hit.unit.id: str(hit.unit.kind) for step in found for hit in step.hits}
        order = sorted(best, key=lambda unit: -best[unit])  # of equal ones the one that was found first
        bridges = [unit for unit in order if kinds[unit] == "bridge"][:3]
        expected = [unit for unit in order if kinds[unit] == "aku" or unit in bridges][:10]
        assert [hit.unit.id for hit in hits] == expected
        assert {hit.path[0].note for hit in hits} >= {"search for the question", f"search 1: {queries[1]}"}


async def test_calls_of_a_selector_are_on_the_same_bill():
    def say(call):
        if "passage" in call.fields:
            return default_script(call)
        return "3#1" if "joined by #" in call.instructions else script(call)

    reranker = ScriptedModel(say)
    with Index(recipe="msrag", embedder=HashEmbedder(), chunker=None, language_model=reranker) as index:
        index.build(demo_documents()[:12])
        reranker.log.clear()
        trace = await collect(ircot(index, QUESTION))
        assert len(reranker.log) == trace.answer.usage.calls == 5  # two thoughts, two reranks, one answer
        assert trace.answer.text == "Varn Harbour [1]"
        # The order that the model gave the first places of each search is the one that is merged and shown.
        for step in (step for step in trace.steps if isinstance(step, Retrieved)):
            places = [found.note for hit in step.hits for found in hit.path if found.step == "rerank"]
            assert places[:2] == ["place 1 after the language model looked", "place 2 after the language model looked"]
        reranker.log.clear()
        trace = await collect(ircot(index, QUESTION, limits=ReasoningLimits(max_calls=0)))
        assert reranker.log == []
        assert (trace.answer.stop, len(trace.answer.hits)) == ("call_limit", 10)
        trace = await collect(ircot(index, QUESTION, limits=ReasoningLimits(max_calls=2)))
        assert len(reranker.log) == 2  # one rerank, and the call that is kept for the answer
        assert (trace.answer.stop, trace.answer.text) == ("call_limit", "Varn Harbour [1]")


async def test_question_words_are_dropped_for_bm25_only():
    for ranker, expected in (("bm25", QUESTION.removeprefix("Where ")), ("dense", QUESTION)):
        with Index(recipe=recipe_by_name("flat", ranker=ranker), embedder=HashEmbedder(), chunker=None) as index:
            index.build(demo_documents())
            model = ScriptedModel(["The director is Petra Quillon.", "So the answer is: x.", answer()])
            trace = await collect(ircot(index, QUESTION, model=model, config=IRCoTConfig("original")))
        queries = [step.query for step in trace.steps if isinstance(step, Retrieved)]
        fact = "The director is Petra Quillon."
        assert queries == [expected, fact.replace(" is", "") if ranker == "bm25" else fact]
        assert trace.answer.text == "Varn Harbour [1]"


class Unsteady(HashEmbedder):
    """An embedder that stalls at one question and fails at another."""

    async def embed(self, texts, kind="document"):
        if kind == "query" and "stall" in texts[0]:
            await asyncio.sleep(30)
        if kind == "query" and "fail" in texts[0]:
            raise ModelError("no vectors today")
        return await super().embed(texts, kind)


async def test_a_search_that_stalls_or_fails_leaves_what_was_found():
    with indexed(demo_documents(), recipe="flat", embedder=Unsteady(), chunker=None) as index:
        for query, stop in (("stall", "timeout"), ("fail", "model_failed")):
            model = ScriptedModel([search(query), search("DONE"), answer()])
            trace = await collect(ircot(index, QUESTION, model=model, limits=ReasoningLimits(timeout=1.0)))
            assert (trace.answer.stop, len(trace.answer.hits), len(model.log)) == (stop, 10, 1)
            assert trace.answer.usage.retrievals == 1
        with pytest.raises(ModelError, match="no vectors"):
            await collect(ircot(index, "fail", model=ScriptedModel()))
        trace = await collect(single(index, "stall", model=ScriptedModel(), limits=ReasoningLimits(timeout=0.1)))
        assert (trace.answer.stop, trace.answer.hits) == ("timeout", ())


@pytest.mark.parametrize("folder", [False, True])
async def test_one_snapshot_for_the_whole_reasoning(tmp_path, folder):
    documents = [Document(f"d{n}", f"Island {n} has {n} lighthouses.", title=f"Island {n}") for n in range(8)]
    with Index(tmp_path / "ix" if folder else None, recipe="flat", embedder=HashEmbedder(), chunker=None) as index:
        index.build(documents)
        model = ScriptedModel([search("Island 3"), search("Island 5"), search("DONE"), answer()])
        steps = ircot(index, "How many lighthouses?", model=model)
        made = []
        async for step in steps:
            made.append(step)
            if isinstance(step, Thought):
                await index.adelete([f"d{step.number}"])
                await index.aadd([Document(f"new{step.number}", f"Island 3 and Island 5 {step.number}")])
        assert {doc for hit in made[-1].hits for doc in hit.doc_ids} == {f"d{n}" for n in range(8)}
        assert "new1" in [hit.doc_ids[0] for hit in await index.asearch("Island 3 and Island 5", 3)]


async def test_the_index_own_model_is_the_default():
    model = ScriptedModel(script)
    with indexed(demo_documents()[:5], recipe="flat", embedder=HashEmbedder(), language_model=model) as index:
        assert index.language_model is model
        assert (await collect(single(index, QUESTION))).answer.text == "Varn Harbour [1]"
        other = ScriptedModel(script)
        await collect(self_ask(index, QUESTION, model=other))
        assert (len(model.log), len(other.log)) == (1, 4)


class Failing:
    """A model that fails in its own way."""

    fingerprint = "failing"

    def __init__(self, error):
        self.error = error

    async def complete(self, prompt, **_):
        raise self.error


async def test_only_errors_of_the_model_are_swallowed(index):
    trace = await collect(ircot(index, QUESTION, model=Failing(ModelError("no power"))))
    assert (trace.answer.stop, trace.answer.note) == ("model_failed", "no power")
    for error in (SireError("misused"), ZeroDivisionError("a bug"), TimeoutError("not ours")):
        with pytest.raises(type(error), match=str(error)):
            await collect(ircot(index, QUESTION, model=Failing(error), limits=ReasoningLimits(timeout=60)))


def test_sync_iteration_is_as_lazy_as_the_async_one(index):
    model = ScriptedModel(script)
    steps = iterate_sync(ircot(index, QUESTION, model=model))
    assert isinstance(next(steps), Retrieved)
    assert model.log == []
    assert isinstance(next(steps), Thought)
    assert len(model.log) == 1
    steps.close()
    assert len(model.log) == 1
    made = list(iterate_sync(ircot(index, QUESTION, model=ScriptedModel(script))))
    assert isinstance(made[-1], Answer)
    assert made[-1].stop == "done"


@pytest.mark.parametrize(
    ("strategy", "flavor"), [("ircot", None), ("ircot", "original"), ("self-ask", None), ("self-ask", "two_call")]
)
async def test_solved_examples_are_shown_in_every_step_but_not_to_the_reader(strategy, flavor):
    with indexed(demo_documents()[:9], recipe="flat", embedder=HashEmbedder(), chunker=None) as index:
        model = ScriptedModel(script)
        await collect(
            reason(strategy, index, QUESTION, model=model, **settings_of(strategy, flavor, "Q: one? A: two."))
        )
    shown = ["Q: one? A: two." in call.instructions for call in model.log]
    reads = ["sufficient" in call.instructions or "unknown" in call.instructions for call in model.log]
    assert any(shown)
    assert shown == [not read for read in reads]
