"""Follow-up questions in chains of LangChain."""

from langchain_classic.chains import create_retrieval_chain
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda

from langchain_sire import SireRetriever, question_of

HISTORY = [HumanMessage("When did the Southern Tern sink?"), AIMessage("In 1902, unlike the Grey Gull.")]


def test_a_chain_reads_the_history_of_a_chat():
    asked = question_of({"input": "Where did her boiler come from?", "chat_history": HISTORY})
    assert asked == "Where did her boiler come from? (Southern Tern sink)"
    assert question_of({"input": "Where did her boiler come from?", "chat_history": []}).endswith("from?")
    assert question_of("Where did her boiler come from?").endswith("from?")


def test_a_retrieval_chain_of_the_framework_searches_with_the_history():
    texts = [f"The {ship} sank. Her boiler came from {port}." for ship, port in (("Wren", "Lindle"), ("Tern", "Ansel"))]
    documents = [Document(text, id=text.split()[1]) for text in texts]
    retriever = SireRetriever.from_documents(documents, recipe="flat", k=1)
    chain = create_retrieval_chain(
        RunnableLambda(question_of) | retriever, RunnableLambda(lambda asked: asked["input"])
    )
    for ship in ("Wren", "Tern"):
        history = [HumanMessage(f"When did the {ship} sink?"), AIMessage("In 1902.")]
        found = chain.invoke({"input": "Where did her boiler come from?", "chat_history": history})["context"]
        assert [document.id for document in found] == [ship]
