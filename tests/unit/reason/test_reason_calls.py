"""Against a real server: how many calls and searches, why it stops, what is asked when, and what is not asked."""

from __future__ import annotations

import asyncio
import json

import pytest
from reason_scripts import QUESTION, Chat, answer, search

from sire_core import Document, Index
from sire_core.errors import ConfigurationError, QueryError
from sire_core.extend import count_tokens
from sire_core.reason import (
    Answer,
    IntermediateAnswer,
    IRCoTConfig,
    ReaderConfig,
    ReasoningLimits,
    Retrieved,
    SelfAskConfig,
    SubQuestion,
    Thought,
    collect,
    ircot,
    reason,
    self_ask,
    single,
)
from sire_core.testing.doubles import HashEmbedder
from support.faults import always, at_calls

ORIGINAL, HIPPORAG, TWO_CALL = IRCoTConfig("original"), IRCoTConfig("hipporag"), SelfAskConfig("two_call")
DONE = search("DONE")


def kinds(trace):
    return [type(step).__name__ for step in trace.steps]


async def run_strategy(index, say, strategy="ircot", server=None, question=QUESTION, **settings):
    """The trace of a strategy and the calls that the server got."""
    async with Chat(say, **(server or {})) as chat:
        trace = await collect(reason(strategy, index, question, model=chat.model, **settings))
        assert trace.answer.usage.calls == chat.server.received == len(chat.calls)
        return trace, chat.calls


@pytest.mark.parametrize(
    ("ask", "wrong", "advice"),
    [
        (ircot, {"modle": None}, r"ircot\(\) has no argument 'modle'; did you mean 'model'"),
        (self_ask, {"edit": {}}, r"self_ask\(\) has no argument 'edit'; did you mean 'edits'"),
        (
            single,
            {"edits": {}},
            r"single\(\) has no argument 'edits'; known are answer, as_of, filter, k, limits, model, reader",
        ),
    ],
)
def test_unknown_options_are_refused_at_once_with_the_nearest_known_one(index, ask, wrong, advice):
    with pytest.raises(TypeError, match=advice):
        ask(index, QUESTION, **wrong)


async def test_indexrag_flavor_three_searches_more_and_four_calls(index):
    trace, calls = await run_strategy(index, [search("one?"), search("two?"), search("three?"), answer()])
    assert kinds(trace) == ["Retrieved", *["Thought", "SubQuestion", "Retrieved"] * 3, "Answer"]
    assert (trace.answer.stop, trace.answer.usage.retrievals, len(calls)) == ("step_limit", 4, 4)
    assert [len(step.hits) for step in trace.steps if isinstance(step, Retrieved)] == [20] * 4
    assert [call.fields["searched"] for call in calls[1:3]] == [["one?"], ["one?", "two?"]]
    assert "searched" not in calls[0].fields
    assert all(len(call.fields["passages"]) == 20 for call in calls[:3])
    assert len(calls[3].fields["passages"]) == len(trace.answer.hits) == 10


async def test_hipporag_flavor_searches_for_every_sentence(index):
    say = [
        "The film is The Salt Lantern. More.",
        "Thus its director is Petra Quillon.",
        "The answer is: Varn Harbour.",
        answer(),
    ]
    trace, calls = await run_strategy(index, say, config=HIPPORAG)
    assert kinds(trace) == ["Retrieved", *["Thought", "SubQuestion", "Retrieved"] * 2, "Thought", "Answer"]
    assert (trace.answer.stop, trace.answer.usage.retrievals, len(calls)) == ("answered", 3, 4)
    queries = [step.text for step in trace.steps if isinstance(step, SubQuestion)]
    assert queries == ["The film is The Salt Lantern.", "Thus its director is Petra Quillon."]
    assert [len(step.hits) for step in trace.steps if isinstance(step, Retrieved)] == [8] * 3
    assert all(len(call.fields["passages"]) == 8 for call in calls[:3])
    assert calls[2].fields["reasoning"] == queries


