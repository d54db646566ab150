"""IRCoT as a LangGraph graph: look at every step, stop, put in a better query, and go on where it stopped.

pip install "sire-rag[langgraph]"
python examples/langchain_ircot_graph.py                      the passages of its first search
OPENAI_API_KEY=... python examples/langchain_ircot_graph.py   the graph at work (OPENAI_BASE_URL: your own server)
"""

import os

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from langchain_sire import SireRetriever, create_ircot_graph
from sire_core.data import demo_documents

QUESTION = "In which year did the author of the novel The Weather Clerk die?"

documents = [
    Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()
]
retriever = SireRetriever.from_documents(documents, k=5)


def work(model: BaseChatModel) -> None:
    checkpoints = InMemorySaver()  # in production a saver with a database
    thread = {"configurable": {"thread_id": "weather-clerk"}}
    graph = create_ircot_graph(retriever, model, checkpointer=checkpoints, interrupt_after=["think"])
    graph.invoke({"question": QUESTION}, thread)
    state = graph.get_state(thread)
    print("Thought:", state.values["thought"])
    print("Next:", state.next, "searches for:", state.values["query"])

    # A person may put another query here: graph.update_state(thread, {"query": "..."}).
    # Later, in another process perhaps: nothing that was asked is asked again.
    resumed = create_ircot_graph(retriever, model, checkpointer=checkpoints)
    for update in resumed.stream(None, thread, stream_mode="updates"):
        for node, values in update.items():
            print(f"{node}: {len(values['steps'])} steps so far")
    done = resumed.get_state(thread).values
    print("Answer:", done["answer"], "from", [done["documents"][number - 1]["id"] for number in done["citations"]])
    print("Calls:", done["usage"]["calls"])


def main() -> None:
    for found in retriever.invoke(QUESTION):
        print(f"{found.id:<16} {found.page_content[:80]}")
    if "OPENAI_API_KEY" in os.environ:
        work(ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini")))
    else:
        print("Set OPENAI_API_KEY to see the graph work on them.")


if __name__ == "__main__":
    main()
