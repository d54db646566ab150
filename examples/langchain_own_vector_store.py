"""Your vector store ranks, our recipe builds, selects and cites. Runs offline; any LangChain VectorStore will do.

python examples/langchain_own_vector_store.py
"""

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_sire import SireRetriever, VectorStoreMirror, over_vector_store
from sire_core.data import demo_documents
from sire_core.recipes import sirerag

documents = [
    Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()
]

# Your store with your embeddings; this one knows nothing of language and is for the demonstration only.
vector_store = InMemoryVectorStore(DeterministicFakeEmbedding(size=64))

# The recipe clusters and extracts with its own models; only the ranking is left to your store, which follows every
# change of the index. What it misses, because it is away or a process dies, is sent with the next change.
retriever = SireRetriever.from_documents(
    documents, recipe=over_vector_store(sirerag(), vector_store), mirrors=[VectorStoreMirror(vector_store)], k=4
)


def main() -> None:
    print("Units in the store:", len(vector_store.store))
    retriever.index.delete(["northern-wren"])
    print("After a delete:", len(vector_store.store))
    print("Missed:", retriever.index.push())
    for found in retriever.invoke("Who was saved from the wreck?", filter={"kind": "person"}):
        print(f"{found.id}: {found.page_content[:60]}...")


if __name__ == "__main__":
    main()
