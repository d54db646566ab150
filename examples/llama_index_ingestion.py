"""The pool of a recipe in your own vector store, through LlamaIndex's `IngestionPipeline`.

The second run sees one changed document; no summary of its old text stays in the store.
"""

import tempfile
from collections import Counter

from llama_index.core import Document, MockEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index_sire import SireNodeParser
from sire_core.data import demo_documents

documents = [Document(id_=d.id, text=d.text, metadata={"title": d.title, **d.metadata}) for d in demo_documents()]
store, docstore = SimpleVectorStore(), SimpleDocumentStore()

with tempfile.TemporaryDirectory() as folder:
    parser = SireNodeParser(
        recipe="sirerag",
        persist_dir=f"{folder}/index",  # corpus-level structure needs the whole corpus, a pipeline shows only changes
        vector_store=store,  # what the parser retires is deleted here
        docstore=docstore,  # and documents that the pipeline drops are dropped from the index
    )
    pipeline = IngestionPipeline(
        transformations=[parser, MockEmbedding(embed_dim=16)],  # your embedding model here
        vector_store=store,
        docstore=docstore,
        docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
    )
    nodes = pipeline.run(documents=documents)
    print(len(nodes), "nodes:", Counter(node.metadata["sire_kind"] for node in nodes))

    changed = list(documents)
    changed[0] = Document(id_=documents[0].id_, text="She was scrapped in 1902.", metadata=documents[0].metadata)
    for what, given in [("one changed", changed), ("one deleted", changed[1:]), ("no change", changed[1:])]:
        new = pipeline.run(documents=given)
        print(f"{what}: {len(new)} new nodes, {len(store.data.embedding_dict)} in the store")
    print("stale ids left in the store:", parser.retired_ids)
