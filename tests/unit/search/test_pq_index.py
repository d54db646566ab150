"""Large pools through codes: nearly the exact ranking, filters and citations as ever."""

from pathlib import Path

import faiss
import numpy as np
import pytest

from sire_core.errors import ConfigurationError
from sire_core.filters import parse_filter
from sire_core.recipes import flat, sirerag
from sire_core.search.ranking import ScoredRanking, best_first
from sire_core.search.vectors.flat import Flat, PQIndex, PQRanking, RowReader
from sire_core.search.vectors.sq_index import KnownSimilarities
from sire_core.search.view import PoolView
from sire_core.storage.derived import DerivedFiles
from sire_core.storage.pool import Pool

ROWS, DIMENSION = 12_000, 32


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


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


def test_equal_rows_are_ordered_by_position(matrix, questions):
    doubled = np.concatenate([matrix[:6000], matrix[:6000]])
    positions, scores = PQIndex(PlainView(doubled, None)).best(questions[0], 10)
    assert (positions[1::2] == positions[::2] + 6000).all()
    assert (scores[1::2] == scores[::2]).all()


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


def test_a_folder_that_is_gone_costs_time_only(matrix, questions, codes, tmp_path):
    wanted = codes.best(questions[0], 20)[0].tolist()
    assert PQIndex(stored_view(matrix, tmp_path / "tidied")).best(questions[0], 20)[0].tolist() == wanted


def near(rows, seed):
    """Unit rows in 200 tight groups."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(3).standard_normal((200, DIMENSION))
    return unit(centers[rng.integers(200, size=rows)] + 0.5 * rng.standard_normal((rows, DIMENSION)))


@pytest.fixture(scope="module")
def groups():
    return near(ROWS, 4)


def test_many_rows_are_searched_in_few_cells(groups, tmp_path):
    codes, found = PQIndex(stored_view(groups, tmp_path), cells_from=ROWS), 0
    kept = faiss.read_index(str(tmp_path / "codes" / "codes.faiss"))
    assert kept.nlist == 128
    assert kept.nprobe < 32
    for question in near(30, 5):
        positions, scores = codes.best(question, 10)
        assert np.allclose(scores, groups[positions] @ question, atol=1e-6)
        found += len(set(positions.tolist()) & set(best_first(groups @ question, 10).tolist()))
    assert found >= 0.98 * 300


def test_a_question_whose_cells_hold_too_little_is_asked_of_all(groups):
    first = near(1, 6)
    crowd = np.concatenate([groups, np.repeat(first, 40 * 128, axis=0)])
    codes = PQIndex(PlainView(crowd, None), cells_from=ROWS)
    far = unit(np.random.default_rng(7).standard_normal((20, DIMENSION)))
    assert [len(codes.best(question, 100)[0]) for question in far] == [100] * 20


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells which pages are mapped")
def test_reading_rows_maps_no_pages(tmp_path):
    def mapped_kilobytes():
        text = Path("/proc/self/smaps").read_text().split("big.npy", 1)[1]
        return int(text.split("Rss:", 1)[1].split()[0])

    np.save(tmp_path / "big.npy", np.ones((20_000, DIMENSION), dtype=np.float32))
    rows = np.load(tmp_path / "big.npy", mmap_mode="r")
    reader, before = RowReader(rows), mapped_kilobytes()
    assert (reader.rows(np.arange(0, 20_000, 10)) == 1).all()
    assert mapped_kilobytes() == before
    assert (rows[np.arange(0, 20_000, 10)] == 1).all()
    assert mapped_kilobytes() > before


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "many"])
def test_thresholds_that_are_none(value):
    with pytest.raises(ConfigurationError, match="ann_threshold"):
        flat(ann_threshold=value)


def test_recipes_take_a_threshold():
    assert flat(ann_threshold=50_000).ranker == Flat(ann_threshold=50_000)
    assert sirerag(ann_threshold=50_000).ranker.ann_threshold == 50_000
    assert sirerag().ranker.ann_threshold is None
