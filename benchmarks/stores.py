"""Which recipe works over which of the users' vector stores: every pair is built and searched; see docs/stores.md.

`--recall DATA_SET` measures recipes over the stores beside our own scan, on questions of a data set of `sire eval`.
`--check` writes nothing: it fails where a store does not do what the page says, or changes recall by over a point.

Needs the stores' packages (`PACKAGES`). What is not installed is left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from langchain_sire import LangChainEmbedder
from sire_core import Index, recipes
from sire_core.data import demo_documents, demo_questions
from sire_core.errors import SireError
from sire_core.evaluate.datasets import load_dataset
from sire_core.models.embedders import resolve_embedder
from sire_core.models.sync import run_sync
from sire_core.protocols import Embedder
from sire_core.testing.doubles import HashEmbedder

PAGE = Path(__file__).parents[1] / "docs" / "stores.md"
SIZE = 128
PACKAGES = (
    *("langchain-chroma", "langchain-qdrant", "langchain-community", "lancedb", "pandas"),
    *("langchain-postgres", "pgserver", "psycopg[binary]"),
    *("llama-index-vector-stores-chroma", "llama-index-vector-stores-qdrant", "llama-index-vector-stores-faiss"),
    *("llama-index-vector-stores-lancedb", "llama-index-vector-stores-postgres"),
)
"""What has to be installed beside the extras `langchain` and `llama-index` for the whole table."""


class Kept(Embeddings):
    """One of our embedders as LangChain's; no text is embedded twice."""

    model = "kept"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
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


def langchain_stores(folder: Path, embedding: Embeddings) -> dict[str, Callable[[str], tuple[Any, bool]]]:
    """Makers of LangChain stores by name; each gives a store and whether its scores are distances."""
    size = len(embedding.embed_query("size"))

    def memory(_: str) -> tuple[Any, bool]:
        from langchain_core.vectorstores import InMemoryVectorStore

        return InMemoryVectorStore(embedding), False

    def chroma(name: str) -> tuple[Any, bool]:
        from langchain_chroma import Chroma

        return Chroma(name, embedding, persist_directory=str(folder / f"chroma-{name}")), True

    def qdrant(name: str) -> tuple[Any, bool]:
        from langchain_qdrant import QdrantVectorStore
        from qdrant_client import QdrantClient
        from qdrant_client.models import Distance, VectorParams

        client = QdrantClient(":memory:")
        client.create_collection(name, vectors_config=VectorParams(size=size, distance=Distance.COSINE))
        return QdrantVectorStore(client, name, embedding), False

    def faiss(_: str) -> tuple[Any, bool]:
        import faiss as library
        from langchain_community.docstore.in_memory import InMemoryDocstore
        from langchain_community.vectorstores import FAISS

        return FAISS(embedding, library.IndexFlatL2(size), InMemoryDocstore(), {}), True

    def postgres(name: str) -> tuple[Any, bool]:
        import pgserver
        from langchain_postgres import PGVector

        server = pgserver.get_server(str(folder / "postgres"))
        server.psql(f"CREATE DATABASE {name}")  # PGVector keeps an id once per database, whatever the collection
        place = server.get_uri(database=name)
        engine = place.replace("postgresql://", "postgresql+psycopg://")
        return PGVector(embedding, connection=engine, collection_name=name, use_jsonb=True), True

    def lancedb(name: str) -> tuple[Any, bool]:
        import lancedb as library
        from langchain_community.vectorstores import LanceDB

        connection = library.connect(str(folder / "lance"))
        # Its default mode keeps the last batch of a large corpus only.
        return LanceDB(connection, embedding, table_name=name, mode="append"), True

    return {
        "LangChain InMemoryVectorStore": memory,
        "LangChain Chroma": chroma,
        "LangChain Qdrant": qdrant,
        "LangChain FAISS": faiss,
        "LangChain LanceDB": lancedb,
        "LangChain PGVector": postgres,
    }