@pytest.mark.parametrize("k", [2, 4, 6, 8])
async def test_original_flavor_collects_in_order_and_skips_conclusions(index, k):
    say = [
        "Petra Quillon directed The Salt Lantern.",
        "So it depends on her birthplace.",
        "So the answer is: Varn Harbour.",
        answer(),
    ]
    trace, calls = await run_strategy(index, say, config=IRCoTConfig("original", k=k))
    assert kinds(trace) == ["Retrieved", "Thought", "SubQuestion", "Retrieved", "Thought", "Thought", "Answer"]
    assert (trace.answer.stop, trace.answer.usage.retrievals, len(calls)) == ("answered", 2, 4)
    first, second = (step for step in trace.steps if isinstance(step, Retrieved))
    in_order = list(dict.fromkeys(hit.unit.id for hit in (*first.hits, *second.hits)))
    assert [hit.unit.id for hit in trace.answer.hits] == in_order[:15]
    assert second.new == len(in_order[:15]) - k
    assert [len(call.fields["passages"]) for call in calls] == [k, *[k + second.new] * 3]


async def test_original_flavor_stops_at_fifteen_paragraphs_and_ten_sentences(index):
    say = [*(f"Fact number {n} about island {n}." for n in range(10)), answer()]
    trace, calls = await run_strategy(index, say, config=ORIGINAL)
    assert (trace.answer.stop, trace.answer.usage.retrievals, len(calls)) == ("step_limit", 10, 11)
    assert len(trace.answer.hits) == 15
    trace, _ = await run_strategy(index, say, config=ORIGINAL, k=4)
    first, second, *_ = (step for step in trace.steps if isinstance(step, Retrieved))
    known = [hit.unit.id for hit in first.hits]
    fresh = [hit.unit.id for hit in second.hits if hit.unit.id not in known]
    context = [hit.unit.id for hit in trace.answer.hits]
    assert len(context) == 4
    assert (context[0], fresh[0] in context) == (known[0], True)  # every round has its share


@pytest.mark.parametrize("followups", [0, 1, 5])
async def test_oracle_Q3_two_call_makes_two_calls_and_one_search(index, followups):
    asked = [{"q": f"question {n}?", "a": f"answer {n}"} for n in range(followups)]
    trace, calls = await run_strategy(index, [json.dumps({"followups": asked}), answer()], "self-ask", config=TWO_CALL)
    assert len(calls) == 2
    assert (trace.answer.stop, trace.answer.usage.retrievals, len(trace.answer.hits)) == ("answered", 1, 10)
    assert kinds(trace) == ["Retrieved", *["SubQuestion", "IntermediateAnswer"] * followups, "Answer"]
    assert calls[0].fields["passages"] == calls[1].fields["passages"]
    assert len(calls[0].fields["passages"]) == 10
    assert calls[1].fields.get("notes", []) == [{"question": part["q"], "answer": part["a"]} for part in asked]


async def test_self_ask_searches_for_every_follow_up(index):
    say = [
        "Follow up: Who directed The Salt Lantern?\nIntermediate answer: made up",
        "Petra Quillon",
        "Follow up: Where was Petra Quillon born?",
        "Varn Harbour",
        "So the final answer is: Varn Harbour",
        answer(),
    ]
    trace, calls = await run_strategy(index, say, "self-ask")
    assert kinds(trace) == ["Retrieved", *["SubQuestion", "Retrieved", "IntermediateAnswer"] * 2, "Answer"]
    assert (trace.answer.stop, trace.answer.usage.retrievals, len(calls)) == ("answered", 3, 6)
    assert calls[0].body["stop"] == ["Intermediate answer:"]
    read = [step for step in trace.steps if isinstance(step, IntermediateAnswer)]
    assert [(step.question, step.text) for step in read] == [
        ("Who directed The Salt Lantern?", "Petra Quillon"),
        ("Where was Petra Quillon born?", "Varn Harbour"),
    ]
    found = [step for step in trace.steps if isinstance(step, Retrieved)][1]
    assert [p["text"] for p in calls[1].fields["passages"]] == [hit.unit.text for hit in found.hits]
    assert calls[1].fields["question"] == "Who directed The Salt Lantern?"


async def test_self_ask_asks_four_times_at_most(index):
    def say(call):
        if call.schema is not None:
            return answer()
        return (
            "No idea" if "passages" in call.fields else f"Follow up: question {len(call.fields.get('followups', []))}?"
        )

    trace, calls = await run_strategy(index, say, "self-ask")
    assert (trace.answer.stop, trace.answer.usage.retrievals, len(calls)) == ("step_limit", 5, 9)


