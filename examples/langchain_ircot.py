"""A RAG chain that searches in several rounds, and streams what it is doing.

python examples/langchain_ircot.py                      the passages of one search
OPENAI_API_KEY=... python examples/langchain_ircot.py   a model thinks, searches again and answers (or OPENAI_BASE_URL)
"""

import os

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI

from langchain_sire import IRCoTRetriever, SireRetriever, create_ircot_chain
from sire_core.data import demo_documents

QUESTION = "In which year did the author of the novel The Weather Clerk die?"

documents = [
    Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()
]
retriever = SireRetriever.from_documents(documents, k=5)  # any retriever of LangChain's can stand here


def show(step: dict) -> None:
    if step["type"] == "retrieved":
        print(f"  found {len(step['documents'])} passages, {step['new']} of them for the first time")
    elif step["type"] != "answer":
        print(f"  {step['type']}: {step['text']}")


def think(model: BaseChatModel) -> None:
    chain = create_ircot_chain(retriever, model, max_steps=3, timeout=60)
    result = None
    for chunk in chain.stream(QUESTION):  # astream, astream_events, invoke, batch as in any chain
        for step in chunk["steps"]:
            show(step)
        result = chunk if result is None else result + chunk
    print(f"Answer: {result['answer']}, stopped because: {result['stop']}")
    for number in result["citations"]:
        print(f"  [{number}]", result["documents"][number - 1]["id"])
    print("Cost:", result["usage"])

    # The same evidence for a chain that you have already: a retriever in the place of a retriever.
    evidence = IRCoTRetriever(index=retriever.index, llm=model, k=3)
    print("Evidence:", [found.id for found in evidence.invoke(QUESTION)])


def main() -> None:
    for found in retriever.invoke(QUESTION):
        print(f"{found.id:<16} {found.page_content[:80]}")
    if "OPENAI_API_KEY" in os.environ:
        think(ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini")))
    else:
        print("Set OPENAI_API_KEY to see a model read them, search for what is missing, and answer.")


if __name__ == "__main__":
    main()
