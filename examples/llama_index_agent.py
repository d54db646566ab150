"""An agent with two of our tools: search for evidence, or have a whole question answered in several rounds.

Runs offline: the demo corpus, and scripts in the places of the LLMs. Put `OpenAI(...)` or any other function-calling
LLM of LlamaIndex in their places.
"""

import asyncio

from llama_index.core import Document
from llama_index.core.agent.workflow import FunctionAgent, ToolCall, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms import MockFunctionCallingLLM
from llama_index.core.tools import QueryEngineTool

from llama_index_sire import IRCoTQueryEngine, SireRetriever, create_sire_tool
from sire_core.data import demo_documents
from sire_core.testing.scripted_model import ScriptedModel

question = "Where was the director of the film The Salt Lantern born?"
thinking = ScriptedModel(
    [
        '{"reasoning": "Petra Quillon directed it.", "search": "Where was Petra Quillon born?"}',
        '{"reasoning": "She was born in Varn Harbour.", "search": "DONE"}',
        '{"answer": "Varn Harbour [1]", "citations": [1], "sufficient": true}',
    ]
)
moves = [
    ToolCallBlock(tool_call_id="1", tool_name="search_documents", tool_kwargs={"query": "The Salt Lantern", "k": 2}),
    ToolCallBlock(tool_call_id="2", tool_name="answer_question", tool_kwargs={"input": question}),
    TextBlock(text="In Varn Harbour."),
]
agent_llm = MockFunctionCallingLLM(
    response_generator=lambda _messages, **_: ChatMessage(role="assistant", blocks=[moves.pop(0)])
)


async def main() -> None:
    documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
    retriever = await SireRetriever.afrom_documents(documents, recipe="sirerag", similarity_top_k=5)
    search = create_sire_tool(retriever)  # clean query, k and filter; cited text for the model, nodes as raw_output
    answer = QueryEngineTool.from_defaults(
        IRCoTQueryEngine(retriever, llm=thinking), name="answer_question", description="Answers multi-hop questions."
    )
    agent = FunctionAgent(tools=[search, answer], llm=agent_llm, streaming=False)
    handler = agent.run(question)
    async for event in handler.stream_events():
        if isinstance(event, ToolCallResult):
            print(f"  gave {event.tool_output.content[:60]!r}")
        elif isinstance(event, ToolCall):
            print("called", event.tool_name, event.tool_kwargs)
    print("Answer:", await handler)


asyncio.run(main())
