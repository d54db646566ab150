"""Compressed vectors find what a scan of all vectors does."""

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.recipes import flat
from sire_core.search.ranking import best_first
from sire_core.search.vectors.sq_index import SQIndex, sq_pays
from sire_core.testing.doubles import HashEmbedder

QUESTIONS = [f"Which harbour did the painter Orla Venn {number} of Lamp {number * 7} build?" for number in range(12)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("compressed")
    with Index(path, recipe=flat(), embedder=HashEmbedder(64), chunker=None) as index:
        index.build(
            Document(
                f"d{n}", f"Lamp {n} was made by Orla Venn {n % 50} and hung in Harbour {n % 30}.", "", {"half": n % 2}
            )
            for n in range(10_001)
        )
    return path


def answers(folder, questions=QUESTIONS, **options):
    with (
        Index(folder, recipe=flat(), embedder=HashEmbedder(64)) as scan,
        Index(folder, recipe=flat(ann_threshold=100), embedder=HashEmbedder(64)) as coded,
    ):
        for question in questions:
            yield [
                [(hit.unit.id, pytest.approx(hit.score, abs=1e-5)) for hit in index.search(question, **options)]
                for index in (scan, coded)
            ]


def test_codes_find_nearly_all_of_the_nearest_rows_and_are_made_again_when_damaged(folder):
    def recall():
        pairs = [({unit for unit, _ in exact}, {unit for unit, _ in found}) for exact, found in answers(folder, k=10)]
        return sum(len(exact & found) for exact, found in pairs) / (10 * len(pairs))

    assert recall() >= 0.99
    [codes] = folder.rglob("codes.faiss")
    whole = codes.read_bytes()
    codes.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    assert recall() >= 0.99
    assert codes.read_bytes() == whole


@pytest.mark.parametrize("options", [{"k": 101}, {"k": 20_000}, {"k": 10, "filter": {"half": 1}}], ids=str)
def test_many_hits_and_filtered_ones_are_exact(folder, options):
    for exact, found in answers(folder, QUESTIONS[:3], **options):
        assert found == exact


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
