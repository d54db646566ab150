"""Large pools through one byte per number: the same ranking, read from fewer vectors."""

from pathlib import Path

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.knowledge.entity_graph import EntityGraph
from sire_core.recipes import flat, pagerank, sire
from sire_core.search.ranking import best_first
from sire_core.search.vectors import sq_index
from sire_core.search.vectors.sq_index import SQIndex, sq_pays
from sire_core.testing.doubles import HashEmbedder

QUESTION = "Which harbour did the painter of the Salt Lantern 7 build?"


def unit(rows):
    return (rows / np.maximum(1e-9, np.linalg.norm(rows, axis=-1, keepdims=True))).astype(np.float32)


def matrices():
    rng = np.random.default_rng(0)
    spread = rng.standard_normal((5000, 48))
    peaked = spread**5
    repeated = np.repeat(spread[:500], 10, axis=0)
    nothing = np.where(np.arange(5000)[:, None] % 2, spread, 0.0)
    return {"spread": spread, "peaked": peaked, "repeated": repeated, "half of nothing": nothing}


@pytest.mark.parametrize("name", matrices())
def test_the_nearest_rows_are_those_of_the_exact_scan(name):
    matrix = unit(matrices()[name])
    index = SQIndex.make(matrix)
    found = 0
    for question in unit(np.concatenate([np.random.default_rng(1).standard_normal((20, 48)), matrix[:20] + 0.01])):
        scores = matrix @ question
        for n in (1, 10, 100):
            best = index.best(question, n)
            if best is not None:
                found += 1
                np.testing.assert_allclose(best[1], scores[best_first(scores, n)], atol=1e-6)
                np.testing.assert_allclose(best[1], scores[best[0]], atol=1e-6)
                assert len(set(best[0].tolist())) == n
    assert found or name == "repeated", "ten equal rows around every border cannot be told apart"


def test_what_is_near_nothing_is_scanned():
    index = SQIndex.make(np.zeros((100, 16), dtype=np.float32))
    assert index.best(np.zeros(16, dtype=np.float32), 3) is None
    assert index.best(unit(np.ones(16)), 3) is None
    assert not sq_pays(4_000, 512)
    assert sq_pays(100_000, 512)


def documents():
    makers = ("painter", "miller", "sailor", "baker")
    return [
        Document(
            f"d{n}",
            f"The Salt Lantern {n} was made by the {makers[n % 4]} Orla Venn {n % 50}. It hung in Harbour {n % 30}.",
            f"Salt Lantern {n}" if n % 3 else f"Orla Venn {n % 50}",
            {"half": n % 2},
        )
        for n in range(400)
    ]


@pytest.mark.parametrize(
    "recipe", [sire(pool=5), sire(pool=5, read_steps=3), flat(), flat(ranker="hybrid"), pagerank(dense_hits=3)]
)
def test_a_search_through_bytes_finds_what_a_scan_does(recipe, monkeypatch: pytest.MonkeyPatch):
    with Index(recipe=recipe, embedder=HashEmbedder()) as index:
        index.build(documents())
        scanned = asked(index)
        assert sq_index._NAME not in index.view().made
    monkeypatch.setattr(sq_index, "_FEWEST", 0)
    with Index(recipe=recipe, embedder=HashEmbedder()) as index:
        index.build(documents())
        through_bytes = asked(index)
        assert sq_index._NAME in index.view().made
    for scan, found in zip(scanned, through_bytes, strict=True):
        assert [(hit.unit.id, hit.path) for hit in found] == [(hit.unit.id, hit.path) for hit in scan]
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in scan], abs=1e-6)


def asked(index):
    """Few hits, all of them, those that a filter leaves, and several questions at once."""
    return [
        index.search(QUESTION, 5),
        index.search(QUESTION, 1000),
        index.search(QUESTION, 5, filter={"half": 1}),
        index.search(QUESTION, 7, returns="units"),
        *index.search_many([QUESTION, "Who is Orla Venn 3?"], 5),
    ]


def test_a_first_search_reads_what_the_build_has_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Neither the rows of the graph nor the vectors are gone through again."""
    monkeypatch.setattr(sq_index, "_FEWEST", 0)
    with Index(tmp_path / "ix", recipe=sire(pool=5), embedder=HashEmbedder()) as index:
        index.build(documents())
        known = index.search(QUESTION, 5)
    monkeypatch.setattr(SQIndex, "make", None)
    monkeypatch.setattr(EntityGraph, "_read", None)
    with Index(tmp_path / "ix", embedder=HashEmbedder()) as index:
        assert index.search(QUESTION, 5) == known