async def test_single_is_one_call_and_one_search(index):
    trace, calls = await run_strategy(index, [answer()], "single", k=7)
    assert kinds(trace) == ["Retrieved", "Answer"]
    assert (trace.answer.stop, trace.answer.usage.retrievals, len(calls)) == ("answered", 1, 1)
    assert trace.answer.hits == tuple(await index.asearch(QUESTION, 7))


@pytest.mark.parametrize(
    ("strategy", "settings", "say", "calls"),
    [
        ("single", {}, [], 0),
        ("ircot", {}, [search("more?"), DONE], 2),
        ("ircot", {"config": ORIGINAL}, ["A fact.", "The answer is 3."], 2),
        ("self-ask", {}, ["Follow up: what?", "this", "So the final answer is: this"], 3),
        ("self-ask", {"config": TWO_CALL}, ['{"followups": []}'], 1),
    ],
)
async def test_without_an_answer_the_reader_is_not_asked_and_the_evidence_is_there(
    index, strategy, settings, say, calls
):
    trace, made = await run_strategy(index, say or ["never"], strategy, answer=False, **settings)
    assert len(made) == calls
    assert (trace.answer.text, trace.answer.sufficient, trace.answer.citations) == ("", False, ())
    assert len(trace.answer.hits) >= 6


@pytest.mark.parametrize(
    ("strategy", "settings", "say"),
    [
        ("ircot", {}, [search("Who was it?"), search("  who was IT"), answer()]),
        ("ircot", {}, [search(QUESTION), answer()]),
        ("ircot", {"config": HIPPORAG}, ["It was him.", "It was him.", answer()]),
        ("ircot", {"config": ORIGINAL}, ["It was him.", "So it was.", "So it was.", answer()]),
        ("self-ask", {}, ["Follow up: Who was it?", "him", "Follow up: Who was it?", answer()]),
    ],
)
async def test_a_repeated_query_stops(index, strategy, settings, say):
    trace, calls = await run_strategy(index, say, strategy, **settings)
    assert trace.answer.stop == "repeated_query"
    assert len(calls) == len(say)
    assert trace.answer.text == "Varn Harbour [1]"


@pytest.mark.parametrize(
    ("garbage", "query"),
    [
        ("I would look for Petra Quillon. Then for more.", "I would look for Petra Quillon."),
        ("Let me see.\nSearch: Petra Quillon", "Petra Quillon"),
        ('{"thought": "It is her.", "next": 3}', '{"thought": "It is her.", "next": 3}'),
    ],
)
async def test_a_malformed_answer_becomes_the_query(index, garbage, query):
    # An answer without a query is repaired once, in vain: two requests for the round.
    round_of = [garbage] if "Search:" in garbage else [garbage, garbage]
    trace, calls = await run_strategy(index, [*round_of, DONE, answer()])
    assert [step.text for step in trace.steps if isinstance(step, SubQuestion)] == [query]
    assert (trace.answer.stop, len(calls)) == ("done", len(round_of) + 2)


async def test_garbage_without_end_stops_and_never_fails(index):
    for strategy, settings in (
        ("ircot", {}),
        ("ircot", {"config": HIPPORAG}),
        ("ircot", {"config": ORIGINAL}),
        ("self-ask", {}),
        ("self-ask", {"config": TWO_CALL}),
        ("single", {}),
    ):
        for fault in ("garbage", "wrong_schema", "half_answer", "fenced"):
            trace, _ = await run_strategy(
                index, ["Some words about islands."], strategy, {"faults": always(fault)}, **settings
            )
            assert trace.answer.stop in ("repeated_query", "done", "no_question", "step_limit")
            assert trace.answer.text
            assert not trace.answer.sufficient  # it cites nothing
            assert trace.answer.hits


async def test_prose_instead_of_a_reading_is_an_answer(index):
    trace, _ = await run_strategy(index, ["She was born in Varn Harbour [2]."], "single")
    assert (trace.answer.text, trace.answer.citations) == ("She was born in Varn Harbour [2].", (2,))
    trace, _ = await run_strategy(index, ["Insufficient evidence."], "single")
    assert not trace.answer.sufficient


@pytest.mark.parametrize("settings", [{}, {"config": HIPPORAG}, {"config": ORIGINAL}])
async def test_an_empty_answer_is_no_question(index, settings):
    faults = {"faults": lambda call: "empty" if "sufficient" not in call.instructions else None}
    trace, _ = await run_strategy(index, [answer()], "ircot", faults, **settings)
    assert (trace.answer.stop, trace.answer.text) == ("no_question", "Varn Harbour [1]")


