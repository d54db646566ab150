"""`langchain_sire` in the words of `support.adapters`."""

from contextlib import aclosing
from functools import reduce
from operator import add
from typing import Any

from langchain_core.documents import Document
from langchain_core.documents.base import Blob
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import ToolCall
from langchain_core.retrievers import BaseRetriever
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.vectorstores import InMemoryVectorStore

import langchain_sire
from sire_core import Document as CoreDocument
from support.adapter_results import Found, Reasoned, by_words
from support.langchain_chat import Scripted, WithTools, calls_tool, model
from support.langchain_demo import Hashed


class LangChain:
    """`langchain_sire`."""

    name, framework = "langchain", "LangChain"
    package = langchain_sire
    Retriever = langchain_sire.SireRetriever
    load = staticmethod(langchain_sire.SireRetriever.load)
    source_key = "source"
    llm = FakeListChatModel(responses=["x"])
    embedding = Hashed()
    bridged_embedding = langchain_sire.LangChainEmbedder(Hashed())

    @staticmethod
    def named_embedder(name, size):
        return langchain_sire.LangChainEmbedder(DeterministicFakeEmbedding(size=size), name=name)

    @staticmethod
    def embedder(answer, calls=None, *, named=True, native=False):
        """Over a model that answers texts with vectors, four a call; `calls` gets the kind and number of texts."""
        calls = [] if calls is None else calls

        class Model(Embeddings):
            def embed_documents(self, texts):
                calls.append(("passages", len(texts)))
                return answer(texts)

            def embed_query(self, text):
                calls.append(("question", 1))
                return answer([text])[0]

        class Native(Model):
            async def aembed_documents(self, texts):
                calls.append(("async passages", len(texts)))
                return answer(texts)

            async def aembed_query(self, text):
                calls.append(("async question", 1))
                return answer([text])[0]

        made = (Native if native else Model)()
        if named:
            made.model = "letters-1"
        return langchain_sire.LangChainEmbedder(made, batch_size=4)

    @staticmethod
    def score(score):
        """A score of the core as the framework shows it."""
        return score

    @staticmethod
    def document(name, text, **metadata):
        return Document(id=name, page_content=text, metadata=metadata)

    @staticmethod
    def vector_store(kind=InMemoryVectorStore):
        return kind(Hashed())

    @staticmethod
    def stored(store):
        """Texts of a vector store by id."""
        return {name: row["text"] for name, row in store.store.items()}

    @staticmethod
    def found(document):
        about = document.metadata["sire"]
        own = {key: value for key, value in document.metadata.items() if key != "sire"}
        rest = (about["kind"], about["doc_ids"], about["score"], about["path"], about.get("differing", {}))
        rest = (*rest, about.get("title", ""), about.get("pages"))
        return Found(document.id, document.page_content, own, *rest)

    def search(self, retriever, question, **options):
        return [self.found(document) for document in retriever.invoke(question, **options)]

    async def asearch(self, retriever, question):
        return [self.found(document) for document in await retriever.ainvoke(question)]

    @staticmethod
    def over(index, **options):
        return langchain_sire.SireRetriever(index=index, **options)

    @staticmethod
    def reader(path, **options):
        return langchain_sire.SireLoader(path, **options)

    @staticmethod
    def load_with(reader, _path):
        return reader.load()

    def read_file(self, path):
        return self.reader(path).load()

    def read(self, folder, **options):
        return self.reader(folder, **options).load()

    @staticmethod
    def read_elsewhere(name, content):
        return langchain_sire.SireParser().parse(Blob.from_data(content, path=name))

    @staticmethod
    def plain(document):
        """A document of the core with the text and metadata."""
        return CoreDocument(document.id, document.page_content, metadata=document.metadata)

    @staticmethod
    def viewed(retriever, **options):
        """The retriever with other options of all its searches."""
        return retriever.as_retriever(search_kwargs=options)

    @staticmethod
    def add(retriever, *documents):
        retriever.add_documents(documents)

    @staticmethod
    def delete(retriever, *names):
        retriever.delete_documents(list(names))

    @staticmethod
    def reasoner(via, source, llm, *, streaming=False, **options):
        """A chain; each streams when it is asked to."""
        makers = {"ircot": langchain_sire.create_ircot_chain, "self-ask": langchain_sire.create_self_ask_chain}
        return makers[via](source, llm, **options)

    @staticmethod
    async def ask(chain, question):
        """The answer, which sync and async give alike."""
        result = chain.invoke(question)
        assert await chain.ainvoke(question) == result
        return Reasoned(result["answer"], result["documents"], result)

    @staticmethod
    def _whole(chunks):
        whole = reduce(add, chunks)
        return Reasoned(whole["answer"], [Document(**found) for found in whole["documents"]], whole)

    async def astream(self, chain, question):
        """Pieces of the answer as they come, then all that was given."""
        chunks = []
        async with aclosing(chain.astream(question)) as stream:
            async for chunk in stream:
                chunks.append(chunk)
                if "answer" in chunk:
                    yield chunk["answer"]
        yield self._whole(chunks)

    def stream(self, chain, question):
        chunks = []
        for chunk in chain.stream(question):
            chunks.append(chunk)
            if "answer" in chunk:
                yield chunk["answer"]
        yield self._whole(chunks)

    async def call(self, tool, **arguments):
        """Text and raw result of a tool, which sync and async give alike."""
        request = ToolCall(name=tool.name, args=arguments, id="1", type="tool_call")
        message, native = tool.invoke(request), await tool.ainvoke(request)
        assert (native.content, native.status) == (message.content, message.status)
        found = message.artifact["documents"] if isinstance(message.artifact, dict) else message.artifact
        return message.content, [self.found(document) for document in found or ()]

    async def mistake(self, tool, **arguments):
        """What a tool says of arguments that are wrong."""
        request = ToolCall(name=tool.name, args=arguments, id="1", type="tool_call")
        assert tool.invoke(request).status == "error"
        return (await self.call(tool, **arguments))[0]

    @staticmethod
    def offered(tool):
        """Name, description and parameters that a model is shown."""
        function = convert_to_openai_tool(tool)["function"]
        return function["name"], function["description"], function["parameters"]

    class Words(BaseRetriever):
        """Another retriever: ranks by shared words, and notes what it was asked."""

        given: list[Any]
        asked: list[str]

        def _get_relevant_documents(self, query, *, run_manager):
            self.asked.append(query)
            return [self.given[place] for place in by_words(query, [d.page_content for d in self.given])]

    def words(self, documents):
        return self.Words(given=documents, asked=[])

    @staticmethod
    def scripted(*answers, tools=False):
        """A chat model that plays answers: texts, errors, or mappings, which call the function `Answer`."""
        said = [calls_tool(answer) if isinstance(answer, dict) else answer for answer in answers]
        return model(*said, kind=WithTools if tools else Scripted)

    @staticmethod
    def chat(server, sync, native, *, functions=False):
        """A client of a server; one that knows no schemas calls functions in their place."""
        from langchain_openai import ChatOpenAI

        clients = {"http_client": sync, "http_async_client": native, "max_retries": 0, "stream_usage": True}
        named = "gpt-4-0613" if functions else "gpt-4o-mini"
        return ChatOpenAI(model=named, base_url=server.base_url, api_key="sk-scripted", **clients)

    @staticmethod
    def bridged(llm):
        return langchain_sire.LangChainChat(llm)

    @staticmethod
    def asked(llm):
        """Messages of each request, as pairs of role and text."""
        roles = {"system": "system", "human": "user"}
        return [[(roles[message.type], message.content) for message in entry["messages"]] for entry in llm.log]

    @staticmethod
    def offered_functions(llm):
        """Whether each request offered a function."""
        return [bool(entry.get("tools")) for entry in llm.log]
