"""A chain that asks itself follow-up questions, answers each from what it finds, then answers yours. Runs offline.

python examples/langchain_self_ask.py
"""

import asyncio

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from langchain_sire import SireRetriever, create_self_ask_chain
from sire_core.data import demo_documents

QUESTION = "In which year did the author of the novel The Weather Clerk die?"

documents = [
    Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()
]

# What a model might say; a real one: ChatOpenAI(model="gpt-4o-mini").
SAYS = [
    "Follow up: Who wrote the novel The Weather Clerk?",
    "Ilse Marrable",
    "Follow up: In which year did Ilse Marrable die?",
    "1931",
    "So the final answer is: 1931",
    '{"answer": "1931", "citations": [2, 3], "sufficient": true}',
]


async def ask() -> None:
    retriever = await SireRetriever.afrom_documents(documents, recipe="flat", k=5)
    # mode="two_call" searches once and needs two calls; here every follow-up question is searched for.
    chain = create_self_ask_chain(retriever, FakeListChatModel(responses=SAYS), max_calls=10)
    async for chunk in chain.astream({"question": QUESTION}):
        for step in chunk["steps"]:
            if step["type"] == "sub_question":
                print("Follow up:", step["text"])
            elif step["type"] == "intermediate_answer":
                print("  it says:", step["text"])
        print(chunk.get("answer", ""), end="", flush=True)  # piece by piece, as the model writes it
        if "citations" in chunk:  # the last chunk
            cited = [chunk["documents"][number - 1]["metadata"]["title"] for number in chunk["citations"]]
            print(f" from {' and '.join(cited)}")


if __name__ == "__main__":
    asyncio.run(ask())
