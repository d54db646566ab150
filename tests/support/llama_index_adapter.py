"""`llama_index_sire` in the words of `support.adapters`."""

import asyncio
from contextlib import aclosing

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from llama_index.core import MockEmbedding, SimpleDirectoryReader
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores import SimpleVectorStore

import llama_index_sire
from sire_core import Document as CoreDocument
from sire_core.errors import QueryError
from sire_core.reason import IRCoTConfig
from support.adapter_results import Found, Reasoned, by_words
from support.llama_index_models import FunctionLLM, WordEmbedding


class LlamaIndex:
    """`llama_index_sire`."""

    name, framework = "llama-index", "LlamaIndex"
    package = llama_index_sire
    Retriever = llama_index_sire.SireRetriever
    load = staticmethod(llama_index_sire.SireRetriever.from_persist_dir)
    source_key = "file_path"
    llm = MockLLM()
    embedding = WordEmbedding(size=256)
    bridged_embedding = llama_index_sire.LlamaIndexEmbedder(WordEmbedding(size=256))

    @staticmethod
    def named_embedder(name, size):
        return llama_index_sire.LlamaIndexEmbedder(MockEmbedding(size), fingerprint=f"llama-index:{name}")

    @staticmethod
    def embedder(answer, calls=None, *, named=True, native=False):
        calls = [] if calls is None else calls

        class Model(BaseEmbedding):
            def _get_text_embeddings(self, texts):
                calls.append(("passages", len(texts)))
                return answer(texts)

            def _get_text_embedding(self, text):
                return self._get_text_embeddings([text])[0]

            def _get_query_embedding(self, query):
                calls.append(("question", 1))
                return answer([query])[0]

            async def _aget_query_embedding(self, query):
                return self._get_query_embedding(query)

        class Native(Model):  # that it awaits is what tells that it is async
            async def _aget_text_embeddings(self, texts):
                await asyncio.sleep(0)
                calls.append(("async passages", len(texts)))
                return answer(texts)

            async def _aget_query_embedding(self, query):
                await asyncio.sleep(0)
                calls.append(("async question", 1))
                return answer([query])[0]

        names = {"model_name": "letters-1"} if named else {}
        return llama_index_sire.LlamaIndexEmbedder((Native if native else Model)(embed_batch_size=4, **names))

    @staticmethod
    def score(score):
        return max(score, 1e-6)

    @staticmethod
    def document(name, text, **metadata):
        return TextNode(id_=name, text=text, metadata=metadata)

    @staticmethod
    def vector_store(kind=SimpleVectorStore):
        return kind()

    @staticmethod
    def stored(store):
        return dict.fromkeys(store.data.embedding_dict)

    @staticmethod
    def found(scored):
        node = scored.node
        keys = ("kind", "doc_ids", "path", "differing", "title", "pages")
        about = {key: node.metadata[f"sire_{key}"] for key in keys if _has(node, key)}
        own = {key: value for key, value in node.metadata.items() if not key.startswith("sire_")}
        rest = (about["kind"], about["doc_ids"], scored.score, about["path"], about.get("differing", {}))
        rest = (*rest, about.get("title", ""), about.get("pages"))
        return Found(node.node_id, node.text, own, *rest)

    def search(self, retriever, question, **options):
        return [self.found(node) for node in retriever.as_retriever(**options).retrieve(question)]

    async def asearch(self, retriever, question):
        return [self.found(node) for node in await retriever.aretrieve(question)]

    @staticmethod
    def over(index, *, k=10, filter=None, **options):
        return llama_index_sire.SireRetriever(index, similarity_top_k=k, filters=filter, **options)

    @staticmethod
    def reader(_path, **options):
        return llama_index_sire.SireReader(**options)

    @staticmethod
    def load_with(reader, path):
        return reader.load_data(path)

    def read_file(self, path):
        return self.reader(path).load_data(path)

    @staticmethod
    def read(folder, **options):
        extractor = llama_index_sire.SireReader.extractor(**options)
        return SimpleDirectoryReader(folder, recursive=True, file_extractor=extractor).load_data()

    @staticmethod
    def read_elsewhere(name, content):
        far = MemoryFileSystem()
        far.pipe_file(name, content)
        return llama_index_sire.SireReader().load_data(name, fs=far)

    @staticmethod
    def plain(document):
        return CoreDocument(document.id_, document.text, metadata=document.metadata)

    @staticmethod
    def viewed(retriever, **options):
        return retriever.as_retriever(**options)

    @staticmethod
    def add(retriever, *documents):
        retriever.refresh(documents)

    @staticmethod
    def delete(retriever, *names):
        retriever.delete(names)

    @staticmethod
    def reasoner(via, source, llm, *, flavor=None, max_calls=None, **options):
        makers = {"ircot": llama_index_sire.IRCoTQueryEngine, "self-ask": llama_index_sire.SelfAskQueryEngine}
        options |= {} if flavor is None else {"config": IRCoTConfig(flavor)}
        options |= {} if max_calls is None else {"limits": {"max_calls": max_calls}}
        return makers[via](source, llm=llm, **options)

    @staticmethod
    async def ask(engine, question):
        response, native = engine.query(question), await engine.aquery(question)
        assert str(native) == str(response)
        assert [found.node_id for found in native.source_nodes] == [found.node_id for found in response.source_nodes]
        return Reasoned(response.response or "", response.source_nodes, response.metadata)

    @staticmethod
    async def astream(engine, question):
        response, pieces = await engine.aquery(question), []
        async with aclosing(response.response_gen) as stream:
            async for piece in stream:
                pieces.append(piece)
                yield piece
        yield Reasoned("".join(pieces), response.source_nodes, response.metadata)

    @staticmethod
    def stream(engine, question):
        response, pieces = engine.query(question), []
        for piece in response.response_gen:
            pieces.append(piece)
            yield piece
        yield Reasoned("".join(pieces), response.source_nodes, response.metadata)

    async def call(self, tool, **arguments):
        done = tool.call(**arguments)
        assert (await tool.acall(**arguments)).content == done.content
        found = getattr(done.raw_output, "source_nodes", done.raw_output)
        return done.content, [self.found(node) for node in found]

    @staticmethod
    async def mistake(tool, **arguments):
        with pytest.raises(QueryError) as said:
            tool.call(**arguments)
        with pytest.raises(QueryError) as awaited:
            await tool.acall(**arguments)
        assert str(said.value) == str(awaited.value)
        return str(said.value)

    @staticmethod
    def offered(tool):
        return tool.metadata.name, tool.metadata.description, tool.metadata.get_parameters_dict()

    class Words(BaseRetriever):
        """As LangChain's."""

        def __init__(self, given):
            self.given, self.asked = given, []
            super().__init__()

        def _retrieve(self, query_bundle):
            self.asked.append(query_bundle.query_str)
            places = by_words(query_bundle.query_str, [node.text for node in self.given])
            return [NodeWithScore(node=self.given[place], score=None) for place in places]

    def words(self, nodes):
        return self.Words(nodes)

    @staticmethod
    def scripted(*answers, tools=False):
        return FunctionLLM(answers=list(answers), calls_functions=tools)

    @staticmethod
    def chat(server, sync, native, *, functions=False):
        from llama_index.llms.openai import OpenAI

        class Client(OpenAI):
            @property
            def metadata(self):
                return super().metadata.model_copy(update={"is_function_calling_model": functions})

        clients = {"http_client": sync, "async_http_client": native, "max_retries": 0}
        clients["additional_kwargs"] = {"stream_options": {"include_usage": True}}
        return Client("gpt-4o-mini", api_base=server.base_url, api_key="sk-scripted", **clients)

    @staticmethod
    def bridged(llm):
        return llama_index_sire.LlamaIndexModel(llm)

    @staticmethod
    def asked(llm):
        return [[(message.role.value, message.content) for message in messages] for messages, _ in llm._prompts]

    @staticmethod
    def offered_functions(llm):
        return [bool(tools) for _, tools in llm._prompts]


def _has(node, key):
    return node.metadata.get(f"sire_{key}") is not None
