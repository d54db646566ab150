"""Your own LlamaIndex vector store under a recipe: it holds all nodes and finds the nearest; the rest stays ours.

Any `BasePydanticVectorStore` will do (Qdrant, pgvector, Milvus, Elasticsearch ...): only `add`, `query`, and
`delete_nodes` or `delete(ref_doc_id)` are asked of it. Runs offline on the demo corpus.
"""

import tempfile

from llama_index.core import Document
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index_sire import SireRetriever, VectorStoreMirror
from sire_core.data import demo_documents

documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
question = "Where was the director of the film The Salt Lantern born?"

with tempfile.TemporaryDirectory() as folder:
    # `vector_store=store` is enough for a database; a store in memory is written to a file after each change.
    store = SimpleVectorStore()
    mirror = VectorStoreMirror(store, persist_path=f"{folder}/store.json")
    retriever = SireRetriever.from_documents(
        documents, vector_store=mirror, persist_dir=f"{folder}/index", similarity_top_k=3
    )
    print(len(store.data.embedding_dict), "nodes in the store")
    for found in retriever.retrieve(question):
        print(f"{found.score:.3f}  {found.metadata['sire_kind']:11}  {found.text[:70]!r}")

    # The store follows every change of the documents, derived nodes included. What it misses, because it is away or the
    # process dies, is sent with the next change, when the retriever is opened, or by `retriever.index.push()`.
    retriever.delete("bruno-hask")
    print(len(store.data.embedding_dict), "nodes after a document was deleted")

    # Tomorrow, in another process:
    store = SimpleVectorStore.from_persist_path(f"{folder}/store.json")
    again = SireRetriever.from_persist_dir(f"{folder}/index", vector_store=store)
    print(again.retrieve("Who built the lighthouse?")[0].metadata["sire_doc_ids"])
