"""Your vector store finds what is near, our recipe builds, ranks and cites. Runs offline; any VectorStore will do.

python examples/langchain_own_vector_store.py
"""

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_sire import SireRetriever
from sire_core.data import demo_documents

documents = [
    Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()
]

# Your store with your embeddings; this one knows nothing of language and is for the demonstration only. The store
# follows every change of the index. What it misses, because it is away or a process dies, is sent with the next change.
vector_store = InMemoryVectorStore(DeterministicFakeEmbedding(size=64))
retriever = SireRetriever.from_documents(documents, vector_store=vector_store, k=4)


def main() -> None:
    print("Passages in the store:", len(vector_store.store))
    retriever.delete_documents(["northern-wren"])
    print("After a delete:", len(vector_store.store))
    print("Missed:", retriever.index.push())
    for found in retriever.invoke("Who was saved from the wreck?", filter={"kind": "person"}):
        print(f"{found.id}: {found.page_content[:60]}...")


if __name__ == "__main__":
    main()
