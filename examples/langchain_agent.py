"""The retriever as a tool of a LangChain agent. Runs offline: a scripted server plays OpenAI over HTTP.

pip install langchain
python examples/langchain_agent.py
"""

import httpx
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_openai import ChatOpenAI

from langchain_sire import SireRetriever, create_sire_tool
from sire_core.data import demo_documents
from sire_core.testing.agent_server import AgentServer, ToolRequest

documents = [
    Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()
]
retriever = SireRetriever.from_documents(documents, k=3)

# The agent's model sees query, k and filter. A filter of the retriever's own is one that no agent can widen.
search = create_sire_tool(retriever, "search_atlas", "Finds passages about the people and ships of the isles.")

# What a model might do: look for the author, then for the year, then answer.
TURNS = [
    ToolRequest("search_atlas", {"query": "Who wrote the novel The Weather Clerk?", "filter": {"kind": "work"}}),
    ToolRequest("search_atlas", {"query": "In which year did Ilse Marrable die?", "k": 2}),
    "Ilse Marrable, who wrote The Weather Clerk, died in 1931 [ilse-marrable].",
]


def main() -> None:
    with AgentServer(TURNS) as server, httpx.Client() as connections:
        # With the real service: ChatOpenAI(model="gpt-4o-mini"), the key in OPENAI_API_KEY.
        model = ChatOpenAI(model="gpt-4o-mini", base_url=server.base_url, api_key="none", http_client=connections)
        agent = create_agent(model, [search], system_prompt="Search before you answer. Cite the ids in brackets.")
        question = "In which year did the author of The Weather Clerk die?"
        for message in agent.invoke({"messages": [{"role": "user", "content": question}]})["messages"]:
            for call in getattr(message, "tool_calls", ()):
                print("Searches:", call["args"])
            if message.type == "tool":
                print("  found:", [found.metadata["sire"]["doc_ids"][0] for found in message.artifact])
        print("Answer:", message.content)


if __name__ == "__main__":
    main()
