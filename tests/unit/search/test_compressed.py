"""Compressed vectors."""

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.filters import parse_filter
from sire_core.recipes import flat, pagerank, sire
from sire_core.search.ranking import ScoredRanking, best_first
from sire_core.search.vectors import sq_index
from sire_core.search.vectors.flat import Flat, PQIndex, PQRanking
from sire_core.search.vectors.sq_index import KnownSimilarities, SQIndex, sq_pays
from sire_core.search.view import PoolView
from sire_core.storage.derived import DerivedFiles
from sire_core.storage.pool import Pool
from sire_core.testing.doubles import HashEmbedder

ROWS, DIMENSION = 12_000, 32


@pytest.fixture(scope="module")
def matrix():
    return unit(np.random.default_rng(0).standard_normal((ROWS, DIMENSION)))


@pytest.fixture(scope="module")
def questions():
    return unit(np.random.default_rng(1).standard_normal((30, DIMENSION)))


@pytest.fixture(scope="module")
def codes(matrix):
    return PQIndex(PlainView(matrix, None))


class PlainView:
    """Just what `Flat` reads of a view."""

    kind_names = ("chunk",)
    scans = True

    def __init__(self, matrix, question):
        self.matrix = matrix
        self.question = question
        self.kinds = np.zeros(len(matrix), dtype=np.uint8)
        self.ids = np.array([f"u{i}" for i in range(len(matrix))], dtype="S24")
        self.made = {}

    async def embed_query(self, query):
        return self.question

    async def cosines(self, query, question, where=None):
        return self.matrix @ question

    async def similarities(self, query, question, where=None):
        return KnownSimilarities(self.matrix @ question)

    def allowed(self, where):
        return None if where is None else np.arange(len(self.matrix)) % 2 == 0

    def derived(self, name, make):
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]

    def cached_on_disk(self, name, make, save, load):
        return make()


def stored_view(matrix, folder):
    """A view of vectors alone whose derived files lie in a folder."""
    none = np.zeros(0, dtype=np.int64)
    texts = dict.fromkeys(("documents", "metadata", "titles"), b"[]")
    pool = Pool(1, matrix, *[none] * 10, rows=none, **texts, files=DerivedFiles(folder, "pool"))
    return PoolView(pool, None, None, list, lambda _: None)


def test_recall_and_order_of_random_vectors(matrix, questions, codes):
    found = 0
    for question in questions:
        positions, scores = codes.best(question, 10)
        exact = best_first(matrix @ question, 10)
        found += len(set(positions.tolist()) & set(exact.tolist()))
        assert np.allclose(scores, matrix[positions] @ question, atol=1e-6)
        assert (np.diff(scores) <= 0).all()
    assert found >= 0.999 * 10 * len(questions)


async def test_flat_uses_codes_from_the_threshold_on(matrix, questions):
    view = PlainView(matrix, questions[0])
    exact = await Flat().rank("q", 10, view)
    assert not isinstance(exact, PQRanking)
    assert not isinstance(await Flat(ann_threshold=ROWS + 1).rank("q", 10, view), PQRanking)
    coded = await Flat(ann_threshold=ROWS).rank("q", 10, view)
    assert isinstance(coded, PQRanking)
    assert list(view.made) == ["coded rows"]
    assert (await coded.top(10))[0].tolist() == (await exact.top(10))[0].tolist()
    assert (await coded.top(3))[0].tolist() == (await coded.top(10))[0][:3].tolist()
    places = np.array([7, 3, 9000])
    assert np.allclose(coded.scores_at(places), exact.scores_at(places), atol=1e-6)
    assert coded.path(7)[0].note == exact.path(7)[0].note


async def test_who_reads_on_gets_the_exact_scan(matrix, questions):
    view = PlainView(matrix, questions[0])
    exact, coded = await Flat().rank("q", 10, view), await Flat(ann_threshold=1).rank("q", 10, view)
    for n in (101, ROWS + 5):
        (ours, scores), (theirs, wanted) = await coded.top(n), await exact.top(n)
        assert ours.tolist() == theirs.tolist()
        assert scores.tolist() == wanted.tolist()


async def test_filtered_searches_scan(matrix, questions):
    view = PlainView(matrix, questions[0])
    ranking = await Flat(ann_threshold=1).rank("q", 10, view, parse_filter({"year": 1}))
    positions, _ = await ranking.top(50)
    assert isinstance(ranking, ScoredRanking)
    assert (positions % 2 == 0).all()


def test_codes_are_kept_and_made_again_when_they_are_damaged(matrix, questions, codes, tmp_path):
    wanted = codes.best(questions[0], 20)[0].tolist()
    assert PQIndex(stored_view(matrix, tmp_path)).best(questions[0], 20)[0].tolist() == wanted
    kept = tmp_path / "codes" / "codes.faiss"
    written = kept.stat().st_mtime_ns
    assert PQIndex(stored_view(matrix, tmp_path)).best(questions[0], 20)[0].tolist() == wanted
    assert kept.stat().st_mtime_ns == written
    whole = kept.read_bytes()
    kept.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    assert PQIndex(stored_view(matrix, tmp_path)).best(questions[0], 20)[0].tolist() == wanted
    assert kept.stat().st_mtime_ns != written
    assert kept.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["codes"]


def near(rows, seed):
    """Unit rows in 200 tight groups."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(3).standard_normal((200, DIMENSION))
    return unit(centers[rng.integers(200, size=rows)] + 0.5 * rng.standard_normal((rows, DIMENSION)))


@pytest.fixture(scope="module")
def groups():
    return near(ROWS, 4)


def test_a_question_whose_cells_hold_too_little_is_asked_of_all(groups):
    first = near(1, 6)
    crowd = np.concatenate([groups, np.repeat(first, 40 * 128, axis=0)])
    codes = PQIndex(PlainView(crowd, None), cells_from=ROWS)
    far = unit(np.random.default_rng(7).standard_normal((20, DIMENSION)))
    assert [len(codes.best(question, 100)[0]) for question in far] == [100] * 20


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
        assert sq_index._DERIVED_NAME not in index.view().made
    monkeypatch.setattr(sq_index, "_FEWEST", 0)
    with Index(recipe=recipe, embedder=HashEmbedder()) as index:
        index.build(documents())
        through_bytes = asked(index)
        assert sq_index._DERIVED_NAME in index.view().made
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
