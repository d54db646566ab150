"""Rankings: order, ties, filters; for every ranker that works over any pool."""

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.algorithms.snippets import snippet
from sire_core.data import demo_documents
from sire_core.filters import parse_filter
from sire_core.index import Index
from sire_core.recipes import sirerag
from sire_core.search.explanation import text_below_title
from sire_core.search.rankers.hybrid import Hybrid
from sire_core.search.rankers.lexical import Lexical
from sire_core.search.ranking import best_first
from sire_core.search.vectors.flat import Flat
from sire_core.testing.doubles import HashEmbedder, PlainExtractor
from sire_core.types import Document, UnitKind

RANKERS = [Flat(), Flat("Answer briefly."), Lexical(), Hybrid(), Hybrid(depth=3), Hybrid((Lexical(),), constant=1.0)]
QUESTIONS = ["Which ferry crosses the strait to the school?", "zzz qqq", "the", "Æther 漢字"]
SCORES = st.lists(st.one_of(st.sampled_from([0.0, 0.5, 1.0, -np.inf]), st.floats(-9, 9, width=32)), max_size=40)


@pytest.fixture(scope="module")
def view():
    documents = [
        Document(d.id, d.text, d.title, {"half": "even" if i % 2 else "odd"}) for i, d in enumerate(demo_documents())
    ]
    index = Index(recipe=sirerag(max_cluster_tokens=150), embedder=HashEmbedder(), extractor=PlainExtractor())
    index.build(documents)
    return index.view()


def top(ranker, question, n, view, where=None):
    async def rank():
        return await (await ranker.rank(question, n, view, where)).top(n)

    positions, scores = asyncio.run(rank())
    return positions.tolist(), scores.tolist()


@given(SCORES, st.integers(0, 50))
def test_best_first_equals_sorting(scores, n):
    values = np.array(scores, dtype=np.float32)
    expected = [i for i in sorted(range(len(values)), key=lambda i: (-values[i], i)) if np.isfinite(values[i])][:n]
    assert best_first(values, n).tolist() == expected


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
@pytest.mark.parametrize("question", QUESTIONS)
def test_rankers_list_everything_once_best_first_ties_by_position(ranker, question, view):
    positions, scores = top(ranker, question, view.size + 5, view)
    assert sorted(positions) == list(range(view.size))
    assert positions == [p for _, p in sorted(zip([-s for s in scores], positions, strict=True))]
    for n in (1, 4, 49, 51, view.size):
        assert top(ranker, question, n, view) == (positions[:n], scores[:n])


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_rankers_keep_to_the_filter(ranker, view):
    where = parse_filter({"half": "odd"})
    allowed = view.allowed(where)
    metadata = view.pool.distinct_metadata()
    for position, unit in enumerate(view.units(range(view.size))):
        chunks = view.pool.indices[view.pool.indptr[position] : view.pool.indptr[position + 1]]
        halves = {metadata[view.pool.chunk_metadata[chunk]]["half"] for chunk in chunks}
        assert allowed[position] == (halves == {"odd"}), unit
    positions, _ = top(ranker, QUESTIONS[0], view.size, view, where)
    assert sorted(positions) == np.flatnonzero(allowed).tolist()
    kinds = {unit.kind for unit in view.units(positions)}
    assert UnitKind.CHUNK in kinds
    assert top(ranker, QUESTIONS[0], 9, view, parse_filter("half=neither")) == ([], [])


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_rankers_hold_nothing_of_a_query(ranker, view):
    async def together():
        rankings = await asyncio.gather(*(ranker.rank(q, 9, view) for q in QUESTIONS * 6))
        return [[part.tolist() for part in await ranking.top(9)] for ranking in rankings]

    assert asyncio.run(together()) == [[list(part) for part in top(ranker, q, 9, view)] for q in QUESTIONS * 6]


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_reasons_name_the_unit_and_citations_do_not_depend_on_n(ranker, view):
    async def read(n):
        ranking = await ranker.rank(QUESTIONS[0], n, view)
        positions, scores = await ranking.top(n)
        return view.hits(positions, scores, ranking)

    few, many = asyncio.run(read(5)), asyncio.run(read(view.size))
    assert many[:5] == few
    for hit in many:
        assert hit.unit.id in {name for step in hit.path for name in step.ids}
        if hit.unit.kind is not UnitKind.CHUNK:
            assert hit.path[-1].step == "sources"
            assert hit.path[-1].ids == hit.unit.chunk_ids


def test_flat_scores_are_cosines(view):
    vector = asyncio.run(view.embed_query(QUESTIONS[0]))
    positions, scores = top(Flat(), QUESTIONS[0], 7, view)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    assert np.linalg.norm(view.matrix, axis=1) == pytest.approx(np.ones(view.size), abs=1e-5)
    assert scores == pytest.approx((view.matrix[positions] @ vector).tolist())


def test_hybrid_gives_no_credit_for_the_corpus_order():
    """A word that one passage has: BM25 lists all others with 0, in corpus order, and that must not lift them."""
    texts = [f"Passage {i} about nothing." for i in range(30)] + ["Passage 30 about quartz."]
    index = Index(recipe="flat", embedder=HashEmbedder())
    index.build([Document(f"d{i}", text) for i, text in enumerate(texts)])
    view = index.view()
    dense, _ = top(Flat(), "quartz", 31, view)
    fused, _ = top(Hybrid(), "quartz", 31, view)
    assert fused[0] == 30
    assert [p for p in fused if p != 30] == [p for p in dense if p != 30]


def test_explanations_show_the_way_down_the_tree():
    index = Index(recipe=sirerag(), embedder=HashEmbedder(), extractor=PlainExtractor())
    index.build(demo_documents())
    hits = index.search("harbor ferry school", 200, returns="units")
    text = index.explain("harbor ferry school", 200, returns="units")
    assert f"{len(hits)} hits among {len(hits)} units" in text
    for hit in hits:
        assert f"{hit.score:.4f}" in text
        assert f"| {snippet(text_below_title(hit.unit), 'harbor ferry school', 400)}" in text
    summaries = [hit for hit in hits if hit.unit.level]
    assert text.count("summarises: ") == len(summaries) > 0
