"""Options, limits, findings and merging of reasoning."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sire_core import Document, Index, UsageLimits
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError
from sire_core.extend import ScoredRanking
from sire_core.extraction.rules import RulesExtractor
from sire_core.reason import ReaderConfig, ReasoningLimits, collect, ircot, iterate_sync, self_ask, single
from sire_core.reason.answer_reader import INSUFFICIENT, UNSUPPORTED, ReadAnswer, cite, read
from sire_core.reason.evidence import MergedRanking, Search
from sire_core.reason.model_calls import ModelCalls
from sire_core.recipes import flat, recipe_by_name, smart
from sire_core.testing.doubles import HashEmbedder, ScriptedModel, default_script
from sire_core.types import PathStep, UnitKind
from support.indexes import indexed

MOODS = ("He is angry", "He is angry and sad", "He is glad")
NUMBERS = ("2", "3", "1", "4")
YEARS = ("1910", "1912", "2 dogs")


@pytest.mark.parametrize(
    ("options", "reply", "chosen"),
    [
        (MOODS, "2. He is angry and sad", "He is angry and sad"),
        (MOODS, "He is angry and sad.", "He is angry and sad"),
        (MOODS, "**3**", "He is glad"),
        (MOODS, "1, and not 3: He is glad", "He is angry"),
        (MOODS, "The answer is 3.", "He is glad"),
        (MOODS, "He is angry", "He is angry"),
        (MOODS, "I cannot say.", ""),
        (NUMBERS, "3", "1"),
        (NUMBERS, "Option 4", "4"),
        (YEARS, "1912", "1912"),
        (YEARS, "2", "1912"),
        (YEARS, "2 dogs", "2 dogs"),
    ],
)
async def test_a_number_decides_then_the_longest_option_that_is_written_out(options, reply, chosen):
    calls = ModelCalls(ScriptedModel([reply]), ReasoningLimits(), keep=True)
    async with aclosing(read(calls, "Which?", (), config=ReaderConfig(options=options))) as parts:
        (answer,) = [part async for part in parts if isinstance(part, ReadAnswer)]
    assert answer.text == chosen
    assert answer.sufficient == bool(chosen)


@pytest.mark.parametrize("limits", [{"max_calls": 0}, ReasoningLimits(max_calls=0)])
@pytest.mark.parametrize("strategy", [ircot, self_ask, single])
async def test_limits_are_an_object_or_a_mapping(strategy, limits):
    with indexed([Document("a", "Mira painted the bridge.")], recipe="flat") as index:
        trace = await collect(strategy(index, "Who painted?", model=ScriptedModel(), limits=limits))
    assert trace.answer.stop == "call_limit"
    assert trace.answer.hits


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        (UsageLimits(max_calls=1), "UsageLimits is no"),
        (ReasoningLimits, "ReasoningLimits is a class"),
        ({"calls": 1}, "A mapping of calls is no"),
        (5, "int is no"),
    ],
)
def test_other_limits_are_refused_with_the_class_that_is_expected(limits, found):
    with Index(recipe="flat") as index, pytest.raises(ConfigurationError) as caught:
        ircot(index, "Who?", model=ScriptedModel(), limits=limits)
    assert found in str(caught.value)
    assert "sire_core.reason.model_calls.ReasoningLimits(max_steps=..., max_calls=..." in str(caught.value)


DOCUMENTS = [
    Document("a", "The Salt Lantern was directed by Petra Quillon.", title="The Salt Lantern"),
    Document("b", "Petra Quillon was born in Varn Harbour.", title="Petra Quillon"),
    Document("c", "Varn Harbour is a town on the Amber. Varn Harbour has a mill.", title="Varn Harbour"),
]
QUESTION = "Where was the director of The Salt Lantern born?"


def built(recipe, **settings):
    model = ScriptedModel()
    index = indexed(DOCUMENTS, recipe=recipe_by_name(recipe, **settings), language_model=model)
    model.log.clear()
    return index, model


@pytest.mark.parametrize(
    ("recipe", "settings", "calls"),
    [
        ("iier", {}, 1),
        ("iier", {"scorer": "llm"}, 1),
        ("iier", {"scorer": "llm"}, 2),
        ("msrag", {"extraction": "llm"}, 1),
    ],
)
def test_rankers_leave_the_last_call_to_the_answer(recipe, settings, calls):
    index, model = built(recipe, **settings)
    trace = asyncio.run(collect(single(index, QUESTION, limits=ReasoningLimits(max_calls=calls))))
    assert trace.answer.hits
    assert trace.answer.text
    assert trace.answer.usage.calls == len(model.log) <= calls


def test_a_repair_leaves_the_last_call_to_the_answer():
    asked = []

    def script(call):
        asked.append(call)
        return "garbage one." if len(asked) == 1 else default_script(call)

    index = indexed(DOCUMENTS)
    limits = ReasoningLimits(max_calls=2)
    trace = asyncio.run(collect(ircot(index, QUESTION, model=ScriptedModel(script), limits=limits)))
    assert trace.answer.text
    assert len(asked) == trace.answer.usage.calls == 2


def test_the_models_own_limit_of_calls_is_a_limit_of_calls():
    from langchain_core.language_models import FakeListChatModel

    from langchain_sire.chat import LangChainChat
    from sire_core.protocols import Prompt

    model = LangChainChat(FakeListChatModel(responses=["x"]), limits=UsageLimits(max_calls=1))
    asyncio.run(model.complete(Prompt("i", "d")))
    index = indexed(DOCUMENTS)
    for limits in (ReasoningLimits(), ReasoningLimits(max_tokens=100_000)):
        answer = asyncio.run(collect(single(index, QUESTION, model=model, limits=limits))).answer
        assert answer.stop == "call_limit"
        assert "call" in answer.note


LIGHTHOUSE = "Who designed Corrow Lighthouse?"


def reads(call):
    return call.schema is not None and "sufficient" in json.dumps(call.schema)


def write(call):
    """Reports with two findings of what is shown."""
    if call.schema is None or "explanation" not in json.dumps(call.schema):
        return default_script(call)
    shown = json.loads(call.input)
    texts = [*shown["statements"], *shown.get("reports", ())][:2]
    findings = [{"id": n, "summary": str(text), "explanation": ""} for n, text in enumerate(texts, 1)]
    return json.dumps({"title": "Builders", "summary": "What they built.", "findings": findings})


def asked(recipe, said, **options):
    """The answer, and the calls of the reader."""
    model = ScriptedModel(lambda call: said(call) if reads(call) else write(call))
    with Index(recipe=recipe, embedder=HashEmbedder(), extractor=RulesExtractor(), language_model=model) as index:
        index.build(demo_documents())
        *_, answer = iterate_sync(single(index, LIGHTHOUSE, k=4, **options))
    return answer, [call for call in model.log if reads(call)]


def numbered(call):
    """Numbers of the passages whose lines are numbered, as the model sees them."""
    passages = json.loads(call.input)["passages"]
    return [passage["number"] for passage in passages if "\n[1] " in passage["text"]]


@pytest.mark.parametrize("stream", [False, True])
def test_answers_name_the_findings_that_exist(stream):
    def said(call):
        first = numbered(call)[0]
        names = [f"{first}.1", f"[{first}.2]", f"{first}.1", f"{first}.9", "1", "x.y", None, 77.1]
        return json.dumps({"answer": "Maren Holt", "citations": [first], "findings": names, "sufficient": True})

    answer, (call,) = asked(smart(), said, stream=stream)
    first = numbered(call)[0]
    assert answer.hits[first - 1].unit.kind is UnitKind.REPORT
    assert answer.findings == (f"{first}.1", f"{first}.2")
    assert answer.citations == (first,)
    assert "3.2 is finding 2 of passage 3" in call.instructions


def test_without_reports_nobody_is_asked_for_findings():
    def said(_):
        return json.dumps({"answer": "Maren Holt", "citations": [1], "findings": ["1.1"], "sufficient": True})

    answer, (call,) = asked(flat(), said)
    assert "finding" not in call.instructions + json.dumps(call.schema)
    assert answer.findings == ()
    assert answer.citations == (1,)


def search(query, scores, k):
    """A search over the whole pool that counts its first `k` as found."""
    ranking = ScoredRanking(
        np.array(scores, dtype=np.float32), None, lambda position: (PathStep("s", (), f"{query}{position}"),)
    )
    positions, found = asyncio.run(ranking.top(k))
    return Search(query, ranking, tuple(positions.tolist()), tuple(found.tolist()))


def top(ranking, n):
    positions, scores = asyncio.run(ranking.top(n))
    return list(zip(positions.tolist(), np.round(scores.astype(float), 4).tolist(), strict=True))


def test_oracle_Q2_merge_by_best_score_and_by_order():
    # p1, p2, p3 are positions 0, 1, 2.
    searches = [search("one", [0.8, 0.5, 0.1], 2), search("two", [0.0, 0.7, 0.6], 2)]
    assert top(MergedRanking(searches), 3) == [(0, 0.8), (1, 0.7), (2, 0.6)]
    assert [position for position, _ in top(MergedRanking(searches, "append"), 3)] == [0, 1, 2]
    late = [search("one", [0.5, 0.4, 0.1], 2), search("two", [0.0, 0.7, 0.9], 2)]
    assert [position for position, _ in top(MergedRanking(late), 3)] == [2, 1, 0]
    assert [position for position, _ in top(MergedRanking(late, "append"), 3)] == [0, 1, 2]


def test_relative_scores_compare_searches_on_one_scale():
    searches = [search("long question", [4.0, 3.9, 2.0], 2), search("short", [0.1, 0.2, 0.4], 2)]
    assert top(MergedRanking(searches, "max_score"), 3) == [(0, 4.0), (1, 3.9), (2, 0.4)]
    assert top(MergedRanking(searches, "relative"), 3) == [(0, 1.0), (2, 1.0), (1, 0.975)]
    assert np.allclose(MergedRanking(searches, "relative").scores_at(np.array([2, 1])), [1.0, 0.975])
    assert top(MergedRanking(searches[1:], "relative"), 2) == [(2, 0.4), (1, 0.2)]
    worst = [search("none", [-0.5, -0.1, -0.2], 2), search("short", [0.1, 0.2, 0.4], 1)]
    assert top(MergedRanking(worst, "relative"), 3) == [(2, 1.0), (1, -0.1), (0, 0.25)]


def test_the_path_names_the_search_that_scored_a_unit_best():
    merged = MergedRanking([search("one", [0.8, 0.5], 2), search("two", [0.1, 0.7], 2)])
    assert [step.note for step in merged.path(0)] == ["search for the question", "one0"]
    assert [step.note for step in merged.path(1)] == ["search 1: two", "two1"]
    assert [step.note for step in MergedRanking([search("one", [0.8, 0.5], 2)]).path(1)] == ["one1"]


@given(
    st.integers(1, 12).flatmap(
        lambda size: st.lists(st.lists(st.integers(0, 5), min_size=size, max_size=size), min_size=1, max_size=4)
    ),
    st.integers(1, 6),
    st.sampled_from(["max_score", "relative", "append"]),
)
@settings(max_examples=60, deadline=None)
def test_reading_further_never_changes_what_was_read(rows, k, merge):
    searches = [search(str(number), row, k) for number, row in enumerate(rows)]
    whole = top(MergedRanking(searches, merge), len(rows[0]) + 3)
    assert sorted(position for position, _ in whole) == list(range(len(rows[0])))
    for n in range(len(whole)):
        assert top(MergedRanking(searches, merge), n) == whole[:n]
    found = {position for each in searches for position in each.found}
    assert {position for position, _ in whole[: len(found)]} == found
    best = np.max(np.array(rows), axis=0)
    if merge == "max_score":
        listed = [score for position, score in whole if position in found]
        assert listed == sorted(listed, reverse=True)
        for position, score in whole:
            # A unit scores the best among the searches that list it; nothing scores more than its best anywhere.
            assert score <= best[position]


@pytest.mark.parametrize(
    ("text", "named", "sufficient", "expected"),
    [
        ("Varn Harbour [2]", [2], True, ("Varn Harbour [2]", (2,), True)),
        ("Varn Harbour", [2, 1, 2], True, ("Varn Harbour [2][1]", (2, 1), True)),
        ("Varn [2] Harbour [1]", [3], True, ("Varn [2] Harbour [1][3]", (2, 1, 3), True)),
        ("Varn Harbour [1, 3]", [], True, ("Varn Harbour [1][3]", (1, 3), True)),
        ("Varn Harbour [7][2]", [9], True, ("Varn Harbour [2]", (2,), True)),
        ("Varn Harbour [7]", [], True, ("Varn Harbour", (), False)),
        ("born [1931] in Varn [1]", [], True, ("born [1931] in Varn [1]", (1,), True)),
        ("Varn Harbour", [0, -1], True, ("Varn Harbour", (), False)),
        ("insufficient evidence", [1], True, (INSUFFICIENT, (), False)),
        ("Insufficient evidence. [1]", [], True, ("Insufficient evidence. [1]", (1,), False)),
        ("", [1], True, (INSUFFICIENT, (), False)),
        ("[2]", [2], True, (INSUFFICIENT, (2,), False)),
        ("The passages do not say.", [], False, ("The passages do not say.", (), False)),
    ],
)
def test_text_and_citations_agree(text, named, sufficient, expected):
    answer = cite(text, named, range(1, 4), sufficient=sufficient)
    assert (answer.text, answer.citations, answer.sufficient) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It sank [1] and [7].", "It sank [1]."),
        ("It sank [7]. He drowned [7][1].", "It sank. He drowned [1]."),
        ("It sank. [7] He drowned. [1]", "It sank. He drowned. [1]"),
        ("It sank [1], [7] and [2].", "It sank [1] and [2]."),
        ("It sank [1], [2] and [7].", "It sank [1] and [2]."),
        ("It sank [7], [1], [2] and [3].", "It sank [1], [2] and [3]."),
        ("It sank [1-2], [7-9].", "It sank [1][2]."),
        ("It sank [2]\u2013[7].", "It sank [2][3]."),
        ("Es sank [1] und [7].", "Es sank [1]."),
        ("According to [7], it sank [1].", "According to [?], it sank [1]."),
        ("Laut [7] sank es [1].", "Laut [?] sank es [1]."),
        ("[7] says that it sank [1].", "[?] says that it sank [1]."),
        ("As [1] and [7] say, it sank.", "As [1] and [?] say, it sank."),
        ("It sank [1] (see [7]).", "It sank [1] (see [?])."),
        ("- [7]: it sank\n- he drowned [1; 7]", "- [?]: it sank\n- he drowned [1]"),
        ("Digits are [0-9], of 1912 [1912-1914] [1].", "Digits are [0-9], of 1912 [1912-1914] [1]."),
        ("It sank [1] and he drowned [2].", "It sank [1] and he drowned [2]."),
    ],
)
def test_a_sentence_stays_well_formed_without_citations_that_do_not_exist(text, expected):
    assert cite(text, [], range(1, 4), sufficient=True).text == expected


DROPPED = "Citations of passages that were not shown were dropped: "


@pytest.mark.parametrize(
    ("text", "named", "note"),
    [
        ("The Moon [9].", [], f"{DROPPED}9. {UNSUPPORTED}"),
        ("The Moon", [0, 12], f"{DROPPED}0, 12. {UNSUPPORTED}"),
        ("The Moon", [], UNSUPPORTED),
        ("The Moon [1][9]", [7], f"{DROPPED}9, 7."),
        ("Since [1969] the Moon [2]", [], ""),
        ("The Moon [2]", [2], ""),
    ],
)
def test_what_was_dropped_is_said(text, named, note):
    answer = cite(text, named, range(1, 4), sufficient=True)
    assert answer.note == note
    assert answer.sufficient == bool(answer.citations)


@given(
    st.text(alphabet="ab [],;0123456789.", max_size=60),
    st.lists(st.integers(-3, 20), max_size=5),
    st.sets(st.integers(1, 12)),
)
@example("The Moon [0] [1969]", [], set())
def test_citations_always_point_at_hits_that_were_shown_and_stand_in_the_text(text, named, shown):
    answer = cite(text, named, shown, sufficient=True)
    assert shown.issuperset(answer.citations)
    assert len(set(answer.citations)) == len(answer.citations)
    if answer.sufficient:
        assert all(f"[{number}]" in answer.text for number in answer.citations)
        assert set(answer.citations) >= shown.intersection(named)
