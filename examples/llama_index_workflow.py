"""Self-ask as a LlamaIndex workflow: follow-up questions and their answers stream as typed events.

python examples/llama_index_workflow.py                      the nodes of one search
OPENAI_API_KEY=... python examples/llama_index_workflow.py   a model asks and answers (OPENAI_BASE_URL: your own server)
"""

import asyncio
import os

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
from sire_core.models.openai.client import OpenAIChat

QUESTION = "In which year did the author of the novel The Weather Clerk die?"

documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]


async def ask(retriever: SireRetriever, llm: OpenAIChat) -> None:
    workflow = ReasoningWorkflow(SelfAskQueryEngine(retriever, llm=llm), timeout=120)  # or any LLM of LlamaIndex
    handler = workflow.run(query=QUESTION)
    async for event in handler.stream_events():
        if isinstance(event, RetrievedEvent):
            print(f"searched {event.query!r}: {len(event.nodes)} nodes, {event.new} new")
        elif isinstance(event, SubQuestionEvent):
            print("follow up:", event.text)
        elif isinstance(event, IntermediateAnswerEvent):
            print("   answer:", event.text)
        elif isinstance(event, AnswerEvent):
            print("stopped:", event.stop)
    print("Answer:", await handler)


async def main() -> None:
    retriever = await SireRetriever.afrom_documents(documents, similarity_top_k=5)
    for found in await retriever.aretrieve(QUESTION):
        print(f"{found.score:.3f} {found.node.ref_doc_id:<16} {found.text[:80]}")
    if "OPENAI_API_KEY" in os.environ:
        await ask(retriever, OpenAIChat(os.environ.get("OPENAI_MODEL", "gpt-4o-mini")))
    else:
        print("Set OPENAI_API_KEY to see a model ask follow-up questions and answer.")


if __name__ == "__main__":
    asyncio.run(main())