@pytest.mark.parametrize("strategy", ["single", "ircot", "self-ask"])
async def test_an_empty_index_or_filter_stops_without_a_call(index, empty_index, strategy):
    for searched, filter_ in ((empty_index, None), (index, {"kind": "no such kind"})):
        trace, calls = await run_strategy(searched, ["never"], strategy, filter=filter_)
        assert calls == []
        assert (trace.answer.stop, trace.answer.hits, trace.answer.text) == ("empty_index", (), "")


@pytest.mark.parametrize("stream", [False, True])
async def test_the_papers_reader_answers_in_any_case_from_as_much_as_it_may_read(index, stream):
    reader = ReaderConfig("paper", tokens=30)
    trace, (call,) = await run_strategy(
        index, ["Varn Harbour [1] [9]\nIt says so."], "single", reader=reader, stream=stream
    )
    answer = trace.answer
    assert (answer.text, answer.citations, answer.sufficient, answer.stop) == (
        "Varn Harbour [1]",
        (1,),
        True,
        "answered",
    )
    shown = [passage["text"] for passage in call.fields["passages"]]
    texts = [hit.unit.text for hit in answer.hits]
    assert len(answer.hits) == 10  # what is cut is what is read, not what was found
    assert shown[:-1] == texts[: len(shown) - 1]
    assert texts[len(shown) - 1].startswith(shown[-1])
    assert sum(map(count_tokens, shown)) == 30
    trace, _ = await run_strategy(index, ["insufficient evidence"], "single", reader=reader)
    assert trace.answer.sufficient  # whatever it says is its answer
    with pytest.raises(ConfigurationError, match="ours, paper, brief, long, not 'theirs'"):
        ReaderConfig("theirs")


@pytest.mark.parametrize(
    ("border", "tokens", "read"),
    [
        ("cut", 3500, [1500, 1500, 500]),
        ("break", 3500, [1500, 1500]),
        ("skip", 3500, [1500, 1500, 300]),
        ("break", 3000, [1500, 1500]),
        ("skip", 1000, [1000]),  # even the first is too long: it is cut rather than lost
        ("break", 1000, [1000]),
    ],
)
async def test_oracle_R1_collapsed_budget(border, tokens, read):
    lengths = {"n1": 1500, "n2": 1500, "n3": 1200, "n4": 300}
    # Every document says "reef" in a larger share of its words than the next.
    words = {"n1": 1000, "n2": 500, "n3": 200, "n4": 20}
    documents = [Document(name, "reef " * words[name] + "kelp " * (lengths[name] - words[name])) for name in lengths]
    with Index(recipe="flat", embedder=HashEmbedder(), chunker=None) as index:
        await index.abuild(documents)
        reader = ReaderConfig("paper", tokens=tokens, border=border)
        trace, (call,) = await run_strategy(index, ["reef"], "single", reader=reader, question="reef")
    assert [hit.doc_ids for hit in trace.answer.hits] == [("n1",), ("n2",), ("n3",), ("n4",)]
    assert [count_tokens(passage["text"]) for passage in call.fields["passages"]] == read


@pytest.mark.parametrize("fault", ["server_error", "refusal", "content_filter", "not_json", "reset"])
async def test_a_failing_model_leaves_the_evidence(index, fault):
    for at in (1, 2, 3):
        trace, calls = await run_strategy(
            index, [search("more?"), DONE, answer()], "ircot", {"faults": at_calls({at: fault})}
        )
        assert (trace.answer.stop, trace.answer.text) == ("model_failed", "")
        assert trace.answer.note
        assert len(trace.answer.hits) == 10
        assert len(calls) == at


@pytest.mark.parametrize(
    ("strategy", "max_calls", "stop", "calls", "text"),
    [
        ("ircot", 0, "call_limit", 0, ""),
        ("ircot", 1, "call_limit", 1, "Varn Harbour [1]"),
        ("ircot", 2, "call_limit", 2, "Varn Harbour [1]"),
        ("ircot", 5, "step_limit", 4, "Varn Harbour [1]"),
        ("self-ask", 3, "call_limit", 3, "Varn Harbour [1]"),
        ("single", 0, "call_limit", 0, ""),
        ("single", 1, "answered", 1, "Varn Harbour [1]"),
    ],
)
async def test_call_limit_keeps_one_call_for_the_answer(index, strategy, max_calls, stop, calls, text):
    def say(call):
        if "sufficient" in call.instructions:
            return answer()
        return search(f"question {call.number}?") if call.schema is not None else f"Follow up: question {call.number}?"

    trace, made = await run_strategy(index, say, strategy, limits=ReasoningLimits(max_calls=max_calls))
    assert (trace.answer.stop, len(made), trace.answer.text) == (stop, calls, text)
    assert len(trace.answer.hits) == 10


