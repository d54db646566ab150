"""Vector databases as the vector index of an `Index`: `Index(path, store=PostgresStore("postgresql://..."))`."""

from sire_core.stores.lance import LanceStore
from sire_core.stores.postgres import PostgresStore
from sire_core.stores.qdrant import QdrantStore

__all__ = ["LanceStore", "PostgresStore", "QdrantStore"]
