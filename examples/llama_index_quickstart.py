"""A LlamaIndex query engine made multi-hop: replace `index.as_retriever()` and keep everything else.

python examples/llama_index_quickstart.py

Runs offline: the demo corpus, no model to download. Use your own `llm` and `embed_model` where the comments say so.
"""

from llama_index.core import Document
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from llama_index_sire import SireRetriever, create_sire_tool
from sire_core.data import demo_documents

documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
question = "In which year did the author of the novel The Weather Clerk die?"

# Before: retriever = VectorStoreIndex.from_documents(documents).as_retriever(similarity_top_k=5)
retriever = SireRetriever.from_documents(
    documents,
    similarity_top_k=5,
    # recipe="raptor", "sirerag" ...: what is built and how it is ranked
    # embed_model=OpenAIEmbedding(), llm=OpenAI("gpt-4o-mini"): yours; without them indexing costs nothing
)
for found in retriever.retrieve(question):
    print(f"{found.score:.3f}  {found.node.ref_doc_id:16}  {found.node.metadata['title']}")

# Filters are LlamaIndex's own; what was derived passes only when all of its passages do.
kinds = MetadataFilters(filters=[MetadataFilter(key="kind", value=["person", "work"], operator=FilterOperator.IN)])
narrowed = retriever.as_retriever(filters=kinds)
print("People and works:", [found.metadata["title"] for found in narrowed.retrieve(question)])

# Documents come and go without a rebuild.
retriever.insert(
    Document(id_="news", text="The Weather Clerk was printed again in Port Ansel.", metadata={"year": 2024})
)
print("With the news:", [found.node.ref_doc_id for found in retriever.retrieve("Where was The Weather Clerk printed?")])
retriever.delete_ref_doc("news")

# A tool for agents: clean query, k, filter; cited text for the model. And engines for your LLM:
# retriever.as_query_engine(llm=...), retriever.as_chat_engine(llm=...), IRCoTQueryEngine(retriever, llm=...).
tool = create_sire_tool(retriever)
print(tool(query=question, k=2).content)
