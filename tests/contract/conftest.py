"""Databases for the vectors of an index."""

import random

import pytest

STORES = ["postgres", "qdrant", "lance"]


@pytest.fixture(params=STORES)
def make_store(request, tmp_path):
    """Makes stores over the same empty table: of processes that know nothing of one another."""
    from sire_core.stores import LanceStore, PostgresStore, QdrantStore

    made, table = [], f"t{random.randrange(10**12)}"

    def postgres():
        made.append(PostgresStore(request.getfixturevalue("postgres"), table))
        return made[-1]

    def qdrant():
        client = pytest.importorskip("qdrant_client").QdrantClient
        made.append(QdrantStore(made[0]._client if made else client(":memory:"), table))
        return made[-1]

    def lance():
        pytest.importorskip("lancedb")
        return LanceStore(tmp_path / "lance", table)

    yield {"postgres": postgres, "qdrant": qdrant, "lance": lance}[request.param]
    for store in made:
        getattr(store, "close", lambda: None)()