async def test_repairs_count_as_calls(index):
    trace, calls = await run_strategy(index, ["no json"], "ircot", limits=ReasoningLimits(max_calls=4))
    # Two for the first thought, one for the second, whose repair would be the answer's call, and one for the answer.
    assert (trace.answer.stop, len(calls)) == ("repeated_query", 4)


async def test_token_limit(index):
    asked = [search("one?"), search("two?"), search("three?"), answer()]
    whole, _ = await run_strategy(index, asked)
    used = whole.answer.usage.input_tokens + whole.answer.usage.output_tokens
    trace, calls = await run_strategy(
        index, [search("one?"), answer()], limits=ReasoningLimits(max_tokens=used * 3 // 4)
    )
    assert (trace.answer.stop, trace.answer.text) == ("token_limit", "Varn Harbour [1]")
    assert 1 <= len(calls) < 4
    assert trace.answer.usage.input_tokens + trace.answer.usage.output_tokens <= used * 3 // 4
    trace, calls = await run_strategy(index, asked, limits=ReasoningLimits(max_tokens=10))
    assert (trace.answer.stop, trace.answer.text, len(calls)) == ("token_limit", "", 0)
    assert len(trace.answer.hits) == 10


async def test_step_limit(index):
    trace, calls = await run_strategy(index, [search("one?"), answer()], limits=ReasoningLimits(max_steps=1))
    assert (trace.answer.stop, len(calls), trace.answer.usage.retrievals) == ("step_limit", 2, 2)
    trace, calls = await run_strategy(index, [answer()], limits=ReasoningLimits(max_steps=0))
    assert (trace.answer.stop, len(calls), trace.answer.usage.retrievals) == ("step_limit", 1, 1)


async def test_a_time_out_ends_a_call_under_way(index):
    async with Chat([search("one?"), "never"], faults=at_calls({2: "timeout"}), stall=20) as chat:
        started = asyncio.get_running_loop().time()
        steps = ircot(index, QUESTION, model=chat.model, limits=ReasoningLimits(timeout=1.0))
        trace = await collect(steps)
        assert asyncio.get_running_loop().time() - started < 5
        assert chat.server.received == 2
    assert (trace.answer.stop, trace.answer.text, trace.answer.usage.retrievals) == ("timeout", "", 2)
    assert "1 seconds" in trace.answer.note
    assert len(trace.answer.hits) == 10


async def test_misuse_is_an_error_before_anything_is_asked(index):
    with pytest.raises(ConfigurationError, match="language model"):
        await collect(ircot(index, QUESTION))
    with pytest.raises(ConfigurationError, match="model="):
        await collect(single(index, QUESTION))
    with pytest.raises(ConfigurationError, match="self-ask"):
        reason("self ask", index, QUESTION)
    async with Chat(["never"]) as chat:
        with pytest.raises(QueryError, match="empty"):
            await collect(self_ask(index, "  ", model=chat.model))
        with pytest.raises(QueryError, match="at least 1"):
            await collect(ircot(index, QUESTION, model=chat.model, k=0))
        with pytest.raises(ConfigurationError):
            await collect(ircot(index, QUESTION, model=chat.model, filter="no filter"))
        assert chat.server.received == 0
    for wrong in ({"flavor": "none"}, {"k": 0}, {"steps": -1}):
        with pytest.raises(ConfigurationError):
            IRCoTConfig(**wrong)
    for wrong in ({"mode": "none"}, {"k": 0}):
        with pytest.raises(ConfigurationError):
            SelfAskConfig(**wrong)
    for wrong in ({"max_calls": -1}, {"max_steps": 1.5}, {"max_tokens": True}, {"timeout": 0}):
        with pytest.raises(ConfigurationError):
            ReasoningLimits(**wrong)


async def test_a_step_arrives_before_the_next_call_starts(index):
    async with Chat([search("one?"), search("two?"), DONE, answer()]) as chat:
        received = []
        async for step in ircot(index, QUESTION, model=chat.model):
            await asyncio.sleep(0.05)  # whatever runs ahead would have arrived by now
            received.append((type(step), chat.server.received))
    assert received == [
        (Retrieved, 0),
        (Thought, 1),
        (SubQuestion, 1),
        (Retrieved, 1),
        (Thought, 2),
        (SubQuestion, 2),
        (Retrieved, 2),
        (Thought, 3),
        (Answer, 4),
    ]


async def test_closing_the_generator_stops_all_calls(index):
    async with Chat([search(f"{n}?") for n in range(9)]) as chat:
        steps = ircot(index, QUESTION, model=chat.model)
        async for step in steps:
            if isinstance(step, Thought):
                break
        await steps.aclose()
        await asyncio.sleep(0.1)
        assert chat.server.received == 1
        with pytest.raises(StopAsyncIteration):
            await anext(steps)


async def test_cancelling_the_task_stops_all_calls(index):
    async with Chat([search(f"{n}?") for n in range(9)], latency=0.3) as chat:
        task = asyncio.create_task(collect(ircot(index, QUESTION, model=chat.model)))
        while chat.server.received < 2:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.5)
        assert chat.server.received == 2


