"""IRCoT as a LangGraph graph: look at every step, stop, and go on where it stopped. Runs offline.

pip install "sire-rag[langgraph]"
python examples/langchain_ircot_graph.py
"""

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver

from langchain_sire import SireRetriever, create_ircot_graph
from sire_core.data import demo_documents

QUESTION = "In which year did the author of the novel The Weather Clerk die?"

documents = [
    Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()
]
retriever = SireRetriever.from_documents(documents, k=5)

# What a model might say, before the stop and after it; a real one: ChatOpenAI(model="gpt-4o-mini").
BEFORE = ['{"reasoning": "The Weather Clerk is by Ilse Marrable.", "search": "When did Ilse Marrable die?"}']
AFTER = [
    '{"reasoning": "Ilse Marrable died on 2 November 1931.", "search": "DONE"}',
    '{"answer": "1931", "citations": [2], "sufficient": true}',
]


def main() -> None:
    checkpoints = InMemorySaver()  # in production a saver with a database
    thread = {"configurable": {"thread_id": "weather-clerk"}}
    graph = create_ircot_graph(
        retriever, FakeListChatModel(responses=BEFORE), checkpointer=checkpoints, interrupt_after=["think"]
    )
    graph.invoke({"question": QUESTION}, thread)
    state = graph.get_state(thread)
    print("Thought:", state.values["thought"])
    print("Next:", state.next, "searches for:", state.values["query"])

    # Later, in another process perhaps: nothing that was asked is asked again.
    resumed = create_ircot_graph(retriever, FakeListChatModel(responses=AFTER), checkpointer=checkpoints)
    for update in resumed.stream(None, thread, stream_mode="updates"):
        for node, values in update.items():
            print(f"{node}: {len(values['steps'])} steps so far")
    done = resumed.get_state(thread).values
    print("Answer:", done["answer"], "from", done["documents"][done["citations"][0] - 1]["id"])
    print("Calls:", done["usage"]["calls"])


if __name__ == "__main__":
    main()
