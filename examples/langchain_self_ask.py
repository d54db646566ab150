"""A chain that asks itself follow-up questions, answers each from what it finds, then answers yours.

python examples/langchain_self_ask.py                      the passages of one search
OPENAI_API_KEY=... python examples/langchain_self_ask.py   a model asks and answers (OPENAI_BASE_URL: your own server)
"""

import asyncio
import os

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI

from langchain_sire import SireRetriever, create_self_ask_chain
from sire_core.data import demo_documents

QUESTION = "In which year did the author of the novel The Weather Clerk die?"

documents = [
    Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()
]


async def ask(retriever: SireRetriever, model: BaseChatModel) -> None:
    # mode="two_call" searches once and needs two calls; here every follow-up question is searched for.
    chain = create_self_ask_chain(retriever, model, max_calls=10)
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


async def main() -> None:
    retriever = await SireRetriever.afrom_documents(documents, k=5)
    for found in await retriever.ainvoke(QUESTION):
        print(f"{found.id:<16} {found.page_content[:80]}")
    if "OPENAI_API_KEY" in os.environ:
        await ask(retriever, ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini")))
    else:
        print("Set OPENAI_API_KEY to see a model ask follow-up questions and answer.")


if __name__ == "__main__":
    asyncio.run(main())
