"""A RAG chain that searches in several rounds, and streams what it is doing. Runs offline.

python examples/langchain_ircot.py
"""

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from langchain_sire import IRCoTRetriever, SireRetriever, create_ircot_chain
from sire_core.data import demo_documents

QUESTION = "In which year did the author of the novel The Weather Clerk die?"

documents = [
    Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()
]
retriever = SireRetriever.from_documents(documents, k=5)  # any recipe, your own embeddings and models

# What a model might say; a real one: ChatOpenAI(model="gpt-4o-mini").
SAYS = [
    '{"reasoning": "The novel The Weather Clerk is by Ilse Marrable.", "search": "When did Ilse Marrable die?"}',
    '{"reasoning": "Ilse Marrable died on 2 November 1931.", "search": "DONE"}',
    '{"answer": "1931", "citations": [2], "sufficient": true}',
]


def show(step: dict) -> None:
    if step["type"] == "retrieved":
        print(f"  found {len(step['documents'])} units, {step['new']} of them new")
    elif step["type"] != "answer":
        print(f"  {step['type']}: {step['text']}")


def main() -> None:
    chain = create_ircot_chain(retriever, FakeListChatModel(responses=SAYS), max_steps=3, timeout=60)
    result = None
    for chunk in chain.stream(QUESTION):  # astream, astream_events, invoke, batch as in any chain
        for step in chunk["steps"]:
            show(step)
        result = chunk if result is None else result + chunk
    print(f"Answer: {result['answer']}, stopped because: {result['stop']}")
    for number in result["citations"]:
        print(f"  [{number}]", ", ".join(result["documents"][number - 1]["metadata"]["sire"]["doc_ids"]))
    print("Cost:", result["usage"])

    # The same evidence for a chain that you have already: a retriever in the place of a retriever.
    evidence = IRCoTRetriever(index=retriever.index, llm=FakeListChatModel(responses=SAYS), k=3)
    print("Evidence:", [d.metadata["sire"]["doc_ids"][0] for d in evidence.invoke(QUESTION)])


if __name__ == "__main__":
    main()