def llama_index_stores(folder: Path, size: int) -> dict[str, Callable[[str], Any]]:
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

        return FaissVectorStore(library.IndexFlatIP(size))

    def lancedb(name: str) -> Any:
        from llama_index.vector_stores.lancedb import LanceDBVectorStore

        return LanceDBVectorStore(uri=str(folder / "lance-li"), table_name=name)

    def postgres(name: str) -> Any:
        import pgserver
        from llama_index.vector_stores.postgres import PGVectorStore
        from sqlalchemy.engine import make_url

        server = pgserver.get_server(str(folder / "postgres"))
        server.psql(f"CREATE DATABASE {name}")
        place = make_url(server.get_uri(database=name))
        sync, later = (place.set(drivername=f"postgresql+{driver}") for driver in ("psycopg", "psycopg_async"))
        return PGVectorStore(connection_string=sync, async_connection_string=later, table_name=name, embed_dim=size)

    return {
        "LlamaIndex SimpleVectorStore": simple,
        "LlamaIndex Chroma": chroma,
        "LlamaIndex Qdrant": qdrant,
        "LlamaIndex LanceDB": lancedb,
        "LlamaIndex PGVector": postgres,
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


def made(folder: Path, embedding: Embeddings) -> dict[str, Callable[[str, str], tuple[Any, Any]]]:
    """By name of a store: from names of a recipe and a collection to the recipe over a new store, and a mirror."""
    import langchain_sire
    import llama_index_sire

    def over_langchain(maker: Any, recipe: str, name: str) -> tuple[Any, Any]:
        store, distances = maker(f"lc{name}")
        over = langchain_sire.over_vector_store(recipe, store, distances=distances)
        return over, langchain_sire.VectorStoreMirror(store)

    def over_llama_index(maker: Any, recipe: str, name: str) -> tuple[Any, Any]:
        store = maker(f"li{name}")
        return llama_index_sire.over_vector_store(recipe, store), llama_index_sire.VectorStoreMirror(store)

    size = len(embedding.embed_query("size"))
    return {
        **{name: partial(over_langchain, maker) for name, maker in langchain_stores(folder, embedding).items()},
        **{name: partial(over_llama_index, maker) for name, maker in llama_index_stores(folder, size).items()},
    }


def rows(folder: Path) -> list[list[str]]:
    """A row per store, a cell per recipe."""
    names = sorted(recipes.REGISTRY)
    own = {name: found_over(recipes.REGISTRY[name](), None) for name in names}
    table = []
    for store, make in made(folder, Kept(HashEmbedder(SIZE))).items():
        table.append([store, *(outcome(own[name], partial(make, name, name)) for name in names)])
        print(table[-1], file=sys.stderr, flush=True)
    return [["store", *names], ["---"] * (len(names) + 1), *(row for row in table if "not installed" not in row)]


def recall(data: str, questions: int, spec: str, names: Sequence[str]) -> list[list[str]]:
    """The share of the needed passages among the first five, by recipe, over our own scan and over stores."""
    dataset = load_dataset(data)
    asked = [question for question in dataset.questions if question.supporting][:questions]
    embedder = HashEmbedder(SIZE) if spec == "hash" else resolve_embedder(spec)
    embedding = Kept(embedder)

    def share(recipe: Any, mirror: Any) -> str:
        with Index(recipe=recipe, embedder=LangChainEmbedder(embedding), mirrors=[mirror] if mirror else ()) as index:
            index.build(dataset.documents)
            found = [{hit.doc_ids[0] for hit in index.search(question.question, 5)} for question in asked]
        shares = [len(hits & set(q.supporting)) / len(q.supporting) for hits, q in zip(found, asked, strict=True)]
        return f"{100 * sum(shares) / len(shares):.1f}"

    table = [["searched in", *names], ["---"] * (len(names) + 1), ["own scan", *(share(name, None) for name in names)]]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for store, make in made(Path(folder), embedding).items():
            with suppress(ImportError, SireError):  # not installed, or refused: the other table says so
                table.append([store, *(share(*make(name, name)) for name in names)])
                print(table[-1], file=sys.stderr, flush=True)
    return table


def lines_of(table: list[list[str]]) -> list[str]:
    """A table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in table]


def check(table: list[list[str]], page: str) -> list[str]:
    """What the page says otherwise."""
    return [f"{line}\nis not in {PAGE}" for line in lines_of(table) if line not in page.splitlines()]


def far(table: list[list[str]]) -> list[str]:
    """Stores that change recall by more than a point."""
    _, _, own, *others = table
    return [
        f"{store}: {value} instead of {expected} with {recipe}"
        for store, *values in others
        for recipe, value, expected in zip(table[0][1:], values, own[1:], strict=True)
        if abs(float(value) - float(expected)) > 1.0
    ]


def main() -> None:
    """Write the page, print recall, or check either."""
    warnings.simplefilter("ignore")
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--recall", metavar="DATA_SET")
    words.add_argument("--recipes", default="sire", help="of --recall, separated by commas")
    words.add_argument("--questions", type=int, default=300)
    words.add_argument("--embedder", default="st:all-MiniLM-L6-v2", help="hash needs nothing to be installed")
    words.add_argument("--check", action="store_true")
    given = words.parse_args()
    if given.recall:
        table = recall(given.recall, given.questions, given.embedder, given.recipes.split(","))
        print("\n".join(lines_of(table)))
        wrong = far(table) if given.check else []
        sys.exit("\n".join(wrong) or None)
    page = PAGE.read_text(encoding="utf-8")
    _, mark, measured = page.partition("\n## Recall")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        table = rows(Path(folder))
    if given.check:
        sys.exit("\n".join(check(table, page)) or None)
    lines = "\n".join(lines_of(table))
    PAGE.write_text(
        "# Which recipe works over which vector store\n\nEvery recipe works over every store in this table, except "
        "those that assign ids of their own. Each recipe was built over the sample corpus, and the three demo "
        "questions were asked.\n`same hits` means the same ten passages, in the same order, as with sire-rag's own "
        "vector search (*own scan*). Generated by `python benchmarks/stores.py`.\n\n" + lines + "\n" + mark + measured,
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
