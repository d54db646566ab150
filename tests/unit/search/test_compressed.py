"""Compressed vectors find what a scan of all vectors does."""

import pytest

from sire_core import Document, Index
from sire_core.recipes import flat
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
