"""The retriever as a tool of a LangChain agent.

pip install langchain
python examples/langchain_agent.py                      what an agent is told of the tool, and what it reads from it
OPENAI_API_KEY=... python examples/langchain_agent.py   an agent at work (OPENAI_BASE_URL: your own server)
"""

import os

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI

from langchain_sire import SireRetriever, create_sire_tool
from sire_core.data import demo_documents

QUESTION = "In which year did the author of The Weather Clerk die?"

documents = [
    Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()
]
retriever = SireRetriever.from_documents(documents, k=3)

# The agent's model sees query, k and filter. A filter of the retriever's own is one that no agent can widen.
search = create_sire_tool(retriever, "search_atlas", "Finds passages about the people and ships of the isles.")


def work(model: BaseChatModel) -> None:
    # create_sire_answer_tool(create_ircot_chain(retriever, model)) would answer, with sources, in one call.
    agent = create_agent(model, [search], system_prompt="Search before you answer. Cite the ids in brackets.")
    for message in agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})["messages"]:
        for call in getattr(message, "tool_calls", ()):
            print("Searches:", call["args"])
        if message.type == "tool":
            print("  found:", [found.id for found in message.artifact])
    print("Answer:", message.content)


def main() -> None:
    print("Tool:", search.name, sorted(search.args))
    print(search.invoke({"query": QUESTION, "k": 2, "filter": {"kind": "work"}}))
    print(search.invoke({"query": "In which year did Ilse Marrable die?", "k": 2}))
    if "OPENAI_API_KEY" in os.environ:
        work(ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini")))
    else:
        print("Set OPENAI_API_KEY to see an agent use it.")


if __name__ == "__main__":
    main()
