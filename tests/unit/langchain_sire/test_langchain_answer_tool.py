"""`create_sire_answer_tool` and `chain.as_tool`: what an agent passes and reads."""

import pytest
from langchain_core.messages import ToolCall
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_reasoning import FOLLOW_UP, IRCOT, QUESTION, SELF_ASK, Runs
from langchain_scripted_chat import model
from pydantic import BaseModel, Field

from langchain_sire import SireRetriever, create_ircot_chain, create_self_ask_chain, create_sire_answer_tool
from sire_core.errors import ConfigurationError

READ = IRCOT[-1]
MAKERS = [
    lambda retriever: create_sire_answer_tool(retriever, model(*IRCOT)),
    lambda retriever: create_sire_answer_tool(retriever, model(READ), via="single"),
    lambda retriever: create_sire_answer_tool(retriever, model(*SELF_ASK), via="self-ask", max_steps=3),
    lambda retriever: create_sire_answer_tool(create_self_ask_chain(retriever, model(*SELF_ASK))),
    lambda retriever: create_ircot_chain(retriever, model(*IRCOT)).as_tool(),
    lambda retriever: create_ircot_chain(retriever, model(*IRCOT)).as_tool(arg_types={"question": str}),
]


@pytest.fixture
def retriever(index_of):
    return SireRetriever(index=index_of("sire"), k=4)


def _call(**arguments):
    return ToolCall(name="answer_from_documents", args=arguments, id="1", type="tool_call")


@pytest.mark.parametrize("make", MAKERS)
async def test_a_short_answer_with_its_sources(retriever, make):
    message = make(retriever).invoke(_call(question=QUESTION))
    first = message.artifact["documents"][0]
    (source,) = first.metadata["sire"]["doc_ids"]
    assert message.content.split("\n\n") == [
        f"In 1931 [{source}]",
        f"Sources:\n[{source}] {first.metadata['title']}",
        "The evidence is sufficient: yes.",
    ]
    assert len(message.content) < 400
    native = await make(retriever).ainvoke(_call(question=QUESTION))
    assert (native.content, native.artifact) == (message.content, message.artifact)


def test_steps_on_request(retriever):
    tool = create_sire_answer_tool(retriever, model(*IRCOT))
    steps = tool.invoke({"question": QUESTION, "show_steps": True}).split("Steps:\n")[1].splitlines()
    assert steps[1] == "2. The Weather Clerk is a novel by Ilse Marrable."
    assert steps[2] == f"3. Searching: {FOLLOW_UP}"


def test_evidence_that_does_not_suffice_is_said(retriever):
    said = '{"answer": "insufficient evidence", "citations": [], "sufficient": false}'
    text = create_sire_answer_tool(retriever, model(said), via="single").invoke({"question": QUESTION})
    assert text.startswith("insufficient evidence\n\nRead, but not cited:\n[")
    assert text.endswith("The evidence is sufficient: no (stopped by done).")


def test_what_the_model_is_shown(retriever):
    tool = create_ircot_chain(retriever, model(*IRCOT)).as_tool(name="atlas", description="Knows the islands.")
    function = convert_to_openai_tool(tool)["function"]
    assert (function["name"], function["description"]) == ("atlas", "Knows the islands.")
    assert set(function["parameters"]["properties"]) == {"question", "k", "filter", "as_of", "show_steps"}
    assert function["parameters"]["required"] == ["question"]


def test_arguments_of_ones_own(retriever):
    class Wanted(BaseModel):
        query: str = Field(description="Ask about the islands.")

    tool = create_ircot_chain(retriever, model(*IRCOT)).as_tool(Wanted)
    assert set(convert_to_openai_tool(tool)["function"]["parameters"]["properties"]) == {"query"}
    assert tool.invoke({"query": QUESTION}).startswith("In 1931 [")
    with pytest.raises(ConfigurationError, match="not depth"):
        create_ircot_chain(retriever, model(*IRCOT)).as_tool(arg_types={"question": str, "depth": int})


def test_a_model_narrows_and_never_widens(index_of):
    mine = SireRetriever(index=index_of("flat"), k=4, filter={"kind": "person"})
    message = create_sire_answer_tool(mine, model(READ), via="single").invoke(
        _call(question=QUESTION, k=2, filter="kind=person")
    )
    assert [d.metadata["kind"] for d in message.artifact["documents"]] == ["person"] * 2
    message = create_sire_answer_tool(mine, model(READ), via="single").invoke(
        _call(question=QUESTION, filter="kind=ship")
    )
    assert message.artifact["documents"] == []
    assert message.content == "No answer.\n\nThe evidence is sufficient: no (stopped by empty_index)."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"question": "who", "k": 0}, "k: Input should be greater than or equal to 1"),
        ({"question": "who", "via": "ircot"}, "via: Extra inputs"),
        ({}, "question: Field required"),
        ({"question": "   "}, "is empty"),
        ({"question": "who", "filter": "year"}, "year"),
    ],
)
async def test_mistakes_are_told_to_the_model_and_ask_nobody(retriever, arguments, words):
    chat = model(*IRCOT)
    tool = create_sire_answer_tool(retriever, chat)
    for message in (tool.invoke(_call(**arguments)), await tool.ainvoke(_call(**arguments))):
        assert message.status == "error"
        assert words in message.content
        assert "pydantic.dev" not in message.content
    assert chat.log == []


def test_what_cannot_be_made(retriever):
    chain = create_ircot_chain(retriever, model(*IRCOT))
    with pytest.raises(ConfigurationError, match="The chain has its own llm, max_steps"):
        create_sire_answer_tool(chain, model(*IRCOT), max_steps=3)
    with pytest.raises(ConfigurationError, match="via is 'ircot', 'self-ask' or 'single'"):
        create_sire_answer_tool(retriever, model(*IRCOT), via="magic")
    with pytest.raises(ConfigurationError, match="single has no option flavor"):
        create_sire_answer_tool(retriever, model(*IRCOT), via="single", flavor="original")


def test_recipe_k_and_filter_stand_in_the_trace(retriever):
    seen = []

    class Spy(Runs):
        def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, metadata=None, **kwargs):
            seen.append(metadata)
            super().on_retriever_start(serialized, query, run_id=run_id, parent_run_id=parent_run_id, **kwargs)

    chain = create_ircot_chain(retriever, model(*IRCOT))
    chain.invoke(QUESTION, {"callbacks": [Spy()]}, filter="kind=person", k=4)
    assert len(seen) == 2
    for metadata in seen:
        assert (metadata["sire_strategy"], metadata["sire_recipe"], metadata["sire_k"]) == ("ircot", "sire", 4)
        assert "kind" in metadata["sire_filter"]
        assert "person" in metadata["sire_filter"]
