"""Your own LangChain models extract, summarize and embed: OpenAI's, or those of a server of yours.

OPENAI_API_KEY=... python examples/langchain_own_models.py
OPENAI_API_KEY=none OPENAI_BASE_URL=http://localhost:8000/v1 python examples/langchain_own_models.py
"""

import asyncio
import os

import httpx
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.documents import Document
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from langchain_sire import LangChainChat, SireRetriever
from sire_core.data import demo_documents
from sire_core.models.usage import UsageLimits

documents = [Document(id=d.id, page_content=d.text, metadata={"title": d.title}) for d in demo_documents()[:8]]


async def ask() -> None:
    async with httpx.AsyncClient() as connections:
        chat = ChatOpenAI(model="gpt-4o-mini", http_async_client=connections)
        embedding = OpenAIEmbeddings(  # servers of other models take texts, not OpenAI's tokens
            model="text-embedding-3-small", check_embedding_ctx_length=False, http_async_client=connections
        )
        # The bridge is made for you (llm=chat); make it yourself to set limits or to read what was used.
        model = LangChainChat(chat, limits=UsageLimits(max_calls=200))
        with get_usage_metadata_callback() as usage:
            retriever = await SireRetriever.afrom_documents(documents, embedding, llm=model, recipe="sirerag")
        print("Built:", retriever.index.stats()["kinds"])
        print("Used: ", model.meter.report().describe())
        print("LangChain counts the same:", sum(used["total_tokens"] for used in usage.usage_metadata.values()))
        for found in await retriever.ainvoke("Who commanded the Northern Wren?", k=3):
            print(f"{found.metadata['sire']['score']:.3f}  {found.id:<16}  {found.page_content[:60]}")


if __name__ == "__main__":
    if "OPENAI_API_KEY" in os.environ:
        asyncio.run(ask())
    else:
        print("Set OPENAI_API_KEY to build with a model.")
