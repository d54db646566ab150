"""LangChain's `index()` keeps a sire index up to date: added, changed and deleted documents, nothing twice. Offline.

python examples/langchain_indexing_api.py
"""

from collections.abc import Iterable

from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index

from langchain_sire import SireRetriever, create_sire_tool
from sire_core.data import demo_documents

store = SireRetriever.open(k=4)  # path="folder" keeps it; what is not indexed yet waits on disk in it
records = InMemoryRecordManager("demo")  # a SQLRecordManager outlives the process
records.create_schema()


def synchronize(documents: Iterable[Document]) -> dict[str, int]:
    """Make the index hold exactly these documents; only what changed is indexed again, at the next search."""
    return dict(index(documents, records, store, cleanup="full", source_id_key="title", key_encoder="blake2b"))


def main() -> None:
    documents = [Document(page_content=d.text, metadata={"title": d.title}) for d in demo_documents()]
    print("First:  ", synchronize(documents))
    print("Again:  ", synchronize(documents))
    documents[0] = Document(page_content="The Northern Wren is a museum ship now.", metadata=documents[0].metadata)
    print("Changed:", synchronize(documents[:-1]))
    for found in store.invoke("What became of the Northern Wren?"):
        print(f"{found.metadata['sire']['score']:.3f}  {found.metadata['sire']['kind']:<11}  {found.page_content[:70]}")
    tool = create_sire_tool(store, "atlas", "Knows the archipelago.")  # for create_agent(model, [tool])
    print("The tool says: [...]", tool.invoke({"query": "museum ship", "k": 1}).split("] ")[1])


if __name__ == "__main__":
    main()
