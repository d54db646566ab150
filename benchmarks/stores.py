"""Which recipe works over which of the users' vector stores: every pair is built and searched; see docs/stores.md.

`--recall DATA_SET` measures the default recipe over LangChain's stores in memory beside our own scan, on questions of a
data set of `sire eval`.

Needs the stores' packages: langchain-chroma, langchain-qdrant, langchain-community, langchain-postgres with pgserver,
llama-index-vector-stores-chroma, -qdrant, -faiss and -postgres. What is not installed is left out of the table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from sire_core import Index, recipes
from sire_core.data import demo_documents, demo_questions
from sire_core.errors import SireError
from sire_core.evaluate.datasets import load_dataset
from sire_core.models.embedders import resolve_embedder
from sire_core.models.sync import run_sync
from sire_core.testing.hash_embedder import HashEmbedder

PAGE = Path(__file__).parents[1] / "docs" / "stores.md"
SIZE = 128


class Hashed(Embeddings):
    """The test embedder as LangChain's."""

    model = "hash"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts."""
        found: list[list[float]] = run_sync(HashEmbedder(SIZE).embed(texts)).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return self.embed_documents([text])[0]


def langchain_stores(folder: Path) -> dict[str, Callable[[str], tuple[Any, bool]]]:
    """Makers of LangChain stores by name; each gives a store and whether its scores are distances."""

    def memory(_: str) -> tuple[Any, bool]:
        from langchain_core.vectorstores import InMemoryVectorStore

        return InMemoryVectorStore(Hashed()), False

    def chroma(name: str) -> tuple[Any, bool]:
        from langchain_chroma import Chroma

        return Chroma(name, Hashed(), persist_directory=str(folder / f"chroma-{name}")), True

    def qdrant(name: str) -> tuple[Any, bool]:
        from langchain_qdrant import QdrantVectorStore
        from qdrant_client import QdrantClient
        from qdrant_client.models import Distance, VectorParams

        client = QdrantClient(":memory:")
        client.create_collection(name, vectors_config=VectorParams(size=SIZE, distance=Distance.COSINE))
        return QdrantVectorStore(client, name, Hashed()), False

    def faiss(_: str) -> tuple[Any, bool]:
        import faiss as library
        from langchain_community.docstore.in_memory import InMemoryDocstore
        from langchain_community.vectorstores import FAISS

        return FAISS(Hashed(), library.IndexFlatL2(SIZE), InMemoryDocstore(), {}), True

    def postgres(name: str) -> tuple[Any, bool]:
        import pgserver
        from langchain_postgres import PGVector

        server = pgserver.get_server(str(folder / "postgres"))
        server.psql(f"CREATE DATABASE {name}")  # PGVector keeps an id once per database, whatever the collection
        place = server.get_uri(database=name)
        engine = place.replace("postgresql://", "postgresql+psycopg://")
        return PGVector(Hashed(), connection=engine, collection_name=name, use_jsonb=True), True

    return {
        "LangChain InMemoryVectorStore": memory,
        "LangChain Chroma": chroma,
        "LangChain Qdrant": qdrant,
        "LangChain FAISS": faiss,
        "LangChain PGVector": postgres,
    }


def llama_index_stores(folder: Path) -> dict[str, Callable[[str], Any]]:
    """Makers of LlamaIndex stores by name."""

    def simple(_: str) -> Any:
        from llama_index.core.vector_stores import SimpleVectorStore

        return SimpleVectorStore()

    def chroma(name: str) -> Any:
        import chromadb
        from llama_index.vector_stores.chroma import ChromaVectorStore

        client = chromadb.PersistentClient(str(folder / f"chroma-li-{name}"))
        return ChromaVectorStore(client.get_or_create_collection(name, metadata={"hnsw:space": "cosine"}))

    def qdrant(name: str) -> Any:
        from llama_index.vector_stores.qdrant import QdrantVectorStore
        from qdrant_client import QdrantClient

        return QdrantVectorStore(name, QdrantClient(":memory:"))

    def faiss(_: str) -> Any:
        import faiss as library
        from llama_index.vector_stores.faiss import FaissVectorStore

        return FaissVectorStore(library.IndexFlatIP(SIZE))

    return {
        "LlamaIndex SimpleVectorStore": simple,
        "LlamaIndex Chroma": chroma,
        "LlamaIndex Qdrant": qdrant,
        "LlamaIndex FAISS": faiss,
    }


def found_over(recipe: Any, mirror: Any) -> list[list[str]]:
    """What the demo questions find over a store that follows the index."""
    with Index(recipe=recipe, embedder=HashEmbedder(SIZE), mirrors=[mirror] if mirror else ()) as index:
        report = index.build(demo_documents())
        if report.failures:
            index.push()  # raises what the store raises
        asked = [question.question for question in demo_questions() if question.metadata.get("demo")]
        return [[hit.unit.id for hit in index.search(question, 10)] for question in asked]


def outcome(expected: list[list[str]], make: Callable[[], tuple[Any, Any]]) -> str:
    """How a recipe does over a store: the same hits, other ones, or refused."""
    try:
        found = found_over(*make())
    except ImportError:
        return "not installed"
    except SireError as error:
        return "refused: ids of its own" if "ids of its own" in str(error) else f"refused: {str(error).split('.')[0]}"
    return "same hits" if found == expected else "other hits"


def rows(folder: Path) -> list[list[str]]:
    """A row per store, a cell per recipe."""
    import langchain_sire
    import llama_index_sire

    names = sorted(recipes.REGISTRY)
    own = {name: found_over(recipes.REGISTRY[name](), None) for name in names}
    table = []
    for store, maker in langchain_stores(folder).items():

        def over_langchain(name: str, maker: Any = maker) -> tuple[Any, Any]:
            made, distances = maker(f"lc{name}")
            recipe = langchain_sire.over_vector_store(name, made, distances=distances)
            return recipe, langchain_sire.VectorStoreMirror(made)

        table.append([store, *(outcome(own[n], lambda n=n, m=over_langchain: m(n)) for n in names)])
        print(table[-1], file=sys.stderr, flush=True)
    for store, maker in llama_index_stores(folder).items():

        def over_llama_index(name: str, maker: Any = maker) -> tuple[Any, Any]:
            made = maker(f"li{name}")
            return llama_index_sire.over_vector_store(name, made), llama_index_sire.VectorStoreMirror(made)

        table.append([store, *(outcome(own[n], lambda n=n, m=over_llama_index: m(n)) for n in names)])
        print(table[-1], file=sys.stderr, flush=True)
    return [["store", *names], ["---"] * (len(names) + 1), *(row for row in table if "not installed" not in row)]


class Kept(Embeddings):
    """One of our embedders as LangChain's; no text is embedded twice."""

    model = "kept"

    def __init__(self, spec: str) -> None:
        self._embedder = resolve_embedder(spec)
        self._known: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, run_sync(self._embedder.embed(new)).tolist(), strict=True))
        return [self._known[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return self.embed_documents([text])[0]


def recall(data: str, questions: int, spec: str) -> None:
    """Print the share of the needed passages among the first five, over our own scan and over stores."""
    import faiss as library
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS
    from langchain_core.vectorstores import InMemoryVectorStore

    import langchain_sire

    dataset = load_dataset(data)
    asked = [question for question in dataset.questions if question.supporting][:questions]
    embedding = Kept(spec)
    size = len(embedding.embed_query("size"))
    stores = {
        "own scan": None,
        "LangChain InMemoryVectorStore": InMemoryVectorStore(embedding),
        "LangChain FAISS": FAISS(embedding, library.IndexFlatL2(size), InMemoryDocstore(), {}),
    }
    for name, store in stores.items():
        recipe = "sire" if store is None else langchain_sire.over_vector_store("sire", store)
        mirrors = [] if store is None else [langchain_sire.VectorStoreMirror(store)]
        embedder = langchain_sire.LangChainEmbedder(embedding)
        with Index(recipe=recipe, embedder=embedder, mirrors=mirrors) as index:
            index.build(dataset.documents)
            found = [{hit.doc_ids[0] for hit in index.search(question.question, 5)} for question in asked]
        shares = [len(hits & set(q.supporting)) / len(q.supporting) for hits, q in zip(found, asked, strict=True)]
        print(f"| {name} | {100 * sum(shares) / len(shares):.1f} |", flush=True)


def main() -> None:
    """Write the page, or print recall."""
    warnings.simplefilter("ignore")
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--recall", metavar="DATA_SET")
    words.add_argument("--questions", type=int, default=300)
    words.add_argument("--embedder", default="st:all-MiniLM-L6-v2")
    given = words.parse_args()
    if given.recall:
        recall(given.recall, given.questions, given.embedder)
        return
    _, mark, measured = PAGE.read_text(encoding="utf-8").partition("\n## Recall")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        table = rows(Path(folder))
    lines = "\n".join(f"| {' | '.join(row)} |" for row in table)
    PAGE.write_text(
        "# Which recipe works over which vector store\n\nGenerated by `python benchmarks/stores.py`: every recipe is "
        "built over the sample corpus, the store\nfollows it, and the three demo questions are asked. `same hits`: "
        "the same ten passages in the same order as over our own scan.\n\n" + lines + "\n" + mark + measured,
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
