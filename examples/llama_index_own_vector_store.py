"""SiReRAG over your own LlamaIndex vector store: it holds all nodes and ranks them, citations and filters stay ours.

Any `BasePydanticVectorStore` will do (Qdrant, pgvector, Milvus, Elasticsearch ...): only `add`, `delete(ref_doc_id)`
and `query` are asked of it. Runs offline on the demo corpus.
"""

import tempfile

from llama_index.core import Document
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index_sire import SireRetriever
from sire_core.data import demo_documents

documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
question = "Where was the director of the film The Salt Lantern born?"
store = SimpleVectorStore()

with tempfile.TemporaryDirectory() as folder:
    retriever = SireRetriever.from_documents(
        documents, vector_store=store, persist_dir=f"{folder}/index", similarity_top_k=3
    )
    print(len(store.data.embedding_dict), "nodes in the store")
    for found in retriever.retrieve(question):
        print(f"{found.score:.3f}  {found.metadata['sire_kind']:11}  {found.text[:70]!r}")

    # The store follows every change of the documents, derived nodes included.
    retriever.delete("bruno-hask")
    print(len(store.data.embedding_dict), "nodes after a document was deleted")

    # Tomorrow, in another process:
    again = SireRetriever.from_persist_dir(f"{folder}/index", vector_store=store)
    print(again.retrieve("Who built the lighthouse?")[0].metadata["sire_doc_ids"])
