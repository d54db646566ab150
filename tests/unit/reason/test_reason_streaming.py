"""Answers piece by piece: the same as whole, ready before the end, and what becomes of one that breaks off."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reason_scripts import QUESTION, Chat, answer, search

from sire_core.errors import ConfigurationError
from sire_core.protocols import Completion
from sire_core.reason import (
    Answer,
    AnswerPiece,
    IRCoTConfig,
    ReasoningLimits,
    SelfAskConfig,
    collect,
    ircot,
    self_ask,
    single,
)
from sire_core.reason.answer_reader import cite
from sire_core.reason.output_parsing import AnswerText
from sire_core.testing.doubles import ScriptedModel
from support.faults import always

LONG = "Varn Harbour, a town on the coast [1], where Petra Quillon was born"
FOLLOW_UPS = json.dumps({"followups": [{"q": "Who directed it?", "a": "Petra Quillon"}]})
DONE = json.dumps({"reasoning": "Enough.", "search": "DONE"})
RUNS = [
    (single, {}, []),
    (ircot, {}, [search("Where was Petra Quillon born?"), DONE]),
    (ircot, {"config": IRCoTConfig("hipporag")}, ["Petra Quillon directed it.", "So the answer is: Varn Harbour."]),
    (ircot, {"config": IRCoTConfig("original")}, ["Petra Quillon directed it.", "So the answer is: Varn Harbour."]),
    (self_ask, {}, ["Follow up: Who directed it?", "Petra Quillon", "So the final answer is: Varn Harbour"]),
    (self_ask, {"config": SelfAskConfig("two_call")}, [FOLLOW_UPS]),
]


async def listen(steps):
    return [step async for step in steps]


def text_of(steps):
    """What the pieces since the last restart add up to."""
    text = ""
    for step in steps:
        if isinstance(step, AnswerPiece):
            text = step.text if step.restart else text + step.text
    return text


def pieces_of(steps):
    return [step for step in steps if isinstance(step, AnswerPiece)]


@pytest.mark.parametrize(("strategy", "settings", "script"), RUNS)
async def test_a_streamed_answer_is_the_whole_one(index, strategy, settings, script):
    said = [*script, answer(LONG, (1, 3))]
    whole = await collect(strategy(index, QUESTION, model=ScriptedModel(said), **settings))
    steps = await listen(strategy(index, QUESTION, model=ScriptedModel(said), stream=True, **settings))
    assert steps[-1] == whole.answer
    assert whole.answer.text == LONG + "[3]"
    pieces = pieces_of(steps)
    assert not any(piece.restart for piece in pieces)
    assert [step for step in steps if not isinstance(step, AnswerPiece)] == list(whole.steps)
    assert steps[-1 - len(pieces) : -1] == pieces
    assert len(pieces) > 8
    assert text_of(steps) == whole.answer.text
    assert not pieces_of(whole.steps)


async def test_pieces_arrive_while_the_answer_is_written(index):
    async with Chat([answer(LONG)], gap=0.02) as chat:
        seen = [(step, chat.server.sent) async for step in single(index, QUESTION, model=chat.model, stream=True)]
        total = seen[-1][1]
    pieces = [(step.text, sent) for step, sent in seen if isinstance(step, AnswerPiece)]
    assert pieces[0][0].startswith("Varn")
    assert pieces[0][1] < total - 8
    assert [sent for _, sent in pieces] == sorted(sent for _, sent in pieces)
    assert seen[-1][0].text == LONG


async def test_a_model_that_cannot_stream_gives_one_piece(index):
    class Plain:
        fingerprint = "plain"

        async def complete(self, prompt, **_):
            return Completion(answer(LONG, (2,)))

    steps = await listen(single(index, QUESTION, model=Plain(), stream=True))
    assert text_of(steps) == steps[-1].text == LONG + "[2]"
    assert [piece.text for piece in pieces_of(steps)] == [LONG, "[2]"]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("It was Varn Harbour.", "It was Varn Harbour."),
        (answer("", sufficient=False), "insufficient evidence"),
        (answer("[1]", (1,)), "insufficient evidence"),
        (answer("insufficient evidence", (), sufficient=False), "insufficient evidence"),
        ('<think>"answer": "no"</think>' + answer("Varn Harbour [7, 99]", ()), "Varn Harbour [7]"),
        ("```json\n" + answer("Varn Harbour") + "\n```", "Varn Harbour [1]"),
        ('{"citations": [2], "answer": 1931, "sufficient": true}', "1931 [2]"),
    ],
)
async def test_odd_answers_come_out_the_same(index, said, text):
    whole = await collect(single(index, QUESTION, model=ScriptedModel(lambda _: said)))
    steps = await listen(single(index, QUESTION, model=ScriptedModel(lambda _: said), stream=True))
    # Of an answer that cannot be used, the tokens are known only where it was seen to be written.
    assert replace(steps[-1], usage=whole.answer.usage) == whole.answer
    assert (whole.answer.text, text_of(steps)) == (text, text)
    assert not any(piece.restart for piece in pieces_of(steps))


async def test_an_answer_that_had_to_be_repaired_begins_anew(index):
    said = [answer("Varn Har and more")[:24], answer("Petra")]
    whole = await collect(single(index, QUESTION, model=ScriptedModel(said)))
    steps = await listen(single(index, QUESTION, model=ScriptedModel(said), stream=True))
    pieces = pieces_of(steps)
    assert [piece.restart for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert len(pieces) > 1
    assert steps[-1] == whole.answer
    assert text_of(steps) == whole.answer.text == "Petra [1]"


@pytest.mark.parametrize("fault", ["half_body", "stall"])
async def test_a_stream_that_breaks_off_keeps_what_came_and_says_so(index, fault):
    async with Chat([answer(LONG)], faults=always(fault), stall=20) as chat:
        limits = ReasoningLimits(timeout=1.0 if fault == "stall" else 20)
        steps = await listen(single(index, QUESTION, model=chat.model, stream=True, limits=limits))
        assert chat.server.received == 1
    last = steps[-1]
    assert isinstance(last, Answer)
    assert last.stop == ("timeout" if fault == "stall" else "model_failed")
    assert ("broke off" if fault == "half_body" else "seconds have passed") in last.note
    assert LONG.startswith(last.text)
    assert last.text == text_of(steps) != ""
    assert (last.sufficient, len(last.hits)) == (False, 10)
    assert (last.usage.calls, last.usage.retrievals) == (1, 1)
    assert last.usage.output_tokens > 0


async def test_without_an_answer_there_is_nothing_to_stream(index, empty_index):
    steps = await listen(single(index, QUESTION, answer=False, stream=True))
    assert [type(step).__name__ for step in steps] == ["Retrieved", "Answer"]
    steps = await listen(single(empty_index, QUESTION, model=ScriptedModel([answer()]), stream=True))
    assert (steps[-1].stop, pieces_of(steps)) == ("empty_index", [])
    with pytest.raises(ConfigurationError, match="language model"):
        await listen(single(index, QUESTION, stream=True))


TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet='aB "\\\n\t[]123,;éé😀', max_size=40),
    st.lists(
        st.sampled_from(
            [
                "Varn",
                "says",
                " and ",
                ", ",
                "-",
                "In",
                ". ",
                "[1]",
                " [2, 3]",
                "[9]",
                "[8-9]",
                "[1871]",
                "[",
                "]",
                "the",
                '"',
                "\\",
                "😀",
            ]
        )
    ).map("".join),
)


@given(TEXTS, st.lists(st.integers(0, 5), max_size=3), st.booleans(), st.booleans(), st.data())
def test_what_is_given_out_is_the_beginning_of_the_whole(text, named, sufficient, escaped, data):
    said = json.dumps({"answer": text, "citations": named, "sufficient": sufficient}, ensure_ascii=escaped)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=8)))
    shown = AnswerText(range(1, 4))
    pieces = [shown.add(said[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(said)], strict=True)]
    whole = cite(text.strip(), named, range(1, 4), sufficient=sufficient)
    assert "".join(pieces) == shown.text
    assert whole.text.startswith(shown.text)
    assert set(shown.citations) <= set(whole.citations)
    by_letter, by_word = AnswerText(range(1, 4)), AnswerText(range(1, 4))
    for letter in said:
        by_letter.add(letter)
    for word in re.findall(r"\S+\s*|\s+", said):
        by_word.add(word)
    assert by_letter.text == by_word.text == shown.text
    if whole.sufficient and not named:
        assert shown.text == whole.text
