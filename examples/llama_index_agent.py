"""An agent with two of our tools: search for evidence, or have a whole question answered in several rounds.

python examples/llama_index_agent.py                      what an agent is told of the tool, and what it reads from it
OPENAI_API_KEY=... python examples/llama_index_agent.py   an agent at work; pip install llama-index-llms-openai
"""

import asyncio
import os

from llama_index.core import Document
from llama_index.core.agent.workflow import FunctionAgent, ToolCall, ToolCallResult
from llama_index.core.llms import LLM

from llama_index_sire import IRCoTQueryEngine, SireRetriever, create_sire_answer_tool, create_sire_tool
from sire_core.data import demo_documents

QUESTION = "In which year did the author of the novel The Weather Clerk die?"

documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
retriever = SireRetriever.from_documents(documents, similarity_top_k=5)
search = create_sire_tool(retriever)  # clean query, k and filter; cited text for the model, nodes as raw_output


async def work(llm: LLM) -> None:
    answer = create_sire_answer_tool(IRCoTQueryEngine(retriever, llm=llm))  # a short answer and its sources
    agent = FunctionAgent(tools=[search, answer], llm=llm, streaming=False)
    handler = agent.run(QUESTION)
    async for event in handler.stream_events():
        if isinstance(event, ToolCallResult):
            print(f"  gave {event.tool_output.content[:60]!r}")
        elif isinstance(event, ToolCall):
            print("called", event.tool_name, event.tool_kwargs)
    print("Answer:", await handler)


def main() -> None:
    print("Tool:", search.metadata.name, sorted(search.metadata.get_parameters_dict()["properties"]))
    print(search(query=QUESTION, k=2, filter={"kind": "work"}).content)
    print(search(query="In which year did Ilse Marrable die?", k=2).content)
    if "OPENAI_API_KEY" in os.environ:
        from llama_index.llms.openai import OpenAI

        asyncio.run(work(OpenAI(os.environ.get("OPENAI_MODEL", "gpt-4o-mini"))))
    else:
        print("Set OPENAI_API_KEY to see an agent use it.")


if __name__ == "__main__":
    main()
