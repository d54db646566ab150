"""Follow-up questions in chains of LangChain."""

from langchain_core.messages import AIMessage, HumanMessage

from langchain_sire.steps import question_of

HISTORY = [HumanMessage("When did the Southern Tern sink?"), AIMessage("In 1902, unlike the Grey Gull.")]


def test_a_chain_reads_the_history_of_a_chat():
    asked = question_of({"input": "Where did her boiler come from?", "chat_history": HISTORY})
    assert asked == "Where did her boiler come from? (Southern Tern)"
    assert question_of({"input": "Where did her boiler come from?", "chat_history": []}).endswith("from?")
    assert question_of("Where did her boiler come from?").endswith("from?")
