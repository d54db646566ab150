"""A LlamaIndex query engine made multi-hop: replace `index.as_retriever()` and keep everything else.

Runs offline: the demo corpus, no model to download, and a mock in the place of the LLM. Use your own `llm` and
`embed_model` where the comments say so.
"""

from llama_index.core import Document
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_sire import SireRetriever, create_sire_tool
from sire_core.data import demo_documents

documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
question = "Where was the director of the film The Salt Lantern born?"

# Before: retriever = VectorStoreIndex.from_documents(documents).as_retriever(similarity_top_k=5)
retriever = SireRetriever.from_documents(
    documents,
    recipe="sirerag",  # or "raptor", "flat", ...
    similarity_top_k=5,
    # embed_model=OpenAIEmbedding(), llm=OpenAI("gpt-4o-mini"): yours; without them indexing costs nothing
)
engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(max_tokens=20))

answer = engine.query(question)
print("Answer of the mock:", answer)
for found in answer.source_nodes:
    print(f"{found.score:.3f}  {found.metadata['sire_kind']:11}  {found.metadata['sire_doc_ids'][:60]}")

# Filters are LlamaIndex's own; summaries pass only when all of their passages do.
retriever.filters = MetadataFilters(filters=[MetadataFilter(key="kind", value="person")])
print("Persons only:", [found.metadata["title"] for found in retriever.retrieve(question)])
retriever.filters = None

# Documents come and go without a rebuild.
retriever.insert(Document(id_="news", text="The Salt Lantern was shown again in Port Ansel.", metadata={"year": 2024}))
retriever.delete("news")

# And a tool for agents: clean query, k, filter; cited text for the model.
tool = create_sire_tool(retriever)
print(tool(query=question, k=2).content)
