"""Self-ask as a LlamaIndex workflow: follow-up questions and their answers stream as typed events.

Runs offline: the demo corpus, and a script in the place of the LLM. Put any LLM of LlamaIndex in its place.
"""

import asyncio

from llama_index.core import Document

from llama_index_sire import (
    AnswerEvent,
    IntermediateAnswerEvent,
    ReasoningWorkflow,
    RetrievedEvent,
    SelfAskQueryEngine,
    SireRetriever,
    SubQuestionEvent,
)
from sire_core.data import demo_documents
from sire_core.testing.scripted_model import ScriptedModel

script = ScriptedModel(
    [
        "Follow up: Who directed the film The Salt Lantern?",
        "Petra Quillon",
        "Follow up: Where was Petra Quillon born?",
        "Varn Harbour",
        "So the final answer is: Varn Harbour",
        '{"answer": "Varn Harbour [1]", "citations": [1], "sufficient": true}',
    ]
)


async def main() -> None:
    documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
    retriever = await SireRetriever.afrom_documents(documents, recipe="sirerag", similarity_top_k=5)
    workflow = ReasoningWorkflow(SelfAskQueryEngine(retriever, llm=script), timeout=120)

    handler = workflow.run(query="Where was the director of the film The Salt Lantern born?")
    async for event in handler.stream_events():
        if isinstance(event, RetrievedEvent):
            print(f"searched {event.query!r}: {len(event.nodes)} nodes, {event.new} new")
        elif isinstance(event, SubQuestionEvent):
            print("follow up:", event.text)
        elif isinstance(event, IntermediateAnswerEvent):
            print("   answer:", event.text)
        elif isinstance(event, AnswerEvent):
            print("stopped:", event.stop)
    response = await handler
    print("Answer:", response, "from", len(response.source_nodes), "nodes")


asyncio.run(main())
