"""Hits of another snapshot, of another tenant or of no index are refused, whatever is asked about them."""

from dataclasses import replace

import pytest

from sire_core.errors import QueryError
from sire_core.index import Index
from sire_core.models.sync import run_sync
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document

DOCUMENTS = [
    Document(f"{tenant}{i}", f"Alma {i} met Boris {tenant} in Ceuta.", metadata={"tenant": tenant})
    for tenant in "ab"
    for i in range(4)
]


@pytest.mark.parametrize("recipe", ["flat", "smart", "sirerag"])
def test_hidden_and_unknown_hits(tmp_path, recipe):
    with Index(tmp_path / "ix", recipe=recipe, embedder=HashEmbedder()) as index:
        index.build(DOCUMENTS)
        all_hits = index.search("Who met Boris?", 20, returns="units")
        assert index.snapshot().size
        question, vectors = run_sync(index.snapshot().vectors("Who met Boris?", all_hits))
        assert vectors.shape == (len(all_hits), len(question))
    with Index(tmp_path / "ix", recipe=recipe, embedder=HashEmbedder(), allow="tenant=a") as index:
        snapshot = index.snapshot()
        own = snapshot.search("Who met Boris?", 20, returns="units")
        assert len(run_sync(snapshot.vectors("Who met Boris?", own))[1]) == len(own)
        run_sync(snapshot.background(own))
        hidden = [hit for hit in all_hits if hit.unit.id not in {found.unit.id for found in own}]
        unknown = replace(own[0], unit=replace(own[0].unit, id="none"))
        assert hidden
        for hit in (*hidden, unknown):
            for ask in (snapshot.vectors("Who met Boris?", [hit]), snapshot.background([own[0], hit])):
                with pytest.raises(QueryError, match="is no unit of this snapshot"):
                    run_sync(ask)
