"""CPU per query of the adapters' retrievers, beside the default stores of their frameworks and the core's own search.

    python benchmarks/adapters.py [--units 35000] [--dimension 384] [--rounds 40]

Units and questions are random unit vectors, and the vectors of the questions are known: no model is asked. All methods
answer the same questions in turn in one process on one thread, so that a busy machine is as busy for each of them.
Times are medians of the process's CPU time, all of its threads together. The stores are called with the vector, without
a retriever around them, which is in their favor.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence

# Before numpy is imported: a second thread would add its CPU time without being faster.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import VectorStoreQuery
from numpy.typing import NDArray

import langchain_sire
import llama_index_sire
from sire_core import Document, Index
from sire_core.arrays.nearest_neighbors import unit_rows

Search = Callable[[int], list[str]]
"""From the number of a question to the ids of what was found, best first."""

K = 20
CORE = "`sire_core` `Index.search`"
OURS_LANGCHAIN = "`langchain_sire.SireRetriever`"
OURS_LLAMA_INDEX = "`llama_index_sire.SireRetriever`"
LANGCHAIN = "LangChain `InMemoryVectorStore`"
LLAMA_INDEX = "LlamaIndex `SimpleVectorStore`"
RIVALS = {OURS_LANGCHAIN: LANGCHAIN, OURS_LLAMA_INDEX: LLAMA_INDEX}


class Known:
    """The core's embedder: vectors looked up by text."""

    fingerprint = "known"

    def __init__(self, vectors: dict[str, NDArray[np.float32]]) -> None:
        self.vectors = vectors
        self.dimension = len(next(iter(vectors.values())))

    async def embed(self, texts: Sequence[str], kind: str = "document") -> NDArray[np.float32]:  # noqa: ARG002 - one space for both
        """Look up."""
        return np.stack([self.vectors[text] for text in texts])


class KnownLists(Embeddings):
    """LangChain's embedder: the same as lists of floats."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self.vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Look up."""
        return [self.vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Look up."""
        return self.vectors[text]


def methods(units: int, dimension: int, questions: int) -> dict[str, Search]:
    rng = np.random.default_rng(0)
    matrix = unit_rows(rng.standard_normal((units + questions, dimension), dtype=np.float32))
    texts = [f"passage {number}" for number in range(units)]
    asked = [f"question {number}" for number in range(questions)]
    lists = dict(zip(texts + asked, matrix.tolist(), strict=True))

    index = Index(recipe="flat", chunker=None, embedder=Known(dict(zip(texts + asked, matrix, strict=True))))
    index.build(Document(text, text) for text in texts)
    for_langchain = langchain_sire.SireRetriever(index=index, k=K)
    for_llama_index = llama_index_sire.SireRetriever(index, similarity_top_k=K)
    langchain_store = InMemoryVectorStore(KnownLists(lists))
    langchain_store.add_documents([LangChainDocument(text, id=text) for text in texts])
    llama_index_store = SimpleVectorStore()
    llama_index_store.add([TextNode(id_=text, text=text, embedding=lists[text]) for text in texts])

    def by_langchain_store(at: int) -> list[str]:
        found = langchain_store.similarity_search_by_vector(lists[asked[at]], k=K)
        return [document.id or "" for document in found]

    def by_llama_index_store(at: int) -> list[str]:
        query = VectorStoreQuery(query_embedding=lists[asked[at]], similarity_top_k=K)
        return list(llama_index_store.query(query).ids or ())

    return {
        CORE: lambda at: [hit.unit.text for hit in index.search(asked[at], K)],
        OURS_LANGCHAIN: lambda at: [document.page_content for document in for_langchain.invoke(asked[at])],
        OURS_LLAMA_INDEX: lambda at: [found.node.get_content() for found in for_llama_index.retrieve(asked[at])],
        LANGCHAIN: by_langchain_store,
        LLAMA_INDEX: by_llama_index_store,
    }


def measure(searches: dict[str, Search], rounds: int, slow_rounds: int) -> dict[str, list[float]]:
    """CPU seconds per query. The stores are slow and answer fewer questions; round 0 warms up and is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in searches}
    for at in range(rounds + 1):
        answers = {}
        for name, search in searches.items():
            if name in RIVALS.values() and at > slow_rounds:
                continue
            start = time.process_time()
            answers[name] = search(at)
            if at:
                seconds[name].append(time.process_time() - start)
        for name, found in answers.items():
            if found != answers[CORE]:
                raise SystemExit(f"{name} found something else than the core for question {at}.")
    return seconds


def show(seconds: dict[str, list[float]], units: int, dimension: int) -> None:
    ms = {name: 1000 * statistics.median(values) for name, values in seconds.items()}
    print(f"{units:,} units, {dimension} numbers each, k = {K}; every method found the same ids in the same order.\n")
    print("| method | questions | CPU per query, ms | its framework's store needs | over the core, ms |")
    print("|--------|----------:|------------------:|----------------------------:|------------------:|")
    for name, values in seconds.items():
        ratio = f"{ms[RIVALS[name]] / ms[name]:.0f}x" if name in RIVALS else ""
        over = f"{statistics.median(np.subtract(values, seconds[CORE])) * 1000:.2f}" if name in RIVALS else ""
        print(f"| {name} | {len(values)} | {ms[name]:.2f} | {ratio} | {over} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=35_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=40, help="Questions to the index.")
    parser.add_argument("--slow-rounds", type=int, default=7, help="Questions to the frameworks' stores.")
    args = parser.parse_args()
    searches = methods(args.units, args.dimension, args.rounds + 1)
    show(measure(searches, args.rounds, args.slow_rounds), args.units, args.dimension)


if __name__ == "__main__":
    main()
