"""Your own LangChain models extract, summarize and embed. Runs offline: a scripted server plays OpenAI over HTTP.

python examples/langchain_own_models.py
"""

import asyncio

import httpx
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.documents import Document
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from langchain_sire import LangChainChat, SireRetriever
from sire_core.data import demo_documents
from sire_core.models.usage import UsageLimits
from sire_core.testing.scripted_server import ScriptedServer

documents = [Document(id=d.id, page_content=d.text, metadata={"title": d.title}) for d in demo_documents()[:8]]


async def ask(base_url: str) -> None:
    async with httpx.AsyncClient() as connections:
        # With the real service: ChatOpenAI(model="gpt-4o-mini") and OpenAIEmbeddings(), the key in OPENAI_API_KEY.
        server = {"base_url": base_url, "api_key": "none", "http_async_client": connections}
        chat = ChatOpenAI(model="gpt-4o-mini", **server)
        embedding = OpenAIEmbeddings(model="text-embedding-3-small", check_embedding_ctx_length=False, **server)
        # The bridge is made for you (llm=chat); make it yourself to set limits or to read what was used.
        model = LangChainChat(chat, limits=UsageLimits(max_calls=200))
        with get_usage_metadata_callback() as usage:
            retriever = await SireRetriever.afrom_documents(documents, embedding, llm=model, recipe="sirerag")
        print("Built:", retriever.index.stats()["kinds"])
        print("Used: ", model.meter.report().describe())
        print("LangChain counts the same:", sum(used["total_tokens"] for used in usage.usage_metadata.values()))
        for found in await retriever.ainvoke("Who commanded the Northern Wren?", k=3):
            print(f"{found.metadata['sire']['score']:.3f}  {found.id:<16}  {found.page_content[:60]}")


def main() -> None:
    with ScriptedServer() as server:
        asyncio.run(ask(server.base_url))


if __name__ == "__main__":
    main()
