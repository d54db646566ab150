"""Model calls per answer: replies in plain words that can be read are not asked for again."""

import pytest

from sire_core import Index
from sire_core.data import demo_documents
from sire_core.reason import SubQuestion, collect, ircot
from sire_core.reason.prompts import Reading, SearchThought
from sire_core.testing.doubles import ScriptedModel

QUESTION = "Where was the director of the film The Salt Lantern born?"
ANSWER = "In Varn Harbour, where her parents ran a smokehouse [1]."
JSON_ANSWER = '{"answer": "Varn Harbour [1]", "citations": [1], "sufficient": true}'
STEP = "The Salt Lantern was directed by Petra Quillon.\nSearch: Where was Petra Quillon born?"
JSON_STEP = '{"reasoning": "Petra Quillon directed it.", "search": "Where was Petra Quillon born?"}'
JSON_DONE = '{"reasoning": "Both are there.", "search": "DONE"}'


@pytest.fixture(scope="module")
def index():
    with Index(recipe="sire") as index:
        index.build(demo_documents())
        yield index


@pytest.mark.parametrize(
    ("script", "calls"),
    [
        ([JSON_DONE, JSON_ANSWER], 2),  # the first search was enough
        (["Both are there.\nDONE", ANSWER], 2),
        ([JSON_STEP, JSON_DONE, JSON_ANSWER], 3),
        ([STEP, "DONE", ANSWER], 3),
        ([STEP, "No idea.", JSON_DONE, ANSWER], 4),  # words that say nothing to search for are asked for again
    ],
)
async def test_ircot_makes_one_call_a_round_and_one_for_the_answer(index, script, calls):
    trace = await collect(ircot(index, QUESTION, model=ScriptedModel(list(script))))
    assert trace.answer.usage.calls == calls
    assert "Varn Harbour" in trace.answer.text
    assert trace.answer.citations == (1,)
    assert trace.answer.sufficient


@pytest.mark.parametrize("step", ['{"answer": "Varn [1]", "sufficient": true}', '{"thought": "done", "done": true}'])
async def test_an_answer_where_a_query_is_asked_for_ends_the_search(index, step):
    trace = await collect(ircot(index, QUESTION, model=ScriptedModel([step, JSON_ANSWER])))
    assert not any(isinstance(each, SubQuestion) for each in trace.steps)
    assert (trace.answer.usage.calls, trace.answer.citations) == (2, (1,))


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        (SearchThought, STEP, ("The Salt Lantern was directed by Petra Quillon.", "Where was Petra Quillon born?")),
        (SearchThought, "DONE", ("", "DONE")),
        (SearchThought, "I think it is done", None),
        (Reading, ANSWER, ([1], True)),
        (Reading, "I do not know.", None),
        (Reading, '{"answer": "Varn [1]"', None),
        (Reading, "Varn Harbour", None),
    ],
)
def test_only_words_that_can_be_read_are_taken(schema, text, expected):
    value = schema.from_words(text)
    if expected is None:
        assert value is None
    elif schema is Reading:
        assert (value.citations, value.sufficient) == expected
    else:
        assert (value.reasoning, value.search) == expected