@pytest.mark.parametrize("said", ["I do not know.", "Sorry, I cannot help."])
async def test_an_admission_in_prose_is_no_sufficient_answer(index, said):
    # The repair of the answer's form is asked for once, and comes to the same.
    for reply in (said, json.dumps({"answer": said, "citations": [], "sufficient": True})):
        trace, _ = await run_strategy(index, [DONE, reply, reply])
        assert (trace.answer.text, trace.answer.sufficient, trace.answer.stop) == (said, False, "done")
        trace, _ = await run_strategy(index, ["So the answer is: x.", reply, reply], config=HIPPORAG)
        assert (trace.answer.sufficient, trace.answer.stop) == (False, "done")
    song = json.dumps({"answer": "I Don't Know", "citations": [1], "sufficient": True})
    trace, _ = await run_strategy(index, [DONE, song])
    assert (trace.answer.text, trace.answer.sufficient) == ("I Don't Know [1]", True)


@pytest.mark.parametrize("said", ["DONE", "Done.", json.dumps({"answer": "DONE", "citations": [], "sufficient": True})])
async def test_the_word_that_ends_the_rounds_is_no_answer(index, said):
    trace, _ = await run_strategy(index, [DONE, said, said])
    assert (trace.answer.text, trace.answer.outcome) == ("insufficient evidence", "unanswered")
    trace, _ = await run_strategy(index, [said, said], "single", reader=ReaderConfig("paper"))
    assert trace.answer.sufficient == (said[0] == "{")  # there the answer is not JSON
    cited = json.dumps({"answer": "Done", "citations": [1], "sufficient": True})
    trace, _ = await run_strategy(index, [DONE, cited])
    assert (trace.answer.text, trace.answer.outcome) == ("Done [1]", "answered")


async def test_a_chosen_context_keeps_numbers_and_its_budget():
    filler = "Kelp grows on stones in cold water and is eaten by snails, urchins and fish of many kinds. "
    documents = [
        Document(name, f"{filler * 3}\n\n{fact}\n\n{filler * 3}")
        for name, fact in {
            "n1": "The reef was found by Ada.",
            "n2": "Snails.",
            "n3": "Ada named the reef Vell.",
        }.items()
    ]
    with Index(recipe="flat", embedder=HashEmbedder(), chunker=None) as index:
        await index.abuild(documents)
        for border, most in (("choose", 130), ("skip", 400)):
            reader = ReaderConfig("paper", tokens=most, border=border)
            question = "Who found the reef, and what did Ada name the reef?"
            trace, (call,) = await run_strategy(index, ["Vell [1][2][3]"], "single", reader=reader, question=question)
            read, hits = call.fields["passages"], trace.answer.hits
            assert all(passage["text"].split("\n")[0] in hits[passage["number"] - 1].unit.text for passage in read)
            assert set(trace.answer.citations) == {
                passage["number"] for passage in read
            }  # what is skipped is not cited
            if border == "choose":
                assert all(fact in str(read) for fact in ("found by Ada", "reef Vell"))
                assert count_tokens(json.dumps({"question": "", "passages": read}, indent=1)) <= most
