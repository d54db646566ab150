"""Your vector store ranks, our recipe builds, selects and cites. Runs offline; any LangChain VectorStore will do.

python examples/langchain_own_vector_store.py
"""

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_sire import SireRetriever, over_vector_store, pool_documents
from sire_core.data import demo_documents
from sire_core.recipes import sirerag

documents = [
    Document(id=d.id, page_content=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()
]

# Your store with your embeddings; this one knows nothing of language and is for the demonstration only.
vector_store = InMemoryVectorStore(DeterministicFakeEmbedding(size=64))
records = InMemoryRecordManager("sire-pool")  # a SQLRecordManager outlives the process
records.create_schema()

# The recipe clusters and extracts with its own models; only the ranking is left to your store.
retriever = SireRetriever.from_documents(documents, recipe=over_vector_store(sirerag(), vector_store), k=4)


def push() -> dict[str, int]:
    """Bring the store up to date with the index: writes what is new, deletes what is gone, skips the rest."""
    pool = pool_documents(retriever.index)
    return dict(index(pool, records, vector_store, cleanup="full", source_id_key="unit_id", key_encoder="blake2b"))


def main() -> None:
    print("Pushed:", push())
    print("Again: ", push())
    retriever.index.delete(["northern-wren"])
    print("After a delete:", push())
    for found in retriever.invoke("Who was saved from the wreck?", filter={"kind": "person"}):
        print(f"{found.metadata['kind']:<11} {', '.join(found.metadata['doc_ids'])}: {found.page_content[:60]}...")


if __name__ == "__main__":
    main()
